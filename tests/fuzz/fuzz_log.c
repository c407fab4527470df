/*
 * A log that was found: whatever bytes its last segment and the cache beside it hold, a record is either appended so
 * that it continues the last line there (number, hash and canonical form, an incomplete line cut off and on record)
 * with nothing before it changed, or it is refused as damage with the file as it was. An input is one byte of how,
 * the segment's bytes, and after a byte 0xff those of the cache, in which @ is what a true cache would hold.
 */
#include "fuzz.h"

#include "audit/log.h"
#include "base/fd.h"
#include "base/hash.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_ID "0123456789abcdef0123456789abcdef"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define FIRST "audit/00000000000000000000.jsonl"
#define SECOND "audit/00000000000000000001.jsonl"
#define CACHE "audit/last/config"

enum { HAS_OLDER = 1, HAS_CACHE = 2 };

static const char older[] = "{\"build\":\"0\",\"digest\":\"sha256:old\",\"instance\":\"0\",\"kind\":\"config\",\"log_id\":\"" LOG_ID "\",\"prev\":\"" ZEROS
                            "\",\"seq\":0,\"time_us\":1600000000000000}\n";

static char dir[64];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        return remove(path);
}

static void remove_dir(void)
{
        nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *in_dir(const char *name)
{
        static char path[128];

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        return path;
}

static void put_file(const char *name, const void *text, size_t n)
{
        int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        FUZZ_CHECK(fd >= 0 && rv_write_all(fd, text, n) == 0);
        close(fd);
}

static void get_file(const char *name, struct rv_buf *ret)
{
        ret->size = 0;
        FUZZ_CHECK(rv_read_file_at(AT_FDCWD, in_dir(name), (size_t)16 << 20, ret) == 0);
}

static void prepare(void)
{
        if (*dir)
                return;
        /* In memory where there is such a place: every input is some files. */
        snprintf(dir, sizeof(dir), "%s/reeve-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        FUZZ_CHECK(mkdtemp(dir));
        atexit(remove_dir);
        FUZZ_CHECK(mkdir(in_dir("audit"), 0700) == 0 && mkdir(in_dir("keys"), 0700) == 0 && mkdir(in_dir("audit/last"), 0700) == 0);
        put_file("audit/id", LOG_ID "\n", strlen(LOG_ID) + 1);
        put_file("keys/hmac", ZEROS "\n", strlen(ZEROS) + 1);
}

/* The cache as the input has it; @ stands for the place and digest of the segment's last complete line. */
static void put_cache(const char *segment, const char *text, size_t n, const char *bytes, size_t n_bytes)
{
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        const char *end = n_bytes ? memrchr(bytes, '\n', n_bytes) : NULL;
        const char *before = end ? memrchr(bytes, '\n', (size_t)(end - bytes)) : NULL;
        const char *line = before ? before + 1 : bytes;
        char hex[RV_SHA256_HEX_SIZE];

        for (size_t i = 0; i < n; i++) {
                if (text[i] != '@' || !end) {
                        rv_buf_putc(&out, text[i]);
                        continue;
                }
                rv_sha256_hex(line, (size_t)(end - line), hex);
                rv_buf_printf(&out, "%s %zu %zu %s", segment + strlen("audit/"), (size_t)(line - bytes), (size_t)(end - line), hex);
        }
        put_file(CACHE, out.data ? out.data : "", out.size);
}

struct chain {
        json_int_t seq;                       /* of the last line; -1 where there is none */
        char sha256[RV_SHA256_HEX_SIZE];
};

/* One line that the log wrote: canonical and in its place. Its record, a new reference. */
static json_t *check_line(const char *line, size_t n, struct chain *chain, bool is_first)
{
        _cleanup_(rv_buf_fini) struct rv_buf again = { 0 };
        json_t *record = json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

        FUZZ_CHECK(record && rv_json_canonical(record, &again) == 0 && again.size == n &&
                   memcmp(again.data, line, n) == 0);
        /* The number of a line that was found is only known by who continues it. */
        FUZZ_CHECK(is_first || json_integer_value(json_object_get(record, "seq")) == chain->seq + 1);
        FUZZ_CHECK(strcmp(rv_json_get_string(record, "prev", ""), chain->sha256) == 0);
        FUZZ_CHECK(strcmp(rv_json_get_string(record, "log_id", ""), LOG_ID) == 0);
        chain->seq = json_integer_value(json_object_get(record, "seq"));
        rv_sha256_hex(line, n, chain->sha256);
        return record;
}

/* What was appended to the @n_kept bytes of before that stay, of @n_before; @chain is what came before the segment. Returns how many records. */
static size_t check_appended(
        const struct rv_buf *after, size_t n_kept, size_t n_before, const char *kind, struct chain chain)
{
        const char *p = after->data + n_kept, *end = after->data + after->size;
        size_t n_records = 0;
        bool is_kind = false;

        if (n_kept) {
                const char *line = memrchr(after->data, '\n', n_kept - 1);

                line = line ? line + 1 : after->data;
                FUZZ_CHECK(!memchr(line, 0, n_kept - (size_t)(line - after->data)), "a line with a NUL was taken for a record");
                rv_sha256_hex(line, n_kept - 1 - (size_t)(line - after->data), chain.sha256);
        }
        while (p < end) {
                const char *newline = memchr(p, '\n', (size_t)(end - p));
                json_t *record;

                FUZZ_CHECK(newline, "the last line has no end");
                record = check_line(p, (size_t)(newline - p), &chain, n_kept && n_records == 0);
                is_kind = strcmp(rv_json_get_string(record, "kind", ""), kind) == 0;
                if (n_records == 0 && n_before > n_kept)
                        FUZZ_CHECK(json_integer_value(json_object_get(record, "cut_bytes")) == (json_int_t)(n_before - n_kept));
                json_decref(record);
                n_records++;
                p = newline + 1;
        }
        FUZZ_CHECK(n_records == 0 || is_kind, "the last record is no %s", kind);
        return n_records;
}

static struct rv_log *open_log(void)
{
        struct rv_log *log = NULL;
        struct rv_error err = { 0 };

        FUZZ_CHECK(rv_log_open(dir, &log, &err) == 0, "%s", err.message);
        return log;
}

static void check_error(int r, const struct rv_error *err)
{
        FUZZ_CHECK(r == -EBADMSG && err->code == r && fuzz_is_line(err->message), "%d: %s", r, err->message);
        FUZZ_CHECK(strncmp(err->message, dir, strlen(dir)) == 0, "%s", err->message);
}

/* Appends one record; returns whether that was done. */
static bool append(struct rv_log *log, const char *segment)
{
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s}", "text", "fuzz");
        _cleanup_(rv_buf_fini) struct rv_buf before = { 0 }, after = { 0 };
        struct rv_error err = { 0 };
        struct chain chain = { .seq = -1, .sha256 = ZEROS };
        const char *newline;
        uint64_t seq = UINT64_MAX;
        size_t n_kept;
        int r;

        get_file(segment, &before);
        r = rv_log_append(log, "rejected", body, &seq, &err);
        get_file(segment, &after);
        newline = before.size ? memrchr(before.data, '\n', before.size) : NULL;
        n_kept = newline ? (size_t)(newline + 1 - before.data) : 0;
        if (r) {
                check_error(r, &err);
                FUZZ_CHECK(after.size == before.size && (after.size == 0 || memcmp(after.data, before.data, after.size) == 0), "a refusal changed the file");
                return false;
        }
        FUZZ_CHECK(after.size > n_kept && (n_kept == 0 || memcmp(after.data, before.data, n_kept) == 0));
        if (strcmp(segment, SECOND) == 0) {
                chain.seq = 0;
                rv_sha256_hex(older, sizeof(older) - 2, chain.sha256);
        }
        FUZZ_CHECK(check_appended(&after, n_kept, before.size, "rejected", chain) == (before.size > n_kept ? 2u : 1u));
        return true;
}

/* "From here on another configuration holds": once for a change, whatever stood there before. */
static void note(struct rv_log *log)
{
        static const char *const digests[] = { "sha256:a", "sha256:a", "sha256:b", "sha256:a", "sha256:a" };
        static const int wanted[] = { -1, 0, 1, 1, 0 };

        for (size_t i = 0; i < RV_N_ELEMENTS(digests); i++) {
                struct rv_error err = { 0 };
                int r = rv_log_note_config(log, digests[i], NULL, &err);

                FUZZ_CHECK(r == 0 || r == 1, "%d: %s", r, err.message);
                FUZZ_CHECK(wanted[i] < 0 || r == wanted[i], "%zu: %d", i, r);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        uint8_t how = fuzz_byte(&in);
        const uint8_t *split = in.size ? memchr(in.data, 0xff, in.size) : NULL;
        size_t n_segment = split ? (size_t)(split - in.data) : in.size;
        const char *segment = how & HAS_OLDER ? SECOND : FIRST;
        struct rv_log *log;

        prepare();
        put_file(FIRST, older, sizeof(older) - 1);
        put_file(segment, in.data, n_segment);
        if (!(how & HAS_OLDER))
                (void)unlink(in_dir(SECOND));
        (void)unlink(in_dir(CACHE));
        if (split && (how & HAS_CACHE))
                put_cache(segment, (const char *)split + 1, in.size - n_segment - 1, (const char *)in.data, n_segment);
        log = open_log();
        if (append(log, segment)) {
                note(log);
                FUZZ_CHECK(append(log, segment));
                rv_log_close(log);
                log = open_log();
                FUZZ_CHECK(append(log, segment), "a log that was written is refused");
                FUZZ_CHECK(rv_log_note_config(log, "sha256:a", NULL, NULL) == 0);
        }
        rv_log_close(log);
        return 0;
}
