#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/record_form.h"
#include "base/json.h"

#define HEX32 "00112233445566778899aabbccddeeff"
#define HEX64 HEX32 HEX32
/* A record with a member of the test's own behind `build`. */
#define WITH(member) "{\"build\":\"0\"," member "\"instance\":\"i\",\"kind\":\"gap\",\"log_id\":\"" HEX32 "\",\"prev\":\"" HEX64 "\",\"seq\":7,\"time_us\":9}"
#define VALUE(value) WITH("\"c\":" value ",")

static const char *form(const char *line, struct rv_record_form *ret)
{
        /* In memory of its own size, so that a sanitizer sees what reads past the end. */
        char *exact = malloc(strlen(line) ? strlen(line) : 1);
        const char *why;

        memcpy(exact, line, strlen(line));
        why = rv_record_form(exact, strlen(line), ret);
        free(exact);
        return why;
}

static void what_every_record_has_is_found(void **state)
{
        static const char line[] = VALUE("{\"prev\":[\"kind\"],\"seq\":3}");
        struct rv_record_form f;

        (void)state;
        assert_null(rv_record_form(line, strlen(line), &f));
        assert_int_equal(f.seq, 7);
        assert_int_equal(f.time_us, 9);
        assert_true(rv_record_text_is(&f.kind, "gap") && rv_record_text_is(&f.log_id, HEX32) && rv_record_text_is(&f.prev, HEX64));
}

static void canonical_forms_are_taken(void **state)
{
        static const char *const values[] = {
                "0", "-1", "9007199254740991", "-9007199254740991", "true", "false", "null", "[]", "{}", "[[],{}]", "\"\"", "\"\\\"\\\\/\"",
                "\"\\b\\t\\n\\f\\r\\u0000\\u0007\\u000b\\u000e\\u000f\\u001f\x7f\"", "\"\xc3\xa9\xe2\x80\xa8\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
                "{\"\":1,\"\\u0000\":1,\"\\t\":1,\" \":1,\"\\\"\":1,\"#\":1,\"A\":1,\"\\\\\":1,\"a\":1,\"aa\":1,\"b\":1,\"\xc3\xa9\":1,\"\xed\x9f\xbf\":1,\"\xf0\x90\x80\x80\":1,\"\xf4\x8f\xbf\xbf\":1,\"\xee\x80\x80\":1,\"\xef\xbf\xbf\":1}",
                "{\"abcdefgh\":1,\"abcdefgh\\n\":1,\"abcdefghi\":1}",
        };
        struct rv_record_form f;
        char line[1024];

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(values); i++) {
                const char *why;

                snprintf(line, sizeof(line), VALUE("%s"), values[i]);
                why = form(line, &f);
                if (why)
                        fail_msg("%s: %s", values[i], why);
        }
}

static void all_else_is_refused(void **state)
{
        static const char *const lines[] = {
                "", "{", "{}", "[]", "1", "\"", " " WITH(""), WITH("") " ", WITH("") "\n", WITH("\"c\" :1,"), WITH("\"c\": 1,"), WITH("\"c\":1 ,"), WITH("\"c\":,"), WITH("\"c\","),
                WITH("\"build\":\"0\","), WITH("\"a\":1,"), WITH("\"j\":1,"), WITH(","), WITH("c:1,"),
                VALUE("01"), VALUE("-0"), VALUE("-"), VALUE("+1"), VALUE("1.0"), VALUE("1e1"), VALUE("9007199254740992"), VALUE("-9007199254740992"), VALUE("99999999999999999999999999"), VALUE("NaN"),
                VALUE("True"), VALUE("nul"), VALUE("[1,]"), VALUE("[1"), VALUE("[,1]"), VALUE("{\"a\":1,}"), VALUE("{\"b\":1,\"a\":1}"), VALUE("{\"a\":1,\"a\":1}"), VALUE("{1:1}"),
                VALUE("\"\\/\""), VALUE("\"\\u0041\""), VALUE("\"\\u001F\""), VALUE("\"\\u000a\""), VALUE("\"\\u0008\""), VALUE("\"\\u0020\""), VALUE("\"\\ud800\""), VALUE("\"\\x\""), VALUE("\"\\"), VALUE("\"\\u00"),
                VALUE("\"\x1f\""), VALUE("\"\n\""), VALUE("\"\x80\""), VALUE("\"\xc3\""), VALUE("\"\xc0\x80\""), VALUE("\"\xed\xa0\x80\""), VALUE("\"\xf4\x90\x80\x80\""), VALUE("\"a"),
                VALUE("{\"\xee\x80\x80\":1,\"\xf0\x90\x80\x80\":1}"), VALUE("{\"\\n\":1,\"\\n\":1}"), VALUE("{\"a\":1,\"\\n\":1}"), VALUE("{\"aa\":1,\"a\":1}"),
                /* What every record has. */
                "{\"build\":\"0\"}",
                "{\"build\":0,\"instance\":\"i\",\"kind\":\"gap\",\"log_id\":\"" HEX32 "\",\"prev\":\"" HEX64 "\",\"seq\":7,\"time_us\":9}",
                "{\"build\":\"0\",\"instance\":\"i\",\"kind\":\"gap\",\"log_id\":\"" HEX32 "0\",\"prev\":\"" HEX64 "\",\"seq\":7,\"time_us\":9}",
                "{\"build\":\"0\",\"instance\":\"i\",\"kind\":\"gap\",\"log_id\":\"" HEX32 "\",\"prev\":\"" HEX32 "A0112233445566778899aabbccddeeff\",\"seq\":7,\"time_us\":9}",
                "{\"build\":\"0\",\"instance\":\"i\",\"kind\":\"gap\",\"log_id\":\"" HEX32 "\",\"prev\":\"" HEX64 "\",\"seq\":-7,\"time_us\":9}",
                "{\"build\":\"0\",\"instance\":\"i\",\"kind\":\"gap\",\"log_id\":\"" HEX32 "\",\"prev\":\"" HEX64 "\",\"seq\":\"7\",\"time_us\":9}",
                "{\"build\":\"0\",\"instance\":\"i\",\"kind\":null,\"log_id\":\"" HEX32 "\",\"prev\":\"" HEX64 "\",\"seq\":7,\"time_us\":9}",
                "{\"build\":\"0\",\"instance\":\"i\",\"kind\":\"gap\",\"log_id\":\"" HEX32 "\",\"prev\":\"" HEX64 "\",\"seq\":7}",
        };
        struct rv_record_form f = { .seq = 99 };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(lines); i++)
                if (!form(lines[i], &f))
                        fail_msg("taken: %s", lines[i]);
        assert_int_equal(f.seq, 99);
}

