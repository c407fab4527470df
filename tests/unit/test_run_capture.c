/* Capturing output: code points counted across split reads, the cap, the ceiling, ill-formed UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/capture.h"

#define FFFD "\xef\xbf\xbd"
#define EMOJI "\xf0\x9f\x98\x80"
#define MANY 100000

static const struct row {
        const char *name, *input;
        size_t n, cap;
        const char *text;
        size_t n_text, characters;
        bool is_truncated, has_invalid;
} rows[] = {
#define ROW(name, input, cap, text, characters, truncated, invalid) \
        { name, input, sizeof(input) - 1, cap, text, sizeof(text) - 1, characters, truncated, invalid }
        ROW("empty", "", MANY, "", 0, false, false),
        ROW("ascii", "hello\n", MANY, "hello\n", 6, false, false),
        ROW("long ascii", "0123456789abcdefghijklmnopqrstuvwxyz", MANY, "0123456789abcdefghijklmnopqrstuvwxyz", 36, false, false),
        ROW("NUL and controls", "a\0b\x1b[31m\r\n", MANY, "a\0b\x1b[31m\r\n", 10, false, false),
        ROW("1 to 4 bytes", "a\xc3\xa9\xe2\x82\xac" EMOJI "b", MANY, "a\xc3\xa9\xe2\x82\xac" EMOJI "b", 5, false, false),
        ROW("first and last of each length", "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
                MANY, "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 9, false, false),
        ROW("two stray bytes", "a\xff\xfe" "b", MANY, "a" FFFD FFFD "b", 4, false, true),
        ROW("only a continuation", "\x80", MANY, FFFD, 1, false, true),
        /* Unicode 15, tables 3-8 to 3-11: one U+FFFD for each maximal subpart. */
        ROW("table 3-8, not shortest", "\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", MANY,
                FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A", 9, false, true),
        ROW("table 3-9, surrogates", "\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", MANY,
                FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A", 9, false, true),
        ROW("table 3-10, other", "\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", MANY, FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B", 9, false, true),
        ROW("table 3-11, truncated", "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", MANY, FFFD FFFD FFFD FFFD "A", 5, false, true),
        ROW("character begun at the end", "ab\xe2\x82", MANY, "ab" FFFD, 3, false, true),
        ROW("lead after lead", "\xc3\xc3\xa9", MANY, FFFD "\xc3\xa9", 2, false, true),
        ROW("well-formed round an error", "\xc3\xa9\xff\xc3\xa9", MANY, "\xc3\xa9" FFFD "\xc3\xa9", 3, false, true),
        ROW("cap exactly", "abc", 3, "abc", 3, false, false),
        ROW("cap and one", "abcd", 3, "abc", 3, true, false),
        ROW("cap of none", "a", 0, "", 0, true, false),
        ROW("cap counts characters", "\xc3\xa9\xc3\xa9\xc3\xa9", 3, "\xc3\xa9\xc3\xa9\xc3\xa9", 3, false, false),
        ROW("emoji at the cap", "ab" EMOJI, 3, "ab" EMOJI, 3, false, false),
        ROW("emoji past the cap", "ab" EMOJI EMOJI, 3, "ab" EMOJI, 3, true, false),
        ROW("ill-formed at the cap", "ab\xe2\x82", 3, "ab" FFFD, 3, false, true),
        ROW("ill-formed ended by a byte past the cap", "ab\xe2\x82z", 3, "ab" FFFD, 3, true, true),
        ROW("ill-formed past the cap is only counted", "abc\xff", 3, "abc", 3, true, false),
        ROW("half a character past the cap", "abc\xe2", 3, "abc", 3, true, false),
#undef ROW
};

static void check(const struct row *r, const struct rv_capture *c, size_t split_a, size_t split_b)
{
        if (c->text.size != r->n_text || (r->n_text && memcmp(c->text.data, r->text, r->n_text)) ||
                c->characters != r->characters || c->bytes != r->n || c->is_truncated != r->is_truncated ||
                c->has_invalid_utf8 != r->has_invalid)
                fail_msg("%s, split at %zu and %zu: \"%.*s\" (%zu bytes), %zu characters of %ju bytes, truncated %d, invalid %d", r->name,
                        split_a, split_b, (int)c->text.size, c->text.data ? c->text.data : "", c->text.size, c->characters,
                        (uintmax_t)c->bytes, c->is_truncated, c->has_invalid_utf8);
}

/* Every way to cut the input into three reads, empty ones too. */
static void rows_at_every_split(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const struct row *r = &rows[i];

                for (size_t a = 0; a <= r->n; a++) {
                        for (size_t b = a; b <= r->n; b++) {
                                struct rv_capture c;

                                rv_capture_init(&c, r->cap, UINT64_MAX);
                                assert_int_equal(rv_capture_feed(&c, r->input, a), 0);
                                assert_int_equal(rv_capture_feed(&c, r->input + a, b - a), 0);
                                assert_int_equal(rv_capture_feed(&c, r->input + b, r->n - b), 0);
                                assert_int_equal(rv_capture_finish(&c), 0);
                                check(r, &c, a, b);
                                rv_capture_fini(&c);
                        }
                }
        }
}

static void rows_byte_by_byte(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_capture c;

                rv_capture_init(&c, rows[i].cap, UINT64_MAX);
                for (size_t k = 0; k < rows[i].n; k++)
                        assert_int_equal(rv_capture_feed(&c, rows[i].input + k, 1), 0);
                assert_int_equal(rv_capture_finish(&c), 0);
                check(&rows[i], &c, 1, 1);
                rv_capture_fini(&c);
        }
}

