/* The filter for output shown on a terminal: every control character is shown, wherever the reads are split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/terminal.h"

#define FFFD "\xef\xbf\xbd"

static const struct row {
        const char *name, *input;
        size_t n;
        const char *text, *line;   /* as a stream, and as a single line if that differs */
} rows[] = {
#define ROW(name, input, text) { name, input, sizeof(input) - 1, text, NULL }
        ROW("empty", "", ""),
        ROW("plain", "hello, world", "hello, world"),
        { "tab and newline", "a\tb\nc", 5, "a\tb\nc", "a^Ib^Jc" },
        ROW("carriage return", "a\rb", "a^Mb"),
        ROW("colour", "\x1b[31mred\x1b[0m", "^[[31mred^[[0m"),
        ROW("window title", "\x1b]0;t\x07", "^[]0;t^G"),
        ROW("NUL", "a\0b", "a^@b"),
        ROW("first and last of C0", "\x01\x1f", "^A^_"),
        ROW("DEL", "a\x7f" "b", "a^?b"),
        ROW("C1 begins a sequence", "\xc2\x9b" "31m", "<9B>31m"),
        ROW("first and last of C1", "\xc2\x80\xc2\x9f", "<80><9F>"),
        ROW("just past C1", "\xc2\xa0", "\xc2\xa0"),
        ROW("characters pass", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
        ROW("ill-formed", "a\xff\xfe" "b", "a" FFFD FFFD "b"),
        ROW("a raw C1 byte is ill-formed", "\x9b" "31m", FFFD "31m"),
        ROW("escape inside a broken character", "\xe2\x82\x1b[2J", FFFD "^[[2J"),
        ROW("begun at the end", "a\xe2\x82", "a" FFFD),
#undef ROW
};

static void check(const struct row *r, const struct rv_buf *out, const char *want, size_t split)
{
        if (out->size != strlen(want) || memcmp(out->data ? out->data : "", want, out->size) != 0)
                fail_msg("%s, split at %zu: \"%s\", not \"%s\"", r->name, split, out->data, want);
}

static void stream_at_every_split(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                for (size_t a = 0; a <= rows[i].n; a++) {
                        struct rv_terminal t = { 0 };
                        struct rv_buf out = { 0 };

                        assert_int_equal(rv_terminal_feed(&t, rows[i].input, a, &out), 0);
                        assert_int_equal(rv_terminal_feed(&t, rows[i].input + a, rows[i].n - a, &out), 0);
                        assert_int_equal(rv_terminal_finish(&t, &out), 0);
                        check(&rows[i], &out, rows[i].text, a);
                        rv_buf_fini(&out);
                }
        }
}

static void single_line(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_buf out = { 0 };

                if (memchr(rows[i].input, 0, rows[i].n))
                        continue;   /* a C string ends there */
                assert_int_equal(rv_terminal_put_line(rows[i].input, &out), 0);
                check(&rows[i], &out, rows[i].line ? rows[i].line : rows[i].text, rows[i].n);
                rv_buf_fini(&out);
        }
}

/* Stated without the table: whatever goes in, no byte comes out that a terminal obeys. */
static void nothing_obeyed_comes_out(void **state)
{
        for (unsigned first = 0; first < 256; first++) {
                for (unsigned second = 0; second < 256; second++) {
                        char input[3] = { (char)first, (char)second, 'z' };
                        struct rv_terminal t = { 0 };
                        struct rv_buf out = { 0 };

                        rv_terminal_feed(&t, input, sizeof(input), &out);
                        rv_terminal_finish(&t, &out);
                        assert_true(rv_utf8_check(out.data, out.size, NULL));
                        for (size_t i = 0; i < out.size; i++) {
                                uint8_t c = (uint8_t)out.data[i];
                                bool is_c1 = c == 0xc2 && i + 1 < out.size && (uint8_t)out.data[i + 1] < 0xa0;

                                if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f || is_c1)
                                        fail_msg("%02x %02x lets through %02x", first, second, c);
                        }
                        rv_buf_fini(&out);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(stream_at_every_split),
                cmocka_unit_test(single_line),
                cmocka_unit_test(nothing_obeyed_comes_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
