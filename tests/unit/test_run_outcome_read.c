/* Stored outcomes read back: what is written again is the same, byte for byte, and all else is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/outcome_read.h"

static int sink_buf(void *ctx, const void *data, size_t n)
{
        return rv_buf_append(ctx, data, n);
}

static void write_text(const struct rv_outcome *o, struct rv_buf *out)
{
        out->size = 0;
        assert_int_equal(rv_outcome_write(o, sink_buf, out), 0);
}

/* Written, read, written: the same, and the line for a person and the exit status too. */
static void round_trip(const char *name, const struct rv_outcome *o)
{
        _cleanup_(rv_outcome_kept_freep) struct rv_outcome_kept *kept = NULL;
        _cleanup_(rv_buf_fini) struct rv_buf first = { 0 }, second = { 0 }, line = { 0 }, line_again = { 0 };

        write_text(o, &first);
        if (rv_outcome_read(first.data, first.size, &kept) != 0)
                fail_msg("%s: not read: %s", name, first.data);
        write_text(&kept->outcome, &second);
        if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
                fail_msg("%s: %s\nis written again as %s", name, first.data, second.data);
        assert_int_equal(rv_outcome_line(o, &line), 0);
        assert_int_equal(rv_outcome_line(&kept->outcome, &line_again), 0);
        if (strcmp(line.data ? line.data : "", line_again.data ? line_again.data : "") != 0)
                fail_msg("%s: \"%s\", read back: \"%s\"", name, line.data, line_again.data);
        assert_int_equal(rv_outcome_exit_status(&o->reason), rv_outcome_exit_status(&kept->outcome.reason));
}

static struct rv_outcome plain(void)
{
        return (struct rv_outcome){
                .run_id = "r1",
                .decision_id = "d1",
                .tenant = "local",
                .timeout_s = 30,
                .memory_mib = 512,
                .runtime_name = "host",
                .backend_name = "namespace",
                .backend_start = "cold",
                .backend_isolation = "shared-kernel",
                .backend_teardown = "complete",
                .reason = { .status = RV_STATUS_FAILED,
                        .code = RV_CODE_TIMEOUT,
                        .phase = RV_PHASE_RUN,
                        .started = RV_STARTED_YES,
                        .is_repeat_safe = true,
                        .message = "stopped after 30 s",
                        .detail.limit_ms = 30000,
                        .exit_signal = 9 },
                .wall_us = 30012400,
                .cpu_us = 29800500,
                .peak_memory_bytes = 9437184,
                .peak_processes = 3,
                .timings_us = { [RV_PHASE_DECIDE] = 60, [RV_PHASE_START] = 2100, [RV_PHASE_RUN] = 30012001 },
        };
}

static void every_word(void **state)
{
        struct rv_outcome o = plain();

        for (int status = 0; status < RV_STATUS_MAX_; status++)
                for (int code = 0; code < RV_CODE_MAX_; code++)
                        for (int started = 0; started <= RV_STARTED_UNKNOWN; started++) {
                                o.reason.status = (enum rv_status)status;
                                o.reason.code = (enum rv_code)code;
                                o.reason.started = (enum rv_started)started;
                                o.reason.phase = (enum rv_phase)(code % RV_PHASE_MAX_);
                                o.reason.is_retryable = code & 1;
                                o.reason.is_repeat_safe = code & 2;
                                o.is_unrecorded = code & 4;
                                round_trip(rv_code_name(o.reason.code), &o);
                        }
}

static void every_end(void **state)
{
        struct rv_outcome o = plain();

        for (int i = 0; i < 256; i++) {
                o.reason.has_exit_code = true;
                o.reason.exit_code = (uint8_t)i;
                o.reason.exit_signal = 0;
                round_trip("exit code", &o);
        }
        o.reason.has_exit_code = false;
        for (int i = 0; i <= 64; i++) {
                o.reason.exit_signal = (uint8_t)i;
                round_trip("signal", &o);
        }
}

static void every_time(void **state)
{
        struct rv_outcome o = plain();

        for (uint64_t us = 0; us < 3000; us++) {
                o.timings_us[RV_PHASE_DECIDE] = us;
                o.timings_us[RV_PHASE_RUN] = us * 100003;
                o.timings_us[RV_PHASE_QUEUE] = us * UINT64_C(1000000007);
                o.wall_us = us * 7001;
                o.cpu_us = us * UINT64_C(1000000007);
                round_trip("timings", &o);
        }
}

