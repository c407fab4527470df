/* Writing outcomes: the exact bytes, strings that try to break out, numbers, the line for a person. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "run/outcome.h"

static int sink_buf(void *ctx, const void *data, size_t n)
{
        return rv_buf_append(ctx, data, n);
}

static void write_text(const struct rv_outcome *o, struct rv_buf *out)
{
        assert_int_equal(rv_outcome_write(o, sink_buf, out), 0);
}

static json_t *write_and_read(const struct rv_outcome *o)
{
        struct rv_buf out = { 0 };
        json_error_t error;
        json_t *value;

        write_text(o, &out);
        assert_null(memchr(out.data, '\n', out.size));
        value = json_loadb(out.data, out.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
        if (!value)
                fail_msg("%s in %s", error.text, out.data);
        rv_buf_fini(&out);
        return value;
}

/* The outcome that the contract shows, but for its identifiers. */
static const char contract[] =
        "{\"schema\":\"reeve.outcome/1\",\"run_id\":\"r1\",\"decision_id\":\"d1\",\"tenant\":\"local\","
        "\"status\":\"failed\",\"reason\":{\"code\":\"timeout\",\"phase\":\"run\",\"message\":\"stopped after 30 s\",\"retryable\":false,\"detail\":{\"limit_s\":30}},"
        "\"started\":\"yes\",\"repeat_safe\":true,\"replayed\":false,\"recorded\":true,"
        "\"exit\":{\"code\":null,\"signal\":\"KILL\"},"
        "\"stdout\":{\"text\":\"hello, world\",\"truncated\":false,\"characters\":12,\"bytes\":12,\"invalid_utf8\":false},"
        "\"stderr\":{\"text\":\"\",\"truncated\":false,\"characters\":0,\"bytes\":0,\"invalid_utf8\":false},"
        "\"result\":null,\"result_note\":null,"
        "\"limits\":{\"timeout_s\":30,\"memory_mib\":512},"
        "\"packages\":{\"layer\":null,\"stale\":false,\"lock\":[]},"
        "\"network\":{\"mode\":\"none\",\"contacts\":[],\"denials\":[],\"more_contacts\":0,\"more_denials\":0},"
        "\"runtime\":{\"name\":\"host\",\"digest\":null},"
        "\"backend\":{\"name\":\"namespace\",\"start\":\"cold\",\"isolation\":\"shared-kernel\",\"teardown\":\"complete\"},"
        "\"usage\":{\"wall_ms\":30012,\"cpu_ms\":29800,\"peak_memory_bytes\":9437184,\"peak_processes\":1},"
        "\"timings_ms\":{\"queue\":0,\"decide\":0.06,\"resolve\":0,\"prepare\":0,\"start\":2.1,\"run\":30012,\"collect\":0.4,\"teardown\":1.4}}";

static void fill_contract(struct rv_outcome *o, struct rv_capture *out)
{
        *o = (struct rv_outcome){
                .run_id = "r1",
                .decision_id = "d1",
                .tenant = "local",
                .out = out,
                .timeout_s = 30,
                .memory_mib = 512,
                .reason = { .status = RV_STATUS_FAILED,
                        .code = RV_CODE_TIMEOUT,
                        .phase = RV_PHASE_RUN,
                        .started = RV_STARTED_YES,
                        .is_repeat_safe = true,
                        .exit_signal = SIGKILL,
                        .message = "stopped after 30 s",
                        .detail = { .limit_ms = 30000 } },
                .runtime_name = "host",
                .backend_name = "namespace",
                .backend_start = "cold",
                .backend_isolation = "shared-kernel",
                .backend_teardown = "complete",
                .wall_us = 30012100,
                .cpu_us = 29799900,
                .peak_memory_bytes = 9437184,
                .peak_processes = 1,
                .timings_us = { [RV_PHASE_DECIDE] = 60,
                        [RV_PHASE_START] = 2100,
                        [RV_PHASE_RUN] = 30012000,
                        [RV_PHASE_COLLECT] = 400,
                        [RV_PHASE_TEARDOWN] = 1400,
                        [RV_PHASE_VALIDATE] = 999 },
        };
        rv_capture_init(out, 1000, 1000);
        rv_capture_feed(out, "hello, world", 12);
        rv_capture_finish(out);
}

