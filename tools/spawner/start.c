#include "start.h"

#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHANNEL_FD 3

extern char **environ;

static char *arguments, *arguments_end;

void spawner_remember_caller(int argc, char **argv)
{
        arguments = arguments_end = argv[0];
        /* They lie one behind the other, as the kernel put them. */
        for (int i = 0; i < argc && argv[i] == arguments_end; i++)
                arguments_end = argv[i] + strlen(argv[i]) + 1;
}

void spawner_forget_caller(void)
{
        static const char name[] = "reeve-spawner";

        if (arguments) {
                explicit_bzero(arguments, (size_t)(arguments_end - arguments));
                memcpy(arguments, name, RV_MIN(sizeof(name) - 1, (size_t)(arguments_end - arguments) - 1));
        }
        for (char **e = environ; e && *e; e++)
                explicit_bzero(*e, strlen(*e));
        environ = NULL;
}

static int fork_with(
        const char *config_file, int child_fd, int at_fd, enum spawner_duty duty, const char *key_file, pid_t *ret_pid)
{
        sigset_t all, old;
        pid_t pid;

        (void)fflush(NULL);     /* or the child would print it too */
        /* A Ctrl-C is the loop's; the child takes none until it ignores them. */
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &old);
        pid = fork();
        if (pid != 0) {
                int e = errno;

                sigprocmask(SIG_SETMASK, &old, NULL);
                *ret_pid = pid;
                return pid < 0 ? rv_raise(-e) : 0;
        }
        if (child_fd != at_fd ? dup2(child_fd, at_fd) < 0 : fcntl(at_fd, F_SETFD, 0) < 0)
                _exit(127);
        _exit(spawner_main(config_file, duty, key_file));
}

int spawner_fork(const char *config_file, enum spawner_duty duty, const char *key_file, int *ret_fd, pid_t *ret_pid,
        struct rv_error *err)
{
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                r = -errno;
                return rv_error_set(err, rv_raise(r), "cannot make a socket pair: %s", strerror(-r));
        }
        r = fork_with(config_file, pair[1], CHANNEL_FD, duty, key_file, ret_pid);
        rv_close(pair[1]);
        if (r < 0) {
                rv_close(pair[0]);
                return rv_error_set(err, r, "cannot start the spawner: %s", strerror(-r));
        }
        *ret_fd = pair[0];
        return 0;
}

int spawner_ask(const char *config_file, enum spawner_duty duty, int *ret_fd, pid_t *ret_pid, struct rv_error *err)
{
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0) {
                r = -errno;
                return rv_error_set(err, rv_raise(r), "cannot make a pipe: %s", strerror(-r));
        }
        r = fork_with(config_file, fds[1], STDOUT_FILENO, duty, NULL, ret_pid);
        rv_close(fds[1]);
        if (r < 0) {
                rv_close(fds[0]);
                return rv_error_set(err, r, "cannot start the spawner: %s", strerror(-r));
        }
        *ret_fd = fds[0];
        return 0;
}
