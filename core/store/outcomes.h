/*
 * outcomes.h - the bytes of outcomes that may be asked for again
 *
 * STATE/outcomes/DECISION_ID, mode 0600, holds what rv_outcome_write() gave for a run with an idempotency key. The log
 * has the digest; a file with other bytes is as good as none. A file is there whole or not at all, and durable before
 * the record that names its digest is written. Thread: that of the log.
 */
#pragma once

#include "audit/log.h"
#include "base/buf.h"
#include "base/hash.h"

#define RV_OUTCOMES_DIRECTORY "outcomes"
#define RV_OUTCOMES_BYTES_MAX ((size_t)32 << 20)                            /* more than any outcome within its bounds has */
#define RV_OUTCOMES_KEPT_US (UINT64_C(24) * 3600 * 1000 * 1000)             /* how long an outcome is given again */
#define RV_OUTCOMES_PRUNE_US (RV_OUTCOMES_KEPT_US + UINT64_C(3600) * 1000 * 1000)   /* age of a file that nobody asks for any more */
#define RV_OUTCOMES_PRUNE_EVERY_US (UINT64_C(3600) * 1000 * 1000)

/**
 * rv_outcomes_put() - keep the outcome of a decision, in place of one that may be there
 * @decision_id: 32 hex digits
 *
 * Context:   blocks on the disk
 * Ownership: borrows
 * Return:    0; -EINVAL @decision_id is none; -errno
 */
int rv_outcomes_put(struct rv_log *log, const char *decision_id, const void *data, size_t n, struct rv_error *err);

/**
 * rv_outcomes_get() - the outcome of a decision
 * @sha256: of its bytes, hex, as the log has it
 * @out:    added to on success
 *
 * Context:   may block
 * Ownership: copies to @out
 * Return:    0; -ENOENT there is none; -EBADMSG there is one with other bytes; -EINVAL @decision_id is none; -errno
 */
int rv_outcomes_get(
        struct rv_log *log, const char *decision_id, const char *sha256, struct rv_buf *out, struct rv_error *err);

/**
 * rv_outcomes_prune() - remove what is older than RV_OUTCOMES_PRUNE_US, unless that was done within the last hour
 *
 * What a writer that was killed has left is removed too.
 *
 * Context:   may block
 * Ownership: none
 * Return:    how many files were removed; -errno, which is nothing to stop for
 */
int rv_outcomes_prune(struct rv_log *log);
