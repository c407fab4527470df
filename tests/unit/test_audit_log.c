/* The audit log: records, their chain, its continuation across processes, crashes and damage. */
#include "audit/log_private.h"

#include "audit/log_kinds.h"

#include "test_audit_common.h"

#include <dirent.h>

static unsigned mode_of(void **state, const char *name)
{
        struct stat st;

        assert_int_equal(stat(in_state(state, name), &st), 0);
        return st.st_mode & 07777;
}

static void first_record(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s, s:i}", "status", "failed", "code", 5);
        _cleanup_(rv_json_unrefp) json_t *same = json_deep_copy(body);
        _cleanup_(rv_json_unrefp) json_t *records = NULL;
        struct rv_error err = { 0 };
        uint64_t seq = 99;

        assert_int_equal(rv_log_append(log, "outcome", body, &seq, &err), 0);
        assert_int_equal(err.code, 0);
        assert_int_equal(seq, 0);
        assert_true(json_equal(body, same));
        records = read_log(state);
        assert_int_equal(json_array_size(records), 1);
        assert_int_equal(json_object_size(json_array_get(records, 0)), 9);
        assert_string_equal(member(records, 0, "kind"), "outcome");
        assert_string_equal(member(records, 0, "status"), "failed");
        assert_string_equal(member(records, 0, "log_id"), rv_log_id(log));
        assert_string_equal(member(records, 0, "instance"), rv_log_instance(log));
        assert_int_equal(mode_of(state, ""), 0700);
        assert_int_equal(mode_of(state, "audit"), 0700);
        assert_int_equal(mode_of(state, "keys"), 0700);
        assert_int_equal(mode_of(state, SEGMENT), 0600);
        assert_int_equal(mode_of(state, "audit/lock"), 0600);
        assert_int_equal(mode_of(state, "keys/hmac"), 0600);
}

static void kinds(void **state)
{
#define KIND(name, text) name,
        static const char *const known[] = { RV_LOG_KINDS(KIND) };
#undef KIND
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *records = NULL;

        for (size_t i = 0; i < RV_N_ELEMENTS(known); i++)
                assert_int_equal(append_text(log, known[i], 1), i);
        records = read_log(state);
        for (size_t i = 0; i < RV_N_ELEMENTS(known); i++)
                assert_string_equal(member(records, i, "kind"), known[i]);
}

static json_t *nested(unsigned depth)
{
        json_t *value = json_object();

        while (--depth)
                value = json_pack("{s:o}", "a", value);
        return value;
}

static void refused(void **state)
{
        const struct {
                const char *name, *kind;
                json_t *body;
                int r;
        } rows[] = {
                { "unknown kind", "decisions", json_object(), -EINVAL },
                { "empty kind", "", json_object(), -EINVAL },
                { "an array", "outcome", json_array(), -EINVAL },
                { "nothing", "outcome", NULL, -EINVAL },
                { "seq", "outcome", json_pack("{s:i}", "seq", 5), -EINVAL },
                { "prev", "outcome", json_pack("{s:s}", "prev", "x"), -EINVAL },
                { "kind", "outcome", json_pack("{s:s}", "kind", "outcome"), -EINVAL },
                { "log_id", "outcome", json_pack("{s:n}", "log_id"), -EINVAL },
                { "time_us", "outcome", json_pack("{s:i}", "time_us", 1), -EINVAL },
                { "instance", "outcome", json_pack("{s:s}", "instance", "x"), -EINVAL },
                { "build", "outcome", json_pack("{s:s}", "build", "x"), -EINVAL },
                { "a real number", "outcome", json_pack("{s:f}", "x", 0.5), -EDOM },
                { "a large integer", "outcome", json_pack("{s:I}", "x", (json_int_t)1 << 53), -EDOM },
                { "too deep", "outcome", nested(65), -EINVAL },
                { "no UTF-8", "outcome", json_pack("{s:o}", "x", json_string_nocheck("\xff")), -EILSEQ },
        };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *records = NULL, *deep = nested(64);

        append_text(log, "config", 1);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_error err = { 0 };
                uint64_t seq = 99;
                int r = rv_log_append(log, rows[i].kind, rows[i].body, &seq, &err);

                if (r != rows[i].r || err.code != r || seq != 99)
                        fail_msg("%s: %d, %s", rows[i].name, r, err.message);
                json_decref(rows[i].body);
        }
        assert_int_equal(rv_log_append(log, "outcome", deep, NULL, NULL), 0);
        records = read_log(state);
        assert_int_equal(json_array_size(records), 2);
}

