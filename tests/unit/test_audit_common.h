/*
 * test_audit_common.h - reading a log as an auditor would, for the tests that write one
 *
 * The state is a directory of the test's own (test_base_tmp.h); the log is in STATE below it. One thread.
 */
#pragma once

#include "audit/log.h"
#include "base/fd.h"
#include "base/hash.h"

#include "test_base_tmp.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define SEGMENT "audit/00000000000000000000.jsonl"

#define TMP(f) cmocka_unit_test_setup_teardown(f, tmp_make, tmp_remove)

static inline struct rv_log *open_log(void **state)
{
        struct rv_log *log = NULL;
        struct rv_error err = { 0 };

        if (rv_log_open(tmp_path(state, "state"), &log, &err) != 0)
                fail_msg("%s", err.message);
        return log;
}

static inline const char *in_state(void **state, const char *name)
{
        char path[512];

        snprintf(path, sizeof(path), "state%s%s", *name ? "/" : "", name);
        return tmp_path(state, path);
}

/* A record with one text of @n characters. */
static inline uint64_t append_text(struct rv_log *log, const char *kind, size_t n)
{
        _cleanup_(rv_json_unrefp) json_t *body = json_object();
        _cleanup_(rv_freep) char *text = malloc(n + 1);
        struct rv_error err = { 0 };
        uint64_t seq = UINT64_MAX;

        memset(text, 'x', n);
        json_object_set_new(body, "text", json_stringn(text, n));
        if (rv_log_append(log, kind, body, &seq, &err) != 0)
                fail_msg("%s", err.message);
        return seq;
}

static inline void read_segment(void **state, struct rv_buf *out)
{
        assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, SEGMENT), (size_t)64 << 20, out), 0);
}

/* One line: canonical, in its place in the chain, with all that every record has. A new reference. */
static inline json_t *check_line(const char *line, size_t n, uint64_t seq, const char *prev)
{
        static const char *const texts[] = { "prev", "kind", "log_id", "instance", "build" };
        _cleanup_(rv_buf_fini) struct rv_buf again = { 0 };
        json_t *record = json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

        if (!record)
                fail_msg("line %llu is no JSON: %.*s", (unsigned long long)seq, (int)RV_MIN(n, (size_t)200), line);
        assert_int_equal(rv_json_canonical(record, &again), 0);
        assert_int_equal(again.size, n);
        assert_memory_equal(again.data, line, n);
        assert_int_equal(json_integer_value(json_object_get(record, "seq")), seq);
        assert_string_equal(rv_json_get_string(record, "prev", ""), prev);
        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++)
                assert_true(*rv_json_get_string(record, texts[i], "") != 0);
        assert_int_equal(strlen(rv_json_get_string(record, "log_id", "")), 32);
        assert_true(json_integer_value(json_object_get(record, "time_us")) > INT64_C(1500000000000000));
        return record;
}

/* All records as an array, every line checked. */
static inline json_t *read_log(void **state)
{
        char prev[RV_SHA256_HEX_SIZE] = "0000000000000000000000000000000000000000000000000000000000000000";
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        json_t *records = json_array();
        size_t start = 0;

        read_segment(state, &b);
        while (start < b.size) {
                const char *end = memchr(b.data + start, '\n', b.size - start);
                size_t n;

                if (!end)
                        fail_msg("the last line is incomplete");
                n = (size_t)(end - b.data) - start;
                json_array_append_new(records, check_line(b.data + start, n, json_array_size(records), prev));
                rv_sha256_hex(b.data + start, n, prev);
                start += n + 1;
        }
        return records;
}

static inline const char *member(const json_t *records, size_t i, const char *name)
{
        return rv_json_get_string(json_array_get(records, i), name, "");
}

static inline void write_raw(void **state, const char *name, const char *text, size_t n)
{
        int fd = open(in_state(state, name), O_WRONLY | O_APPEND | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(rv_write_all(fd, text, n), 0);
        close(fd);
}

/* Runs @work in @n processes at once; each has to exit with 0. */
static inline void in_processes(unsigned n, void **state, int (*work)(void **state, unsigned i))
{
        unsigned n_failed = 0;
        int gate[2];

        assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
        for (unsigned i = 0; i < n; i++) {
                pid_t pid = fork();
                char c;

                assert_true(pid >= 0);
                if (pid == 0) {
                        close(gate[1]);
                        /* The end of the pipe starts all of them together. */
                        _exit(read(gate[0], &c, 1) == 0 ? work(state, i) : 1);
                }
        }
        close(gate[0]);
        close(gate[1]);
        for (unsigned i = 0; i < n; i++) {
                int status;

                assert_true(wait(&status) > 0);
                n_failed += status != 0;
        }
        assert_int_equal(n_failed, 0);
}
