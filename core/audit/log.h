/*
 * log.h - the audit log: append-only canonical JSON lines, written by many processes, one at a time
 *
 * Concept. Below the state directory there are
 *
 *     audit/                          directory, 0700
 *       lock                          flock()ed exclusively by whoever writes
 *       id                            the log's id, 32 hex digits
 *       00000000000000000000.jsonl    a segment, named by the seq of its first record
 *       commit                        what is durable (commit.h); a cache
 *       last/NAME                     where the newest record of a kind stands (see log_note.c); a cache
 *       live/INSTANCE                 one for each writer of decisions that lives, or died owing an outcome (live.h)
 *       boot                          the kernel's boot id when the log was last looked through (recover.h)
 *     keys/hmac                       the log's secret, 64 hex digits, 0600
 *
 * A record is one line: an object in canonical form (RFC 8785) and a newline, at most 2 MiB. This module
 * adds `seq` (from 0, without gaps), `prev` (SHA-256 in hex of the line before without its newline, 64
 * zeros at first), `kind`, `log_id`, `time_us` (wall clock), `instance` (of the writing reeve) and
 * `build`. seq and prev are continued from the tail of the file under the lock, so they hold across
 * processes; time_us is taken under the lock too. A line that a crash left incomplete is cut off by the
 * next writer, which puts a `gap` record (`cause` "incomplete_line", `cut_bytes`) in its place. A segment that
 * has reached its size is followed by another one; only the newest, or the one before it while that is empty, is
 * needed to go on writing.
 *
 * Lifetime: rv_log_open() … rv_log_close(). Threads: a log is used by one thread at a time. A lock belongs
 * to the open file, so a forked child must not use its parent's log: it opens its own. Every call may
 * block on the disk; the lock is waited for 5 s, then it is -ETIMEDOUT.
 *
 * Errors: the message names the file. Nothing half-written stays behind an error. After a failed
 * rv_log_sync() what the kernel still holds cannot be told, so all further calls on that log fail.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#define RV_LOG_RECORD_BYTES_MAX ((size_t)2 << 20)   /* with the newline */
#define RV_LOG_ID_SIZE 33                           /* hex, with the NUL */
#define RV_LOG_SEGMENT_MAX ((uint64_t)64 << 20)     /* of a segment, unless rv_log_set_segment_max() says otherwise */

struct rv_log;

/**
 * rv_log_open() - open the log of a state directory, making what is not there
 * @state_dir: absolute; made with mode 0700 if it is not there
 * @ret:       untouched on failure
 *
 * The id and the secret are made once, from getrandom(), under the lock. A secret or id that is missing
 * although there are records, is malformed, or is readable by others is an error, not made anew.
 *
 * Context:   may block
 * Ownership: *@ret is the caller's (rv_log_close)
 * Return:    0; -EPERM secret readable by others; -EBADMSG a malformed or missing id or secret;
 *            -ETIMEDOUT; -errno
 */
int rv_log_open(const char *state_dir, struct rv_log **ret, struct rv_error *err);

/**
 * rv_log_open_at() - the same for a state directory that is open
 * @state_fd:  may be O_PATH; duplicated
 * @state_dir: its path, for messages only
 *
 * For a process that gives up privilege and then could not reach the directory by its path: it opens the
 * directory, gives it to the user that it becomes, becomes that user, and opens the log.
 *
 * Context:   may block
 * Ownership: borrows @state_fd; *@ret is the caller's (rv_log_close)
 * Return:    as rv_log_open()
 */
int rv_log_open_at(int state_fd, const char *state_dir, struct rv_log **ret, struct rv_error *err);

/** rv_log_close() - release, and end what rv_log_enlist() began; syncs nothing; NULL is allowed. Context: may block. Ownership: takes @log. Return: none */
void rv_log_close(struct rv_log *log);
RV_DEFINE_CLEANUP(struct rv_log, rv_log_close)

/** rv_log_set_segment_max() - how many bytes a segment may have before another one is begun. Context: any. Ownership: none. Return: none */
void rv_log_set_segment_max(struct rv_log *log, uint64_t bytes);

/** rv_log_id() - the log's id, 32 hex digits. Context: any. Ownership: borrowed from @log. Return: the text */
const char *rv_log_id(const struct rv_log *log);

