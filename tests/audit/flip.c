/*
 * Changes a log byte by byte, and asks each time whether the change is found and the right record named.
 *
 *     flip [--every N] [--random N] [--seed N] DIR KEY...
 *
 * DIR is a directory with segments (not of a live log: it is changed in place, and put right again), KEY a verifier
 * key. Every Nth byte of every record is changed in one bit, low and high, and N bytes chosen at random are changed
 * to another at random. The last record is vouched for by the log's size and root (an `expect`); how much of a change
 * to it is found without is counted besides. Exit status 0: every one was found and named.
 */
#include "audit/verify.h"
#include "base/buf.h"
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define KEYS_MAX 8

static struct {
        int fd;
        struct rv_buf bytes;
        uint64_t first;                            /* the number of its first record */
} segments[SEGMENTS_MAX];
static int n_segments;

static struct rv_checkpoint_key keys[KEYS_MAX];
static struct rv_verify_expect expect;
static struct rv_verify_input input = { .keys = keys };
static uint64_t n_tried, n_missed, n_by_what[_RV_VERIFY_WHAT_MAX], n_last, n_last_unseen;

static void die(const char *what)
{
        fprintf(stderr, "flip: %s\n", what);
        exit(2);
}

static int is_segment(const struct dirent *e)
{
        return rv_log_is_segment(e->d_name);
}

static void load(const char *dir)
{
        struct dirent **names;
        uint64_t seq = 0;

        n_segments = scandir(dir, &names, is_segment, alphasort);
        if (n_segments < 1 || n_segments > SEGMENTS_MAX)
                die("no segments, or too many");
        for (int i = 0; i < n_segments; i++) {
                segments[i].fd = openat(input.audit_fd, names[i]->d_name, O_RDWR | O_CLOEXEC);
                segments[i].first = seq;
                if (rv_read_file_at(input.audit_fd, names[i]->d_name, (size_t)1 << 30, &segments[i].bytes) < 0)
                        die("cannot read a segment");
                for (size_t j = 0; j < segments[i].bytes.size; j++)
                        seq += segments[i].bytes.data[j] == '\n';
                free(names[i]);
        }
        free(names);
}

static void put(int i, size_t offset, char byte)
{
        if (pwrite(segments[i].fd, &byte, 1, (off_t)offset) != 1)
                die("cannot write");
}

/* The byte belongs to record @seq. */
static void try(int i, size_t offset, uint64_t seq, char byte)
{
        struct rv_verify_result result;
        struct rv_error err = { 0 };
        int r;

        put(i, offset, byte);
        input.n_expects = 1;
        r = rv_verify_log(&input, &result, &err);
        n_tried++;
        if (r < 0)
                die(err.message);
        if (r == RV_VERIFY_E_FAULT)
                n_by_what[result.fault.what]++;
        if ((r == 0 || result.fault.seq != seq) && n_missed++ < 10)
                printf("byte %zu of segment %d, record %" PRIu64 ", to 0x%02x: %s %" PRIu64 " %s\n", offset, i, seq, (unsigned)(uint8_t)byte, r ? "found in record" : "not found",
                       r ? result.fault.seq : 0, r ? result.fault.text : "");
        if (seq + 1 == expect.size) {
                input.n_expects = 0;
                n_last++;
                n_last_unseen += rv_verify_log(&input, &result, &err) == 0;
        }
        put(i, offset, segments[i].bytes.data[offset]);
}

static void try_every(size_t every)
{
        for (int i = 0; i < n_segments; i++) {
                uint64_t seq = segments[i].first;

                for (size_t j = 0; j < segments[i].bytes.size; j++) {
                        char c = segments[i].bytes.data[j];

                        if (j % every == 0) {
                                try(i, j, seq, c ^ 1);
                                try(i, j, seq, (char)(c ^ 0x20));
                        }
                        seq += c == '\n';
                }
        }
}

static void try_random(uint64_t n)
{
        for (uint64_t k = 0; k < n; k++) {
                int i = (int)(random() % n_segments);
                size_t at = (size_t)random() % segments[i].bytes.size;
                uint64_t seq = segments[i].first;
                char c = (char)(segments[i].bytes.data[at] ^ (1 + random() % 255));

                for (size_t j = 0; j < at; j++)
                        seq += segments[i].bytes.data[j] == '\n';
                try(i, at, seq, c);
        }
}

int main(int argc, char **argv)
{
        unsigned long long every = 1, n_random = 0, seed = 1;
        struct rv_verify_result result;
        struct rv_error err = { 0 };
        int i = 1;

        for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
                unsigned long long value = strtoull(argv[i + 1], NULL, 10);

                *(!strcmp(argv[i], "--every") ? &every : !strcmp(argv[i], "--random") ? &n_random : &seed) = value;
        }
        if (argc - i < 2 || argc - i - 1 > KEYS_MAX || !every)
                die("wrong arguments");
        input.path = argv[i];
        input.audit_fd = open(argv[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        load(argv[i++]);
        for (; i < argc; i++)
                if (rv_checkpoint_key_read(argv[i], strlen(argv[i]), &keys[input.n_keys++]) < 0)
                        die("no key");
        if (rv_verify_log(&input, &result, &err) != 0)
                die(result.n_faults ? result.fault.text : err.message);
        expect.size = result.n_records;
        memcpy(expect.root, result.root, sizeof(expect.root));
        input.expects = &expect;
        srandom((unsigned)seed);
        try_every((size_t)every);
        try_random(n_random);
        printf("%" PRIu64 " single-byte changes of %" PRIu64 " records (%llu at random, seed %llu): %" PRIu64 " not found or another record named\n", n_tried,
                expect.size, n_random, seed, n_missed);
        for (int w = 0; w < _RV_VERIFY_WHAT_MAX; w++)
                if (n_by_what[w])
                        printf("  %-10s %" PRIu64 "\n", rv_verify_what_name((enum rv_verify_what)w), n_by_what[w]);
        printf("  the last record's, without an expected size and root: %" PRIu64 " of %" PRIu64 " not found\n", n_last_unseen, n_last);
        return n_missed ? 1 : 0;
}
