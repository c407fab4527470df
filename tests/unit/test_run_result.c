/* The program's result file: hostile bytes give a value or a note, never anything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/json.h"
#include "run/result.h"
#include "run/result_json.h"

static int make_file(const void *data, size_t n)
{
        int fd = memfd_create("result", MFD_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(rv_write_all(fd, data, n), 0);
        return fd;   /* its position is at the end: reading must not depend on it */
}

static const struct row {
        const char *name, *input;
        size_t n;
        const char *text;   /* NULL: refused */
        const char *note;   /* a part of the note of a refusal */
} rows[] = {
#define OK(name, input, text) { name, input, sizeof(input) - 1, text, NULL }
#define BAD(name, input, note) { name, input, sizeof(input) - 1, NULL, note }
        OK("null", "null", "null"),
        OK("true", "true", "true"),
        OK("false", " false ", "false"),
        OK("integer", "42", "42"),
        OK("zero", "0", "0"),
        OK("minus zero", "-0", "-0"),
        OK("minus zero real", "-0.0", "-0.0"),
        OK("fraction", "2.50", "2.50"),
        OK("0.1", "0.1", "0.1"),
        OK("exponents", "[1e5,1E+5,1.5e-3]", "[1e5,1E+5,1.5e-3]"),
        OK("largest double", "1.7976931348623157e308", "1.7976931348623157e308"),
        OK("underflow is finite", "1e-400", "1e-400"),
        OK("2^53", "9007199254740992", "9007199254740992"),
        OK("-2^53", "-9007199254740992", "-9007199254740992"),
        OK("spaces", "\t{ \"a\" :\r\n [ 1 , 2.5 , null , \"\xc3\xbc\" ] }\n", "{\"a\":[1,2.5,null,\"\xc3\xbc\"]}"),
        OK("empty containers", "[{}, [ ], { }]", "[{},[],{}]"),
        OK("empty string", "\"\"", "\"\""),
        OK("simple escapes", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\""),
        OK("NUL", "\"a\\u0000b\"", "\"a\\u0000b\""),
        OK("escaped ASCII", "\"\\u0041\"", "\"A\""),
        OK("escaped 2 and 3 bytes", "\"\\u00fc\\u20AC\"", "\"\xc3\xbc\xe2\x82\xac\""),
        OK("surrogate pair", "\"\\ud83d\\uDE00\"", "\"\xf0\x9f\x98\x80\""),
        OK("controls are escaped anew", "\"\\u001b\\u007f\\u009b\x7f\xc2\x9b\"", "\"\\u001b\\u007f\\u009b\\u007f\\u009b\""),
        OK("line separators stay", "\"\xe2\x80\xa8\"", "\"\xe2\x80\xa8\""),
        OK("same name in two objects", "[{\"a\":1},{\"a\":{\"a\":2}}]", "[{\"a\":1},{\"a\":{\"a\":2}}]"),
        OK("names that share a beginning", "{\"a\":1,\"ab\":2,\"\":3}", "{\"a\":1,\"ab\":2,\"\":3}"),
        BAD("empty", "", "empty"),
        BAD("only spaces", " \n", "empty"),
        BAD("word", "nope", "a value expected at byte 0"),
        BAD("NaN", "NaN", "NaN"),
        BAD("Infinity", "[1, Infinity]", "Infinity"),
        BAD("-Infinity", "-Infinity", "-Infinity"),
        BAD("overflow", "1e999", "too large"),
        BAD("negative overflow", "[-1e999]", "too large"),
        BAD("2^53 + 1", "9007199254740993", "2^53"),
        BAD("-2^53 - 1", "-9007199254740993", "2^53"),
        BAD("2^64", "18446744073709551616", "2^53"),
        BAD("20 digits", "10000000000000000000", "2^53"),
        BAD("leading zero", "01", "begins with 0"),
        BAD("plus", "+1", "a value expected"),
        BAD("hexadecimal", "0x10", "more than one value"),
        BAD("no digit after the point", "1.", "a digit expected"),
        BAD("no digit before the point", ".5", "a value expected"),
        BAD("no exponent", "1e", "a digit expected"),
        BAD("only a minus", "-", "a value expected"),
        BAD("two values", "1 2", "more than one value"),
        BAD("trailing NUL", "1\0", "more than one value"),
        BAD("trailing text", "{}x", "more than one value"),
        BAD("unclosed array", "[1", "',' or ']' expected"),
        BAD("unclosed object", "{\"a\":1", "',' or '}' expected"),
        BAD("mismatched", "[1}", "',' or ']' expected"),
        BAD("trailing comma", "[1,]", "a value expected"),
        BAD("trailing comma in an object", "{\"a\":1,}", "a member's name expected"),
        BAD("name without quotes", "{a:1}", "a member's name expected"),
        BAD("no colon", "{\"a\" 1}", "':' expected"),
        BAD("single quotes", "'a'", "a value expected"),
        BAD("comment", "/**/1", "a value expected"),
        BAD("unclosed string", "\"abc", "a string without an end"),
        BAD("raw newline", "\"a\nb\"", "a control character"),
        BAD("raw NUL", "\"a\0b\"", "a control character"),
        BAD("unknown escape", "\"\\x41\"", "an unknown escape"),
        BAD("escape of NUL", "\"\\\0\"", "an unknown escape"),
        BAD("short escape", "\"\\u12\"", "an unknown escape"),
        BAD("escape at the end", "\"\\", "an unknown escape"),
        BAD("high surrogate alone", "\"\\ud83d\"", "surrogate"),
        BAD("high surrogate twice", "\"\\ud83d\\ud83d\"", "surrogate"),
        BAD("low surrogate twice", "\"\\ude00\\ude00\"", "surrogate"),
        BAD("low surrogate alone", "\"\\ude00\"", "surrogate"),
        BAD("ill-formed UTF-8", "\"\xff\"", "not UTF-8"),
        BAD("encoded surrogate", "\"\xed\xa0\x80\"", "not UTF-8"),
        BAD("byte order mark", "\xef\xbb\xbf" "1", "byte order mark"),
        BAD("name twice", "{\"a\":1,\"b\":2,\"a\":3}", "a name twice"),
        BAD("name twice, spelt otherwise", "{\"a\":1,\"\\u0061\":2}", "a name twice"),
        BAD("name twice, inside", "[0,{\"x\":{\"a\":1,\"a\":1}}]", "a name twice"),
        BAD("pickle", "\x80\x04\x95", "not UTF-8"),
#undef OK
#undef BAD
};

