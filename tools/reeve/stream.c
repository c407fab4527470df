#include "stream.h"

#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AGAIN_MS 2
#define WRITE_BYTES 4096        /* what a pipe that is ready takes without blocking (POSIX: PIPE_BUF) */

void stream_init(struct stream *s, const struct rv_host *host, int fd, bool is_raw)
{
        char path[32];

        *s = (struct stream){ .host = host, .fd = fd, .own_fd = -EBADF };
        if (!isatty(fd))
                return;
        s->is_filtered = !is_raw;
        /* A terminal that is ready takes one byte, and blocks a write of more. The description is shared with the
         * shell, so it is not for us to make it non-blocking. */
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        s->own_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (s->own_fd >= 0)
                s->fd = s->own_fd;
}

static bool is_ready(int fd)
{
        struct pollfd p = { .fd = fd, .events = POLLOUT };

        return poll(&p, 1, 0) > 0;
}

/* Writes what waits: all of it, or what can be written without blocking. */
static void flush(struct stream *s, bool is_blocking)
{
        while (!s->error && s->n_written < s->waiting.size) {
                struct pollfd p = { .fd = s->fd, .events = POLLOUT };
                ssize_t w;

                if (!is_blocking && !is_ready(s->fd))
                        return;
                w = write(s->fd, s->waiting.data + s->n_written,
                        RV_MIN(s->waiting.size - s->n_written, (size_t)WRITE_BYTES));
                if (w > 0) {
                        s->n_written += (size_t)w;
                } else if (w < 0 && errno == EAGAIN) {  /* a terminal, or somebody made the description non-blocking */
                        if (!is_blocking)
                                return;
                        (void)poll(&p, 1, -1);
                } else if (w < 0 && errno != EINTR) {
                        s->error = errno;
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

static void tell_flow(struct stream *s)
{
        size_t n = s->waiting.size - s->n_written;
        bool is_full = s->is_full ? n > STREAM_WAITING_MAX / 2 : n > STREAM_WAITING_MAX;

        if (!s->flow || is_full == s->is_full)
                return;
        s->is_full = is_full;
        s->flow(s->flow_arg, !is_full);
}

static void on_timer(void *arg);

static void try_again_later(struct stream *s)
{
        stop_timer(s);
        if (s->host && s->waiting.size)
                (void)s->host->timer_start(s->host->ctx, AGAIN_MS, on_timer, s, &s->timer);
}

static void on_timer(void *arg)
{
        struct stream *s = arg;

        flush(s, false);
        try_again_later(s);
        tell_flow(s);
}

void stream_put(struct stream *s, const void *data, size_t n)
{
        if (s->error)
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
        flush(s, false);
        if (!s->timer)
                try_again_later(s);
        tell_flow(s);
}

int stream_finish(struct stream *s)
{
        stop_timer(s);
        if (s->is_filtered)
                (void)rv_terminal_finish(&s->terminal, &s->waiting);
        flush(s, true);
        s->own_fd = rv_close(s->own_fd);
        rv_buf_fini(&s->waiting);
        return s->error && s->error != EPIPE ? -s->error : 0;
}
