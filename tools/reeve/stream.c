#include "stream.h"

#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGAIN_MS 2
#define WAIT_MS 50              /* a caller that waits is asked so often whether it still does */
#define WRITE_BYTES 4096        /* what a pipe that is ready takes without blocking (POSIX: PIPE_BUF) */
#define WRITE_MS 2              /* and what is not that ready is interrupted */
#define WRITE_SIGNAL SIGRTMIN

static void on_write_signal(int number)
{
        (void)number;           /* write() returns, that is all */
}

/* A write that blocks is interrupted, again and again: the first signal can come before write() is entered. */
void stream_interrupt(struct stream *s)
{
        struct sigaction action = { .sa_handler = on_write_signal };    /* no SA_RESTART */
        struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WRITE_SIGNAL };

        event._sigev_un._tid = gettid();
        s->has_interrupt = sigaction(WRITE_SIGNAL, &action, NULL) == 0 &&
                timer_create(CLOCK_MONOTONIC, &event, &s->interrupt) == 0;
}

static void set_interrupt(struct stream *s, long ms)
{
        const struct timespec every = { .tv_nsec = ms * 1000000 };
        const struct itimerspec when = { .it_interval = every, .it_value = every };

        if (s->has_interrupt)
                timer_settime(s->interrupt, 0, &when, NULL);
}

void stream_init(struct stream *s, const struct rv_host *host, int fd, bool is_raw)
{
        char path[32];
        struct stat st;

        *s = (struct stream){ .host = host, .fd = fd, .own_fd = -EBADF };
        if (isatty(fd)) {
                s->is_filtered = !is_raw;
                /* A terminal that is ready can block a write all the same. The description is shared with the
                 * shell, so it is not for us to make it non-blocking. */
                snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
                s->own_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        }
        if (s->own_fd >= 0)
                s->fd = s->own_fd;
        else if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
                stream_interrupt(s);      /* somebody else's terminal, or others write there too */
}

static bool is_ready(int fd)
{
        struct pollfd p = { .fd = fd, .events = POLLOUT };

        return poll(&p, 1, 0) > 0;
}

static size_t n_left(const struct stream *s)
{
        return s->waiting.size - s->n_written;
}

/* Writes what waits: all of it, or what can be written without blocking. */
static void flush(struct stream *s)
{
        while (!s->error && n_left(s)) {
                ssize_t w;

                if (!is_ready(s->fd))
                        return;
                set_interrupt(s, WRITE_MS);
                w = write(s->fd, s->waiting.data + s->n_written, RV_MIN(n_left(s), (size_t)WRITE_BYTES));
                if (w < 0)
                        w = -errno;
                set_interrupt(s, 0);
                if (w >= 0)
                        s->n_written += (size_t)w;
                else if (w == -EAGAIN || w == -EINTR)   /* a terminal, or somebody made the description non-blocking */
                        return;
                else
                        s->error = (int)-w;
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
        size_t n = n_left(s);
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

        flush(s);
        try_again_later(s);
        tell_flow(s);
}

void stream_put(struct stream *s, const void *data, size_t n)
{
        int r;

        if (s->error)
                return;
        if (s->n_written) {             /* what is written makes room */
                memmove(s->waiting.data, s->waiting.data + s->n_written, s->waiting.size - s->n_written);
                s->waiting.size -= s->n_written;
                s->n_written = 0;
        }
        if (s->is_filtered)
                r = rv_terminal_feed(&s->terminal, data, n, &s->waiting);
        else
                r = rv_buf_append(&s->waiting, data, n);
        if (r < 0)
                s->error = -r;
        flush(s);
        if (!s->timer)
                try_again_later(s);
        tell_flow(s);
}

void stream_end_filter(struct stream *s)
{
        int r = s->is_filtered && !s->error ? rv_terminal_finish(&s->terminal, &s->waiting) : 0;

        if (r < 0)
                s->error = -r;
        s->is_filtered = false;
}

static void give_up(struct stream *s)
{
        if (n_left(s))
                s->error = ECANCELED;
        s->waiting.size = s->n_written = 0;
}

void stream_wait(struct stream *const streams[], size_t n, stream_patience_fn is_patient, void *arg)
{
        const struct timespec again = { .tv_nsec = AGAIN_MS * 1000000 };
        struct pollfd polls[STREAM_WAIT_MAX];
        bool is_said_ready = false;

        rv_check(n <= STREAM_WAIT_MAX);
        for (;;) {
                bool has_moved = false;
                nfds_t n_polls = 0;

                for (size_t i = 0; i < n; i++) {
                        size_t before = n_left(streams[i]);

                        flush(streams[i]);
                        has_moved |= n_left(streams[i]) < before;
                        if (n_left(streams[i]))
                                polls[n_polls++] = (struct pollfd){ .fd = streams[i]->fd, .events = POLLOUT };
                }
                if (!n_polls)
                        return;
                if (is_patient && !is_patient(arg, has_moved))
                        break;
                if (is_said_ready && !has_moved)        /* ready, but not for as much as the next character needs */
                        nanosleep(&again, NULL);
                is_said_ready = poll(polls, n_polls, WAIT_MS) > 0;
        }
        for (size_t i = 0; i < n; i++)
                give_up(streams[i]);
}

int stream_finish(struct stream *s)
{
        stop_timer(s);
        stream_end_filter(s);
        stream_wait(&s, 1, NULL, NULL);
        if (s->has_interrupt)
                timer_delete(s->interrupt);
        s->has_interrupt = false;
        s->own_fd = rv_close(s->own_fd);
        rv_buf_fini(&s->waiting);
        return s->error && s->error != EPIPE ? -s->error : 0;
}
