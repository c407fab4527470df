/*
 * log_files.h - the lines of a log that is only read: a directory of segments, which may be a copy
 *
 *   rv_log_files_open -> (rv_log_lines_open -> rv_log_lines_next* -> rv_log_lines_close)* -> rv_log_files_close
 *
 * `struct rv_log_files` is the log as it was when it was opened: its segments and their sizes. What is appended later
 * is not seen, so that a live log can be read at leisure. All its bytes are counted through, from the oldest segment
 * on, and `struct rv_log_lines` gives the lines that begin in a range of them: ranges that follow each other give each line
 * once, so they can be read by several threads, each with lines of its own.
 *
 * No lock, nothing written, no secret needed. A line without a newline at the very end is one that is being written,
 * or that a crash left: it is not given. The files are not trusted to be what they should. One buffer a reader.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#define RV_LOG_FILE_NAME_SIZE 27         /* 20 digits, ".jsonl", NUL */

struct rv_log_file {
        char name[RV_LOG_FILE_NAME_SIZE];
        uint64_t first_seq;              /* as its name says */
        uint64_t start, size;            /* in the bytes of all */
};

struct rv_log_files {
        int dir_fd;                      /* borrowed */
        const char *path;                /* borrowed; for messages */
        struct rv_log_file *files;
        size_t n_files;
        uint64_t size;                   /* of all */
};

struct rv_log_lines {
        const struct rv_log_files *of;
        size_t file;                     /* that is being read */
        uint64_t offset;                 /* in it, of the line given last */
        uint64_t tail_bytes;             /* at the end: of a line without a newline behind the last */
        int fd;                          /* from here on private */
        struct rv_buf buf;
        size_t start;
        uint64_t start_offset, to;
        bool is_inside;
};

/**
 * rv_log_files_open() - look at a directory
 * @dir_fd: borrowed until rv_log_files_close(), as is @path
 * @ret:    untouched on failure
 *
 * Context:   may block
 * Ownership: release with rv_log_files_close()
 * Return:    0; -ENOENT no segment is there; -errno
 */
int rv_log_files_open(int dir_fd, const char *path, struct rv_log_files *ret, struct rv_error *err);
/** rv_log_files_close() - release. Context: no reader left. Ownership: takes the content. Return: none */
void rv_log_files_close(struct rv_log_files *files);
/** rv_log_files_at_seq() - where to begin for records from @seq on: the start of the segment that has it, by the segments' names. Context: any. Ownership: none. Return: a place in the bytes of all */
uint64_t rv_log_files_at_seq(const struct rv_log_files *files, uint64_t seq);
/** rv_log_files_past_seq() - where records up to @seq end: the start of the first segment whose name says that it begins later, or the end. Context: any. Ownership: none. Return: as above */
uint64_t rv_log_files_past_seq(const struct rv_log_files *files, uint64_t seq);

/**
 * rv_log_lines_open() - begin with the first line that begins at or after a place
 * @from, @to: in the bytes of all; lines that begin before @to are given
 *
 * Context:   may block
 * Ownership: borrows @files meanwhile; release with rv_log_lines_close(), also after a failure
 * Return:    0; -errno
 */
int rv_log_lines_open(
        const struct rv_log_files *files, uint64_t from, uint64_t to, struct rv_log_lines *ret, struct rv_error *err);
/**
 * rv_log_lines_next() - the next line, without its newline
 *
 * Context:   may block
 * Ownership: *@ret_line is the reader's, until the next call
 * Return:    1; 0 no more; -EBADMSG a line longer than any record, or a segment that is shorter than it was, or that
 *            another follows although its last line does not end; -errno
 */
int rv_log_lines_next(struct rv_log_lines *l, const char **ret_line, size_t *ret_n, struct rv_error *err);
/** rv_log_lines_close() - release. Context: any. Ownership: takes the content. Return: none */
void rv_log_lines_close(struct rv_log_lines *l);