/** rv_log_instance() - what records of this log object say as `instance`, 32 hex digits, random for each open. Context: any. Ownership: borrowed from @log. Return: the text */
const char *rv_log_instance(const struct rv_log *log);

/** rv_log_kind_is_known() - is @kind in the table of log_kinds.h? Context: any. Ownership: borrows. Return: as named */
bool rv_log_kind_is_known(const char *kind);

/**
 * rv_log_append() - write one record
 * @kind:    from the table
 * @body:    an object without the members that this adds; not changed
 * @ret_seq: may be NULL; set only on success
 *
 * The record is in the file, and visible to readers, at return; it survives a crash of the machine only
 * after rv_log_sync().
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    0; -EINVAL unknown kind, @body no object or one with a member of those; -EDOM a number that may
 *            not stand in a record; -EILSEQ a text that is no UTF-8; -EMSGSIZE above 2 MiB; -EBADMSG the last line is no record of this log;
 *            -ESTALE the segment was removed; -ETIMEDOUT; -ENOSPC and other -errno from writing
 */
int rv_log_append(struct rv_log *log, const char *kind, json_t *body, uint64_t *ret_seq, struct rv_error *err);

/**
 * rv_log_check_fn - may the record be appended to the log as it is now?
 *
 * Called with the log's lock held and its tail read; must neither append nor take long, as all writers wait.
 *
 * Return: 0 it may; else what rv_log_append_if() returns
 */
typedef int (*rv_log_check_fn)(void *ctx, struct rv_log *log, struct rv_error *err);

/**
 * rv_log_append_if() - write one record unless something in the log stands against it
 * @check: asked between the locking and the writing, so that no other record comes in between
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    0; what @check returned, and nothing is written; as rv_log_append()
 */
int rv_log_append_if(struct rv_log *log, const char *kind, json_t *body, rv_log_check_fn check, void *ctx,
        uint64_t *ret_seq, struct rv_error *err);

/**
 * rv_log_sync() - make all records that this log object has appended durable
 *
 * Takes no lock, so others go on appending meanwhile. Without an append before it does nothing. Of several writers
 * that ask at the same time one syncs for all (commit.h).
 *
 * Context:   blocks on the disk
 * Ownership: borrows
 * Return:    0 or -errno of fdatasync()
 */
int rv_log_sync(struct rv_log *log, struct rv_error *err);

/** rv_log_n_durable() - how many of the log's records are known to survive a crash of the machine: those up to this object's last sync. Context: any. Ownership: none. Return: 1 + the seq of the last of them; 0: none is known to */
uint64_t rv_log_n_durable(const struct rv_log *log);

/** rv_log_sync_all() - make all records durable that are in the log now, whoever wrote them. Context: blocks on the disk. Ownership: borrows. Return: 0 or as rv_log_sync() and rv_log_append() */
int rv_log_sync_all(struct rv_log *log, struct rv_error *err);

/** rv_log_append_synced() - rv_log_append(), then rv_log_sync(). Context: blocks on the disk. Ownership: borrows. Return: as both */
int rv_log_append_synced(struct rv_log *log, const char *kind, json_t *body, uint64_t *ret_seq, struct rv_error *err);

/**
 * rv_log_hmac() - HMAC-SHA-256 under the log's secret, as hex
 * @data: @n bytes, which may be empty; a value that records must not show
 *
 * Context:   any
 * Ownership: borrows
 * Return:    none
 */
void rv_log_hmac(const struct rv_log *log, const void *data, size_t n, char ret_hex[65]);

/**
 * rv_log_note_bundle() - write `bundle_activated` if the bundle differs from the last one in the log
 * @digest: of the bundle; becomes the record's `digest`
 * @body:   further members; may be NULL; not changed
 *
 * Compared with the last such record of the same `tenant` and `role`, if @body has these members: tenants
 * take turns, and a record for each turn would say nothing. There is one role, `shadow`. Cheap if nothing differs: no lock is taken.
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    0; 1 if a record was written; as rv_log_append()
 */
int rv_log_note_bundle(struct rv_log *log, const char *digest, json_t *body, struct rv_error *err);

/** rv_log_note_config() - write `config` if the configuration differs from the last one in the log; as rv_log_note_bundle(). Context: may block. Ownership: borrows. Return: 0; 1 if a record was written; as rv_log_append() */
int rv_log_note_config(struct rv_log *log, const char *digest, json_t *body, struct rv_error *err);
