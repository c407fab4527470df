/*
 * commit.h - one sync for the records of many writers
 *
 * `audit/commit` is a page that every writer of a log has mapped. It says how many records are in the log's files
 * (`appended`, set under the log's lock behind each record), how many of them are on the disk (`synced`), and which
 * segment is the newest. Whoever wants its records durable and finds them covered is done. Else one writer at a
 * time, the holder of a flock() on the page's file, syncs for all: it reads `appended`, syncs, and publishes what it
 * read as `synced`. The others sleep on `tick` and look again.
 *
 * The page is a cache: without it, or once a sync has failed anywhere, everybody syncs for itself. A leader that
 * is stopped or slow is waited for RV_COMMIT_PATIENCE_US, then its followers sync themselves; a sync excludes
 * nobody, so nothing can be locked up. What the page may not do is to call a record durable that is not:
 *
 *   - `synced` is what a leader read before its sync, and only if its file was the newest segment at that time. The
 *     segments before it are durable, since a segment is synced before the next one is made.
 *   - A writer sets both numbers back to what the log has when it reads the log's tail anew, which is before it
 *     trusts them for the first time. So what the page held before (another boot, a copy put back, bytes from
 *     nowhere) does not matter.
 *   - A failed sync marks the page for good; the next reeve that starts makes a new one. A leader that opened its
 *     file after an error was reported to another would not see it, the kernel telling each open file once.
 *
 * It is used on file systems that overwrite in place, where writing to a mapped page cannot run out of space. On
 * others a full disk could end the process by SIGBUS, and on a tmpfs there is nothing to be gained: a sync does
 * nothing there. Thread: that of the log.
 */
#pragma once

#include "audit/log.h"

#define RV_COMMIT_NAME "commit"
#define RV_COMMIT_BYTES 4096
#define RV_COMMIT_MAGIC "reeve.c1"
#define RV_COMMIT_PATIENCE_US 200000

/* The page. Numbers are those of records: the seq after the last one. */
struct rv_commit {
        char magic[8];
        uint64_t appended, synced;
        uint64_t segment;                /* seq of the first record of the newest segment */
        uint64_t leader_since_us;        /* CLOCK_BOOTTIME; 0: nobody syncs for all */
        uint32_t failed;
        uint32_t tick;                   /* changes when a sync for all is over: a futex */
};

/**
 * rv_commit_follow() - locked, the tail is known: bring the page in line with the log
 *
 * Maps it when called for the first time. That it cannot be had is no error.
 *
 * Context:   may block
 * Ownership: the mapping is rv_commit_close()'s
 * Return:    none
 */
void rv_commit_follow(struct rv_log *log);

/** rv_commit_appended() - locked: a record of ours is complete in the file. Context: any. Ownership: none. Return: none */
void rv_commit_appended(struct rv_log *log);

/** rv_commit_synced() - the @n records from the beginning of the log are on the disk. Context: any. Ownership: none. Return: none */
void rv_commit_synced(struct rv_log *log, uint64_t n);

/** rv_commit_failed() - a sync of ours failed: nobody may rely on another's any more. Context: any. Ownership: none. Return: none */
void rv_commit_failed(struct rv_log *log);

/** rv_commit_close() - unmap. Context: any. Ownership: releases what rv_commit_follow() made. Return: none */
void rv_commit_close(struct rv_log *log);
