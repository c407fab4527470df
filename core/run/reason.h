/*
 * reason.h - the words of the outcome model: status, reason code, phase, and what goes with them
 *
 * `struct rv_classification` is the judgement on one run: plain memory without resources, made once (by
 * rv_classify() for a run that a backend was asked for, by rv_classification_refuse() for one that was
 * turned away before) and then only read. The lists are X-macros from which enums, names and exit statuses
 * are made. Any thread.
 */
#pragma once

#include "base/rv.h"

#include <reeve/backend.h>

/* X(NAME, text) */
#define RV_STATUSES(X)                  \
        X(COMPLETED, "completed")       \
        X(FAILED, "failed")             \
        X(OUTCOME_UNKNOWN, "outcome_unknown") \
        X(BLOCKED, "blocked")

enum rv_status {
#define X(name, text) RV_STATUS_##name,
        RV_STATUSES(X)
#undef X
        RV_STATUS_MAX_,
};

/*
 * X(NAME, text, status, exit status of `reeve run`). The status is FAILED for those that may also be
 * OUTCOME_UNKNOWN. RV_EXIT_OWN: the program's own code, or 128 and its signal.
 */
#define RV_EXIT_OWN (-1)
#define RV_CODES(X)                                                             \
        X(OK, "ok", COMPLETED, 0)                                               \
        X(EXIT_NONZERO, "exit_nonzero", FAILED, RV_EXIT_OWN)                    \
        X(SIGNAL, "signal", FAILED, RV_EXIT_OWN)                                \
        X(TIMEOUT, "timeout", FAILED, 124)                                      \
        X(MEMORY_LIMIT, "memory_limit", FAILED, 137)                            \
        X(OUTPUT_LIMIT, "output_limit", FAILED, 123)                            \
        X(CANCELLED, "cancelled", FAILED, 130)                                  \
        X(SHUTDOWN, "shutdown", FAILED, 143)                                    \
        X(BACKEND_LOST, "backend_lost", FAILED, 125)                            \
        X(BACKEND_FAILED, "backend_failed", FAILED, 125)                        \
        X(RUNTIME_UNAVAILABLE, "runtime_unavailable", FAILED, 125)              \
        X(PACKAGE_UNAVAILABLE, "package_unavailable", FAILED, 125)              \
        X(PACKAGE_INSTALL_FAILED, "package_install_failed", FAILED, 125)        \
        X(PACKAGE_DENIED, "package_denied", BLOCKED, 126)                       \
        X(NETWORK_DENIED, "network_denied", BLOCKED, 126)                       \
        X(IDEMPOTENCY_REQUIRED, "idempotency_required", BLOCKED, 126)           \
        X(LIMIT_DENIED, "limit_denied", BLOCKED, 126)                           \
        X(BACKEND_DENIED, "backend_denied", BLOCKED, 126)                       \
        X(POLICY_ERROR, "policy_error", BLOCKED, 126)

enum rv_code {
#define X(name, text, status, exit_status) RV_CODE_##name,
        RV_CODES(X)
#undef X
        RV_CODE_MAX_,
};

/* X(NAME, text): the steps of the pipeline in their order; `decide` is both of its passes. */
#define RV_PHASES(X)                    \
        X(ACCEPT, "accept")             \
        X(VALIDATE, "validate")         \
        X(IDEMPOTENCY, "idempotency")   \
        X(QUEUE, "queue")               \
        X(DECIDE, "decide")             \
        X(RESOLVE, "resolve")           \
        X(PREPARE, "prepare")           \
        X(PLAN, "plan")                 \
        X(START, "start")               \
        X(RUN, "run")                   \
        X(COLLECT, "collect")           \
        X(TEARDOWN, "teardown")         \
        X(CLASSIFY, "classify")         \
        X(RECORD, "record")             \
        X(ANSWER, "answer")

enum rv_phase {
#define X(name, text) RV_PHASE_##name,
        RV_PHASES(X)
#undef X
        RV_PHASE_MAX_,
};

/* The members of reason.detail that the core itself can fill; zero and "" are left out. */
struct rv_detail {
        uint32_t limit_ms;           /* written as limit_s where it is whole seconds */
        uint32_t limit_mib;
        uint64_t limit_bytes;
        const char *stream;          /* static: "stdout" or "stderr" */
        const char *cause;           /* static; of backend_lost: see classify.h */
        const char *error;           /* static: the name of an errno, "EPERM" */
        char step[64];               /* the step of the set-up that failed */
        char missing[64];            /* the capability that the host lacks; written as a list */
        char path[RV_REASON_SIZE];   /* the interpreter that was looked for */
};

struct rv_classification {
        enum rv_status status;
        enum rv_code code;
        enum rv_phase phase;
        enum rv_started started;
        bool is_retryable;           /* the same request may succeed later without change */
        bool is_repeat_safe;         /* false only if it had network access and may have started */
        bool has_exit_code;
        uint8_t exit_code;
        uint8_t exit_signal;         /* 0: none */
        char message[RV_REASON_SIZE];
        struct rv_detail detail;
        const char *row;             /* static: the row of the table that fitted, for the debug log */
};

/** rv_status_name() - as in the outcome. Context: any. Ownership: static text. Return: the name */
const char *rv_status_name(enum rv_status status);
/** rv_code_name() - as in the outcome. Context: any. Ownership: static text. Return: the name */
const char *rv_code_name(enum rv_code code);
/** rv_phase_name() - as in the outcome. Context: any. Ownership: static text. Return: the name */
const char *rv_phase_name(enum rv_phase phase);
/** rv_started_name() - as in the outcome; what is no value of the enum is "unknown". Context: any. Ownership: static text. Return: the name */
const char *rv_started_name(enum rv_started started);

/** rv_code_status() - the status of a code where the outcome is known. Context: any. Ownership: none. Return: the status */
enum rv_status rv_code_status(enum rv_code code);

/** rv_code_parse() - the code of that name. Context: any. Ownership: borrows; @ret untouched on failure. Return: 0 or -ENOENT */
int rv_code_parse(const char *name, enum rv_code *ret);

#define RV_SIGNAL_NAME_SIZE 16

/**
 * rv_signal_name() - a signal as the outcome names it
 * @number: 1 to 64
 * @ret:    "KILL"; real-time signals count from the C library's SIGRTMIN as programs do ("RTMIN+3"); what
 *          has no name is its number
 *
 * Context:   any
 * Ownership: the caller's memory
 * Return:    none
 */
void rv_signal_name(int number, char ret[RV_SIGNAL_NAME_SIZE]);

/**
 * rv_classification_refuse() - the judgement on a run that was turned away before any backend was asked
 * @code:    one of policy's, BACKEND_DENIED, PACKAGE_UNAVAILABLE…: its status is the one of the table
 * @phase:   where
 * @message: one line for a person; longer than the field is cut
 *
 * Started is `no`, so a repeat is safe. The caller may set is_retryable and detail afterwards.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    none
 */
void rv_classification_refuse(enum rv_code code, enum rv_phase phase, const char *message,
        struct rv_classification *ret);

/**
 * rv_outcome_exit_status() - the exit status of `reeve run`
 *
 * The first that fits: blocked, outcome_unknown, cancelled, shutdown, `started: no` or backend_lost, then
 * the code's own. (A request that is rejected has no classification; its status is 2.)
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0 to 255
 */
int rv_outcome_exit_status(const struct rv_classification *c);
