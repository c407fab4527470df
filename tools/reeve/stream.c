#include "stream.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define AGAIN_MS 20
#define WRITE_BYTES 4096        /* what a pipe that is ready takes without blocking (POSIX: PIPE_BUF) */

void stream_init(struct stream *s, const struct rv_host *host, int fd, bool is_raw)
{
        *s = (struct stream){ .host = host, .fd = fd, .is_filtered = !is_raw && isatty(fd) };
}

static bool is_ready(int fd)
{
        struct pollfd p = { .fd = fd, .events = POLLOUT };

        return poll(&p, 1, 0) > 0;
}

/* Writes what waits; without blocking, or until no more than @leave bytes wait. */
static void flush(struct stream *s, size_t leave)
{
        while (!s->is_broken && s->n_written < s->waiting.size) {
                size_t n = RV_MIN(s->waiting.size - s->n_written, (size_t)WRITE_BYTES);
                ssize_t w;

                if (s->waiting.size - s->n_written <= leave && !is_ready(s->fd))
                        return;
                w = write(s->fd, s->waiting.data + s->n_written, n);
                if (w < 0 && errno == EAGAIN) {         /* somebody made the description non-blocking */
                        struct pollfd p = { .fd = s->fd, .events = POLLOUT };

                        (void)poll(&p, 1, -1);
                } else if (w < 0 && errno != EINTR) {
                        s->is_broken = true;
                } else if (w > 0) {
                        s->n_written += (size_t)w;
                }
        }
        s->waiting.size = s->n_written = 0;
}

static void stop_timer(struct stream *s)
{
        if (s->timer)
                s->host->timer_stop(s->host->ctx, s->timer);
        s->timer = NULL;
}

static void on_timer(void *arg);

static void try_again_later(struct stream *s)
{
        stop_timer(s);
        if (s->host && s->waiting.size && !s->is_broken)
                (void)s->host->timer_start(s->host->ctx, AGAIN_MS, on_timer, s, &s->timer);
}

static void on_timer(void *arg)
{
        struct stream *s = arg;

        flush(s, STREAM_WAITING_MAX);
        try_again_later(s);
}

void stream_put(struct stream *s, const void *data, size_t n)
{
        if (s->is_broken)
                return;
        if (s->n_written) {             /* what is written makes room */
                memmove(s->waiting.data, s->waiting.data + s->n_written, s->waiting.size - s->n_written);
                s->waiting.size -= s->n_written;
                s->n_written = 0;
        }
        if (s->is_filtered)
                (void)rv_terminal_feed(&s->terminal, data, n, &s->waiting);
        else
                (void)rv_buf_append(&s->waiting, data, n);
        flush(s, STREAM_WAITING_MAX);
        if (!s->timer)
                try_again_later(s);
}

void stream_finish(struct stream *s)
{
        stop_timer(s);
        if (s->is_filtered)
                (void)rv_terminal_finish(&s->terminal, &s->waiting);
        flush(s, 0);
        rv_buf_fini(&s->waiting);
}
