/*
 * log_reader.h - the lines of a log one after another, across its segments
 *
 *   rv_log_reader_open() -> rv_log_reader_next()* -> rv_log_reader_close()
 *
 * Takes no lock: nothing that ends in a newline is ever taken back, and what does not end in one is not given.
 * Holds one buffer of a few records, whatever the size of the log. One thread, that of the log.
 */
#pragma once

#include "audit/log_private.h"

struct rv_log_reader {
        struct rv_log *log;
        int fd;
        char segment[RV_LOG_SEGMENT_NAME_SIZE];   /* of the line given last; "" before the first segment was there */
        uint64_t offset;                          /* of that line in it */
        struct rv_buf buf;
        size_t start;                             /* where in buf the next line begins */
        uint64_t start_offset;                    /* and where that is in the segment */
        bool is_inside;                           /* the first newline ends a line that began before */
};

/**
 * rv_log_reader_open() - begin with the first line that begins at or after a place
 * @segment: a segment's name, or "" for the first of all; if it is not there any more, those after it are read
 * @offset:  into it; may lie inside a line
 *
 * Context:   may block
 * Ownership: release with rv_log_reader_close(), also after a failure; borrows @log meanwhile
 * Return:    0; -errno
 */
int rv_log_reader_open(struct rv_log *log, const char *segment, uint64_t offset, struct rv_log_reader *ret,
        struct rv_error *err);

/**
 * rv_log_reader_next() - the next line, without its newline
 *
 * Context:   may block
 * Ownership: *@ret_line is the reader's, until the next call
 * Return:    1; 0 at the end of the log as it is now; -EBADMSG a line longer than any record; -errno
 */
int rv_log_reader_next(struct rv_log_reader *r, const char **ret_line, size_t *ret_n, struct rv_error *err);

/**
 * rv_log_read_line() - one line again, by the place where it stands
 * @n:   its length without the newline
 * @out: replaced by the line
 *
 * Context:   may block
 * Ownership: copies to @out
 * Return:    1; 0 no line begins and ends there; -errno
 */
int rv_log_read_line(
        struct rv_log *log, const char *segment, uint64_t offset, size_t n, struct rv_buf *out, struct rv_error *err);

/**
 * rv_log_end() - the newest segment and its size: where neither has changed, nothing was written
 *
 * Context:   may block
 * Ownership: the caller's memory
 * Return:    1; 0 there is no segment; -errno
 */
int rv_log_end(
        struct rv_log *log, char ret_segment[RV_LOG_SEGMENT_NAME_SIZE], uint64_t *ret_size, struct rv_error *err);

/** rv_log_reader_close() - release. Context: any. Ownership: takes the content. Return: none */
void rv_log_reader_close(struct rv_log_reader *r);
