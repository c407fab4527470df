#include "run.h"

#include <fcntl.h>
#include <unistd.h>

#define READ_BYTES 65536
#define READS_A_TURN 8          /* then other runs, timers and the other stream have their turn */

/* ---- What the program reads ---- */

void ns_pipe_close_stdin(struct ns_run *r)
{
        r->host->watch_remove(r->host->ctx, r->stdin_watch);
        r->stdin_watch = NULL;
        r->stdin_fd = rv_close(r->stdin_fd);
}

static void on_stdin(void *arg, uint32_t events)
{
        struct ns_run *r = arg;
        ssize_t n;

        (void)events;
        n = write(r->stdin_fd, r->plan->stdin_data + r->n_stdin_written, r->plan->stdin_bytes - r->n_stdin_written);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0)
                r->n_stdin_written += (size_t)n;
        /* EPIPE: the program does not want the rest. */
        if (n < 0 || r->n_stdin_written == r->plan->stdin_bytes)
                ns_pipe_close_stdin(r);
}

/* ---- What it writes ---- */

void ns_pipe_close(struct ns_pipe *p)
{
        p->run->host->watch_remove(p->run->host->ctx, p->watch);
        p->watch = NULL;
        p->fd = rv_close(p->fd);
}

void ns_pipe_read(struct ns_pipe *p)
{
        static char bytes[READ_BYTES];      /* the loop has one thread */
        struct ns_run *r = p->run;

        for (int i = 0; i < READS_A_TURN && p->fd >= 0; i++) {
                ssize_t n = read(p->fd, bytes, sizeof(bytes));

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n <= 0) {
                        ns_pipe_close(p);
                        ns_finish(r);
                        return;
                }
                r->host->output(r->host->ctx, r->run, p->stream, bytes, (size_t)n);
        }
}

static void on_output(void *arg, uint32_t events)
{
        (void)events;
        ns_pipe_read(arg);
}

void ns_pipe_flow(struct ns_pipe *p, bool is_flowing)
{
        const struct rv_host *host = p->run->host;

        if (p->fd < 0 || is_flowing == (p->watch != NULL))
                return;
        if (is_flowing) {
                (void)host->watch_add(host->ctx, p->fd, RV_WATCH_READ, on_output, p, &p->watch);
        } else {
                host->watch_remove(host->ctx, p->watch);
                p->watch = NULL;
        }
}

/* ---- Made and served ---- */

static int make_pipe(int *ret_ours, int *ret_theirs, bool is_ours_read)
{
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return rv_raise(-errno);
        *ret_ours = fds[is_ours_read ? 0 : 1];
        *ret_theirs = fds[is_ours_read ? 1 : 0];
        return fcntl(*ret_ours, F_SETFL, O_NONBLOCK) < 0 ? rv_raise(-errno) : 0;
}

int ns_pipe_make(struct ns_run *r, struct rv_spawn_spec *spec)
{
        int e;

        e = make_pipe(&r->stdin_fd, &spec->stdin_fd, false);
        if (e == 0)
                e = make_pipe(&r->pipes[RV_STREAM_STDOUT].fd, &spec->stdout_fd, true);
        if (e == 0)
                e = make_pipe(&r->pipes[RV_STREAM_STDERR].fd, &spec->stderr_fd, true);
        return e;
}

int ns_pipe_watch(struct ns_run *r)
{
        const struct rv_host *host = r->host;
        int e = 0;

        for (int i = 0; i < 2 && e == 0; i++)
                e = host->watch_add(
                        host->ctx, r->pipes[i].fd, RV_WATCH_READ, on_output, &r->pipes[i], &r->pipes[i].watch);
        if (e == 0 && r->plan->stdin_bytes)
                e = host->watch_add(host->ctx, r->stdin_fd, RV_WATCH_WRITE, on_stdin, r, &r->stdin_watch);
        else
                r->stdin_fd = rv_close(r->stdin_fd);
        return e;
}
