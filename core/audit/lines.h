/*
 * lines.h - the complete lines of a log that is only read: of a directory, wherever it lies
 *
 *   rv_lines_begin() -> rv_lines_next()* -> rv_lines_close()
 *                    -> (rv_lines_open() -> rv_lines_in_segment()*)*
 *
 * Takes no lock and believes nothing. What does not end in a newline is not given: on a live log it may grow, or be
 * cut off and written anew, so it is read again when more is asked for. Bytes are read, not mapped: a file that is
 * cut short meanwhile is an end, not a signal. Holds one buffer of a line or a mebibyte, whatever the size of the
 * log. Any thread, one at a time for an object.
 */
#pragma once

#include "audit/log_private.h"

struct rv_lines {
        int audit_fd, fd;                          /* the directory, and the segment that is open or -EBADF */
        uint64_t segment;                          /* the number in that one's name */
        uint64_t offset;                           /* in it, of the line given last */
        uint64_t rest;                             /* at the end of a segment: bytes behind the last newline */
        uint64_t next;                             /* how many lines rv_lines_next() has given */
        struct rv_buf buf;
        size_t start;                              /* where in buf the next line begins, */
        uint64_t start_offset;                     /* and where in the segment */
};

/** rv_lines_begin() - nothing is open yet. Context: any. Ownership: borrows @audit_fd; release with rv_lines_close(). Return: none */
void rv_lines_begin(struct rv_lines *lines, int audit_fd);
/** rv_lines_close() - release. Context: any. Ownership: takes the content. Return: none */
void rv_lines_close(struct rv_lines *lines);

/** rv_lines_name() - the name of the segment that begins with record @seq. Context: any. Ownership: borrows. Return: none */
void rv_lines_name(uint64_t seq, char ret_name[RV_LOG_SEGMENT_NAME_SIZE]);

/** rv_lines_open() - go to the beginning of a segment. Context: may block. Ownership: none. Return: 0; -ENOENT there is none; -ELOOP, -EINVAL it is no regular file; -errno */
int rv_lines_open(struct rv_lines *lines, uint64_t segment);

/**
 * rv_lines_in_segment() - the next line of the segment that is open, without its newline
 * @ret_line: valid until the next call
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    1; 0 at the end of the segment as it is now (`rest` is set), and it may be asked again; -EMSGSIZE a line
 *            longer than any record, `offset` being its place; -errno
 */
int rv_lines_in_segment(struct rv_lines *lines, const char **ret_line, size_t *ret_n);

/** rv_lines_again() - have the line given last read from the file once more. Context: any. Ownership: none. Return: none */
void rv_lines_again(struct rv_lines *lines);

/**
 * rv_lines_next() - the next line of the log, through its segments
 *
 * A segment follows whose name is the number of lines given so far; without such a one the log is at its end.
 *
 * Context:   may block
 * Ownership: as rv_lines_in_segment()
 * Return:    as rv_lines_in_segment(), 0 being the end of the log
 */
int rv_lines_next(struct rv_lines *lines, const char **ret_line, size_t *ret_n);
