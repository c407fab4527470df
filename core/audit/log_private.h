/*
 * log_private.h - what the files of the log share
 *
 * A `struct rv_log` is rv_log_open()'s. Functions marked "locked" need rv_log_lock() before. One thread.
 */
#pragma once

#include "audit/commit.h"
#include "audit/log.h"
#include "audit/segments.h"
#include "base/fd.h"
#include "base/hash.h"

#include <time.h>

#define RV_LOG_SECRET_BYTES 32
#define RV_LOG_SECRET_NAME "keys/hmac"
#define RV_LOG_DEPTH_MAX 64            /* of a record, the record itself included */

struct rv_log {
        char *state_dir, *audit_path;            /* for messages */
        int state_fd, audit_fd, lock_fd;
        char id[RV_LOG_ID_SIZE], instance[RV_LOG_ID_SIZE];
        uint8_t secret[RV_LOG_SECRET_BYTES];
        uint64_t lock_wait_us;                   /* then rv_log_lock() gives up */
        int broken;                              /* -errno of a failed sync: nothing is promised any more */
        bool is_dirty;                           /* appended since the last sync */
        uint64_t own_end;                        /* the seq after our last record */
        uint64_t n_durable;                      /* records known to survive a crash of the machine */
        int segment_fd;                          /* -EBADF until the first append or note */
        char segment[RV_LOG_SEGMENT_NAME_SIZE];
        uint64_t segment_first;                  /* the seq in its name */
        uint64_t segment_max;                    /* bytes; from there on the next record begins another one */
        struct timespec listed_at;               /* mtime of audit/ when the newest segment was looked for */
        /* See commit.h. */
        struct rv_commit *commit;                /* mapped, or NULL */
        int commit_fd;
        bool is_commit_tried;
        struct rv_redaction *redaction;          /* see redact.h; NULL: nothing is redacted */
        uint64_t secret_inode;                   /* of keys/hmac when it was read */
        struct timespec secret_ctime;
        /* The tail as last seen; holds as long as the segment's size is tail_end. */
        bool is_tail_known;
        uint64_t tail_end, next_seq;
        uint64_t cut_bytes;                      /* of an incomplete line, cut off and not yet on record */
        char prev[RV_SHA256_HEX_SIZE];
        /* See live.h. */
        int live_fd;                             /* -EBADF: not enlisted */
        size_t live_bytes;
        unsigned n_owed;                         /* decisions of ours without an outcome */
};

/* Where a record went. */
struct rv_log_spot {
        uint64_t seq, offset;
        size_t n;                                /* without the newline */
        char sha256[RV_SHA256_HEX_SIZE];
};

/** rv_log_fail() - set "STATE/audit/NAME: WHAT: the error's text; do this". Context: any. Ownership: borrows. Return: @r */
int rv_log_fail(const struct rv_log *log, struct rv_error *err, int r, const char *name, const char *what);

/** rv_log_check() - did an earlier sync fail? Context: any. Ownership: none. Return: 0, or its -errno */
int rv_log_check(const struct rv_log *log, struct rv_error *err);

/** rv_log_make_instance() - give the log an instance id, another than before. Context: any. Ownership: none. Return: 0 or -errno */
int rv_log_make_instance(struct rv_log *log, struct rv_error *err);

/**
 * rv_log_open_without_secret() - as rv_log_open_at(), of a log that is there, whatever its secret is like
 *
 * Context:   may block
 * Ownership: borrows @state_fd; *@ret is the caller's (rv_log_close)
 * Return:    0; -ENOENT there is no log; as rv_log_open()
 */
int rv_log_open_without_secret(int state_fd, const char *state_dir, struct rv_log **ret, struct rv_error *err);

/** rv_log_make_secret() - locked: replace keys/hmac by a new one, durably, and use that. Context: blocks on the disk. Ownership: none. Return: 0; -errno: the old one is still in place */
int rv_log_make_secret(struct rv_log *log, struct rv_error *err);

/** rv_log_renew_secret() - locked: read the secret again if it was replaced since. Context: may block. Ownership: none. Return: 0 or -errno */
int rv_log_renew_secret(struct rv_log *log, struct rv_error *err);

/** rv_log_delist() - at the end: remove the file in audit/live unless something is owed. Context: may block. Ownership: none. Return: none */
void rv_log_delist(struct rv_log *log);

/** rv_log_lock() - become the writer, waiting lock_wait_us at most. Context: may block. Ownership: none. Return: 0; -ETIMEDOUT; -errno */
int rv_log_lock(struct rv_log *log, struct rv_error *err);
/** rv_log_unlock() - let others write. Context: any. Ownership: none. Return: none */
void rv_log_unlock(struct rv_log *log);
static inline void rv_log_unlockp(struct rv_log **log)
{
        if (*log)
                rv_log_unlock(*log);
}

/** rv_log_open_segment() - open the newest segment unless that is done. Context: may block. Ownership: none. Return: 1; 0 if there is none; -errno */
int rv_log_open_segment(struct rv_log *log, struct rv_error *err);

/**
 * rv_log_read_tail() - locked: make sure that next_seq, prev and tail_end are those of the newest segment
 *
 * Another writer may have begun a new segment: that one is then open. An incomplete last line is cut off; cut_bytes
 * is then its length.
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    0; -EBADMSG the last line is no record of this log; -ESTALE the segment was removed; -errno
 */
int rv_log_read_tail(struct rv_log *log, struct rv_error *err);

/**
 * rv_log_rotate() - locked, the tail is known: begin a new segment with the next record
 *
 * What the old one holds is durable before the new one is there, and that before anything is written to it. A
 * crash in between leaves a segment without a record, which the next writer goes on with.
 *
 * Context:   blocks on the disk
 * Ownership: none
 * Return:    0; -errno
 */
int rv_log_rotate(struct rv_log *log, struct rv_error *err);

/**
 * rv_log_read_line() - one line again, by the place where it stands
 *
 * Context:   may block
 * Ownership: copies to @out
 * Return:    as rv_lines_one()
 */
int rv_log_read_line(struct rv_log *log, const char *segment, uint64_t offset, size_t n, struct rv_buf *out,
        struct rv_error *err);

/**
 * rv_log_end() - the newest segment and its size: where neither has changed, nothing was written
 *
 * Context:   may block
 * Ownership: the caller's memory
 * Return:    1; 0 there is no segment; -errno
 */
int rv_log_end(
        struct rv_log *log, char ret_segment[RV_LOG_SEGMENT_NAME_SIZE], uint64_t *ret_size, struct rv_error *err);

/** rv_log_parse() - a line as a value; NUL in strings is allowed, as a record may hold what a policy said. Context: any. Ownership: the reference is the caller's. Return: the value, or NULL */
json_t *rv_log_parse(const char *line, size_t n);

/** rv_log_append_locked() - locked: as rv_log_append(). Context: may block. Ownership: borrows. Return: as rv_log_append() */
int rv_log_append_locked(struct rv_log *log, const char *kind, json_t *body, struct rv_log_spot *ret,
        struct rv_error *err);