/* Of each size the tail has to be found again by one who has not written it. */
static void tails_of_all_sizes(void **state)
{
        static const size_t sizes[] = { 0, 1, 1000, 3500, 3800, 4095, 4096, 4097, 8192, 65535, 65536, 70000,
                1048576, 2000000 };
        _cleanup_(rv_json_unrefp) json_t *records = NULL;

        for (size_t i = 0; i < RV_N_ELEMENTS(sizes); i++) {
                for (unsigned k = 0; k < 2; k++) {
                        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

                        assert_int_equal(append_text(log, "outcome", sizes[i]), 2 * i + k);
                }
        }
        records = read_log(state);
        assert_int_equal(json_array_size(records), 2 * RV_N_ELEMENTS(sizes));
}

static void largest_record(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state), *other = open_log(state);
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        _cleanup_(rv_json_unrefp) json_t *records = NULL, *body = NULL;
        _cleanup_(rv_freep) char *text = NULL;
        struct rv_error err = { 0 };
        size_t n;

        append_text(log, "outcome", 0);
        read_segment(state, &b);
        n = RV_LOG_RECORD_BYTES_MAX - b.size;
        assert_int_equal(append_text(log, "outcome", n), 1);
        assert_int_equal(append_text(other, "outcome", n), 2);
        text = malloc(n + 2);
        memset(text, 'y', n + 1);
        body = json_pack("{s:s#}", "text", text, (int)n + 1);
        assert_int_equal(rv_log_append(log, "outcome", body, NULL, &err), -EMSGSIZE);
        assert_int_equal(append_text(log, "outcome", 5), 3);
        records = read_log(state);
        assert_int_equal(json_array_size(records), 4);
}

/* What policy and programs bring into a record must not end it. */
static void hostile_texts(void **state)
{
        static const char text[] = "a\0b\n\r\"\\{}\x7f\xe2\x80\xa8\xf0\x9f\x98\x80";
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s#, s:s}", "text", text, (int)sizeof(text) - 1, "\n\"\xee\x80\x80", "x");
        _cleanup_(rv_json_unrefp) json_t *records = NULL;

        for (unsigned i = 0; i < 3; i++) {
                _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

                assert_int_equal(rv_log_append(log, "rejected", body, NULL, NULL), 0);
        }
        records = read_log(state);
        assert_int_equal(json_array_size(records), 3);
        assert_int_equal(json_string_length(json_object_get(json_array_get(records, 2), "text")), sizeof(text) - 1);
}

static void two_writers_in_turn(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *a = open_log(state), *b = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *records = NULL;

        assert_string_equal(rv_log_id(a), rv_log_id(b));
        assert_string_not_equal(rv_log_instance(a), rv_log_instance(b));
        for (unsigned i = 0; i < 60; i += 3) {
                assert_int_equal(append_text(a, "decision", i), i);
                assert_int_equal(append_text(b, "outcome", 1), i + 1);
                assert_int_equal(append_text(b, "outcome", i), i + 2);
        }
        records = read_log(state);
        assert_int_equal(json_array_size(records), 60);
}

static int append_many(void **state, unsigned i)
{
        struct rv_log *log = NULL;
        uint64_t seq, last = 0;

        for (unsigned k = 0; k < 200; k++) {
                _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:i, s:i}", "who", (int)i, "k", (int)k);

                /* Now and then as a new process would. */
                if (k % 50 == 0) {
                        rv_log_close(log);
                        log = NULL;
                        if (rv_log_open(tmp_path(state, "state"), &log, NULL) < 0)
                                return 1;
                }
                if (rv_log_append(log, "decision", body, &seq, NULL) < 0 || (k && seq <= last))
                        return 2;
                last = seq;
        }
        rv_log_close(log);
        return 0;
}

