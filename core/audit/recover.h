/*
 * recover.h - decisions without an outcome, of writers that are dead
 *
 * Every decision has exactly one outcome. Where its owner died before that, whichever reeve process comes next
 * writes it. Two traces lead to such decisions:
 *
 *   - `audit/live/INSTANCE` (live.h) whose lock can be taken: the log is read from the place it names;
 *   - `audit/boot`, the kernel's boot id: if it is another one, or the file is not there, the machine may have
 *     gone down, which takes live files with it but no synced decision. Then the whole log is read, once.
 *
 * One process at a time recovers, by a flock() on the directory audit/; another that starts meanwhile leaves it
 * to that one. An interrupted recovery is simply done again: what it wrote is found. Normally there is nothing to
 * do, which costs reading one directory and two small files. Thread: that of the log.
 */
#pragma once

#include "audit/log.h"

/**
 * rv_log_conclude_fn - append the outcome record of a decision that has none
 * @first: its record of stage `requested`
 * @last:  its newest, of stage `resolved`, or @first where there is no other
 * @left:  the body of the outcome record that its owner could not write, or NULL
 *
 * Return: 0 or -errno of rv_log_append()
 */
typedef int (*rv_log_conclude_fn)(void *ctx, struct rv_log *log, const json_t *first, const json_t *last, json_t *left,
        struct rv_error *err);

/**
 * rv_log_recover() - have each such decision concluded, in the order of the log
 *
 * Called after rv_log_enlist() and before the first record of one's own. What was appended is synced.
 *
 * Context:   may block; for the whole log at 300 MB/s or more after a crash of the machine
 * Ownership: borrows
 * Return:    how many decisions were concluded; -EBADMSG a damaged log; -errno, also of @conclude
 */
int rv_log_recover(struct rv_log *log, rv_log_conclude_fn conclude, void *ctx, struct rv_error *err);
