/*
 * probe_bombs.c - what a run can use up, and what happens then; made for a run of 128 MiB
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)
#define N_PIDS 256              /* the default of limits.pids */
#define N_FILES 1000000

static const char *within(unsigned n, unsigned low, unsigned high)
{
        return n < low ? "too few" : n > high ? "too many" : "bounded";
}

static void processes(void)
{
        static pid_t pids[4096];
        unsigned n = 0;
        int e = 0;

        fflush(stdout);
        while (n < N_ELEMENTS(pids)) {
                pids[n] = fork();
                if (pids[n] == 0)
                        for (;;)
                                pause();
                if (pids[n] < 0) {
                        e = errno;
                        break;
                }
                n++;
        }
        for (unsigned i = 0; i < n; i++)
                kill(pids[i], SIGKILL);
        for (unsigned i = 0; i < n; i++)
                waitpid(pids[i], NULL, 0);
        say("5/bombs/fork", "%s, then %s", within(n, N_PIDS - 16, N_PIDS), e ? strerrorname_np(e) : "nothing");
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_at_gate(void *arg)
{
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
        return arg;
}

static void threads(void)
{
        static pthread_t all[4096];
        pthread_attr_t small;
        unsigned n = 0;
        int e = 0;

        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 64 << 10);
        pthread_mutex_lock(&gate);
        while (n < N_ELEMENTS(all)) {
                e = pthread_create(&all[n], &small, wait_at_gate, NULL);
                if (e)
                        break;
                n++;
        }
        pthread_mutex_unlock(&gate);
        for (unsigned i = 0; i < n; i++)
                pthread_join(all[i], NULL);
        say("5/bombs/threads", "%s, then %s", within(n, N_PIDS - 16, N_PIDS), e ? strerrorname_np(e) : "nothing");
}

/* A million empty files: the inode cap is 128 a MiB of the run's memory, shared by all that is writable. */
static void inodes(void)
{
        static const char *const places[] = { "/tmp", "/box", "/dev/shm" };
        char path[64];
        unsigned n = 0, more = 0;
        int e = 0;

        mkdir("/tmp/many", 0755);
        while (n < N_FILES) {
                int fd;

                snprintf(path, sizeof(path), "/tmp/many/%u", n);
                fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
                if (fd < 0) {
                        e = errno;
                        break;
                }
                close(fd);
                n++;
        }
        for (size_t i = 0; i < N_ELEMENTS(places); i++) {
                snprintf(path, sizeof(path), "%s/one-more", places[i]);
                more += mkdir(path, 0755) == 0;
        }
        for (unsigned i = 0; i < n; i++) {
                snprintf(path, sizeof(path), "/tmp/many/%u", i);
                unlink(path);
        }
        rmdir("/tmp/many");
        say("5/bombs/inodes", "%s, then %s, %u more elsewhere", within(n, 16000, 16384), e ? strerrorname_np(e) : "nothing", more);
}

static unsigned fill(const char *path, char *block, int *ret_errno)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        unsigned n = 0;

        *ret_errno = 0;
        while (fd >= 0 && n < 4096) {
                ssize_t r = write(fd, block, MIB);

                if (r < 0) {
                        *ret_errno = errno;
                        break;
                }
                n += (unsigned)(r == (ssize_t)MIB);
        }
        if (fd >= 0)
                close(fd);
        return n;
}

/* Files alone never lead to the memory limit: half of it is left for the program, which then uses some. */
static void bytes(void)
{
        char *block = malloc(MIB), *more;
        unsigned n, elsewhere;
        int e, e2;

        memset(block, 'x', MIB);
        n = fill("/tmp/full", block, &e);
        elsewhere = fill("/dev/shm/full", block, &e2);
        say("5/bombs/bytes", "%s, then %s, elsewhere %u, %s", within(n, 60, 64), e ? strerrorname_np(e) : "nothing", elsewhere, e2 ? strerrorname_np(e2) : "nothing");
        more = malloc(40 * MIB);
        if (more)
                memset(more, 'y', 40 * MIB);
        say("5/bombs/memory-beside-full-files", "%s", more ? "there is" : "none");
        free(more);
        free(block);
        unlink("/tmp/full");
        unlink("/dev/shm/full");
        e = open("/tmp/sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        say_returned("5/bombs/sparse-file", ftruncate(e, 1l << 40));
        close(e);
        unlink("/tmp/sparse");
}

static void descriptors(void)
{
        static int fds[8192];
        unsigned n = 0;
        int e = 0;

        while (n < N_ELEMENTS(fds)) {
                fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
                if (fds[n] < 0) {
                        e = errno;
                        break;
                }
                n++;
        }
        for (unsigned i = 0; i < n; i++)
                close(fds[i]);
        say("5/bombs/descriptors", "%u, then %s", n, e ? strerrorname_np(e) : "nothing");
}

void probe_bombs(void)
{
        processes();
        threads();
        descriptors();
        inodes();
        bytes();
}
