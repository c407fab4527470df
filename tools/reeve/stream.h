/*
 * stream.h - a program's output passed on live to one of reeve's own streams
 *
 * To a terminal control characters are made harmless (run/terminal.h) unless the user wants them raw. The
 * loop must not stand still because whoever reads is slow: what cannot be written at once waits in a buffer,
 * and when STREAM_WAITING_MAX wait the program is asked to wait too. Only the end blocks.
 *
 * Being ready is asked for by a timer and not by the loop's watches, which would make the description that the
 * caller shares non-blocking. One thread. A stream that nobody reads any more (EPIPE) is dropped without a word.
 */
#pragma once

#include "base/buf.h"
#include "run/terminal.h"

#include <reeve/backend.h>

#include <time.h>

#define STREAM_WAITING_MAX (1u << 20)
#define STREAM_WAIT_MAX 4       /* streams waited for at once */

/* Nothing more is wanted for now, or again. */
typedef void (*stream_flow_fn)(void *arg, bool is_flowing);

/* Asked while a wait goes on; @has_moved: since it was asked last something was written. False gives up what is left. */
typedef bool (*stream_patience_fn)(void *arg, bool has_moved);

struct stream {
        const struct rv_host *host;
        struct rv_host_timer *timer;    /* to try again, while something waits */
        int fd;
        int own_fd;             /* of a terminal: the same one, non-blocking, or -EBADF */
        stream_flow_fn flow;    /* or NULL: then more and more waits */
        void *flow_arg;
        timer_t interrupt;      /* of what blocks although it said that it was ready */
        bool has_interrupt, is_filtered, is_full;
        int error;              /* errno of the write that failed: what came after it is lost */
        struct rv_terminal terminal;
        struct rv_buf waiting;
        size_t n_written;       /* of waiting */
};

/** stream_init() - pass on to @fd; @host gives timers, or is NULL: then what waits is tried again only by the next put. Context: with the caller's privilege. Ownership: borrows @host, which need not be ready before the first put, and @fd; release with stream_finish(). Return: none */
void stream_init(struct stream *s, const struct rv_host *host, int fd, bool is_raw);
/** stream_interrupt() - for a descriptor that can block although it is ready: a write is interrupted (SIGRTMIN); stream_init() does it. Context: only this thread writes. Ownership: none. Return: none */
void stream_interrupt(struct stream *s);
/** stream_put() - pass on some bytes. Context: never blocks; may call flow. Ownership: borrows. Return: none */
void stream_put(struct stream *s, const void *data, size_t n);
/** stream_end_filter() - the program's bytes end here; what is put from now on is passed on as it is. Context: any. Ownership: none. Return: none */
void stream_end_filter(struct stream *s);
/** stream_wait() - write all that waits in up to STREAM_WAIT_MAX streams, none of them held up by another. Context: blocks as long as @is_patient (or NULL: always) says so. Ownership: borrows. Return: none; what was given up is an error (ECANCELED) of its stream */
void stream_wait(struct stream *const streams[], size_t n, stream_patience_fn is_patient, void *arg);
/** stream_finish() - write all that waits and release. Context: may block. Ownership: takes the content. Return: 0, or -errno if something could not be written; that nobody reads any more (EPIPE) is no error */
int stream_finish(struct stream *s);