static void contract_bytes(void **state)
{
        struct rv_buf text = { 0 }, again = { 0 };
        char hex[RV_SHA256_HEX_SIZE], want[RV_SHA256_HEX_SIZE];
        struct rv_capture out;
        struct rv_outcome o;
        int fd = memfd_create("outcome", MFD_CLOEXEC);

        fill_contract(&o, &out);
        write_text(&o, &text);
        assert_string_equal(text.data, contract);
        rv_outcome_sha256(&o, hex);
        rv_sha256_hex(contract, sizeof(contract) - 1, want);
        assert_string_equal(hex, want);
        assert_int_equal(rv_outcome_write_fd(&o, fd), 0);
        lseek(fd, 0, SEEK_SET);
        assert_int_equal(rv_read_fd(fd, 1 << 20, &again), 0);
        assert_int_equal(again.size, text.size + 1);
        assert_memory_equal(again.data, text.data, text.size);
        assert_int_equal(again.data[text.size], '\n');
        close(fd);
        rv_buf_fini(&again);
        rv_buf_fini(&text);
        rv_capture_fini(&out);
}

static void trees_and_values(void **state)
{
        struct rv_result result = { .text = (char *)"{\"a\":[1,2.5,null]}", .size = 18 };
        _cleanup_(rv_json_unrefp) json_t *detail = json_pack("{s:s, s:[{s:s, s:f, s:i, s:b}]}", "rule", "no\x1b-evil\xc2\x9b", "denials",
                "section", "packages", "real", 0.1, "integer", -5, "yes", 1);
        _cleanup_(rv_json_unrefp) json_t *packages = json_pack("{s:s, s:b, s:[]}", "layer", "sha256:00", "stale", 1, "lock");
        _cleanup_(rv_json_unrefp) json_t *contacts = json_pack("[{s:s}, {s:s}]", "name", "a.example", "name", "b.example");
        struct rv_outcome o = { .detail = detail,
                .packages = packages,
                .contacts = contacts,
                .n_more_contacts = 3,
                .network_mode = "any",
                .result = &result,
                .is_replayed = true,
                .is_unrecorded = true,
                .reason = { .has_exit_code = true, .exit_code = 7 } };
        struct rv_buf text = { 0 };
        static const char *const parts[] = {
                "\"detail\":{\"rule\":\"no\\u001b-evil\\u009b\",\"denials\":[{\"section\":\"packages\",\"real\":0.1,\"integer\":-5,\"yes\":true}]}",
                "\"packages\":{\"layer\":\"sha256:00\",\"stale\":true,\"lock\":[]}", "\"run_id\":null", "\"exit\":{\"code\":7,\"signal\":null}",
                "\"network\":{\"mode\":\"any\",\"contacts\":[{\"name\":\"a.example\"},{\"name\":\"b.example\"}],\"denials\":[],\"more_contacts\":3,",
                "\"result\":{\"a\":[1,2.5,null]},\"result_note\":null", "\"replayed\":true,\"recorded\":false", "\"peak_processes\":null",
        };

        write_text(&o, &text);
        for (size_t i = 0; i < RV_N_ELEMENTS(parts); i++)
                if (!strstr(text.data, parts[i]))
                        fail_msg("%s is not in %s", parts[i], text.data);
        rv_buf_fini(&text);
        json_decref(write_and_read(&o));
}

static void every_detail(void **state)
{
        struct rv_outcome o = { .reason.detail = { 250, 128, 67108864, "stderr", "watcher_lost", "EPERM", "mount proc", "memory", "/usr/bin/node" } };
        struct rv_buf text = { 0 };

        write_text(&o, &text);
        assert_non_null(strstr(text.data, "\"detail\":{\"limit_ms\":250,\"limit_mib\":128,\"limit_bytes\":67108864,\"stream\":\"stderr\","
                                          "\"cause\":\"watcher_lost\",\"step\":\"mount proc\",\"error\":\"EPERM\",\"missing\":[\"memory\"],\"path\":\"/usr/bin/node\"}"));
        rv_buf_fini(&text);
        o = (struct rv_outcome){ 0 };
        write_text(&o, &text);
        assert_non_null(strstr(text.data, "\"detail\":{}}"));
        rv_buf_fini(&text);
}

