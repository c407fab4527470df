/*
 * What durable records cost when many processes write at once.
 *
 *     audit_write [DIR [PROCESSES [RECORDS]]]    (default: a directory below /var/tmp, 16, 500)
 *
 * Each process appends records of 1 KiB and syncs after each, as fast as it can. Prints records a second, how many
 * times fdatasync() was called for a record, and how long an append with its sync took.
 */
#include "audit/log.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RECORDS_MAX 100000
#define PROCESSES_MAX 256

static uint32_t *n_syncs;
static uint64_t *took_ns;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
        __atomic_fetch_add(n_syncs, 1, __ATOMIC_RELAXED);
        return __real_fdatasync(fd);
}

static uint64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int work(const char *dir, unsigned n, uint64_t *took)
{
        char text[600];
        _cleanup_(rv_json_unrefp) json_t *body = NULL;
        struct rv_error err = { 0 };
        struct rv_log *log = NULL;

        memset(text, 'x', sizeof(text));
        body = json_pack("{s:s#}", "text", text, (int)sizeof(text));
        if (rv_log_open(dir, &log, &err) < 0)
                return fprintf(stderr, "%s\n", err.message);
        for (unsigned i = 0; i < n; i++) {
                uint64_t begun = now_ns();

                if (rv_log_append_synced(log, "outcome", body, NULL, &err) < 0)
                        return fprintf(stderr, "%s\n", err.message);
                took[i] = now_ns() - begun;
        }
        rv_log_close(log);
        return 0;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static int run(const char *dir, unsigned n_processes, unsigned n_records)
{
        uint64_t begun = now_ns();
        size_t n = (size_t)n_processes * n_records;
        double seconds;
        int status, r = 0;

        for (unsigned i = 0; i < n_processes; i++)
                if (fork() == 0)
                        _exit(work(dir, n_records, took_ns + (size_t)i * n_records) != 0);
        while (wait(&status) > 0)
                r |= status;
        seconds = (double)(now_ns() - begun) / 1e9;
        qsort(took_ns, n, sizeof(*took_ns), compare);
        printf("%3u writers: %7.0f records/s   %.3f syncs a record   an append with its sync: median %.2f ms, p99 %.2f ms\n",
                n_processes, (double)n / seconds, (double)*n_syncs / (double)n, (double)took_ns[n / 2] / 1e6,
                (double)took_ns[n * 99 / 100] / 1e6);
        return r;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        return remove(path);
}

int main(int argc, char **argv)
{
        unsigned n_processes = argc > 2 ? (unsigned)atoi(argv[2]) : 16,
                 n_records = argc > 3 ? (unsigned)atoi(argv[3]) : 500;
        char dir[512];
        int r;

        if (!n_processes || n_processes > PROCESSES_MAX || !n_records || n_records > RECORDS_MAX)
                return fprintf(stderr, "1 to %d processes, 1 to %d records\n", PROCESSES_MAX, RECORDS_MAX) > 0;
        snprintf(dir, sizeof(dir), "%s/audit-write-XXXXXX", argc > 1 ? argv[1] : "/var/tmp");
        n_syncs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        took_ns = mmap(NULL, sizeof(*took_ns) * n_processes * n_records, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (n_syncs == MAP_FAILED || took_ns == MAP_FAILED || !mkdtemp(dir))
                return perror(dir), 1;
        r = run(dir, n_processes, n_records);
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        return r != 0;
}