static void depth_is_bounded(void **state)
{
        char value[512], line[1024];
        struct rv_record_form f;

        (void)state;
        for (unsigned n = 60; n < 70; n++) {
                memset(value, '[', n);
                memset(value + n, ']', n);
                value[2 * n] = 0;
                snprintf(line, sizeof(line), VALUE("%s"), value);
                assert_int_equal(form(line, &f) == NULL, n <= 63);
        }
}

/* A text of every byte at every place of a word, as the plain characters are skipped eight at a time. */
static void every_byte_is_seen_at_every_place(void **state)
{
        static const char head[] = "{\"build\":\"0\",\"c\":\"", tail[] = "\",\"instance\":\"i\",\"kind\":\"gap\",\"log_id\":\"" HEX32 "\",\"prev\":\"" HEX64 "\",\"seq\":7,\"time_us\":9}";
        struct rv_record_form f;

        (void)state;
        for (size_t at = 0; at < 20; at++)
                for (int c = 0; c < 256; c++) {
                        char line[sizeof(head) + sizeof(tail) + 24];
                        size_t n = sizeof(head) - 1 + 20;

                        memcpy(line, head, sizeof(head) - 1);
                        memset(line + sizeof(head) - 1, 'x', 20);
                        line[sizeof(head) - 1 + at] = (char)c;
                        memcpy(line + n, tail, sizeof(tail) - 1);
                        assert_int_equal(rv_record_form(line, n + sizeof(tail) - 1, &f) == NULL, c >= 0x20 && c < 0x80 && c != '"' && c != '\\');
                }
}

static uint32_t next_random(uint32_t *seed)
{
        *seed = *seed * 1664525u + 1013904223u;
        return *seed >> 8;
}

static json_t *random_value(uint32_t *seed, unsigned depth)
{
        static const char *const pieces[] = { "a", "\"", "\\", "\n", "\x01", "\x7f", "\xc3\xa9", "\xee\x80\x80", "\xf0\x9f\x98\x80", "/", "zz", "\xef\xbf\xbf" };
        char text[64] = "";
        json_t *o;

        switch (next_random(seed) % (depth ? 6 : 4)) {
        case 0:
                return json_integer((json_int_t)next_random(seed) * (next_random(seed) % 2 ? 1 : -1));
        case 1:
                return json_boolean(next_random(seed) % 2);
        case 2:
                return json_null();
        case 3:
                for (unsigned n = next_random(seed) % 8; n; n--)
                        strcat(text, pieces[next_random(seed) % RV_N_ELEMENTS(pieces)]);
                return json_string(text);
        case 4:
                o = json_array();
                for (unsigned n = next_random(seed) % 5; n; n--)
                        json_array_append_new(o, random_value(seed, depth - 1));
                return o;
        default:
                o = json_object();
                for (unsigned n = next_random(seed) % 6; n; n--) {
                        text[0] = 0;
                        for (unsigned m = next_random(seed) % 4; m; m--)
                                strcat(text, pieces[next_random(seed) % RV_N_ELEMENTS(pieces)]);
                        json_object_set_new(o, text, random_value(seed, depth - 1));
                }
                return o;
        }
}

static void what_the_log_writes_is_taken(void **state)
{
        uint32_t seed = 1;

        (void)state;
        for (int i = 0; i < 3000; i++) {
                json_t *record = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "build", "0", "instance", "i", "kind", "gap", "log_id", HEX32, "prev", HEX64, "seq", 7, "time_us", 9,
                        "value", random_value(&seed, 5));
                _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
                struct rv_record_form f;
                const char *why;

                assert_int_equal(rv_json_canonical(record, &line), 0);
                why = rv_record_form(line.data, line.size, &f);
                if (why)
                        fail_msg("%s: %s", line.data, why);
                json_decref(record);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_every_record_has_is_found),
                cmocka_unit_test(canonical_forms_are_taken),
                cmocka_unit_test(all_else_is_refused),
                cmocka_unit_test(depth_is_bounded),
                cmocka_unit_test(every_byte_is_seen_at_every_place),
                cmocka_unit_test(what_the_log_writes_is_taken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
