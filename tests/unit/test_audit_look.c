/* What looks at single places of a log: members of a line, one line again, the log's end; and the record that is appended only if. */
#include "audit/log_private.h"
#include "audit/record_scan.h"

#include "test_audit_common.h"

#define NAME (&SEGMENT[sizeof("audit/") - 1])

static void members(void **state)
{
        static const struct {
                const char *name, *line;
                const char *a, *kind;           /* their JSON text; NULL: absent */
        } rows[] = {
                { "in order", "{\"a\":1,\"kind\":\"k\"}", "1", "\"k\"" },
                { "in another order", "{\"kind\":\"k\",\"b\":{\"a\":2},\"a\":[1,{\"a\":3}]}", "[1,{\"a\":3}]", "\"k\"" },
                { "only inside", "{\"b\":{\"a\":1,\"kind\":\"k\"}}", NULL, NULL },
                { "twice", "{\"a\":1,\"a\":2}", "1", NULL },
                { "part of a name", "{\"aa\":1,\"kin\":2,\"kindly\":3}", NULL, NULL },
                { "in a text", "{\"b\":\"\\\",\\\"a\\\":1\",\"kind\":\"\"}", NULL, "\"\"" },
                { "cut", "{\"a\":1,\"kind\":\"k", "1", NULL },
                { "a list", "[\"a\",1]", NULL, NULL },
                { "nothing", "", NULL, NULL },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_record_member found[] = { RV_RECORD_MEMBER("kind"), RV_RECORD_MEMBER("a") };
                const char *wanted[] = { rows[i].kind, rows[i].a };

                rv_record_members(rows[i].line, strlen(rows[i].line), found, 2);
                for (size_t k = 0; k < 2; k++)
                        if (wanted[k] ? !found[k].value || found[k].n != strlen(wanted[k]) ||
                                                memcmp(found[k].value, wanted[k], found[k].n) != 0
                                      : found[k].value != NULL)
                                fail_msg("%s: %s is %.*s", rows[i].name, found[k].name, (int)(found[k].value ? found[k].n : 6), found[k].value ? found[k].value : "absent");
        }
}

/* Cut anywhere, changed anywhere: nothing outside the line is read (the sanitizers look). */
static void members_of_any_bytes(void **state)
{
        static const char line[] = "{\"b\":[\"\\\"\",{\"a\":\"\\\\\"}],\"a\":\"x\",\"kind\":\"k\"}";

        (void)state;
        for (size_t n = 0; n < sizeof(line); n++)
                for (size_t i = 0; i < n; i++)
                        for (unsigned c = 0; c < 256; c += 1 + c / 64) {
                                struct rv_record_member found[] = { RV_RECORD_MEMBER("kind"), RV_RECORD_MEMBER("a") };
                                char *copy = malloc(n);

                                memcpy(copy, line, n);
                                copy[i] = (char)c;
                                rv_record_members(copy, n, found, 2);
                                for (size_t k = 0; k < 2; k++)
                                        assert_true(!found[k].value ||
                                                (found[k].value >= copy && found[k].value + found[k].n <= copy + n));
                                free(copy);
                        }
}

static void values(void **state)
{
        static const struct {
                const char *text;
                bool is_number;
                uint64_t number;
        } numbers[] = {
                { "0", true, 0 }, { "9007199254740991", true, 9007199254740991 }, { "9007199254740992", false, 0 }, { "99999999999999999999", false, 0 },
                { "-1", false, 0 }, { "1.0", false, 0 }, { "1e3", false, 0 }, { "\"1\"", false, 0 }, { "", false, 0 },
        };
        static const struct {
                const char *text;
                bool is_hex;
        } hexes[] = { { "\"00ff\"", true }, { "\"00FF\"", false }, { "\"00f\"", false }, { "\"00fff\"", false }, { "\"00fg\"", false }, { "7", false }, { "\"", false } };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(numbers); i++) {
                struct rv_record_member m = { .value = numbers[i].text, .n = strlen(numbers[i].text) };
                uint64_t number = 77;

                assert_int_equal(rv_record_number(&m, &number), numbers[i].is_number);
                assert_int_equal(number, numbers[i].is_number ? numbers[i].number : 77);
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(hexes); i++) {
                struct rv_record_member m = { .value = hexes[i].text, .n = strlen(hexes[i].text) };
                struct rv_record_text text = rv_record_string(&m);
                uint8_t bytes[2];

                assert_int_equal(rv_record_hex(&text, 2, bytes), hexes[i].is_hex);
                if (hexes[i].is_hex)
                        assert_memory_equal(bytes, "\x00\xff", 2);
        }
}