/* @unit written @n times, in reads of @piece bytes that fall across characters. */
static void feed_units(struct rv_capture *c, const char *unit, size_t n, size_t piece)
{
        size_t n_unit = strlen(unit), total = n_unit * n;
        char *data = malloc(total);

        assert_non_null(data);
        for (size_t i = 0; i < total; i++)
                data[i] = unit[i % n_unit];
        for (size_t at = 0; at < total; at += piece)
                assert_int_equal(rv_capture_feed(c, data + at, RV_MIN(piece, total - at)), 0);
        free(data);
        assert_int_equal(rv_capture_finish(c), 0);
}

static void contract_caps(void **state)
{
        static const struct {
                const char *name, *unit;
                size_t n, characters, n_text;
                bool is_truncated;
        } caps[] = {
                { "a million", "x", 1000000, 1000000, 1000000, false },
                { "a million and one", "x", 1000001, 1000000, 1000000, true },
                { "600,000 of two bytes", "\xc3\xa9", 600000, 600000, 1200000, false },
                { "a million emoji", EMOJI, 1000000, 1000000, 4000000, false },
                { "a million and one emoji", EMOJI, 1000001, 1000000, 4000000, true },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(caps); i++) {
                struct rv_capture c;

                rv_capture_init(&c, RV_CAPTURE_STDOUT_CHARACTERS, RV_CAPTURE_CEILING_BYTES);
                feed_units(&c, caps[i].unit, caps[i].n, 65535);
                if (c.characters != caps[i].characters || c.text.size != caps[i].n_text ||
                        c.is_truncated != caps[i].is_truncated || c.has_invalid_utf8 ||
                        c.bytes != strlen(caps[i].unit) * caps[i].n)
                        fail_msg("%s: %zu characters in %zu bytes of %ju, truncated %d", caps[i].name, c.characters, c.text.size,
                                (uintmax_t)c.bytes, c.is_truncated);
                for (size_t k = 0; k < c.text.size; k++)
                        assert_int_equal(c.text.data[k], caps[i].unit[k % strlen(caps[i].unit)]);
                rv_capture_fini(&c);
        }
}

static void ill_formed_flood_is_bounded(void **state)
{
        struct rv_capture c;

        rv_capture_init(&c, RV_CAPTURE_STDERR_CHARACTERS, RV_CAPTURE_CEILING_BYTES);
        feed_units(&c, "\xff", 200000, 4096);
        assert_int_equal(c.characters, 100000);
        assert_int_equal(c.text.size, 300000);
        assert_int_equal(c.bytes, 200000);
        assert_true(c.is_truncated && c.has_invalid_utf8);
        assert_true(c.text.capacity <= 300000 * 3 / 2 + 65536);
        rv_capture_fini(&c);
}

static void ceiling(void **state)
{
        static const char data[65536];
        struct rv_capture c;
        size_t n_feeds = 0;

        rv_capture_init(&c, RV_CAPTURE_STDOUT_CHARACTERS, RV_CAPTURE_CEILING_BYTES);
        while (c.bytes < RV_CAPTURE_CEILING_BYTES) {
                assert_int_equal(rv_capture_feed(&c, data, sizeof(data)), 0);
                n_feeds++;
        }
        assert_int_equal(n_feeds, 1024);
        assert_int_equal(c.bytes, RV_CAPTURE_CEILING_BYTES);   /* at the ceiling is not past it */
        assert_int_equal(rv_capture_feed(&c, data, 0), 0);
        assert_int_equal(rv_capture_feed(&c, data, 1), RV_CAPTURE_E_CEILING);
        assert_int_equal(rv_capture_feed(&c, data, 10), RV_CAPTURE_E_CEILING);
        assert_int_equal(c.bytes, RV_CAPTURE_CEILING_BYTES + 11);
        assert_int_equal(c.characters, 1000000);
        assert_true(c.is_truncated);
        rv_capture_fini(&c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rows_at_every_split),
                cmocka_unit_test(rows_byte_by_byte),
                cmocka_unit_test(contract_caps),
                cmocka_unit_test(ill_formed_flood_is_bounded),
                cmocka_unit_test(ceiling),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
