/*
 * lines.h - the lines of a log one after another, across its segments
 *
 *   rv_lines_begin() or rv_lines_begin_at() -> rv_lines_next()* -> rv_lines_close()   a log as it grows
 *   rv_lines_begin_range() -> rv_lines_next()* -> rv_lines_close()                    a part of it, as it was when listed
 *   rv_lines_begin() -> (rv_lines_go() -> rv_lines_in_segment()*)* -> rv_lines_close()   segment by segment
 *
 * Of a directory, wherever it lies: no lock is taken, nothing is written, nothing that is read is believed. What ends
 * in a newline is never taken back; what does not end in one is not given, as it may grow, or be cut off and written
 * anew, and is read again when more is asked for. Ranges that follow each other give each line once, so they can be read by
 * several threads, each with lines of its own.
 *
 * Bytes are read, not mapped: a file that is cut short meanwhile is an end, not a signal. One buffer of a line or
 * 256 KiB, whatever the size of the log. One thread at a time for an object.
 */
#pragma once

#include "audit/segments.h"
#include "base/buf.h"

struct rv_lines {
        int dir_fd;                                /* borrowed */
        const char *path;                          /* borrowed; for messages */
        char segment[RV_LOG_SEGMENT_NAME_SIZE];    /* of the line given last; "" before there was a segment */
        uint64_t offset;                           /* of that line in it */
        uint64_t next_offset;                      /* where in it the next line begins */
        uint64_t rest;                             /* at the end of a segment: bytes behind its last newline */
        struct rv_segments listed;                 /* that follow, as far as that was asked */
        /* From here on private. */
        int fd;                                    /* of the segment, or -EBADF */
        uint64_t end;                              /* where it ends; UINT64_MAX: where it does when it is read */
        bool is_last_look;                         /* another segment was there before it was read to its end */
        bool is_inside;                            /* the first newline ends a line that began before */
        const struct rv_segments *range;           /* the segments of a range, else NULL; in their bytes: */
        uint64_t range_start, to;                  /* where this segment begins, and where the range ends */
        struct rv_buf buf;
        size_t start;                              /* where in it the next line begins */
};

/** rv_lines_begin() - before the first line. Context: any. Ownership: borrows @dir_fd and @path; release with rv_lines_close(). Return: none */
void rv_lines_begin(struct rv_lines *ret, int dir_fd, const char *path);

/**
 * rv_lines_begin_at() - begin with the first line that begins at or after a place
 * @segment: a segment's name, or "" for the first of all; if it is not there any more, those after it are read
 * @offset:  into it; may lie inside a line
 *
 * Context:   may block
 * Ownership: as rv_lines_begin(); release also after a failure
 * Return:    0; -errno
 */
int rv_lines_begin_at(struct rv_lines *ret, int dir_fd, const char *path, const char *segment, uint64_t offset,
        struct rv_error *err);

/**
 * rv_lines_begin_range() - begin with the first line of a range
 * @segments: of rv_segments_open(): what is appended later is not seen
 * @from, @to: in the bytes of all; lines that begin before @to are given
 *
 * Context:   may block
 * Ownership: borrows @segments meanwhile; release with rv_lines_close(), also after a failure
 * Return:    0; -errno
 */
int rv_lines_begin_range(struct rv_lines *ret, const struct rv_segments *segments, uint64_t from, uint64_t to,
        struct rv_error *err);

/** rv_lines_close() - release. Context: any. Ownership: takes the content. Return: none */
void rv_lines_close(struct rv_lines *lines);

/**
 * rv_lines_next() - the next line, without its newline
 *
 * Context:   may block
 * Ownership: *@ret_line is the reader's, until the next call
 * Return:    1; 0 at the end of the range, or of the log as it is now, and it may be asked again; -EBADMSG a line longer than
 *            any record; of a range also a segment that is shorter than it was, or whose last line does not end although
 *            another follows; -errno
 */
int rv_lines_next(struct rv_lines *lines, const char **ret_line, size_t *ret_n, struct rv_error *err);

/** rv_lines_find() - the segment that follows one, or "": if none is known, it is looked for. Context: may block. Ownership: the caller's memory, which may be @after. Return: 1; 0 none does; -errno */
int rv_lines_find(struct rv_lines *lines, const char *after, char ret_name[RV_LOG_SEGMENT_NAME_SIZE],
        struct rv_error *err);
/** rv_lines_go() - go to the first line that begins at or after a place in a segment. Context: may block. Ownership: none. Return: 1; 0 it is not there; -ELOOP, -EINVAL it is no regular file; -errno */
int rv_lines_go(struct rv_lines *lines, const char *segment, uint64_t offset, struct rv_error *err);

/**
 * rv_lines_in_segment() - the next line of this segment
 *
 * Context:   may block
 * Ownership: as rv_lines_next()
 * Return:    1; 0 at the end of the segment, `rest` being set, and it may be asked again; RV_LINES_E_LONG a line longer than
 *            any record, at `offset`; -errno
 */
int rv_lines_in_segment(struct rv_lines *lines, const char **ret_line, size_t *ret_n, struct rv_error *err);
enum {
        RV_LINES_E_LONG = 2,
};

/** rv_lines_fail_long() - say where the line stands that is too long. Context: any. Ownership: borrows. Return: -EBADMSG */
int rv_lines_fail_long(const struct rv_lines *lines, struct rv_error *err);

/** rv_lines_again() - have the line given last, or called too long, read from the file once more. Context: any. Ownership: none. Return: none */
void rv_lines_again(struct rv_lines *lines);

/**
 * rv_lines_one() - one line, by the place where it stands
 * @n:   its length without the newline
 * @out: replaced by the line
 *
 * Context:   may block
 * Ownership: copies to @out
 * Return:    1; 0 no line begins and ends there; -errno
 */
int rv_lines_one(int dir_fd, const char *path, const char *segment, uint64_t offset, size_t n, struct rv_buf *out,
        struct rv_error *err);