static void every_detail(void **state)
{
        struct rv_outcome o = plain();
        _cleanup_(rv_json_unrefp) json_t *detail = json_pack("{s:s, s:s, s:[{s:s, s:i, s:s, s:f}], s:{}, s:n}", "rule", "no\x1b-evil\xc2\x9b", "item", "a\"\\", "denials",
                                                             "file", "policy.lua", "line", 2, "message", "\xf0\x9f\x98\x80", "real", 0.1, "empty", "none");
        _cleanup_(rv_json_unrefp) json_t *packages = json_pack("{s:s, s:b, s:[{s:s}]}", "layer", "sha256:00", "stale", 1, "lock", "name", "numpy");
        _cleanup_(rv_json_unrefp) json_t *contacts = json_pack("[{s:s, s:i}]", "name", "a.example", "port", 443);

        o.reason.detail = (struct rv_detail){ 250, 128, 67108864, "stderr", "watcher_lost", "EPERM", "mount proc", "memory", "/usr/bin/node" };
        round_trip("all details", &o);
        o.reason.detail = (struct rv_detail){ 0 };
        round_trip("no detail", &o);
        o.reason.status = RV_STATUS_BLOCKED;
        o.reason.code = RV_CODE_PACKAGE_DENIED;
        o.detail = detail;
        o.packages = packages;
        o.contacts = o.denials = contacts;
        o.n_more_contacts = 3;
        o.n_more_denials = UINT32_MAX;
        o.network_mode = "any";
        o.runtime_digest = "sha256:11";
        o.peak_processes = 0;
        round_trip("trees", &o);
        o = (struct rv_outcome){ 0 };
        round_trip("nothing", &o);
        o.reason.message[0] = '\x01';
        o.tenant = "t\xff";
        round_trip("texts of others", &o);
}

static void every_output(void **state)
{
        static const struct {
                const char *text;
                size_t n;
        } rows[] = {
#define ROW(text) { text, sizeof(text) - 1 }
                ROW(""), ROW("\",\"result\":1,\"x\":\""), ROW("\\"), ROW("a\0b"), ROW("\x1b[31m\x7f\xc2\x80"), ROW("\xff\xed\xa0\x80"), ROW("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
                ROW("{\"schema\":\"reeve.outcome/1\",\"result\":42}"), ROW("}\n"),
#undef ROW
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_outcome o = plain();
                struct rv_capture out;

                rv_capture_init(&out, i == 6 ? 2 : 1000, 1000);
                rv_capture_feed(&out, rows[i].text, rows[i].n);
                rv_capture_finish(&out);
                o.out = o.err = &out;
                round_trip("output", &o);
                rv_capture_fini(&out);
        }
}

/* As the program spelt it. */
static void every_result(void **state)
{
        static const char *const rows[] = {
                "null", "1", "1.50", "1e3", "-0.0", "0.1e-7", "\"a\\u001bb\"", "[]", "{}", "{\"result\":{\"result\":[1,2.50,\"}\\\"\"]}}", "[[[[[[1E400]]]]]]", "9007199254740992",
        };
        struct rv_outcome o = plain();
        struct rv_result result = { 0 };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                result.text = (char *)rows[i];
                result.size = strlen(rows[i]);
                o.result = &result;
                if (!strstr(rows[i], "E400"))
                        round_trip(rows[i], &o);
        }
        result = (struct rv_result){ .note = "larger than 1 MiB" };
        round_trip("a note", &o);
}

static void expect_refused(const char *what, const char *text, size_t n)
{
        struct rv_outcome_kept *kept = (void *)1;

        if (rv_outcome_read(text, n, &kept) != -EBADMSG || kept != (void *)1)
                fail_msg("%s is read", what);
}

static void other_texts(void **state)
{
        static const char *const rows[] = { "", "{", "{}", "[]", "null", "{\"result\":1}", "{\"schema\":\"reeve.outcome/1\",\"result\":null}" };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                expect_refused(rows[i], rows[i], strlen(rows[i]));
}

/* Cut off anywhere, or with any byte changed, it is refused or is another outcome in full. */
static void damaged(void **state)
{
        struct rv_result result = { .text = (char *)"[1.50]", .size = 6 };
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 }, again = { 0 };
        struct rv_outcome o = plain();
        unsigned n_read = 0;

        o.result = &result;
        write_text(&o, &text);
        for (size_t n = 0; n < text.size; n++)
                expect_refused("a part", text.data, n);
        rv_buf_puts(&text, " ");
        expect_refused("more", text.data, text.size);
        text.size--;
        for (size_t i = 0; i < text.size; i++) {
                static const char bytes[] = { 0, ' ', '"', '0', '1', 'a', '}', '\\', (char)0xff };
                char byte = text.data[i];

                for (size_t k = 0; k < sizeof(bytes); k++) {
                        struct rv_outcome_kept *kept = NULL;

                        text.data[i] = bytes[k];
                        if (rv_outcome_read(text.data, text.size, &kept) == 0) {
                                write_text(&kept->outcome, &again);
                                assert_int_equal(again.size, text.size);
                                assert_memory_equal(again.data, text.data, text.size);
                                n_read++;
                        }
                        rv_outcome_kept_free(kept);
                }
                text.data[i] = byte;
        }
        assert_true(n_read > 100);
}

static void large(void **state)
{
        static char flood[1 << 16];
        struct rv_outcome o = plain();
        struct rv_capture out;

        memset(flood, 0x1b, sizeof(flood));
        rv_capture_init(&out, RV_CAPTURE_STDOUT_CHARACTERS, RV_CAPTURE_CEILING_BYTES);
        for (int i = 0; i < 20; i++)
                rv_capture_feed(&out, flood, sizeof(flood));
        o.out = &out;
        round_trip("a flood", &o);
        rv_capture_fini(&out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_word),
                cmocka_unit_test(every_end),
                cmocka_unit_test(every_time),
                cmocka_unit_test(every_detail),
                cmocka_unit_test(every_output),
                cmocka_unit_test(every_result),
                cmocka_unit_test(other_texts),
                cmocka_unit_test(damaged),
                cmocka_unit_test(large),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
