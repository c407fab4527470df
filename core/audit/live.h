/*
 * live.h - which writers of a log are alive, and what they owe it
 *
 * A process that may write decisions enlists: it makes `audit/live/INSTANCE` and holds an exclusive flock() on it
 * until it ends, however it ends. Whoever can take that lock knows that the owner is dead. The file holds one
 * line,
 *
 *     SEGMENT OFFSET
 *
 * a place in the log before which there is no record of this instance ("-" for SEGMENT: there was no segment),
 * and behind it a line for each outcome record that the owner could not write to the log: the record's body. A
 * full disk is no reason to lose those: the file never grows beyond the one block that its first line took.
 *
 *   rv_log_open -> rv_log_enlist -> (rv_log_owe -> rv_log_settle)* -> rv_log_close
 *
 * rv_log_close() removes the file when nothing is owed. What is left is the next reeve's (recover.h). Nothing here
 * is synced: after a crash of the machine the whole log is looked at. Thread: that of the log.
 */
#pragma once

#include "audit/log.h"

/**
 * rv_log_enlist() - say that this log object may write decisions, before it does
 *
 * May give the log another instance, so nothing may have been appended before.
 *
 * Context:   may block; no sync
 * Ownership: borrows; the file is rv_log_close()'s
 * Return:    0; -errno
 */
int rv_log_enlist(struct rv_log *log, struct rv_error *err);

/** rv_log_owe() - a decision was appended that has no outcome so far. Context: any. Ownership: none. Return: none */
void rv_log_owe(struct rv_log *log);
/** rv_log_settle() - its outcome was appended. Context: any. Ownership: none. Return: none */
void rv_log_settle(struct rv_log *log);

/**
 * rv_log_leave() - the outcome of an owed decision could not be appended: leave its record to the next reeve
 * @body: as for rv_log_append(); not changed
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    0; -ENOENT not enlisted; -ENOSPC it does not fit into the file's block; -errno. After a failure
 *            the next reeve makes an outcome of its own
 */
int rv_log_leave(struct rv_log *log, const json_t *body);
