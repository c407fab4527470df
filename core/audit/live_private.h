/*
 * live_private.h - what the files on living and dead writers share
 *
 * Thread: that of the log.
 */
#pragma once

#include "audit/log_private.h"

#define RV_LIVE_DIRECTORY "live"          /* below audit/ */
#define RV_LIVE_NAME_SIZE (sizeof(RV_LIVE_DIRECTORY "/") + RV_LOG_ID_SIZE)
#define RV_LIVE_BYTES_MAX ((size_t)4096)  /* of a file in it: one block of any file system */

/* Of a writer that is dead. */
struct rv_dead {
        char name[RV_LIVE_NAME_SIZE];     /* below audit/ */
        const char *instance;             /* in it */
        int fd;                           /* whose lock is ours */
        bool may_have_records;
        char segment[RV_LOG_SEGMENT_NAME_SIZE];   /* no record of it is before this place; "": the log's beginning */
        uint64_t offset;
        json_t *left;                     /* array: bodies of outcome records that it could not write */
};

/**
 * rv_dead_take() - take over a dead writer's file
 * @instance: a name in audit/live
 *
 * Context:   may block
 * Ownership: release with rv_dead_release()
 * Return:    1; 0 its owner lives, or the file is gone; -errno
 */
int rv_dead_take(struct rv_log *log, const char *instance, struct rv_dead *ret, struct rv_error *err);
/** rv_dead_remove() - nothing of it is open any more. Context: may block. Ownership: borrows. Return: 0 or -errno */
int rv_dead_remove(struct rv_log *log, const struct rv_dead *dead, struct rv_error *err);
/** rv_dead_release() - let it go. Context: any. Ownership: takes the content. Return: none */
void rv_dead_release(struct rv_dead *dead);
