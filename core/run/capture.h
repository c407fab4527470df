/*
 * capture.h - what a program wrote to one of its streams, bounded and always well-formed
 *
 * A capture lives with its run: init, feed as bytes come, finish once at the end of the stream, read the
 * fields, fini. It keeps the first `max_characters` code points and counts every byte. A character split
 * over two feeds is never broken; each maximal subpart of ill-formed UTF-8 becomes one U+FFFD, which counts
 * as one character. Once the cap is reached bytes are only counted, at no cost a byte, so that a flood costs
 * no more than reading it. The memory is what is kept (at most 4 bytes a character) and half as much again
 * of address space. One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "base/utf8.h"

#define RV_CAPTURE_STDOUT_CHARACTERS 1000000
#define RV_CAPTURE_STDERR_CHARACTERS 100000
#define RV_CAPTURE_CEILING_BYTES (64ull << 20)   /* past this the run is stopped (output_limit) */

#define RV_CAPTURE_E_CEILING 1

struct rv_capture {
        struct rv_buf text;        /* well-formed UTF-8; NUL is a character like any other */
        size_t max_characters;
        size_t characters;         /* code points in `text` */
        uint64_t ceiling_bytes;
        uint64_t bytes;            /* all that was written */
        bool is_truncated;         /* something was written past the cap */
        bool has_invalid_utf8;     /* what was written up to the cap was not all well-formed */
        struct rv_utf8 decoder;    /* a character begun in an earlier feed */
};

/**
 * rv_capture_init() - begin an empty capture
 * @max_characters: code points to keep
 * @ceiling_bytes:  bytes after which rv_capture_feed() says so
 *
 * Context:   any
 * Ownership: rv_capture_fini() releases what feeding allocates
 * Return:    none
 */
void rv_capture_init(struct rv_capture *c, size_t max_characters, uint64_t ceiling_bytes);

/**
 * rv_capture_feed() - the next @n bytes of the stream
 *
 * Bytes past the ceiling are counted too; it is the caller who stops the run.
 *
 * Context:   any
 * Ownership: borrows @data
 * Return:    0; RV_CAPTURE_E_CEILING when more than `ceiling_bytes` have been written; -ENOMEM (the text is
 *            then short, the counters of bytes stay right)
 */
int rv_capture_feed(struct rv_capture *c, const void *data, size_t n);

/**
 * rv_capture_finish() - the stream has ended: a character begun and not completed is one ill-formed subpart
 *
 * Context:   any; once
 * Ownership: none
 * Return:    0 or -ENOMEM
 */
int rv_capture_finish(struct rv_capture *c);

/** rv_capture_fini() - release the text. Context: any. Ownership: takes the text. Return: none */
void rv_capture_fini(struct rv_capture *c);