static void many_writers_at_once(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *records = NULL;
        int next[8] = { 0 };

        in_processes(8, state, append_many);
        records = read_log(state);   /* which checks seq and prev */
        assert_int_equal(json_array_size(records), 1600);
        for (size_t i = 0; i < 1600; i++) {
                json_t *record = json_array_get(records, i);
                json_int_t who = json_integer_value(json_object_get(record, "who"));

                /* Each writer's own records are all there and in their order. */
                assert_int_equal(json_integer_value(json_object_get(record, "k")), next[who]++);
                assert_string_equal(member(records, i, "log_id"), member(records, 0, "log_id"));
        }
}

static void hmac_is_keyed_by_the_file(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_buf_fini) struct rv_buf file = { 0 };
        uint8_t key[32], mac[RV_SHA256_SIZE];
        char hex[65], want[65], other[65];

        assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, "keys/hmac"), 100, &file), 0);
        assert_int_equal(file.size, 65);
        for (size_t i = 0; i < 32; i++) {
                unsigned byte;

                assert_int_equal(sscanf(file.data + 2 * i, "%2x", &byte), 1);
                key[i] = (uint8_t)byte;
        }
        rv_hmac_sha256(key, sizeof(key), "value", 5, mac);
        rv_hex(mac, sizeof(mac), want);
        rv_log_hmac(log, "value", 5, hex);
        assert_string_equal(hex, want);
        rv_log_close(rv_take(&log));
        log = open_log(state);
        rv_log_hmac(log, "value", 5, other);
        assert_string_equal(other, want);
        rv_log_hmac(log, "", 0, other);
        assert_string_not_equal(other, want);
}

static void two_logs_differ(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *a = open_log(state), *b = NULL;
        char hex_a[65], hex_b[65];

        assert_int_equal(rv_log_open(tmp_path(state, "deep/other"), &b, NULL), 0);
        assert_string_not_equal(rv_log_id(a), rv_log_id(b));
        rv_log_hmac(a, "value", 5, hex_a);
        rv_log_hmac(b, "value", 5, hex_b);
        assert_string_not_equal(hex_a, hex_b);
}

static int open_first(void **state, unsigned i)
{
        struct rv_log *log = NULL;
        char hex[65];
        int r;

        (void)i;
        if (rv_log_open(tmp_path(state, "state"), &log, NULL) < 0)
                return 1;
        rv_log_hmac(log, rv_log_id(log), 32, hex);
        r = rv_write_file(tmp_path(state, hex), "", 0, 0600, false);
        rv_log_close(log);
        return r < 0;
}

/* All who come first at the same time agree on the id and the secret. */
static void opened_by_many_at_once(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = NULL;
        char hex[65];
        DIR *d;
        unsigned n = 0;

        in_processes(8, state, open_first);
        log = open_log(state);
        rv_log_hmac(log, rv_log_id(log), 32, hex);
        d = opendir(*state);
        while (readdir(d))
                n++;
        closedir(d);
        assert_int_equal(n, 4);   /* `.`, `..`, the log, and one name for one id and one secret */
        assert_int_equal(access(tmp_path(state, hex), F_OK), 0);
}

/* A crash left the beginning of a record. */
static void incomplete_line(void **state)
{
        static const size_t n_before[] = { 0, 1, 3 };
        static const size_t n_rest[] = { 1, 7, 5000, 300000 };

        for (size_t i = 0; i < RV_N_ELEMENTS(n_before) * RV_N_ELEMENTS(n_rest); i++) {
                size_t before = n_before[i % RV_N_ELEMENTS(n_before)], rest = n_rest[i / RV_N_ELEMENTS(n_before)];
                _cleanup_(rv_log_closep) struct rv_log *log = open_log(state), *other = open_log(state);
                _cleanup_(rv_json_unrefp) json_t *records = NULL;
                _cleanup_(rv_freep) char *text = malloc(rest);

                for (size_t k = 0; k < before; k++)
                        append_text(log, "decision", k * 3000);
                if (!before)
                        close(open(in_state(state, SEGMENT), O_CREAT | O_WRONLY, 0600));
                memset(text, '{', rest);
                write_raw(state, SEGMENT, text, rest);
                assert_int_equal(append_text(i % 2 ? log : other, "outcome", 10), before + 1);
                assert_int_equal(append_text(i % 2 ? other : log, "outcome", 10), before + 2);
                records = read_log(state);
                assert_int_equal(json_array_size(records), before + 3);
                assert_string_equal(member(records, before, "kind"), "gap");
                assert_string_equal(member(records, before, "cause"), "incomplete_line");
                assert_int_equal(json_integer_value(json_object_get(json_array_get(records, before), "cut_bytes")), rest);
                assert_int_equal(unlink(in_state(state, SEGMENT)), 0);
        }
}