static void one_line(void **state)
{
        static const char text[] = "one\n\nthree\nfour";
        static const struct {
                uint64_t offset;
                size_t n;
                int r;
        } rows[] = {
                { 0, 3, 1 },
                { 4, 0, 1 },
                { 5, 5, 1 },
                { 0, 2, 0 },
                { 0, 4, 0 },
                { 1, 2, 0 },
                { 3, 0, 0 },
                { 5, 4, 0 },
                { 11, 4, 0 },
                { 5, 6, 0 },
                { 0, 10, 0 },
                { 100, 0, 0 },
                { UINT64_MAX, 1, 0 },
                { INT64_MAX, 1, 0 },
                { 0, SIZE_MAX, 0 },
                { 0, RV_LOG_RECORD_BYTES_MAX + 1, 0 },
        };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };

        assert_int_equal(rv_write_file(in_state(state, SEGMENT), text, sizeof(text) - 1, 0600, false), 0);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                int r = rv_log_read_line(log, NAME, rows[i].offset, rows[i].n, &out, NULL);

                if (r != rows[i].r ||
                        (r == 1 && (out.size != rows[i].n || memcmp(out.data, text + rows[i].offset, out.size) != 0)))
                        fail_msg("%llu, %zu: %d", (unsigned long long)rows[i].offset, rows[i].n, r);
        }
        assert_int_equal(rv_log_read_line(log, "00000000000000000007.jsonl", 0, 3, &out, NULL), 0);
}

static void the_end(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        char segment[RV_LOG_SEGMENT_NAME_SIZE] = "";
        struct stat st;
        uint64_t size = 7;

        assert_int_equal(rv_log_end(log, segment, &size, NULL), 0);
        append_text(log, "rejected", 10);
        assert_int_equal(rv_log_end(log, segment, &size, NULL), 1);
        assert_string_equal(segment, NAME);
        assert_int_equal(stat(in_state(state, SEGMENT), &st), 0);
        assert_int_equal(size, st.st_size);
        assert_int_equal(rv_write_file(in_state(state, "audit/00000000000000000001.jsonl"), "x", 1, 0600, false), 0);
        assert_int_equal(rv_log_end(log, segment, &size, NULL), 1);
        assert_string_equal(segment, "00000000000000000001.jsonl");
        assert_int_equal(size, 1);
}

/* ---- Appended only if ---- */

struct question {
        int answer;
        unsigned n_asked;
        struct rv_log *other;
};

static int ask(void *ctx, struct rv_log *log, struct rv_error *err)
{
        struct question *q = ctx;

        q->n_asked++;
        assert_true(log->is_tail_known);
        if (q->other) {                 /* nobody else writes meanwhile */
                q->other->lock_wait_us = 1000;
                assert_int_equal(rv_log_lock(q->other, NULL), -ETIMEDOUT);
        }
        return q->answer < 0 ? rv_error_set(err, q->answer, "no") : q->answer;
}

static void only_if(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state), *other = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s}", "text", "x"), *records = NULL;
        struct question q = { .other = other };
        struct rv_error err = { 0 };
        uint64_t seq = 77;

        assert_int_equal(rv_log_append_if(log, "rejected", body, ask, &q, &seq, &err), 0);
        assert_int_equal(seq, 0);
        q.answer = 5;
        seq = 77;
        assert_int_equal(rv_log_append_if(log, "rejected", body, ask, &q, &seq, &err), 5);
        assert_int_equal(err.code, 0);
        q.answer = -EPERM;
        assert_int_equal(rv_log_append_if(log, "rejected", body, ask, &q, &seq, &err), -EPERM);
        assert_string_equal(err.message, "no");
        assert_int_equal(seq, 77);
        assert_int_equal(q.n_asked, 3);
        append_text(other, "rejected", 1);      /* the lock was let go each time */
        records = read_log(state);
        assert_int_equal(json_array_size(records), 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(members),
                cmocka_unit_test(members_of_any_bytes),
                cmocka_unit_test(values),
                TMP(one_line),
                TMP(the_end),
                TMP(only_if),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