/* What a program prints comes back as printed, and can be nothing but a string. */
static void output_round_trip(void **state)
{
        static const struct {
                const char *name, *text;
                size_t n;
        } rows[] = {
#define ROW(name, text) { name, text, sizeof(text) - 1 }
                ROW("forged member", "\",\"status\":\"completed\",\"x\":\""), ROW("backslash at the end", "\\"), ROW("NUL", "a\0b"),
                ROW("newlines", "a\r\nb\n"), ROW("escape", "\x1b[31m"), ROW("DEL and C1", "\x7f\xc2\x80\xc2\x9f\xc2\xa0"),
                ROW("separators", "\xe2\x80\xa8\xe2\x80\xa9"), ROW("all lengths", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
                ROW("an outcome", "{\"schema\":\"reeve.outcome/1\",\"status\":\"completed\",\"result\":42}"),
#undef ROW
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_capture c;
                struct rv_outcome o = { .out = &c, .err = &c };
                const json_t *text;
                json_t *value;

                rv_capture_init(&c, 1000, 1000);
                rv_capture_feed(&c, rows[i].text, rows[i].n);
                rv_capture_finish(&c);
                value = write_and_read(&o);
                text = json_object_get(json_object_get(value, "stderr"), "text");
                if (json_string_length(text) != rows[i].n ||
                        memcmp(json_string_value(text), rows[i].text, rows[i].n) != 0)
                        fail_msg("%s does not come back", rows[i].name);
                json_decref(value);
                rv_capture_fini(&c);
        }
}

/* No byte that a terminal obeys stands in an outcome, whatever the output. */
static void bytes_are_printable(void **state)
{
        struct rv_capture c;
        struct rv_outcome o = { .out = &c };
        struct rv_buf text = { 0 };

        rv_capture_init(&c, 100000, 1 << 20);
        for (unsigned i = 0; i < 0x10000; i++) {
                uint8_t pair[] = { (uint8_t)i, (uint8_t)(i >> 8) };

                rv_capture_feed(&c, pair, 2);
        }
        rv_capture_finish(&c);
        write_text(&o, &text);
        for (size_t i = 0; i < text.size; i++) {
                uint8_t b = (uint8_t)text.data[i];

                if (b < 0x20 || b == 0x7f || (b == 0xc2 && (uint8_t)text.data[i + 1] < 0xa0))
                        fail_msg("byte %02x in an outcome", b);
        }
        rv_buf_fini(&text);
        rv_capture_fini(&c);
}

static void texts_of_others_are_repaired(void **state)
{
        struct rv_outcome o = { .tenant = "t\xff\xe2\x82", .reason.message = "a\xed\xa0\x80\nb" };
        _cleanup_(rv_json_unrefp) json_t *value = write_and_read(&o);

        assert_string_equal(rv_json_get_string(value, "tenant", ""), "t\xef\xbf\xbd\xef\xbf\xbd");
        assert_string_equal(rv_json_get_string(json_object_get(value, "reason"), "message", ""),
                "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\nb");
}

static void milliseconds(void **state)
{
        static const struct {
                uint64_t us;
                const char *text;
        } rows[] = {
                { 0, "0" }, { 1, "0.001" }, { 10, "0.01" }, { 100, "0.1" }, { 999, "0.999" }, { 1000, "1" }, { 1001, "1.001" },
                { 10000, "10" }, { 100000, "100" }, { 30012000, "30012" }, { 30012340, "30012.34" }, { 1000000000000, "1000000000" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_buf out = { 0 };
                struct rv_json_stream w;

                rv_json_stream_init(&w, sink_buf, &out);
                rv_json_stream_ms(&w, rows[i].us);
                assert_int_equal(rv_json_stream_finish(&w), 0);
                if (strcmp(out.data, rows[i].text) != 0)
                        fail_msg("%ju us is %s ms, not %s", (uintmax_t)rows[i].us, out.data, rows[i].text);
                rv_buf_fini(&out);
        }
}

static void real_numbers(void **state)
{
        static const double values[] = { 0.1, 2.5, 1.0 / 3, 1e300, 5e-324, 1.7976931348623157e308, -0.0,
                123456789.123456789, 1e22 };

        for (size_t i = 0; i < RV_N_ELEMENTS(values); i++) {
                _cleanup_(rv_json_unrefp) json_t *value = json_real(values[i]), *back = NULL;
                struct rv_buf out = { 0 };
                struct rv_json_stream w;

                rv_json_stream_init(&w, sink_buf, &out);
                rv_json_stream_value(&w, value);
                assert_int_equal(rv_json_stream_finish(&w), 0);
                back = json_loads(out.data, JSON_DECODE_ANY, NULL);
                if (!json_is_real(back) || json_real_value(back) != values[i])
                        fail_msg("%.17g is written %s", values[i], out.data);
                rv_buf_fini(&out);
        }
}

static int sink_count(void *ctx, const void *data, size_t n)
{
        *(size_t *)ctx += n;
        return 0;
}

static int sink_full(void *ctx, const void *data, size_t n)
{
        return ++*(int *)ctx == 2 ? -ENOSPC : 0;
}

static void large_output(void **state)
{
        static char flood[1 << 16];
        struct rv_capture c;
        struct rv_outcome o = { .out = &c };
        size_t n = 0;
        int n_calls = 0;

        memset(flood, 0x1b, sizeof(flood));   /* six bytes each in JSON */
        rv_capture_init(&c, RV_CAPTURE_STDOUT_CHARACTERS, RV_CAPTURE_CEILING_BYTES);
        for (int i = 0; i < 20; i++)
                rv_capture_feed(&c, flood, sizeof(flood));
        assert_int_equal(rv_outcome_write(&o, sink_count, &n), 0);
        assert_true(n > 6000000 && n < 6002000);
        assert_int_equal(rv_outcome_write(&o, sink_full, &n_calls), -ENOSPC);
        assert_int_equal(n_calls, 2);   /* not called again after its error */
        rv_capture_fini(&c);
}

static void lines(void **state)
{
        static const struct {
                const char *name;
                struct rv_classification c;
                const char *detail, *want;
        } rows[] = {
#define F RV_STATUS_FAILED
#define B RV_STATUS_BLOCKED
                { "completed", { .status = RV_STATUS_COMPLETED, .message = "exited with code 0" }, NULL, "" },
                { "timeout", { .status = F, .code = RV_CODE_TIMEOUT, .message = "stopped after 30 s" }, NULL,
                        "reeve: stopped after 30 s (timeout)\n" },
                { "unknown", { .status = RV_STATUS_OUTCOME_UNKNOWN, .code = RV_CODE_TIMEOUT, .message = "stopped after 30 s" }, NULL,
                        "reeve: stopped after 30 s (timeout); it had network access, so whether it had an effect is not known\n" },
                { "package", { .status = B, .code = RV_CODE_PACKAGE_DENIED, .message = "known malicious" },
                        "{\"rule\":\"no-evil\",\"item\":\"evil-thing\",\"denials\":[{\"file\":\"policy.lua\",\"line\":2}]}",
                        "reeve: blocked by policy: known malicious (rule no-evil, policy.lua:2, package evil-thing)\n" },
                { "domain", { .status = B, .code = RV_CODE_NETWORK_DENIED, .message = "no" }, "{\"rule\":\"default\",\"item\":\"x.example\",\"denials\":[{}]}",
                        "reeve: blocked by policy: no (rule default, domain x.example)\n" },
                { "no item", { .status = B, .code = RV_CODE_NETWORK_DENIED, .message = "no" }, "{\"rule\":\"r\",\"item\":\"\"}",
                        "reeve: blocked by policy: no (rule r)\n" },
                { "no detail", { .status = B, .code = RV_CODE_BACKEND_DENIED, .message = "network_any is missing" }, NULL,
                        "reeve: blocked by policy: network_any is missing (backend_denied)\n" },
                { "wrong types", { .status = B, .code = RV_CODE_POLICY_ERROR, .message = "m" }, "{\"rule\":1,\"item\":[],\"denials\":{}}",
                        "reeve: blocked, the policy failed: m (policy_error)\n" },
                { "hostile text", { .status = B, .code = RV_CODE_PACKAGE_DENIED, .message = "a\x1b[2J\nreeve: b" }, "{\"rule\":\"r\\u009b\"}",
                        "reeve: blocked by policy: a^[[2J^Jreeve: b (rule r<9B>)\n" },
#undef F
#undef B
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_json_unrefp) json_t *detail = rows[i].detail ? json_loads(rows[i].detail, 0, NULL) : NULL;
                struct rv_outcome o = { .reason = rows[i].c, .detail = detail };
                struct rv_buf out = { 0 };

                assert_int_equal(rv_outcome_line(&o, &out), 0);
                if (strcmp(out.data ? out.data : "", rows[i].want) != 0)
                        fail_msg("%s: %s", rows[i].name, out.data);
                rv_buf_fini(&out);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(contract_bytes),
                cmocka_unit_test(trees_and_values),
                cmocka_unit_test(every_detail),
                cmocka_unit_test(output_round_trip),
                cmocka_unit_test(bytes_are_printable),
                cmocka_unit_test(texts_of_others_are_repaired),
                cmocka_unit_test(milliseconds),
                cmocka_unit_test(real_numbers),
                cmocka_unit_test(large_output),
                cmocka_unit_test(lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