#define ZEROS_32 "00000000000000000000000000000000"

static void damaged_tail(void **state)
{
        static const char *const lines[] = {
                "\n", "garbage\n", "{}\n", "[]\n", "{\"seq\":\"1\"}\n", "{\"kind\":\"outcome\",\"seq\":7}\n",
                "{\"kind\":\"outcome\",\"log_id\":\"" ZEROS_32 "\",\"prev\":\"" ZEROS_32 ZEROS_32 "\",\"seq\":1}\n",
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(lines); i++) {
                _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
                _cleanup_(rv_buf_fini) struct rv_buf before = { 0 }, after = { 0 };
                _cleanup_(rv_json_unrefp) json_t *body = json_object();
                struct rv_error err = { 0 };
                uint64_t seq = 99;

                append_text(log, "decision", 5);
                write_raw(state, SEGMENT, lines[i], strlen(lines[i]));
                read_segment(state, &before);
                if (rv_log_append(log, "outcome", body, &seq, &err) != -EBADMSG)
                        fail_msg("continued after %s", lines[i]);
                assert_int_equal(seq, 99);
                assert_non_null(strstr(err.message, in_state(state, SEGMENT)));
                read_segment(state, &after);
                assert_int_equal(before.size, after.size);
                assert_int_equal(unlink(in_state(state, SEGMENT)), 0);
        }
}

/* A line that no writer can have written: longer than any record. */
static void endless_line(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = json_object();
        struct rv_error err = { 0 };

        append_text(log, "decision", 5);
        assert_int_equal(truncate(in_state(state, SEGMENT), 3 * (off_t)RV_LOG_RECORD_BYTES_MAX), 0);
        assert_int_equal(rv_log_append(log, "outcome", body, NULL, &err), -EBADMSG);
        assert_non_null(strstr(err.message, "longer than any record"));
}

static void synced(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = json_object(), *records = NULL;
        uint64_t seq = 99;

        assert_int_equal(rv_log_sync(log, NULL), 0);
        assert_int_equal(rv_log_append_synced(log, "decision", body, &seq, NULL), 0);
        assert_int_equal(seq, 0);
        assert_int_equal(rv_log_append(log, "outcome", body, NULL, NULL), 0);
        assert_int_equal(rv_log_sync(log, NULL), 0);
        records = read_log(state);
        assert_int_equal(json_array_size(records), 2);
}

static void opened_by_descriptor(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = NULL;
        _cleanup_(rv_json_unrefp) json_t *records = NULL;
        int fd;

        assert_int_equal(mkdir(tmp_path(state, "state"), 0700), 0);
        fd = open(tmp_path(state, "state"), O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(rv_log_open_at(fd, "shown", &log, NULL), 0);
        assert_int_equal(close(fd), 0);
        append_text(log, "decision", 1);
        records = read_log(state);
        assert_int_equal(json_array_size(records), 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(first_record),
                TMP(kinds),
                TMP(refused),
                TMP(tails_of_all_sizes),
                TMP(largest_record),
                TMP(hostile_texts),
                TMP(two_writers_in_turn),
                TMP(many_writers_at_once),
                TMP(hmac_is_keyed_by_the_file),
                TMP(two_logs_differ),
                TMP(opened_by_many_at_once),
                TMP(incomplete_line),
                TMP(damaged_tail),
                TMP(endless_line),
                TMP(synced),
                TMP(opened_by_descriptor),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
