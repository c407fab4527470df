/*
 * Obligations of rules about packages: durations, pins, where they may stand, what a verdict carries of them.
 */
#include "test_policy_util.h"

#include "policy/obligation.h"
#include "policy/obligations.h"

#define PACKAGES "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"attrs>=20\",\"idna==3.4\",\"requests>=2\"]}"

static void durations(void **state)
{
        static const struct {
                const char *text;
                int64_t seconds;   /* 0: refused */
        } rows[] = {
                { "P7D", 7 * 86400 }, { "PT12H", 12 * 3600 }, { "P2W", 14 * 86400 }, { "P1DT6H", 30 * 3600 }, { "P0DT1H", 3600 },
                { "P36500D", RV_NEWEST_PUBLISHED_S_MAX }, { "P007D", 7 * 86400 },
                { "", 0 }, { "P", 0 }, { "PT", 0 }, { "P0D", 0 }, { "P7", 0 }, { "7D", 0 }, { "p7d", 0 }, { "P7D ", 0 }, { " P7D", 0 },
                { "P1M", 0 }, { "P1Y", 0 }, { "PT5M", 0 }, { "PT5S", 0 }, { "P1DT", 0 }, { "P6H", 0 }, { "PT1D", 0 }, { "P1D1D", 0 },
                { "PT1H1H", 0 }, { "P1W1D", 0 }, { "P1DT1HT1H", 0 }, { "P1.5D", 0 }, { "P-1D", 0 }, { "P1WT1H", 0 }, { "P36501D", 0 },
                { "P999999999999D", 0 }, { "PT876001H", 0 }, { "PDT1H", 0 }, { "PTT1H", 0 },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                int64_t seconds = -1;
                int r = rv_obligation_duration(rows[i].text, strlen(rows[i].text), &seconds);

                if (r != (rows[i].seconds ? 0 : -EINVAL) || seconds != (rows[i].seconds ? rows[i].seconds : -1))
                        fail_msg("'%s': %d, %lld s", rows[i].text, r, (long long)seconds);
        }
}

static void ages(void **state)
{
        static const struct {
                int64_t seconds;
                const char *text;
        } rows[] = {
                { 0, "0 minutes" }, { 59, "0 minutes" }, { 60, "1 minute" }, { 3599, "59 minutes" }, { 3600, "1 hour" }, { 43200, "12 hours" },
                { 86400, "1 day" }, { 90000, "1 day and 1 hour" }, { 7 * 86400, "7 days" }, { 8 * 86400 - 1, "7 days and 23 hours" },
        };
        char text[80];

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                assert_string_equal(rv_obligation_age(rows[i].seconds, text, sizeof(text)), rows[i].text);
}

static void pins(void **state)
{
        static const struct {
                const char *text;
                bool is_python, is_javascript;
        } rows[] = {
                { "1.2.3", true, true }, { "1.2", true, false }, { "1", true, false }, { "2.0rc1", true, false }, { "1!2.0", true, false },
                { "1.0+cpu", true, false }, { "1.0.0+cpu", true, true }, { "2024.1.post1", true, false }, { "1.2.3-beta.1", true, true },
                { "1.2.3-x.7.z", false, true }, { "1.2.3.4", true, false },
                { "", false, false }, { "v1.2.3", false, false }, { " 1.2.3", false, false }, { "1.2.3 ", false, false }, { "1.2.*", false, false },
                { ">=1.2.3", false, false }, { "==1.2.3", false, false }, { "^1.2.3", false, false }, { "1.2.3,1.2.4", false, false },
                { "latest", false, false }, { "1.2.3 || 2.0.0", false, false }, { "1.x", false, false },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                if (rv_obligation_is_pin("python", rows[i].text) != rows[i].is_python)
                        fail_msg("'%s' in Python", rows[i].text);
                if (rv_obligation_is_pin("javascript", rows[i].text) != rows[i].is_javascript)
                        fail_msg("'%s' in JavaScript", rows[i].text);
                if (rv_obligation_is_pin(NULL, rows[i].text) != (rows[i].is_python || rows[i].is_javascript))
                        fail_msg("'%s' in either", rows[i].text);
        }
}

#define RULE(section, fields) \
        "return policy {\n" \
        section " = {\n" \
        "  rule { id = 'r', " fields " },\n" \
        "  default = 'allow' }, "

