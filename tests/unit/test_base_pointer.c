#include "base/pointer.h"

#include "base/config_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void well_formed(void **state)
{
        static const struct {
                const char *text, *parts;       /* joined by "|"; `*` in brackets is any */
        } rows[] = {
                { "/a", "a" }, { "/a/b/c", "a|b|c" }, { "/a/0/x", "a|0|x" }, { "/*", "[*]" }, { "/a/*/*/b", "a|[*]|[*]|b" },
                { "/a*", "a*" }, { "/**", "**" }, { "/a~1b/c~0d", "a/b|c~d" }, { "/~01", "~1" }, { "/~0~1*", "~/*" },
                { "/\xc3\xa9 \"", "\xc3\xa9 \"" }, { "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16", "1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16" },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                char seen[512] = "";
                struct rv_pointer p;

                if (rv_pointer_read(rows[i].text, &p) != 0)
                        fail_msg("%s is none", rows[i].text);
                for (unsigned k = 0; k < p.n; k++)
                        snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), p.is_any[k] ? "%s[%s]" : "%s%s", k ? "|" : "", rv_pointer_part(&p, k));
                assert_string_equal(seen, rows[i].parts);
        }
}

static void ill_formed(void **state)
{
        static const char *const rows[] = {
                "", "a", "a/b", "/", "//", "/a/", "/a//b", "/~", "/~2", "/a~", "/a~/b", "/a\nb", "/a\x7f", "#/a", " /a",
                "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
        };
        char text[RV_POINTER_BYTES_MAX + 1];
        struct rv_pointer p = { .n = 7 };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                if (rv_pointer_read(rows[i], &p) != -EINVAL)
                        fail_msg("\"%s\" is one", rows[i]);
                assert_int_equal(p.n, 7);
        }
        memset(text, 'x', sizeof(text));
        text[0] = '/';
        text[RV_POINTER_BYTES_MAX] = 0;
        assert_int_equal(rv_pointer_read(text, &p), -EINVAL);
        text[RV_POINTER_BYTES_MAX - 1] = 0;
        assert_int_equal(rv_pointer_read(text, &p), 0);
        assert_int_equal(strlen(rv_pointer_part(&p, 0)), RV_POINTER_BYTES_MAX - 2);
}

static void matching(void **state)
{
        static const struct {
                const char *text, *parts[4];
                bool matches;
        } rows[] = {
                { "/a/b", { "a", "b" }, true }, { "/a/b", { "a" }, false }, { "/a/b", { "a", "b", "c" }, false }, { "/a/*", { "a", "x" }, true },
                { "/a/*", { "a", "0" }, true }, { "/a/*", { "a" }, false }, { "/*/b", { "x", "b" }, true }, { "/a/b", { "A", "b" }, false },
                { "/a/0", { "a", "00" }, false }, { "/a~1b", { "a/b" }, true },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_pointer p;
                unsigned n = 0;

                while (n < 4 && rows[i].parts[n])
                        n++;
                assert_int_equal(rv_pointer_read(rows[i].text, &p), 0);
                if (rv_pointer_matches(&p, rows[i].parts, n) != rows[i].matches)
                        fail_msg("row %zu", i);
        }
}

static void meeting(void **state)
{
        static const struct {
                const char *a, *b;
                bool meets;
        } rows[] = {
                { "/a", "/a", true }, { "/a", "/b", false }, { "/a", "/a/b", true }, { "/a/b", "/a/c", false }, { "/*", "/a/b", true },
                { "/a/*", "/a/b/c", true }, { "/a/*/c", "/a/b", true }, { "/a/*/c", "/a/b/d", false }, { "/*/c", "/a/*", true },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_pointer a, b;

                assert_int_equal(rv_pointer_read(rows[i].a, &a), 0);
                assert_int_equal(rv_pointer_read(rows[i].b, &b), 0);
                if (rv_pointer_meets(&a, &b) != rows[i].meets || rv_pointer_meets(&b, &a) != rows[i].meets)
                        fail_msg("%s and %s", rows[i].a, rows[i].b);
        }
}

/* What a configuration may name, and why not. */
static void what_may_be_hidden(void **state)
{
        static const struct {
                const char *text, *why;         /* NULL: it may */
        } rows[] = {
                { "/tenant", NULL }, { "/principal", NULL }, { "/request_id", NULL }, { "/trace_id", NULL }, { "/source", NULL }, { "/source/bytes", NULL },
                { "/env", NULL }, { "/env/*/name", NULL }, { "/stdin", NULL }, { "/request", NULL }, { "/errors/*/pointer", NULL },
                { "/facts/request/principal", NULL }, { "/facts/request/tenant", NULL }, { "/facts/request/tenant/labels/*", NULL }, { "/facts/packages", NULL },
                { "/facts/packages/*/name", NULL }, { "/facts/network/*/domain", NULL }, { "/verdict/denials", NULL }, { "/verdict/reason/message", NULL },
                { "/shadow/verdict", NULL },
                { "tenant", "JSON pointers" }, { "", "JSON pointers" }, { "/a~2", "JSON pointers" },
                { "/run_id", "pointers to" }, { "/decision_id", "pointers to" }, { "/kind", "pointers to" }, { "/seq", "pointers to" }, { "/*", "pointers to" },
                { "/*/request", "pointers to" }, { "/facts", "pointers to" }, { "/verdict", "pointers to" }, { "/shadow", "pointers to" },
                { "/engine/lua", "pointers to" }, { "/context_sha256", "pointers to" }, { "/key", "pointers to" },
                { "/facts/request", "recovery" }, { "/facts/*", "recovery" }, { "/facts/stage", "recovery" }, { "/facts/request/*", "recovery" },
                { "/facts/*/timeout_s", "recovery" }, { "/facts/request/network_mode", "recovery" }, { "/facts/request/memory_mib", "recovery" },
                { "/verdict/*", "recovery" }, { "/verdict/effect", "recovery" }, { "/verdict/code", "recovery" }, { "/verdict/limits/timeout_s", "recovery" },
                { "/shadow/bundle", "replay" },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const char *why = rv_config_check_redact(rows[i].text);

                if (!why != !rows[i].why || (why && !strstr(why, rows[i].why)))
                        fail_msg("%s: %s", rows[i].text, why ? why : "may be hidden");
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(well_formed),
                cmocka_unit_test(ill_formed),
                cmocka_unit_test(matching),
                cmocka_unit_test(meeting),
                cmocka_unit_test(what_may_be_hidden),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
