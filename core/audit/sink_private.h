/*
 * sink_private.h - what the files of the sink share: how a batch is delivered, and the mark
 *
 * One thread, that of the log.
 */
#pragma once

#include "audit/log_private.h"
#include "audit/sink.h"

enum rv_sink_kind { RV_SINK_FILE, RV_SINK_COMMAND, RV_SINK_HTTPS };

struct rv_sink {
        const struct rv_config_sink *config;
        enum rv_sink_kind kind;
        char *name;
        struct rv_error trouble;         /* what failed when it was opened */
        /* A file. */
        int file_fd;
        bool is_readable;
        /* A command and its words; what the headers' lines are. One text, ended by NULs, and where in it they begin. */
        struct rv_buf text;
        const char **words;
        size_t n_words;
        int helper_fd;
};

/** rv__sink_deliver() - hand over a batch of @n bytes. Context: until the deadline, but for a disk. Ownership: borrows. Return: 0 acknowledged; -ETIMEDOUT; -errno */
int rv__sink_deliver(struct rv_sink *sink, const void *data, size_t n, uint64_t deadline_us, struct rv_error *err);
/** rv__sink_open_place() - open the file, read the headers, find the helper. Context: with privilege. Ownership: all is @sink's. Return: 0; -errno */
int rv__sink_open_place(struct rv_sink *sink, struct rv_error *err);

/* The last line that was acknowledged. */
struct rv_sink_mark {
        char segment[RV_LOG_SEGMENT_NAME_SIZE];   /* "": none so far */
        uint64_t offset, seq;
        size_t n;                                 /* without the newline */
        char sha256[RV_SHA256_HEX_SIZE];
};

/**
 * rv__sink_mark_read() - audit/sent, if it fits the log
 *
 * Context:   may block
 * Ownership: the caller's memory
 * Return:    1; 0 there is none, or it names a line that the log does not have: *@ret is empty; -errno
 */
int rv__sink_mark_read(struct rv_log *log, struct rv_sink_mark *ret, struct rv_error *err);

/** rv__sink_mark_write() - the line of @n bytes at @offset of @segment was acknowledged; synced. Context: may block. Ownership: borrows. Return: 0; -EBADMSG there is no record; -errno */
int rv__sink_mark_write(struct rv_log *log, const char *segment, uint64_t offset, size_t n, struct rv_error *err);

/** rv__sink_lag_after() - bytes of the log behind a mark. Context: may block. Ownership: borrows. Return: 0; -errno */
int rv__sink_lag_after(struct rv_log *log, const struct rv_sink_mark *mark, uint64_t *ret, struct rv_error *err);
