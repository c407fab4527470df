/*
 * outcome.h - the answer to a request: reeve.outcome/1
 *
 * `struct rv_outcome` gathers what the phases found out. It borrows everything but is itself plain memory:
 * whoever fills it keeps the captures, trees and texts alive for as long as it is written. It can be written
 * any number of times; the same outcome always gives the same bytes, and writing needs no more than a small
 * buffer, whatever the size of the output. One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "run/capture.h"
#include "run/json_stream.h"
#include "run/reason.h"
#include "run/result.h"

struct rv_outcome {
        const char *run_id, *decision_id, *tenant;   /* NULL is written as null, here and below */
        struct rv_classification reason;
        const json_t *detail;           /* reason.detail, for policy's; NULL: made from reason.detail */
        bool is_replayed;
        bool is_unrecorded;             /* the log failed while the run was under way */

        const struct rv_capture *out, *err;   /* finished; NULL: nothing was written */
        const struct rv_result *result;       /* NULL: none */

        uint32_t timeout_s, memory_mib;       /* the effective limits */
        const json_t *packages;         /* {"layer", "stale", "lock"}; NULL: a run without packages */

        const char *network_mode;       /* NULL: "none" */
        const json_t *contacts, *denials;     /* arrays; NULL: empty */
        uint64_t n_more_contacts, n_more_denials;

        const char *runtime_name, *runtime_digest;
        const char *backend_name;
        const char *backend_start;      /* "cold", "warm" */
        const char *backend_isolation;  /* of the manifest: "shared-kernel"… */
        const char *backend_teardown;   /* "complete", "incomplete"; NULL where nothing was begun */

        uint64_t wall_us, cpu_us;
        uint64_t peak_memory_bytes;
        uint32_t peak_processes;        /* 0: not known, null */
        uint64_t timings_us[RV_PHASE_MAX_];   /* only those that the outcome names are written */
};

/**
 * rv_outcome_write() - write an outcome as one line of JSON, without a newline at its end
 * @sink: gets the bytes in pieces; its first error ends the writing
 *
 * Members stand in the order of the contract. The answer, the stored bytes and rv_outcome_sha256() are all
 * made here, so they agree.
 *
 * Context:   as @sink
 * Ownership: borrows
 * Return:    0 or the sink's error
 */
int rv_outcome_write(const struct rv_outcome *o, rv_sink_fn sink, void *ctx);

/** rv_outcome_write_fd() - the same to a file descriptor, followed by a newline. Context: may block. Ownership: borrows. Return: 0 or -errno */
int rv_outcome_write_fd(const struct rv_outcome *o, int fd);

/** rv_outcome_sha256() - digest, as hex, of the bytes that rv_outcome_write() gives. Context: any. Ownership: borrows. Return: none */
void rv_outcome_sha256(const struct rv_outcome *o, char ret_hex[RV_SHA256_HEX_SIZE]);

/**
 * rv_outcome_line() - the one line that tells a person why a run did not complete
 * @out: the line is added, with a newline
 *
 * It begins "reeve: ", names the code, and for a policy's refusal rule, place and item: "reeve: stopped after
 * 30 s (timeout)". Control characters in texts of others are shown, not passed on. For a completed run
 * nothing is added.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0 or -ENOMEM
 */
int rv_outcome_line(const struct rv_outcome *o, struct rv_buf *out);
