/*
 * probe.c - runs groups of checks inside a sandbox and prints what each of them found (probe.h)
 *
 *     probe GROUP…
 */
#include "probe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_MS 2000    /* for one system call */

void say(const char *check, const char *format, ...)
{
        char text[8192];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        printf("{\"check\": \"%s\", \"result\": \"%s\"}\n", check, text);
        fflush(stdout);
}

static void say_errno(const char *check, int e)
{
        const char *name = strerrorname_np(e);

        if (name)
                say(check, "denied:%s", name);
        else
                say(check, "denied:%d", e);
}

void say_returned(const char *check, long r)
{
        if (r < 0)
                say_errno(check, errno);
        else
                say(check, "allowed");
}

int wait_for(int pid, int timeout_ms)
{
        struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
        bool is_late = end.fd < 0 || poll(&end, 1, timeout_ms) != 1;
        int status;

        if (end.fd >= 0)
                close(end.fd);
        if (is_late)
                kill(pid, SIGKILL);
        return waitpid(pid, &status, __WALL) != pid || is_late ? -1 : status;
}

long returned_by_child(long (*call)(const void *arg), const void *arg)
{
        int status;
        pid_t pid;

        fflush(stdout);
        pid = fork();
        if (pid == 0) {
                errno = 0;
                _exit(call(arg) < 0 ? errno : 0);
        }
        status = pid < 0 ? -1 : wait_for(pid, CHILD_MS);
        if (status < 0 || !WIFEXITED(status))
                return -2;
        errno = WEXITSTATUS(status);
        return errno ? -1 : 0;
}

void say_in_child(const char *check, long (*call)(const void *arg), const void *arg)
{
        long r = returned_by_child(call, arg);

        if (r == -2)
                say(check, "killed");
        else
                say_returned(check, r);
}

long make_call(const void *arg)
{
        const struct call *c = arg;

        return syscall(c->nr, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4], c->args[5]);
}

void say_calls(const char *prefix, const struct call *calls, size_t n_calls)
{
        char check[96];

        for (size_t i = 0; i < n_calls; i++) {
                snprintf(check, sizeof(check), "%s%s", prefix, calls[i].name);
                say_in_child(check, make_call, &calls[i]);
        }
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                void (*run)(void);
        } groups[] = {
                { "calls", probe_calls },         { "clones", probe_clones },       { "numbers", probe_numbers },
                { "sockets", probe_sockets },     { "privilege", probe_privilege }, { "processes", probe_processes },
                { "bombs", probe_bombs },
        };

        for (int i = 1; i < argc; i++) {
                size_t g = 0;

                while (g < N_ELEMENTS(groups) && strcmp(groups[g].name, argv[i]))
                        g++;
                if (g == N_ELEMENTS(groups)) {
                        fprintf(stderr, "probe: no group %s\n", argv[i]);
                        return 2;
                }
                groups[g].run();
        }
        return 0;
}
