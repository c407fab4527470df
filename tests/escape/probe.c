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
        int status, waited_ms = 0;

        for (;;) {
                int r = waitpid(pid, &status, WNOHANG | __WALL);

                if (r == pid)
                        return status;
                if (r < 0 && errno != EINTR)
                        return -1;
                if (waited_ms >= timeout_ms)
                        break;
                poll(NULL, 0, 1);
                waited_ms++;
        }
        kill(pid, SIGKILL);
        waitpid(pid, &status, __WALL);
        return -1;
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
