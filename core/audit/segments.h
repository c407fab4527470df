/*
 * segments.h - the files of a log, in their order
 *
 *   rv_segments_list() or rv_segments_open() -> rv_segments_fini()
 *
 * Of a directory, wherever it lies: no lock is taken, nothing is written, no secret is needed. Others may make segments
 * meanwhile; a list has none that is missing between two that it has. Plain memory: what was made may be looked at by
 * several threads.
 */
#pragma once

#include "base/error.h"

#define RV_LOG_SEGMENT_NAME_SIZE 27       /* 20 digits, ".jsonl", NUL */
#define RV_SEGMENTS_ODD_NAME_SIZE 256     /* of any file's name, with the NUL */

struct rv_segment {
        char name[RV_LOG_SEGMENT_NAME_SIZE];
        uint64_t start, size;             /* in the bytes of all; of rv_segments_open() only, else 0 */
};

struct rv_segments {
        int dir_fd;                       /* borrowed */
        const char *path;                 /* borrowed; for messages */
        struct rv_segment *all;           /* by their names */
        size_t n;
        uint64_t size;                    /* of all; of rv_segments_open() only */
        char odd_name[RV_SEGMENTS_ODD_NAME_SIZE];   /* a file that looks like a segment and is none; the first, or "" */
};

/** rv_log_is_segment() - is it the name of a segment? Context: any. Ownership: borrows. Return: as named */
bool rv_log_is_segment(const char *name);
/** rv_log_segment_name() - the name of the segment that begins with @seq. Context: any. Ownership: the caller's memory. Return: none */
void rv_log_segment_name(uint64_t seq, char ret_name[RV_LOG_SEGMENT_NAME_SIZE]);
/** rv_log_segment_first() - the seq that a segment's name says. Context: any. Ownership: borrows. Return: the number; UINT64_MAX for one above that */
uint64_t rv_log_segment_first(const char *name);

/**
 * rv_segments_list() - the segments whose names come after one
 * @after: a segment's name, or "" for all
 * @ret:   replaced; untouched on failure
 *
 * Context:   may block
 * Ownership: borrows @dir_fd and @path; release with rv_segments_fini()
 * Return:    0, also if there is none; -errno
 */
int rv_segments_list(int dir_fd, const char *path, const char *after, struct rv_segments *ret, struct rv_error *err);

/**
 * rv_segments_open() - the log as it is now: all segments and their sizes
 * @ret: nothing of it is released before; untouched on failure
 *
 * Context:   may block
 * Ownership: as rv_segments_list()
 * Return:    0; -ENOENT there is no segment; -EINVAL one is no regular file; -errno
 */
int rv_segments_open(int dir_fd, const char *path, struct rv_segments *ret, struct rv_error *err);

/** rv_segments_fini() - release. Context: any. Ownership: takes the content. Return: none */
void rv_segments_fini(struct rv_segments *segments);

/** rv_segments_after() - the first one whose name comes after @name, which may be "". Context: any. Ownership: borrowed from @segments. Return: that one, or NULL */
const struct rv_segment *rv_segments_after(const struct rv_segments *segments, const char *name);
/** rv_segments_at_seq() - where to begin for records from @seq on: the start of the segment that has it, by the segments' names. Context: any. Ownership: none. Return: a place in the bytes of all */
uint64_t rv_segments_at_seq(const struct rv_segments *segments, uint64_t seq);
/** rv_segments_past_seq() - where records up to @seq end: the start of the first segment whose name says that it begins later, or the end. Context: any. Ownership: none. Return: as above */
uint64_t rv_segments_past_seq(const struct rv_segments *segments, uint64_t seq);

/**
 * rv_segments_newest() - the name of the newest segment, or of the newest before another
 * @before: a segment's name, or NULL
 *
 * Context:   may block
 * Ownership: the caller's memory, which may be @before
 * Return:    1; 0 if there is none; -errno
 */
int rv_segments_newest(int dir_fd, const char *path, const char *before, char ret_name[RV_LOG_SEGMENT_NAME_SIZE],
        struct rv_error *err);

/** rv__segments_fail() - set "PATH/NAME: WHAT: the error's text; do this". Context: any. Ownership: borrows. Return: @r */
int rv__segments_fail(const char *path, const char *name, struct rv_error *err, int r, const char *what);
