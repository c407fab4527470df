#include "runtime_tool.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_US (UINT64_C(20) * 1000 * 1000)     /* after TERM, for it to remove what it made */
#define LINE_SIZE 1024

static volatile sig_atomic_t told;

static void on_signal(int number)
{
        told = number;
}

int tool_signals(void)
{
        struct sigaction action = { .sa_handler = on_signal };
        const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

        for (size_t i = 0; i < RV_N_ELEMENTS(numbers); i++)
                if (sigaction(numbers[i], &action, NULL) < 0)
                        return rv_raise(-errno);
        signal(SIGCHLD, SIG_DFL);
        return 0;
}

int tool_was_told(void)
{
        return told;
}

int tool_find(const char *name, const char *package, char ret[TOOL_PATH_SIZE], struct rv_error *err)
{
        static const char *const places[] = { "/usr/sbin", "/usr/bin", "/sbin", "/bin" };

        for (size_t i = 0; i < RV_N_ELEMENTS(places); i++) {
                snprintf(ret, TOOL_PATH_SIZE, "%s/%s", places[i], name);
                if (access(ret, X_OK) == 0)
                        return 0;
        }
        return rv_error_set(err, rv_raise(-ENOENT), "%s is missing, which this needs; install it: apt-get install %s", name, package);
}

/* Between fork and exec. */
static _Noreturn void become(const struct tool *t, int out_fd, pid_t parent)
{
        int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        rv_child_reset_signals();
        setsid();
        prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
        if (getppid() != parent)
                _exit(127);
        if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0)
                (void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
        if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0 ||
                dup2(out_fd, STDERR_FILENO) < 0)
                _exit(127);
        (void)syscall(SYS_close_range, 3u, ~0u, 0);
        execve(t->argv[0], (char *const *)t->argv, (char *const *)t->envp);
        _exit(127);
}

/* The beginning goes when it is full, whole lines of it. */
static void keep(struct tool *t, const char *line)
{
        size_t n_line = strlen(line), n = strlen(t->tail);

        if (n_line + 2 > sizeof(t->tail))
                return;
        while (n + n_line + 2 > sizeof(t->tail)) {
                char *next = strchr(t->tail, '\n') + 1;

                n -= (size_t)(next - t->tail);
                memmove(t->tail, next, n + 1);
        }
        memcpy(t->tail + n, line, n_line);
        memcpy(t->tail + n + n_line, "\n", 2);
}

struct lines {
        char text[LINE_SIZE];
        size_t n;
};

/* A carriage return ends a line as well: what comes before it is progress of the program's own. */
static void feed(struct tool *t, struct lines *l, const char *data, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (data[i] != '\n' && data[i] != '\r') {
                        if (l->n + 1 < sizeof(l->text))
                                l->text[l->n++] = data[i];
                        continue;
                }
                l->text[l->n] = 0;
                if (l->n && data[i] == '\n') {
                        keep(t, l->text);
                        if (t->line)
                                t->line(t->ctx, l->text);
                }
                l->n = 0;
        }
}

/* Until it has ended and nobody can write any more, or does for a second; whoever it started may hold the pipe for longer. */
static int follow(struct tool *t, pid_t pid, int pid_fd, int out_fd)
{
        struct lines lines = { .n = 0 };
        uint64_t give_up_us = 0;
        bool has_ended = false;
        char data[4096];

        for (;;) {
                struct pollfd fds[] = { { .fd = out_fd, .events = POLLIN },
                        { .fd = has_ended ? -1 : pid_fd, .events = POLLIN } };
                int n = poll(fds, 2, told ? 200 : 1000);

                if (told && !has_ended && !give_up_us) {
                        kill(pid, SIGTERM);
                        give_up_us = rv_boot_us() + PATIENCE_US;
                }
                if (give_up_us && rv_boot_us() > give_up_us)
                        kill(-pid, SIGKILL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (fds[0].revents) {
                        ssize_t got = read(out_fd, data, sizeof(data));

                        if (got > 0)
                                feed(t, &lines, data, (size_t)got);
                        else if (has_ended)
                                return 0;
                        else
                                out_fd = -1;
                }
                has_ended = has_ended || fds[1].revents;
                if (has_ended && (n == 0 || out_fd < 0))
                        return 0;
        }
}

static int judge(const struct tool *t, struct rv_error *err)
{
        char why[64];

        if (told)
                return rv_error_set(err, -EINTR, "it was ended by a signal");
        if (WIFEXITED(t->status) && WEXITSTATUS(t->status) == 0)
                return 0;
        if (WIFEXITED(t->status))
                snprintf(why, sizeof(why), "ended with status %d", WEXITSTATUS(t->status));
        else
                snprintf(why, sizeof(why), "was killed by signal %d", WTERMSIG(t->status));
        return rv_error_set(err, rv_raise(-ECHILD), "%s %s", t->argv[0], why);
}

int tool_run(struct tool *t, struct rv_error *err)
{
        _cleanup_(rv_closep) int pid_fd = -EBADF;
        pid_t parent = getpid(), pid;
        int pipe_fds[2], r;

        t->tail[0] = 0;
        if (told)
                return rv_error_set(err, -EINTR, "it was ended by a signal");
        if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
                r = -errno;
                return rv_error_set(err, rv_raise(r), "cannot start %s: %s", t->argv[0], strerror(-r));
        }
        (void)fflush(NULL);
        pid = fork();
        if (pid == 0)
                become(t, pipe_fds[1], parent);
        r = pid < 0 ? -errno : 0;
        rv_close(pipe_fds[1]);
        pid_fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -EBADF;
        if (pid > 0 && pid_fd >= 0)
                r = follow(t, pid, pid_fd, pipe_fds[0]);
        rv_close(pipe_fds[0]);
        if (pid > 0) {
                if (pid_fd < 0 || r < 0)
                        kill(-pid, SIGKILL);
                while (waitpid(pid, &t->status, 0) < 0 && errno == EINTR)
                        ;
                kill(-pid, SIGKILL);    /* what it left behind */
        }
        if (r < 0)
                return rv_error_set(err, rv_raise(r), "cannot start or follow %s: %s", t->argv[0], strerror(-r));
        return judge(t, err);
}