static void texts(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const struct row *r = &rows[i];
                int fd = make_file(r->input, r->n);
                struct rv_result result;

                rv_result_read(fd, NULL, &result);
                if (r->text ? !result.text || result.note[0] || strcmp(result.text, r->text) != 0 ||
                                        result.size != strlen(r->text)
                            : result.text || !strstr(result.note, r->note))
                        fail_msg("%s: value %s, note \"%s\"", r->name, result.text ? result.text : "none", result.note);
                rv_result_fini(&result);
                close(fd);
        }
}

/* An independent reader must accept what is handed on, and understand the same. */
static void jansson_reads_the_same(void **state)
{
        size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES;

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_json_unrefp) json_t *before = NULL, *after = NULL;

                if (!rows[i].text)
                        continue;
                before = json_loadb(rows[i].input, rows[i].n, flags, NULL);
                after = json_loads(rows[i].text, flags, NULL);
                if (!before || !after || !json_equal(before, after))
                        fail_msg("%s: jansson reads something else", rows[i].name);
        }
}

/* Every beginning of every good text, and every good text with one byte changed: a value or a note. */
static void mutations_never_break(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const struct row *r = &rows[i];

                for (size_t at = 0; at < r->n; at++) {
                        for (int change = 0; change < 9; change++) {
                                static const char with[] = "\"\\{[]},\x80";
                                char *text = malloc(r->n + 1);
                                char note[RV_RESULT_NOTE_SIZE] = "";
                                size_t n = change == 8 ? at : r->n;
                                struct rv_buf out = { 0 };
                                int e;

                                assert_non_null(text);
                                memcpy(text, r->input, r->n);
                                if (change < 8)
                                        text[at] = with[change];
                                text[n] = 0;
                                e = rv_result_json_compact(text, n, 64, &out, note, sizeof(note));
                                if (e == 0) {
                                        _cleanup_(rv_json_unrefp) json_t *value = json_loadb(out.data, out.size,
                                                JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);

                                        assert_non_null(value);
                                } else {
                                        assert_int_equal(e, RV_RESULT_JSON_E_REFUSED);
                                        assert_true(note[0] && out.size == 0);
                                }
                                rv_buf_fini(&out);
                                free(text);
                        }
                }
        }
}

