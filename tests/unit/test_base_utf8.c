#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Independent of the code under test: decode by arithmetic, then refuse what is not shortest or no scalar. */
static bool is_well_formed(const uint8_t *s, size_t n)
{
        size_t n_more = s[0] < 0x80 ? 0 : s[0] < 0xc0 ? 9 : s[0] < 0xe0 ? 1 : s[0] < 0xf0 ? 2 : s[0] < 0xf8 ? 3 : 9;
        static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
        uint32_t c;

        if (n_more + 1 != n)
                return false;
        c = n_more == 0 ? s[0] : s[0] & (0x3fu >> n_more);
        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return false;
                c = c << 6 | (s[i] & 0x3f);
        }
        return c >= least[n_more] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

/* How many of the @n bytes are one character of their own: 0 if they are none. */
static bool is_one_character(const uint8_t *s, size_t n)
{
        size_t characters = 0;

        return rv_utf8_check((const char *)s, n, &characters) && characters == 1;
}

static void compare(const uint8_t *s, size_t n)
{
        if (is_well_formed(s, n) != is_one_character(s, n))
                fail_msg("%02x %02x %02x %02x (of %zu)", s[0], n > 1 ? s[1] : 0, n > 2 ? s[2] : 0, n > 3 ? s[3] : 0, n);
}

/* Unicode 15, table 3-7: all sequences of one and two bytes, all of three with a lead of three, … */
static void table_3_7(void **state)
{
        static const uint8_t edges[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xe0,
                0xf0, 0xff };
        uint8_t s[4];

        (void)state;
        for (unsigned a = 0; a < 256; a++) {
                s[0] = (uint8_t)a;
                compare(s, 1);
                for (unsigned b = 0; b < 256; b++) {
                        s[1] = (uint8_t)b;
                        compare(s, 2);
                        for (unsigned c = 0; c < 256 && a >= 0xe0 && a <= 0xef; c++) {
                                s[2] = (uint8_t)c;
                                compare(s, 3);
                        }
                        /* … and those of four by every second byte and the edges of the others. */
                        for (size_t c = 0; c < sizeof(edges) && a >= 0xf0; c++) {
                                for (size_t d = 0; d < sizeof(edges); d++) {
                                        s[2] = edges[c];
                                        s[3] = edges[d];
                                        compare(s, 4);
                                }
                        }
                }
        }
}

static void every_scalar_round_trips(void **state)
{
        (void)state;
        for (uint32_t c = 0; c <= 0x10ffff; c++) {
                struct rv_utf8 u = { 0 };
                enum rv_utf8_event event = RV_UTF8_MORE;
                char s[4];
                size_t n;

                if (c == 0xd800)
                        c = 0xe000;
                n = rv_utf8_encode(c, s);
                for (size_t i = 0; i < n; i++) {
                        assert_int_equal(event, RV_UTF8_MORE);
                        event = rv_utf8_feed(&u, (uint8_t)s[i]);
                }
                if (event != RV_UTF8_CHARACTER || u.code_point != c || rv_utf8_is_partial(&u))
                        fail_msg("U+%04X", c);
        }
}

/* Decodes on: characters as themselves, U+FFFD for each maximal subpart. The text is put together in @out. */
static void decode(struct rv_utf8 *u, const char *s, size_t n, char *out)
{
        for (size_t i = 0; i < n;) {
                char c[5] = "";

                switch (rv_utf8_feed(u, (uint8_t)s[i])) {
                case RV_UTF8_MORE:
                        i++;
                        continue;
                case RV_UTF8_CHARACTER:
                        i++;
                        c[rv_utf8_encode(u->code_point, c)] = 0;
                        break;
                case RV_UTF8_INVALID:
                        i++;
                        strcpy(c, "\ufffd");
                        break;
                case RV_UTF8_INVALID_BEFORE:
                        strcpy(c, "\ufffd");
                        break;
                }
                strcat(out, c);
        }
}

#define R "\ufffd"

static const struct {
        const char *name, *bytes, *text;
} subparts[] = {
        { "Unicode 15, table 3-8: non-shortest forms", "\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", R R R R R R R R "A" },
        { "table 3-9: surrogates", "\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", R R R R R R R R "A" },
        { "table 3-10: other ill-formed", "\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", R R R R R "A" R R "B" },
        { "table 3-11: truncated", "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", R R R R "A" },
        { "section 3.9's example", "\x41\xc0\xaf\x41\xf4\x80\x80\x41", "A" R R "A" R "A" },
        { "ends in the middle of two", "x\xc3", "x" R },
        { "ends in the middle of three", "\xe2\x82", R },
        { "ends in the middle of four", "\xf0\x9f\x98", R },
        { "lead after lead", "\xe2\xe2\x82\xac", R "€" },
        { "character after truncated four", "\xf0\x9f\x98é", R "é" },
        { "only continuations", "\x80\x81\xbf", R R R },
        { "all kinds well-formed", "aé€😀\n", "aé€😀\n" },
        { "five and six byte leads", "\xf8\x88\x80\x80\x80\xfc", R R R R R R },
};

/* Substitution of maximal subparts, with the input cut in two at every place. */
static void maximal_subparts(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(subparts); i++) {
                size_t n = strlen(subparts[i].bytes);

                for (size_t at = 0; at <= n; at++) {
                        struct rv_utf8 u = { 0 };
                        char out[128] = "", first[64], second[64];

                        /* Copies, so that a look over the cut would be seen by the sanitizer. */
                        memcpy(first, subparts[i].bytes, at);
                        memcpy(second, subparts[i].bytes + at, n - at);
                        decode(&u, first, at, out);
                        decode(&u, second, n - at, out);
                        if (rv_utf8_is_partial(&u))
                                strcat(out, R);
                        if (strcmp(out, subparts[i].text) != 0)
                                fail_msg("%s, cut at %zu: %s", subparts[i].name, at, out);
                }
        }
}

static void check_counts_code_points(void **state)
{
        size_t n = 99;

        (void)state;
        assert_true(rv_utf8_check("", 0, &n));
        assert_int_equal(n, 0);
        assert_true(rv_utf8_check("a\0é€😀", 11, &n));
        assert_int_equal(n, 5);
        assert_true(rv_utf8_check("é", 2, NULL));
        n = 99;
        assert_false(rv_utf8_check("ab\xff", 3, &n));
        assert_false(rv_utf8_check("ab\xc3", 3, &n));
        assert_int_equal(n, 99);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table_3_7),
                cmocka_unit_test(every_scalar_round_trips),
                cmocka_unit_test(maximal_subparts),
                cmocka_unit_test(check_counts_code_points),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
