/*
 * What the index over the log costs: made from a log of N records, and asked when nothing, and when one run, is new.
 *
 *     store_index [N]    (default 1000000)
 *
 * The log lies on a tmpfs where there is one. Its records have the members and the sizes of real ones; every fourth run
 * has a key.
 */
#include "base/clock.h"
#include "store/index.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PER_SEGMENT 100000
#define KEY_EVERY 4

static char dir[64], facts[1400];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        return remove(path);
}

static FILE *open_file(const char *name, const char *mode)
{
        char path[128];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        f = fopen(path, mode);
        if (!f) {
                perror(path);
                exit(1);
        }
        return f;
}

/* As many values as the facts of a decision have. */
static void make_facts(void)
{
        char *p = facts;

        for (int i = 0; i < 60; i++)
                p += sprintf(p, "%c\"member_%d\":\"value\"", i ? ',' : '{', i);
        strcpy(p, "}");
}

/* A number that looks random and comes back from the same @i. */
static uint64_t mix(uint64_t i)
{
        i = (i ^ (i >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        i = (i ^ (i >> 27)) * UINT64_C(0x94d049bb133111eb);
        return i ^ (i >> 31);
}

static void put_key(uint64_t run, char ret[RV_SHA256_HEX_SIZE])
{
        snprintf(ret, RV_SHA256_HEX_SIZE, "%016" PRIx64 "%016" PRIx64 "%032d", mix(run), mix(run + 1), 0);
}

static void put_run(FILE *f, uint64_t run, uint64_t seq)
{
        char id[33], key[RV_SHA256_HEX_SIZE], key_member[300] = "";

        snprintf(id, sizeof(id), "%016" PRIx64 "%016" PRIx64, mix(run * 2 + 1), mix(run * 2 + 2));
        put_key(run, key);
        if (run % KEY_EVERY == 0)
                snprintf(key_member, sizeof(key_member), "\"key\":{\"bytes\":8,\"fingerprint\":\"%s\",\"hmac_sha256\":\"%s\"},", key, key);
        fprintf(f, "{\"build\":\"0.1.0\",\"decision_id\":\"%s\",\"facts\":%s,%s\"kind\":\"decision\",\"run_id\":\"%s\",\"seq\":%" PRIu64
                   ",\"tenant\":\"local\",\"time_us\":1796005187316913,\"verdict\":{\"code\":\"ok\",\"effect\":\"allow\"}}\n",
                id, facts, key_member, id, seq);
        fprintf(f, "{\"build\":\"0.1.0\",\"code\":\"ok\",\"decision_id\":\"%s\",\"instance\":\"%s\",\"kind\":\"outcome\",\"log_id\":\"%s\",\"outcome_sha256\":\"%s\",\"prev\":\"%s\","
                   "\"run_id\":\"%s\",\"seq\":%" PRIu64 ",\"started\":\"yes\",\"status\":\"completed\",\"stderr_bytes\":0,\"stdout_bytes\":3,\"tenant\":\"local\",\"time_us\":1796005187339412}\n",
                id, id, id, key, key, id, seq + 1);
}

static void make_log(uint64_t n)
{
        char name[64];
        FILE *f = NULL;

        for (uint64_t seq = 0; seq + 1 < n; seq += 2) {
                if (seq % PER_SEGMENT == 0) {
                        if (f)
                                fclose(f);
                        snprintf(name, sizeof(name), "audit/%020" PRIu64 ".jsonl", seq);
                        f = open_file(name, "w");
                }
                put_run(f, seq / 2, seq);
        }
        fclose(f);
}

static double seconds_since(uint64_t us)
{
        return (double)(rv_clock_us(CLOCK_MONOTONIC) - us) / 1e6;
}

static int find(struct rv_log *log, uint64_t run, enum rv_index_state want, double *ret_s)
{
        struct rv_index_key found;
        struct rv_error err = { 0 };
        struct rv_index *index;
        char key[RV_SHA256_HEX_SIZE];
        uint64_t began = rv_clock_us(CLOCK_MONOTONIC);
        int r;

        put_key(run, key);
        if (rv_index_open(log, &index) < 0)
                return 1;
        r = rv_index_find(index, key, &found, &err);
        rv_index_close(index);
        *ret_s = seconds_since(began);
        if (r == 0 && found.state == want)
                return 0;
        fprintf(stderr, "run %" PRIu64 ": %d, state %d: %s\n", run, r, (int)found.state, err.message);
        return 1;
}

static int measure(uint64_t n)
{
        struct rv_error err = { 0 };
        struct rusage usage;
        struct rv_log *log;
        double s, all = 0;
        FILE *f;

        if (rv_log_open(dir, &log, &err) < 0) {
                fprintf(stderr, "%s\n", err.message);
                return 1;
        }
        make_log(n);
        if (find(log, 0, RV_INDEX_DONE, &s))
                return 1;
        getrusage(RUSAGE_SELF, &usage);
        printf("index made: %.2f s for %" PRIu64 " records, %.0f records/s; at most %ld MiB of memory\n", s, n, (double)n / s, usage.ru_maxrss / 1024);
        for (uint64_t i = 0; i < 100; i++) {
                if (find(log, i * KEY_EVERY, RV_INDEX_DONE, &s) || find(log, i * KEY_EVERY + 1, RV_INDEX_FREE, &s))
                        return 1;
                all += s;
        }
        printf("asked, nothing is new: %.2f ms\n", all * 10);
        all = 0;
        for (uint64_t i = 0; i < 100; i++) {
                char name[64];

                snprintf(name, sizeof(name), "audit/%020" PRIu64 ".jsonl", (n - 1) / PER_SEGMENT * PER_SEGMENT);
                f = open_file(name, "a");
                put_run(f, n + i, n + 2 * i);
                fclose(f);
                if (find(log, n + 1, RV_INDEX_FREE, &s))
                        return 1;
                all += s;
        }
        printf("asked, one run is new: %.2f ms\n", all * 10);
        rv_log_close(log);
        return 0;
}

int main(int argc, char **argv)
{
        uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
        int r;

        make_facts();
        snprintf(dir, sizeof(dir), "%s/reeve-index-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(dir))
                return 1;
        r = measure(n < 2 ? 2 : n);
        nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        return r;
}