static void depth(void **state)
{
        static const struct {
                const char *name, *open, *close;
                size_t n;
                bool is_good;
        } cases[] = {
                { "64 arrays", "[", "]", 64, true }, { "65 arrays", "[", "]", 65, false },
                { "64 objects", "{\"a\":", "}", 63, true }, { "65 objects", "{\"a\":", "}", 64, false },
                { "a hundred thousand", "[", "]", 100000, false }, { "a hundred thousand, never closed", "[", "", 100000, false },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                struct rv_buf text = { 0 };
                struct rv_result result;
                int fd;

                for (size_t k = 0; k < cases[i].n; k++)
                        rv_buf_puts(&text, cases[i].open);
                rv_buf_puts(&text, cases[i].open[0] == '{' ? "{}" : "");
                for (size_t k = 0; k < cases[i].n; k++)
                        rv_buf_puts(&text, cases[i].close);
                fd = make_file(text.data, text.size);
                rv_result_read(fd, NULL, &result);
                if ((result.text != NULL) != cases[i].is_good || (!cases[i].is_good && !strstr(result.note, "deeper than 64")))
                        fail_msg("%s: %s \"%s\"", cases[i].name, result.text ? "read" : "refused", result.note);
                rv_result_fini(&result);
                rv_buf_fini(&text);
                close(fd);
        }
}

static void size_at_the_bound(void **state)
{
        char *text = malloc(RV_RESULT_BYTES_MAX + 1);
        struct rv_result result;
        int fd;

        assert_non_null(text);
        memset(text, 'x', RV_RESULT_BYTES_MAX + 1);
        text[0] = text[RV_RESULT_BYTES_MAX - 1] = '"';
        fd = make_file(text, RV_RESULT_BYTES_MAX);
        rv_result_read(fd, NULL, &result);
        assert_non_null(result.text);
        assert_int_equal(result.size, RV_RESULT_BYTES_MAX);
        rv_result_fini(&result);
        assert_int_equal(rv_write_all(fd, " ", 1), 0);
        rv_result_read(fd, NULL, &result);
        assert_null(result.text);
        assert_string_equal(result.note, "larger than 1 MiB");
        close(fd);
        free(text);
}

/* A mebibyte made to be expensive as a tree, and a mebibyte of different names. */
static void dense_values(void **state)
{
        struct rv_buf text = { 0 };
        struct rv_result result;
        int fd;

        rv_buf_putc(&text, '[');
        while (text.size < RV_RESULT_BYTES_MAX - 4)
                rv_buf_puts(&text, "{},");
        rv_buf_puts(&text, "0]");
        fd = make_file(text.data, text.size);
        rv_result_read(fd, NULL, &result);
        assert_non_null(result.text);
        assert_int_equal(result.size, text.size);
        rv_result_fini(&result);
        close(fd);

        rv_buf_fini(&text);
        rv_buf_putc(&text, '{');
        for (unsigned i = 0; text.size < RV_RESULT_BYTES_MAX - 32; i++)
                rv_buf_printf(&text, "\"%x\":0,", i * 2654435761u);
        rv_buf_puts(&text, "\"\":0}");
        fd = make_file(text.data, text.size);
        rv_result_read(fd, NULL, &result);
        assert_non_null(result.text);
        rv_result_fini(&result);
        close(fd);
        rv_buf_fini(&text);
}

static void files_that_are_none(void **state)
{
        char path[] = "/tmp/test-result-XXXXXX", other[sizeof(path) + 2];
        struct rv_result result;
        int pipes[2], fd;

        rv_result_read(-1, NULL, &result);
        assert_null(result.text);
        assert_string_equal(result.note, "");
        rv_result_read(-EBADF, "a symbolic link", &result);
        assert_string_equal(result.note, "a symbolic link");

        assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
        rv_result_read(pipes[0], NULL, &result);   /* must not wait for a writer */
        assert_string_equal(result.note, "not a regular file");
        close(pipes[0]);
        close(pipes[1]);
        fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        rv_result_read(fd, NULL, &result);
        assert_string_equal(result.note, "not a regular file");
        close(fd);

        fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(rv_write_all(fd, "1", 1), 0);
        snprintf(other, sizeof(other), "%s.2", path);
        assert_int_equal(link(path, other), 0);
        rv_result_read(fd, NULL, &result);
        assert_null(result.text);
        assert_non_null(strstr(result.note, "hard link"));
        unlink(other);
        rv_result_read(fd, NULL, &result);
        assert_string_equal(result.text, "1");
        rv_result_fini(&result);
        close(fd);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        rv_result_read(fd, NULL, &result);
        assert_null(result.text);
        assert_non_null(strstr(result.note, "cannot be read"));
        close(fd);
        unlink(path);
        rv_result_read(fd, NULL, &result);   /* a closed descriptor */
        assert_non_null(strstr(result.note, "cannot be read"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(texts),
                cmocka_unit_test(jansson_reads_the_same),
                cmocka_unit_test(mutations_never_break),
                cmocka_unit_test(depth),
                cmocka_unit_test(size_at_the_bound),
                cmocka_unit_test(dense_values),
                cmocka_unit_test(files_that_are_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
