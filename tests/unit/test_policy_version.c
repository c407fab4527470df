/*
 * The order of versions (PEP 440, Semantic Versioning 2.0.0) and sets of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/version.h"

static struct rv_version parse(enum rv_version_order order, const char *text)
{
        struct rv_version v = { 0 };

        if (rv_version_parse(order, text, strlen(text), &v) < 0)
                fail_msg("cannot parse '%s'", text);
        return v;
}

/* Each version of a list is above all before it, and equal to itself. */
static void check_ascending(enum rv_version_order order, const char *const *list, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                for (size_t k = 0; k < n; k++) {
                        struct rv_version a = parse(order, list[i]), b = parse(order, list[k]);
                        int r = rv_version_compare(&a, &b);

                        if ((r < 0) != (i < k) || (r > 0) != (i > k))
                                fail_msg("'%s' against '%s': %d", list[i], list[k], r);
                }
        }
}

static void pep440_order(void **state)
{
        /* "Summary of permitted suffixes and relative ordering", and what packages have really used. */
        static const char *const list[] = {
                "0.dev0", "0", "0.1", "1.dev0", "1.0.dev456", "1.0a1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12", "1.0b1.dev456", "1.0b2",
                "1.0b2.post345.dev456", "1.0b2.post345", "1.0rc1.dev456", "1.0rc1", "1.0", "1.0+abc.5", "1.0+abc.7", "1.0+5", "1.0+5.1",
                "1.0.post456.dev34", "1.0.post456", "1.0.15", "1.1.dev1", "1.10", "2.0", "2023.10.26", "20240101", "20240101000000000000000",
                "1!0.1", "1!1.0", "2!0",
        };

        check_ascending(RV_VERSION_PEP440, list, RV_N_ELEMENTS(list));
}

static void pep440_equal_spellings(void **state)
{
        static const char *const pairs[][2] = {
                { "1.0", "1" }, { "1.0", "1.0.0" }, { "v1.0", "1.0" }, { "V1.0", "1.0" }, { " 1.0 ", "1.0" }, { "1.0-a1", "1.0a1" },
                { "1.0.alpha.1", "1.0a1" }, { "1.0_beta", "1.0b0" }, { "1.0c1", "1.0rc1" }, { "1.0-pre2", "1.0rc2" }, { "1.0preview2", "1.0rc2" },
                { "1.0RC1", "1.0rc1" }, { "1.0-1", "1.0.post1" }, { "1.0-r4", "1.0.post4" }, { "1.0.rev4", "1.0.post4" }, { "1.0.post", "1.0.post0" },
                { "1.0dev", "1.0.dev0" }, { "1.0-dev_3", "1.0.dev3" }, { "01.02", "1.2" }, { "1.0+Ubuntu-1", "1.0+ubuntu.1" }, { "0!1.0", "1.0" },
                { "1.0a", "1.0a0" }, { "1.0a1.post1", "1.0a1-1" }, { "1.0+1_0", "1.0+1.0" }, { "1.0+01", "1.0+1" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(pairs); i++) {
                struct rv_version a = parse(RV_VERSION_PEP440, pairs[i][0]), b = parse(RV_VERSION_PEP440, pairs[i][1]);

                if (rv_version_compare(&a, &b) != 0)
                        fail_msg("'%s' is not '%s'", pairs[i][0], pairs[i][1]);
        }
}

static void semver_order(void **state)
{
        /* Semantic Versioning 2.0.0, section 11, and the edges of identifiers. */
        static const char *const list[] = {
                "0.0.0-0", "0.0.0", "0.0.1", "0.1.0", "1.0.0-0", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0--", "1.0.0-alpha", "1.0.0-alpha.1",
                "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1-0", "1.2.0", "1.10.0", "2.0.0",
                "10.0.0", "99999999999999999999.0.0",
        };

        check_ascending(RV_VERSION_SEMVER, list, RV_N_ELEMENTS(list));
}

static void semver_equal_spellings(void **state)
{
        static const char *const pairs[][2] = { { "1.0.0+a", "1.0.0+b" }, { "1.0.0", "1.0.0+x" }, { "v1.2.3", "1.2.3" }, { "1.2", "1.2.0" }, { "1", "1.0.0" } };

        for (size_t i = 0; i < RV_N_ELEMENTS(pairs); i++) {
                struct rv_version a = parse(RV_VERSION_SEMVER, pairs[i][0]), b = parse(RV_VERSION_SEMVER, pairs[i][1]);

                if (rv_version_compare(&a, &b) != 0)
                        fail_msg("'%s' is not '%s'", pairs[i][0], pairs[i][1]);
        }
}

static void no_versions(void **state)
{
        static const struct {
                enum rv_version_order order;
                const char *text;
        } table[] = {
                { RV_VERSION_PEP440, "" },         { RV_VERSION_PEP440, " " },          { RV_VERSION_PEP440, "v" },       { RV_VERSION_PEP440, "a" },
                { RV_VERSION_PEP440, "1." },       { RV_VERSION_PEP440, ".1" },         { RV_VERSION_PEP440, "1..2" },    { RV_VERSION_PEP440, "1.0+" },
                { RV_VERSION_PEP440, "1.0+a+b" },  { RV_VERSION_PEP440, "1.0+a..b" },   { RV_VERSION_PEP440, "2004d" },   { RV_VERSION_PEP440, "1.0-" },
                { RV_VERSION_PEP440, "1.0 beta" }, { RV_VERSION_PEP440, "1.0.dev1a1" }, { RV_VERSION_PEP440, "1!2!3" },   { RV_VERSION_PEP440, "!1" },
                { RV_VERSION_PEP440, "1.0.*" },    { RV_VERSION_PEP440, "-1" },         { RV_VERSION_PEP440, "1.0a1b1" }, { RV_VERSION_PEP440, "1,0" },
                { RV_VERSION_SEMVER, "" },         { RV_VERSION_SEMVER, "1.2.3.4" },    { RV_VERSION_SEMVER, "1.2.3-" },  { RV_VERSION_SEMVER, "1.2.3+" },
                { RV_VERSION_SEMVER, "1.2.3-01" }, { RV_VERSION_SEMVER, "1.2.3-a..b" }, { RV_VERSION_SEMVER, "1.2-a" },   { RV_VERSION_SEMVER, "a.b.c" },
                { RV_VERSION_SEMVER, "1.2.x" },    { RV_VERSION_SEMVER, "1.2.3-a_b" },  { RV_VERSION_SEMVER, "1.2.3 4" }, { RV_VERSION_SEMVER, "-1.0.0" },
        };
        char text[RV_VERSION_SIZE_MAX + 2];
        struct rv_version v;

        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++)
                if (rv_version_parse(table[i].order, table[i].text, strlen(table[i].text), &v) != -EINVAL)
                        fail_msg("'%s' is taken for a version", table[i].text);
        memset(text, '1', sizeof(text));
        assert_int_equal(rv_version_parse(RV_VERSION_PEP440, text, sizeof(text) - 1, &v), -EINVAL);
        assert_int_equal(rv_version_parse(RV_VERSION_PEP440, text, sizeof(text) - 2, &v), 0);
        assert_int_equal(rv_version_parse(RV_VERSION_PEP440, "1.0\0", 4, &v), -EINVAL);
}

