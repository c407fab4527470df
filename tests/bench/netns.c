/*
 * netns.c - what network access adds to the start of a run, inside its namespace: routes, sockets, rules, reading back
 *
 *     netns [REPETITIONS]
 *
 * Each repetition is a process with a user and a network namespace of its own, whose `lo` is up already, as in a run
 * that was made ahead. Prints for each mode the median and the 95th percentile in microseconds, back to back and after
 * 40 ms of rest.
 */
#include "netns.h"
#include "netns_link.h"


#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REPETITIONS_MAX 10000

static _Noreturn void die(const char *what, int e)
{
        fprintf(stderr, "netns: cannot %s: %s\n", what, strerror(-e));
        exit(1);
}

static uint64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t measure_one(enum rv_netns_mode mode)
{
        const char *step = "make namespaces";
        uint64_t took = 0;
        int fds[2];
        pid_t pid;

        if (pipe(fds) < 0)
                die("make a pipe", -errno);
        pid = fork();
        if (pid == 0) {
                struct rv_netns net;
                int r = unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 ? -errno : rv_netns_loopback_up();
                uint64_t start = now_ns();

                if (r == 0)
                        r = rv_netns_open(mode, &net, &step);
                if (r == 0)
                        r = rv_netns_drop_capabilities();
                took = now_ns() - start;
                if (r < 0)
                        die(step, r);
                (void)!write(fds[1], &took, sizeof(took));
                _exit(0);
        }
        close(fds[1]);
        if (read(fds[0], &took, sizeof(took)) != sizeof(took))
                exit(1);
        close(fds[0]);
        waitpid(pid, NULL, 0);
        return took;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static void measure(enum rv_netns_mode mode, int n, unsigned rest_ms)
{
        static uint64_t took[REPETITIONS_MAX];

        for (int i = 0; i < n; i++) {
                usleep(rest_ms * 1000);
                took[i] = measure_one(mode);
        }
        qsort(took, (size_t)n, sizeof(took[0]), compare);
        printf("%-9s %2u ms apart: median %6.1f us, 95 %% below %6.1f us, %d times\n", rv_netns_mode_name(mode), rest_ms,
               (double)took[n / 2] / 1e3, (double)took[n * 95 / 100] / 1e3, n);
}

int main(int argc, char **argv)
{
        int n = argc > 1 ? atoi(argv[1]) : 200;

        if (n < 1 || n > REPETITIONS_MAX) {
                fprintf(stderr, "usage: netns [REPETITIONS]\n");
                return 2;
        }
        for (enum rv_netns_mode mode = RV_NETNS_TPROXY; mode < RV_NETNS_MODE_MAX_; mode++) {
                measure(mode, n, 0);
                measure(mode, n, 40);
        }
        return 0;
}
