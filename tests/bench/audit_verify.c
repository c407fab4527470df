/*
 * What verifying a log costs: records a second.
 *
 *     audit_verify [RECORDS] [BYTES]    (default: 200,000 records of 1,024 bytes)
 *
 * Makes a log in memory (/dev/shm) with a checkpoint every 1,000 records, verifies it three times and prints each: by
 * the clock, and by the processor time that it took, which says more on a busy machine.
 */
#include "audit/verify.h"
#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_ID "00112233445566778899aabbccddeeff"
#define SEGMENT_BYTES ((uint64_t)64 << 20)

static const uint8_t seed[RV_CHECKPOINT_KEY_BYTES] = { 1 };
static char dir[64] = "/dev/shm/reeve-bench-XXXXXX";

struct maker {
        int dir_fd, fd;
        uint64_t seq, segment_bytes;
        char prev[RV_SHA256_HEX_SIZE];
        struct rv_merkle tree;
        struct rv_buf pending;
};

static bool flush(struct maker *m)
{
        bool is_good = rv_write_all(m->fd, m->pending.data, m->pending.size) == 0;

        m->pending.size = 0;
        return is_good;
}

static bool put(struct maker *m, const struct rv_buf *line)
{
        char name[RV_LOG_SEGMENT_NAME_SIZE];
        rv_merkle_hash leaf;

        if (m->fd < 0 || m->segment_bytes > SEGMENT_BYTES) {
                if (m->fd >= 0 && !flush(m))
                        return false;
                rv_close(m->fd);
                snprintf(name, sizeof(name), "%020" PRIu64 ".jsonl", m->seq);
                m->fd = openat(m->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                m->segment_bytes = 0;
        }
        rv_merkle_leaf(line->data, line->size, leaf);
        rv_merkle_push(&m->tree, leaf);
        rv_sha256_hex(line->data, line->size, m->prev);
        rv_buf_append(&m->pending, line->data, line->size);
        rv_buf_putc(&m->pending, '\n');
        m->segment_bytes += line->size + 1;
        m->seq++;
        return m->pending.size < ((size_t)1 << 20) || flush(m);
}

/* What a decision's line looks like: many short texts, few numbers. */
static bool put_decision(struct maker *m, size_t n)
{
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };

        rv_buf_printf(&line, "{\"build\":\"0.1.0\",\"facts\":{\"language\":\"python\",\"packages\":[");
        for (unsigned i = 0; line.size + 380 < n; i++)
                rv_buf_printf(&line, "%s{\"direct\":true,\"extras\":[],\"name\":\"package-%u\",\"pinned\":false,\"size_bytes\":%u}", i ? "," : "", i, 1000 + i);
        rv_buf_printf(&line, "],\"text\":\"");
        while (line.size + 300 < n)
                rv_buf_putc(&line, 'x');
        rv_buf_printf(&line, "\"},\"instance\":\"" LOG_ID "\",\"kind\":\"decision\",\"log_id\":\"" LOG_ID "\",\"prev\":\"%s\",\"seq\":%" PRIu64 ",\"tenant\":\"local\",\"time_us\":1750000000000000}", m->prev, m->seq);
        return put(m, &line);
}

static bool put_checkpoint(struct maker *m)
{
        struct rv_checkpoint c = { .log_id = LOG_ID, .size = m->seq };
        _cleanup_(rv_buf_fini) struct rv_buf note = { 0 }, line = { 0 };
        _cleanup_(rv_json_unrefp) json_t *record = NULL;
        char root[RV_SHA256_HEX_SIZE];

        rv_merkle_root(&m->tree, c.root);
        rv_hex(c.root, sizeof(c.root), root);
        if (rv_checkpoint_sign(&c, seed) < 0 || rv_checkpoint_write(&c, &note) < 0)
                return false;
        record = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:s%}", "build", "0.1.0", "instance", LOG_ID, "kind", "checkpoint", "log_id", LOG_ID, "prev", m->prev,
                "seq", (json_int_t)m->seq, "time_us", (json_int_t)1750000000000000, "size", (json_int_t)c.size, "root", root, "note", note.data, note.size);
        return rv_json_canonical(record, &line) == 0 && put(m, &line);
}

static bool make(struct maker *m, uint64_t n, size_t bytes)
{
        bool is_good = true;

        memset(m->prev, '0', sizeof(m->prev) - 1);
        while (is_good && m->seq < n)
                is_good = m->seq % 1000 == 999 ? put_checkpoint(m) : put_decision(m, bytes);
        return is_good && flush(m);
}

static double per_second(const struct rv_verify_result *result, uint64_t us)
{
        return (double)result->n_records * 1e6 / (double)us;
}

static void measure(const struct maker *m)
{
        struct rv_checkpoint_key key = { .log_id = LOG_ID };
        struct rv_verify_input input = { .audit_fd = m->dir_fd, .path = dir, .keys = &key, .n_keys = 1 };
        struct rv_verify_result result;
        struct rv_error err = { 0 };
        uint64_t began_us, began_cpu_us;
        int r;

        rv_checkpoint_public(seed, key.public_key);
        for (int i = 0; i < 3; i++) {
                began_us = rv_boot_us();
                began_cpu_us = rv_clock_us(CLOCK_PROCESS_CPUTIME_ID);
                r = rv_verify_log(&input, &result, &err);
                if (r != 0) {
                        printf("not good: %s%s\n", err.message, r > 0 ? result.fault.text : "");
                        return;
                }
                printf("verify: %" PRIu64 " records, %" PRIu64 " MB, %" PRIu64
                       " checkpoints: %.0f records/s, %.0f a second of processor time\n",
                        result.n_records, result.n_bytes / 1000000, result.n_checkpoints,
                        per_second(&result, rv_boot_us() - began_us),
                        per_second(&result, rv_clock_us(CLOCK_PROCESS_CPUTIME_ID) - began_cpu_us));
        }
}

int main(int argc, char **argv)
{
        uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 200000;
        size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 1024;
        struct maker m = { .fd = -EBADF };
        struct rusage usage;
        char name[512];
        int r;

        if (!mkdtemp(dir))
                return 1;
        m.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = make(&m, n, bytes) ? 0 : 1;
        rv_buf_fini(&m.pending);
        if (r == 0)
                measure(&m);
        getrusage(RUSAGE_SELF, &usage);
        printf("memory: %ld MiB at most\n", usage.ru_maxrss >> 10);
        snprintf(name, sizeof(name), "rm -rf '%s'", dir);
        return system(name) ? 1 : r;
}
