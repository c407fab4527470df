#include "base/child.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)64 << 10)

/* Index 0 is read from, 1 is written to; the end that this process does not use is closed. */
struct run {
        struct rv_child *child;
        pid_t pid;
        int pid_fd;
        int in[2];            /* both are kept: with a reader here, writing never fails, and what is left can be counted */
        int out[2], err[2];
        int report[2];        /* the errno of an exec that failed; closed by one that did not */
        int exec_errno;
        bool has_ended;
        unsigned at;          /* of child->in */
        size_t at_offset;
};

static void close_pair(int pair[2])
{
        pair[0] = rv_close(pair[0]);
        pair[1] = rv_close(pair[1]);
}

static void run_fini(struct run *r)
{
        close_pair(r->in);
        close_pair(r->out);
        close_pair(r->err);
        close_pair(r->report);
        rv_close(r->pid_fd);
}

/* A pipe, or /dev/null as the end that is written to. */
static int open_pair(int pair[2], bool is_null)
{
        if (!is_null)
                return pipe2(pair, O_CLOEXEC) < 0 ? rv_raise(-errno) : 0;
        pair[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
        return pair[1] < 0 ? rv_raise(-errno) : 0;
}

static int open_pairs(struct run *r)
{
        int e;

        e = open_pair(r->in, false);
        if (e == 0)
                e = open_pair(r->out, !r->child->out_max);
        if (e == 0)
                e = open_pair(r->err, !r->child->err_max);
        if (e == 0)
                e = open_pair(r->report, false);
        return rv_trace(e);
}

/*
 * Descriptors 3 and on. One that is handed over may have the number that another is to get, so all are moved out of the
 * way first; so is the program's own, and *exe_fd says where to. The report goes to the first number behind them.
 */
static bool place_fds(const struct rv_child *c, int report_fd, int *exe_fd)
{
        int moved[RV_CHILD_FDS_MAX], above = 3 + (int)c->n_fds + 1;
        int report = fcntl(report_fd, F_DUPFD_CLOEXEC, above);

        if (report < 0)
                return false;
        if (*exe_fd >= 0 && (*exe_fd = fcntl(*exe_fd, F_DUPFD_CLOEXEC, above)) < 0)
                return false;
        for (unsigned i = 0; i < c->n_fds; i++) {
                moved[i] = c->fds[i] < 0 ? -EBADF : fcntl(c->fds[i], F_DUPFD_CLOEXEC, above);
                if (c->fds[i] >= 0 && moved[i] < 0)
                        return false;
        }
        for (unsigned i = 0; i < c->n_fds; i++)
                if (moved[i] < 0 ? (close(3 + (int)i), false) : dup2(moved[i], 3 + (int)i) < 0)
                        return false;
        return dup3(report, 3 + (int)c->n_fds, O_CLOEXEC) >= 0;
}

void rv_child_reset_signals(void)
{
        sigset_t none;

        for (int i = 1; i < _NSIG; i++)
                signal(i, SIG_DFL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Between fork and exec: only what may be called in a signal handler. */
static _Noreturn void become(const struct run *r)
{
        static char *const none[] = { NULL };
        const struct rv_child *c = r->child;
        char *const *argv = (char *const *)c->argv, *const *envp = c->envp ? (char *const *)c->envp : none;
        int exe_fd = c->exe_fd, report_fd = r->report[1], e;

        rv_child_reset_signals();
        setsid();
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (chdir("/") == 0 && dup2(r->in[0], STDIN_FILENO) >= 0 && dup2(r->out[1], STDOUT_FILENO) >= 0 &&
            dup2(r->err[1], STDERR_FILENO) >= 0 && place_fds(c, report_fd, &exe_fd)) {
                report_fd = 3 + (int)c->n_fds;
                /* What this process's own caller left open is none of the program's business. */
                if (syscall(SYS_close_range, (unsigned)report_fd, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
                        for (int fd = report_fd; fd < 1024; fd++)
                                fcntl(fd, F_SETFD, FD_CLOEXEC);
                if (exe_fd >= 0)
                        fexecve(exe_fd, argv, envp);
                else
                        execve(argv[0], argv, envp);
        }
        e = errno;
        (void)!write(report_fd, &e, sizeof(e));
        _exit(127);
}

static int start(struct run *r)
{
        int e;

        e = open_pairs(r);
        if (e < 0)
                return rv_trace(e);
        r->pid = fork();
        if (r->pid < 0)
                return rv_raise(-errno);
        if (r->pid == 0)
                become(r);
        r->out[1] = rv_close(r->out[1]);
        r->err[1] = rv_close(r->err[1]);
        r->report[1] = rv_close(r->report[1]);
        r->pid_fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
        if (r->pid_fd < 0)
                return rv_raise(-errno);
        fcntl(r->in[1], F_SETFL, O_NONBLOCK);
        fcntl(r->out[0], F_SETFL, O_NONBLOCK);
        fcntl(r->err[0], F_SETFL, O_NONBLOCK);
        return 0;
}

/* As much of the input as the pipe takes now. */
static int feed(struct run *r)
{
        const struct rv_child *c = r->child;
        ssize_t n;

        while (r->at < c->n_in) {
                const struct iovec *v = &c->in[r->at];

                if (r->at_offset == v->iov_len) {
                        r->at++;
                        r->at_offset = 0;
                        continue;
                }
                n = write(r->in[1], (const char *)v->iov_base + r->at_offset, v->iov_len - r->at_offset);
                if (n < 0)
                        return errno == EAGAIN || errno == EINTR ? 0 : rv_raise(-errno);
                r->at_offset += (size_t)n;
        }
        r->in[1] = rv_close(r->in[1]);
        return 0;
}

/* What is there of its output. 1 more may come; 0 nothing for now, or ever (*fd is closed then); -EFBIG; -errno. */
static int hear(int *fd, struct rv_buf *out, size_t max, bool is_strict)
{
        size_t left = max - RV_MIN(max, out->size);
        ssize_t n;
        int e;

        if (*fd < 0)
                return 0;
        e = rv_buf_reserve(out, CHUNK_BYTES);
        if (e < 0)
                return rv_trace(e);
        n = read(*fd, out->data + out->size, CHUNK_BYTES);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : rv_raise(-errno);
        if (n == 0) {
                *fd = rv_close(*fd);
                return 0;
        }
        if (is_strict && (size_t)n > left)
                return rv_raise(-EFBIG);
        out->size += RV_MIN((size_t)n, left);
        out->data[out->size] = 0;
        return 1;
}

static int hear_both(struct run *r)
{
        struct rv_child *c = r->child;
        int more, e;

        more = hear(&r->out[0], &c->out, c->out_max, true);
        if (more > 0 && c->on_out) {
                e = c->on_out(c->arg, &c->out);
                more = e < 0 ? e : more;
        }
        e = more < 0 ? more : hear(&r->err[0], &r->child->err, r->child->err_max, false);
        return e < 0 ? rv_trace(e) : e || more;
}

static void hear_report(struct run *r)
{
        int e;

        if (read(r->report[0], &e, sizeof(e)) == (ssize_t)sizeof(e))
                r->exec_errno = e;
        r->report[0] = rv_close(r->report[0]);
}

static int wait_ms(const struct run *r, uint64_t now)
{
        uint64_t left = (r->child->deadline_us - now) / 1000 + 1;

        return (int)RV_MIN(left, r->child->stop ? (uint64_t)RV_CHILD_STOP_MS : (uint64_t)60000);
}

/* Waits for something to happen, and sees to it. 1 it has ended; 0; -errno. */
static int step(struct run *r)
{
        struct pollfd fds[] = {
                { r->pid_fd, POLLIN, 0 }, { r->in[1], POLLOUT, 0 }, { r->out[0], POLLIN, 0 },
                { r->err[0], POLLIN, 0 }, { r->report[0], POLLIN, 0 },
        };
        uint64_t now = rv_boot_us();
        int e;

        if (now >= r->child->deadline_us)
                return rv_raise(-ETIMEDOUT);
        if (r->child->stop && atomic_load(r->child->stop))
                return rv_raise(-ECANCELED);
        e = poll(fds, RV_N_ELEMENTS(fds), wait_ms(r, now));
        if (e < 0 && errno != EINTR)
                return rv_raise(-errno);
        if (e <= 0)
                return 0;
        if (fds[4].revents)
                hear_report(r);
        e = fds[1].revents ? feed(r) : 0;
        if (e == 0)
                e = hear_both(r);
        if (e < 0)
                return rv_trace(e);
        if (!fds[0].revents)
                return 0;
        /* What it has said by now is in the pipes; others that hold them are not waited for. */
        do
                e = hear_both(r);
        while (e > 0 && rv_boot_us() < r->child->deadline_us);
        return e < 0 ? rv_trace(e) : 1;
}

static void count_unread(struct run *r)
{
        struct rv_child *c = r->child;
        int n = 0;

        (void)ioctl(r->in[0], FIONREAD, &n);
        c->n_unread = (size_t)n;
        for (unsigned i = r->at; i < c->n_in; i++)
                c->n_unread += c->in[i].iov_len - (i == r->at ? r->at_offset : 0);
}

static void kill_all(const struct run *r)
{
        if (r->pid_fd >= 0)
                (void)syscall(SYS_pidfd_send_signal, r->pid_fd, SIGKILL, NULL, 0);
        else
                (void)kill(r->pid, SIGKILL);
        /* It was not waited for, so the group's number is still its own. */
        (void)kill(-r->pid, SIGKILL);
}

int rv_child_run(struct rv_child *c, struct rv_error *err)
{
        struct run r = {
                .child = c, .pid = -1, .pid_fd = -EBADF, .in = { -EBADF, -EBADF }, .out = { -EBADF, -EBADF },
                .err = { -EBADF, -EBADF }, .report = { -EBADF, -EBADF },
        };
        int e;

        c->out = c->err = (struct rv_buf){ 0 };
        if (c->n_fds > RV_CHILD_FDS_MAX)
                return rv_error_set(err, rv_raise(-EINVAL), "cannot hand %u descriptors to %s: the most is %u", c->n_fds, c->argv[0], RV_CHILD_FDS_MAX);
        e = start(&r);
        while (e == 0)
                e = step(&r);
        if (e < 0 && r.pid > 0)
                kill_all(&r);
        if (r.pid > 0)
                while (waitpid(r.pid, &c->status, 0) < 0 && errno == EINTR)
                        ;
        if (r.report[0] >= 0 && e > 0)
                hear_report(&r);
        count_unread(&r);
        run_fini(&r);
        if (e > 0 && r.exec_errno)
                e = rv_raise(-r.exec_errno);
        if (e == -ETIMEDOUT)
                return rv_error_set(err, e, "%s took too long and was ended", c->argv[0]);
        if (e == -ECANCELED && c->stop && atomic_load(c->stop))
                return rv_error_set(err, e, "%s was ended, as was asked for", c->argv[0]);
        if (e == -EFBIG)
                return rv_error_set(err, e, "%s said more than %zu bytes and was ended", c->argv[0], c->out_max);
        return e < 0 ? rv_error_set(err, rv_trace(e), "cannot run %s: %s", c->argv[0], strerror(-e)) : 0;
}

void rv_child_fini(struct rv_child *c)
{
        rv_buf_fini(&c->out);
        rv_buf_fini(&c->err);
}

const char *rv_child_end_text(const struct rv_child *c, char *ret, size_t size)
{
        size_t n = c->err.size ? strcspn(c->err.data, "\n") : 0;
        int at;

        if (WIFSIGNALED(c->status))
                at = snprintf(ret, size, "was ended by signal %d", WTERMSIG(c->status));
        else
                at = snprintf(ret, size, "ended with status %d", WEXITSTATUS(c->status));
        if (n && at > 0 && (size_t)at < size)
                snprintf(ret + at, size - (size_t)at, ": %.*s", (int)RV_MIN(n, (size_t)1024), c->err.data);
        for (char *p = ret; *p; p++)
                if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
                        *p = '?';
        return ret;
}
