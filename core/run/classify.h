/*
 * classify.h - from evidence to outcome: one pure function, one table
 *
 * Backends report what they saw, the core knows what it asked for; rv_classify() puts the two together. It
 * reads nothing else (no clock, no configuration), so the same evidence always gives the same outcome, and
 * two backends that saw the same thing cannot differ. Causes come from evidence, never from 137: a kill that
 * reeve sent *and* a death by it, a counter of the kernel *and* the run's own limit reached. Evidence that
 * contradicts itself is never read as a success, and never as "safe to repeat". Any thread.
 */
#pragma once

#include "run/reason.h"

/* detail.cause of backend_lost. */
#define RV_CAUSE_HOST_MEMORY "host_out_of_memory"   /* the host or a parent was short of memory, not the run */
#define RV_CAUSE_WATCHER "watcher_lost"             /* what watched the run is gone, or failed */
#define RV_CAUSE_NO_REPORT "no_report"              /* it ended, or may have, and nothing tells how */
#define RV_CAUSE_CONTRADICTION "contradictory_report"
#define RV_CAUSE_GATE "gate_lost"                   /* what served the run's network is gone */
#define RV_CAUSE_UNASKED_STOP "unasked_stop"        /* the backend killed it for no reason that the core knows */

struct rv_evidence {
        bool has_network;                /* network mode other than none */
        uint32_t timeout_s, memory_mib;  /* the effective limits */

        enum rv_stop stop;               /* the reason the core gave to stop(), or why it never started it */
        enum rv_phase stop_phase;        /* where the run was at that time */
        uint32_t stop_limit_ms;          /* RV_STOP_TIMEOUT: the budget of that phase; 0: timeout_s */
        enum rv_stream stop_stream;      /* RV_STOP_OUTPUT_LIMIT: which */
        uint64_t output_ceiling_bytes;

        bool is_gate_refusal;            /* RV_STOP_GATE: the gate is there and does not serve the run */
        char gate_text[RV_REASON_SIZE];  /* with it: why */

        bool was_released;               /* the core called go() */
        bool was_seen_started;           /* the backend called started() */
        const char *interpreter_path;    /* what was looked for, or NULL */

        /* The core's own full-size copy, or NULL: no backend was asked, start() failed or nothing came. */
        const struct rv_observation *observation;
        int start_error;                 /* -errno that start() gave, or 0 */
        const char *start_step;          /* with it: what failed, or NULL */
};

/**
 * rv_classify() - the judgement on a run that was let through
 * @e:   all of the evidence
 * @ret: written on success
 *
 * In short, in the order of the table: the run's own memory limit; exit code 0; a death by a kill that reeve
 * sent; a stop before anything was executed; a shortage of memory elsewhere; the program's own status; what
 * the backend says went wrong; a loss. A program that PID 1 reaped before the kill keeps its own status.
 *
 * Context:   any; pure
 * Ownership: borrows @e; @ret holds static text only
 * Return:    0; -EINVAL if @e->stop or @e->stop_phase is no value of its enum (@ret untouched)
 */
int rv_classify(const struct rv_evidence *e, struct rv_classification *ret);

/** rv_classify_n_rows() - how many rows the table has, for the test that each can be reached. Context: any. Ownership: none. Return: the number */
size_t rv_classify_n_rows(void);
/** rv_classify_row_name() - the name of row @i (below rv_classify_n_rows()). Context: any. Ownership: static text. Return: the name */
const char *rv_classify_row_name(size_t i);
