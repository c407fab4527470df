/*
 * A log that is verified: whatever bytes its one segment holds, there is a verdict, twice the same, that can be shown
 * to a person. A good log is one whose every line jansson reads and our own writer writes back byte for byte, in its
 * place in the chain; a line that is no record is refused by jansson or written back otherwise. An input is one byte
 * of how, and the segment's bytes, in which 0x01 stands for the hash of the line before, 0x02 for the number that
 * comes next and 0x03 for the log's id: so that more than the first line is reached.
 */
#include "fuzz.h"

#include "audit/verify.h"
#include "base/fd.h"
#include "base/hash.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#define LOG_ID "0123456789abcdef0123456789abcdef"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define SEGMENT "00000000000000000000.jsonl"

enum { HAS_KEY = 1, IS_ALL = 2, HAS_ID = 4 };

static int dir_fd = -EBADF;
static char dir[64];

static void remove_dir(void)
{
        (void)unlinkat(dir_fd, SEGMENT, 0);
        (void)unlinkat(dir_fd, "id", 0);
        (void)rmdir(dir);
}

static void prepare(void)
{
        if (dir_fd >= 0)
                return;
        snprintf(dir, sizeof(dir), "%s/reeve-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        FUZZ_CHECK(mkdtemp(dir));
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        FUZZ_CHECK(dir_fd >= 0);
        atexit(remove_dir);
}

static void put_file(const char *name, const void *text, size_t n)
{
        int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        FUZZ_CHECK(fd >= 0 && rv_write_all(fd, text, n) == 0);
        close(fd);
}

static void expand(const uint8_t *data, size_t n, struct rv_buf *out)
{
        char prev[RV_SHA256_HEX_SIZE] = ZEROS;
        size_t start = 0;
        uint64_t seq = 0;

        for (size_t i = 0; i < n; i++) {
                switch (data[i]) {
                case 1:
                        rv_buf_puts(out, prev);
                        break;
                case 2:
                        rv_buf_printf(out, "%" PRIu64, seq);
                        break;
                case 3:
                        rv_buf_puts(out, LOG_ID);
                        break;
                case '\n':
                        rv_sha256_hex(out->data + start, out->size - start, prev);
                        rv_buf_putc(out, '\n');
                        start = out->size;
                        seq++;
                        break;
                default:
                        rv_buf_putc(out, (char)data[i]);
                }
        }
}

static bool is_hex(const char *s, size_t n)
{
        return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

static bool is_number(const json_t *o, const char *name)
{
        return json_is_integer(json_object_get(o, name)) && json_integer_value(json_object_get(o, name)) >= 0;
}

/* By jansson and by writing it anew. */
static bool is_record(const char *line, size_t n, json_t **ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf again = { 0 };
        json_t *o = rv_log_parse(line, n);

        *ret = o;
        return o && json_is_object(o) && !rv_json_is_deeper(o, 64) && rv_json_canonical(o, &again) == 0 && again.size == n && memcmp(again.data, line, n) == 0 && is_number(o, "seq") && is_number(o, "time_us") &&
               is_hex(rv_json_get_string(o, "prev", ""), 64) && is_hex(rv_json_get_string(o, "log_id", ""), 32) && json_is_string(json_object_get(o, "kind")) &&
               json_is_string(json_object_get(o, "instance")) && json_is_string(json_object_get(o, "build"));
}

/* jansson has no texts with NUL for names. */
static bool is_beyond_jansson(const char *line, size_t n)
{
        return memmem(line, n, "\\u0000", 6) != NULL;
}

static void check_good(const struct rv_buf *text, const struct rv_verify_result *result)
{
        char prev[RV_SHA256_HEX_SIZE] = ZEROS, root_hex[RV_SHA256_HEX_SIZE], found_hex[RV_SHA256_HEX_SIZE];
        struct rv_merkle tree = { 0 };
        const char *p = text->data, *end = text->data + text->size, *newline;
        rv_merkle_hash hash;

        for (; (newline = memchr(p, '\n', (size_t)(end - p))); p = newline + 1) {
                size_t n = (size_t)(newline - p);
                json_t *o = NULL;

                FUZZ_CHECK(is_record(p, n, &o) || is_beyond_jansson(p, n), "%.*s", (int)n, p);
                FUZZ_CHECK(!o || (uint64_t)json_integer_value(json_object_get(o, "seq")) == tree.size);
                FUZZ_CHECK(!o || strcmp(rv_json_get_string(o, "prev", ""), prev) == 0);
                FUZZ_CHECK(!o || strcmp(rv_json_get_string(o, "log_id", ""), result->log_id) == 0);
                json_decref(o);
                rv_sha256_hex(p, n, prev);
                rv_merkle_leaf(p, n, hash);
                rv_merkle_push(&tree, hash);
                if (p + n + 1 == end) {
                        p = end;
                        break;
                }
        }
        rv_merkle_root(&tree, hash);
        rv_hex(hash, sizeof(hash), root_hex);
        rv_hex(result->root, sizeof(result->root), found_hex);
        FUZZ_CHECK(strcmp(root_hex, found_hex) == 0 && result->n_records == tree.size &&
                result->incomplete_bytes == (uint64_t)(end - p));
        FUZZ_CHECK(result->n_unsealed <= result->n_records &&
                (result->n_checkpoints || result->n_unsealed == result->n_records));
}

static void check_fault(const struct rv_buf *text, const struct rv_verify_fault *fault)
{
        const char *line = text->data + fault->offset, *newline;
        json_t *o = NULL;

        FUZZ_CHECK(fault->what < _RV_VERIFY_WHAT_MAX && *rv_verify_what_name(fault->what));
        FUZZ_CHECK(fuzz_is_line(fault->text), "%s", fault->text);
        FUZZ_CHECK(fault->offset <= text->size);
        if (fault->what == RV_VERIFY_EMPTY)
                return;
        FUZZ_CHECK(strcmp(fault->segment, SEGMENT) == 0);
        FUZZ_CHECK(fault->offset == 0 || line[-1] == '\n');
        newline = memchr(line, '\n', text->size - fault->offset);
        if (fault->what == RV_VERIFY_FORM)
                FUZZ_CHECK(newline && !is_record(line, (size_t)(newline - line), &o), "%s", fault->text);
        json_decref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const uint8_t secret[RV_CHECKPOINT_KEY_BYTES] = { 1 };
        static struct rv_checkpoint_key key = { .log_id = LOG_ID };
        struct fuzz_cursor in = { data, size };
        uint8_t how = fuzz_byte(&in);
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_verify_result result, again;
        struct rv_error err = { 0 };
        struct rv_verify_input input = { .path = "fuzz", .keys = &key, .n_keys = how & HAS_KEY, .is_all = how & IS_ALL };
        int r;

        prepare();
        FUZZ_CHECK(rv_checkpoint_public(secret, key.public_key) == 0);
        FUZZ_CHECK(rv_buf_reserve(&text, 1) == 0);
        expand(in.data, in.size, &text);
        put_file(SEGMENT, text.data, text.size);
        if (how & HAS_ID)
                put_file("id", LOG_ID "\n", strlen(LOG_ID) + 1);
        else
                (void)unlinkat(dir_fd, "id", 0);
        input.audit_fd = dir_fd;
        r = rv_verify_log(&input, &result, &err);
        FUZZ_CHECK(r == 0 || r == RV_VERIFY_E_FAULT, "%d: %s", r, err.message);
        FUZZ_CHECK(rv_verify_log(&input, &again, &err) == r && memcmp(&result, &again, sizeof(result)) == 0);
        if (r == 0)
                check_good(&text, &result);
        else
                check_fault(&text, &result.fault);
        return 0;
}