static void rules(void **state)
{
        static const struct {
                const char *name, *policy, *message;   /* NULL: it loads */
        } rows[] = {
                { "a pin", RULE("packages", "match = { name = 'idna' }, allow = true, pin = '3.4'") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", NULL },
                { "all of them", RULE("packages", "match = {}, allow = true, pin = '3.4', require_hash = true, newest_published = 'P7D', allow_source_build = true")
                          ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", NULL },
                { "a pin that is a range", RULE("packages", "match = {}, allow = true, pin = '>=3'") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", "`pin` is one exact version" },
                { "a pin that is a number", RULE("packages", "match = {}, allow = true, pin = 3.4") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", "`pin` is one exact version" },
                { "a pin with a zero byte", RULE("packages", "match = {}, allow = true, pin = '3.4\\0'") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", "`pin` is one exact version" },
                { "a pin of another language", RULE("packages", "match = { language = 'javascript' }, allow = true, pin = '1.2'") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", "'1.2' is none of javascript" },
                { "a pin of its language", RULE("packages", "match = { language = 'javascript' }, allow = true, pin = '1.2.3-x.y'") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", NULL },
                { "require_hash = false", RULE("packages", "match = {}, allow = true, require_hash = false") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", "`require_hash` is true" },
                { "allow_source_build = 'yes'", RULE("packages", "match = {}, allow = true, allow_source_build = 'yes'") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", "`allow_source_build` is true" },
                { "months", RULE("packages", "match = {}, allow = true, newest_published = 'P1M'") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", "`newest_published` is a duration" },
                { "days as a number", RULE("packages", "match = {}, allow = true, newest_published = 7") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", "`newest_published` is a duration" },
                { "of a denial", RULE("packages", "match = {}, deny = 'no', pin = '3.4'") ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", "`pin` belongs to a rule of section packages that allows" },
                { "of the network", RULE("network", "match = {}, allow = true, newest_published = 'P7D'") ALLOW_PACKAGES ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", "`newest_published` belongs to a rule of section packages that allows" },
                { "of a key", "return policy { idempotency = { rule { id = 'r', match = {}, require_key = false, require_hash = true }, default = 'none' }, "
                          ALLOW_PACKAGES ALLOW_NETWORK ALLOW_BACKEND "}", "`require_hash` belongs to a rule of section packages that allows" },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                expect_outcome(rows[i].name, decide_text(rows[i].policy, PACKAGES), rows[i].message);
}

static void expect_json(const char *name, const json_t *value, const char *wanted)
{
        struct rv_buf text = { 0 };

        assert_int_equal(rv_json_canonical(value, &text), 0);
        if (text.size != strlen(wanted) || memcmp(text.data, wanted, text.size) != 0)
                fail_msg("%s: %.*s", name, (int)text.size, text.data);
        rv_buf_fini(&text);
}

static json_t *obligations_of(const char *packages)
{
        json_t *verdict, *obligations = NULL;
        char policy[2000];

        snprintf(policy, sizeof(policy), "return policy { packages = { %s default = 'allow' }, " ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", packages);
        verdict = decide_text(policy, PACKAGES);
        if (!rv_policy_verdict_is_allow(verdict))
                fail_msg("%s: %s", packages, reason_of(verdict, "message"));
        assert_int_equal(rv_policy_obligations(verdict, &obligations), 0);
        json_decref(verdict);
        return obligations;
}

static void gathered(void **state)
{
        static const struct {
                const char *name, *packages, *wanted;
        } rows[] = {
                { "none", "", "{\"pins\":{},\"require_hash\":[],\"source_build\":[]}" },
                { "a pin", "rule { id = 'a', match = { name = 'idna' }, allow = true, pin = '3.4' },", "{\"pins\":{\"idna\":\"3.4\"},\"require_hash\":[],\"source_build\":[]}" },
                { "lists", "rule { id = 'a', match = { name = { 'requests', 'attrs' } }, allow = true, require_hash = true, allow_source_build = true },",
                  "{\"pins\":{},\"require_hash\":[\"attrs\",\"requests\"],\"source_build\":[\"attrs\",\"requests\"]}" },
                { "the strictest", "rule { id = 'a', match = { name = 'attrs' }, allow = true, newest_published = 'P2D' },"
                  "rule { id = 'b', match = { name = 'idna' }, allow = true, newest_published = 'P1W' },"
                  "rule { id = 'c', match = {}, allow = true, newest_published = 'PT1H' },",
                  "{\"newest_published_s\":604800,\"pins\":{},\"require_hash\":[],\"source_build\":[]}" },
                { "of a package left to stage resolved", "rule { id = 'a', match = { license = 'MIT' }, allow = true, require_hash = true },",
                  "{\"pins\":{},\"require_hash\":[],\"source_build\":[]}" },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                json_t *obligations = obligations_of(rows[i].packages);

                expect_json(rows[i].name, obligations, rows[i].wanted);
                assert_int_equal(
                        rv_policy_obligations_is_none(obligations), strcmp(rows[i].wanted, rows[0].wanted) == 0);
                json_decref(obligations);
        }
}

static void joined(void **state)
{
        json_t *all = obligations_of("rule { id = 'a', match = { name = 'idna' }, allow = true, pin = '3.4', newest_published = 'P7D' },");
        json_t *more = obligations_of("rule { id = 'a', match = { name = 'idna' }, allow = true, pin = '3.3', newest_published = 'P1D' },"
                                      "rule { id = 'b', match = { name = 'attrs' }, allow = true, pin = '23.1.0', require_hash = true },");
        bool is_new = false;

        (void)state;
        assert_int_equal(rv_policy_obligations_join(all, more, &is_new), 0);
        assert_true(is_new);
        expect_json("joined", all, "{\"newest_published_s\":604800,\"pins\":{\"attrs\":\"23.1.0\",\"idna\":\"3.4\"},\"require_hash\":[\"attrs\"],\"source_build\":[]}");
        assert_int_equal(rv_policy_obligations_join(all, more, &is_new), 0);
        assert_false(is_new);
        json_decref(all);
        json_decref(more);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(durations), cmocka_unit_test(ages), cmocka_unit_test(pins), cmocka_unit_test(rules),
                cmocka_unit_test(gathered), cmocka_unit_test(joined),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
