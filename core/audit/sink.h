/*
 * sink.h - the second place of the log: its lines, as they stand, to a file, a command or an HTTPS address
 *
 * What nobody has but the machine that wrote it proves little. A sink gets the checkpoints of the log, or all of its
 * records. The log itself is the buffer: `audit/sent` names the last line that the sink has acknowledged, and whoever
 * holds `audit/sending` (an exclusive flock) reads on from there, sends batches of at most 1 MiB of whole lines (one
 * line alone may be longer), and moves the mark after each acknowledgement:
 *
 *     file       it is written, and fdatasync() says so
 *     command    it has read all of its standard input, and ends with status 0
 *     https      the POST of application/x-ndjson is answered with 2xx
 *
 * So every line arrives at least once, in the order of the log. A crash between acknowledgement and mark sends a batch
 * again, and a mark that is lost or does not fit the log begins with its first line: the receiver drops what it has by
 * log_id and seq. What was cut off in the middle (a line that does not end, or is no JSON) comes again, whole.
 *
 *   rv_sink_open (with privilege) -> (rv_sink_lag | rv_sink_send)* -> rv_sink_close
 *
 * Memory is bounded by one batch. Thread: that of the log.
 */
#pragma once

#include "audit/log.h"
#include "base/config.h"

#define RV_SINK_BATCH_BYTES ((size_t)1 << 20)

struct rv_sink;

/**
 * rv_sink_open() - open what the configuration names, while there is the privilege for it
 * @config: with `to`; borrowed until rv_sink_close()
 *
 * A file is opened or made (0600), the helper and the headers are read for an address. What fails then is no failure
 * here: it is what rv_sink_send() fails with.
 *
 * Context:   may block on a slow disk
 * Ownership: *@ret is the caller's
 * Return:    0; -ENOMEM
 */
int rv_sink_open(const struct rv_config_sink *config, struct rv_sink **ret, struct rv_error *err);
/** rv_sink_close() - release; NULL is allowed. Context: any. Ownership: takes @sink. Return: none */
void rv_sink_close(struct rv_sink *sink);
RV_DEFINE_CLEANUP(struct rv_sink, rv_sink_close)

/** rv_sink_name() - for a message: `to` without credentials and query. Context: any. Ownership: borrowed from @sink. Return: the text */
const char *rv_sink_name(const struct rv_sink *sink);

/** rv_sink_lag() - how many bytes of the log lie behind the mark. Context: may block. Ownership: borrows. Return: 0; -errno */
int rv_sink_lag(struct rv_log *log, uint64_t *ret_bytes, struct rv_error *err);

struct rv_sink_progress {
        uint64_t n_records, n_bytes;     /* delivered; records that are not wanted are not counted */
};

#define RV_SINK_E_BUSY 1

/**
 * rv_sink_send() - deliver what the log has now
 * @deadline_us: on rv_boot_us()'s clock; UINT64_MAX: only each batch has its time, `timeout`
 * @progress:    added to, after a failure too
 *
 * Why it failed is kept for rv_sink_last_error() until a delivery succeeds.
 *
 * Context:   blocks until the deadline at most, but for a disk
 * Ownership: borrows
 * Return:    0 nothing of what was there is left; RV_SINK_E_BUSY another process is at it; -ETIMEDOUT; -errno
 */
int rv_sink_send(struct rv_sink *sink, struct rv_log *log, uint64_t deadline_us, struct rv_sink_progress *progress,
        struct rv_error *err);

/** rv_sink_last_error() - why the last delivery failed, "" if it did not. Context: may block. Ownership: the caller's memory. Return: 0; -errno */
int rv_sink_last_error(struct rv_log *log, char *ret, size_t size);

#define RV_SINK_REST_FACTOR 10u

/**
 * rv_sink_rest_us() - for how much longer who has the choice leaves the sink alone
 *
 * After an attempt that took a second or more and delivered nothing that is RV_SINK_REST_FACTOR times as long as it
 * took, 5 minutes at most: a sink that hangs then costs all who write to the log a tenth of their time, and not each
 * of them its timeout.
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    microseconds; 0 it may be tried, or that is not known
 */
uint64_t rv_sink_rest_us(struct rv_log *log);