static void sets(void **state)
{
        static const struct {
                enum rv_version_order order;
                const char *set, *version;
                int has;
        } table[] = {
                { RV_VERSION_PEP440, "*", "1.0", 1 },
                { RV_VERSION_PEP440, "1.0", "1.0.0", 1 },
                { RV_VERSION_PEP440, "==1.0", "1.0.1", 0 },
                { RV_VERSION_PEP440, "=== 1.0", "1.0", 1 },
                { RV_VERSION_PEP440, "!=1.0", "1.0.0", 0 },
                { RV_VERSION_PEP440, ">=1.2,<2", "1.2", 1 },
                { RV_VERSION_PEP440, ">=1.2, <2", "2.0", 0 },
                { RV_VERSION_PEP440, ">=1.2 <2", "1.99", 1 },
                { RV_VERSION_PEP440, "  >= 1.2 , < 2  ", "1.1", 0 },
                { RV_VERSION_PEP440, "<2", "2.0rc1", 1 },
                { RV_VERSION_PEP440, ">1.7", "1.7.post1", 1 },
                { RV_VERSION_PEP440, "<=1.0", "1.0+local", 1 },
                { RV_VERSION_PEP440, "==1.0", "1.0+cu118", 1 },
                { RV_VERSION_PEP440, "==1.0+cu118", "1.0+cu118", 1 },
                { RV_VERSION_PEP440, "==1.0+cu118", "1.0", 0 },
                { RV_VERSION_PEP440, "==1.4.*", "1.4.9", 1 },
                { RV_VERSION_PEP440, "==1.4.*", "1.4a1", 1 },
                { RV_VERSION_PEP440, "==1.4.*", "1.40", 0 },
                { RV_VERSION_PEP440, "!=1.4.*", "1.5", 1 },
                { RV_VERSION_PEP440, "~=1.4", "1.9", 1 },
                { RV_VERSION_PEP440, "~=1.4", "2.0", 0 },
                { RV_VERSION_PEP440, "~=1.4.2", "1.4.9", 1 },
                { RV_VERSION_PEP440, "~=1.4.2", "1.5", 0 },
                { RV_VERSION_PEP440, "<1 || >=3", "3.1", 1 },
                { RV_VERSION_PEP440, "<1 || >=3", "2", 0 },
                { RV_VERSION_PEP440, "<1||>=3||==2", "2", 1 },
                { RV_VERSION_PEP440, "==1!1.0", "1.0", 0 },
                { RV_VERSION_PEP440, ">=", "1.0", -EINVAL },
                { RV_VERSION_PEP440, "", "1.0", -EINVAL },
                { RV_VERSION_PEP440, "||", "1.0", -EINVAL },
                { RV_VERSION_PEP440, "<1 |", "1.0", -EINVAL },
                { RV_VERSION_PEP440, "<1 || ", "1.0", -EINVAL },
                { RV_VERSION_PEP440, "<1,", "1.0", -EINVAL },
                { RV_VERSION_PEP440, ",<1", "1.0", -EINVAL },
                { RV_VERSION_PEP440, "~=1", "1.0", -EINVAL },
                { RV_VERSION_PEP440, ">=1.*", "1.0", -EINVAL },
                { RV_VERSION_PEP440, "==1.0a1.*", "1.0", -EINVAL },
                { RV_VERSION_PEP440, "=>1", "1.0", -EINVAL },
                { RV_VERSION_PEP440, "**", "1.0", -EINVAL },
                { RV_VERSION_PEP440, "latest", "1.0", -EINVAL },
                { RV_VERSION_SEMVER, "^1.2.3", "1.9.0", 1 },
                { RV_VERSION_SEMVER, "^1.2.3", "1.2.2", 0 },
                { RV_VERSION_SEMVER, "^1.2.3", "2.0.0-alpha", 0 },
                { RV_VERSION_SEMVER, "^0.2.3", "0.2.9", 1 },
                { RV_VERSION_SEMVER, "^0.2.3", "0.3.0", 0 },
                { RV_VERSION_SEMVER, "^0.0.3", "0.0.3", 1 },
                { RV_VERSION_SEMVER, "^0.0.3", "0.0.4", 0 },
                { RV_VERSION_SEMVER, "^0", "0.9.9", 1 },
                { RV_VERSION_SEMVER, "^0.0", "0.0.9", 1 },
                { RV_VERSION_SEMVER, "~1.2.3", "1.2.9", 1 },
                { RV_VERSION_SEMVER, "~1.2.3", "1.3.0", 0 },
                { RV_VERSION_SEMVER, "~1", "1.9.9", 1 },
                { RV_VERSION_SEMVER, "<2.0.0", "2.0.0-rc.1", 1 },
                { RV_VERSION_SEMVER, "=1.2.3", "1.2.3+build", 1 },
                { RV_VERSION_SEMVER, "==1.2.3+a", "1.2.3+b", 0 },
                { RV_VERSION_SEMVER, "==1.2.*", "1.2.9", 1 },
                { RV_VERSION_SEMVER, "^1 || ^2", "2.5.0", 1 },
                { RV_VERSION_SEMVER, "<2.0rc1", "1.0.0", -EINVAL },
                { RV_VERSION_SEMVER, "1.2.x", "1.2.0", -EINVAL },
                { RV_VERSION_SEMVER, "1.0.0 - 2.0.0", "1.5.0", -EINVAL },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                struct rv_version v = parse(table[i].order, table[i].version);
                int r = rv_version_set_has(table[i].order, table[i].set, strlen(table[i].set), &v);

                if (r != table[i].has)
                        fail_msg("'%s' in '%s': %d", table[i].version, table[i].set, r);
                r = rv_version_set_has(table[i].order, table[i].set, strlen(table[i].set), NULL);
                if ((r < 0) != (table[i].has < 0))
                        fail_msg("syntax of '%s': %d", table[i].set, r);
        }
        assert_int_equal(rv_version_set_has(RV_VERSION_PEP440, "1\0", 2, NULL), -EINVAL);
}

static void orders_of_languages(void **state)
{
        assert_int_equal(rv_version_order_for("python"), RV_VERSION_PEP440);
        assert_int_equal(rv_version_order_for("javascript"), RV_VERSION_SEMVER);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pep440_order), cmocka_unit_test(pep440_equal_spellings),
                cmocka_unit_test(semver_order),
                cmocka_unit_test(semver_equal_spellings), cmocka_unit_test(no_versions), cmocka_unit_test(sets),
                cmocka_unit_test(orders_of_languages),
        };

        return cmocka_run_group_tests_name("policy version", tests, NULL, NULL);
}
