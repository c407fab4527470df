/*
 * Stage `resolved`: facts out of a lock, the rules over a closure, obligations held against it, facts that are not known.
 */
#include "test_policy_util.h"

#include "policy/facts_bound.h"
#include "policy/obligations.h"

#define NOW 1750000000
#define DAY 86400

#define REQUEST "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"requests[socks]>=2,<3\",\"attrs>=1\",\"requests>=2.31\"],\"network\":{\"mode\":\"any\"}}"

/* What is asked for and brings in `idna`; @members are of idna. */
#define LOCK_OF(members) \
        "{\"schema\":\"reeve.lock/1\",\"language\":\"python\",\"packages\":[" \
        "{\"name\":\"attrs\",\"version\":\"23.1.0\",\"hash\":\"sha256:aa\",\"file\":\"a.whl\",\"url\":\"https://registry.example/a\",\"kind\":\"wheel\",\"size_bytes\":100," \
        "\"published_at\":1700000000,\"license\":\"MIT\",\"direct\":true,\"requested\":\"attrs>=1\",\"extras\":[],\"yanked\":false,\"install_script\":false,\"path\":[\"attrs\"],\"registry_hash\":true}," \
        "{\"name\":\"idna\"," members ",\"direct\":false,\"requested\":\"\",\"extras\":[],\"path\":[\"requests\",\"idna\"]}," \
        "{\"name\":\"requests\",\"version\":\"2.31.0\",\"hash\":\"sha256:cc\",\"kind\":\"wheel\",\"size_bytes\":300,\"published_at\":1690000000,\"license\":\"Apache-2.0\"," \
        "\"direct\":true,\"requested\":\"requests[socks]>=2,<3, requests>=2.31\",\"extras\":[\"socks\",\"brotli\"],\"yanked\":false,\"install_script\":false,\"path\":[\"requests\"],\"registry_hash\":true}]}"
/* Published 30 hours before it is judged. */
#define IDNA "\"version\":\"3.4\",\"hash\":\"sha256:bb\",\"kind\":\"wheel\",\"size_bytes\":200,\"published_at\":1749892000,\"license\":\"BSD-3-Clause\",\"yanked\":false,\"install_script\":false,\"registry_hash\":true"
#define LOCK LOCK_OF(IDNA)

static json_t *read_json(const char *text)
{
        struct rv_error err = { 0 };
        json_t *value = NULL;

        if (rv_json_read(text, strlen(text), 32, &value, &err) < 0)
                fail_msg("%s: %s", err.message, text);
        return value;
}

static json_t *resolve(const char *request, const char *lock_text)
{
        json_t *asked = facts_for(request), *lock = read_json(lock_text), *facts = NULL;

        assert_int_equal(rv_facts_resolve(asked, lock, NOW, &facts), 0);
        json_decref(asked);
        json_decref(lock);
        return facts;
}

static void expect_json(const char *name, const json_t *value, const char *wanted)
{
        struct rv_buf text = { 0 };

        assert_int_equal(rv_json_canonical(value, &text), 0);
        if (text.size != strlen(wanted) || memcmp(text.data, wanted, text.size) != 0)
                fail_msg("%s: %.*s", name, (int)text.size, text.data);
        rv_buf_fini(&text);
}

/* ---- Facts ---- */

static void facts_of_a_lock(void **state)
{
        json_t *facts = resolve(REQUEST, LOCK), *asked = facts_for(REQUEST);

        (void)state;
        expect_json("packages", json_object_get(facts, "packages"),
                    "[{\"age_days\":578,\"direct\":true,\"extras\":[],\"hash\":\"sha256:aa\",\"install_script\":false,\"kind\":\"wheel\",\"language\":\"python\",\"license\":\"MIT\",\"name\":\"attrs\","
                    "\"pinned\":true,\"published_at\":1700000000,\"requested\":\"attrs>=1\",\"size_bytes\":100,\"stage\":\"resolved\",\"version\":\"23.1.0\",\"yanked\":false},"
                    "{\"age_days\":1,\"direct\":false,\"extras\":[],\"hash\":\"sha256:bb\",\"install_script\":false,\"kind\":\"wheel\",\"language\":\"python\",\"license\":\"BSD-3-Clause\",\"name\":\"idna\","
                    "\"pinned\":true,\"published_at\":1749892000,\"requested\":\"\",\"size_bytes\":200,\"stage\":\"resolved\",\"version\":\"3.4\",\"yanked\":false},"
                    "{\"age_days\":694,\"direct\":true,\"extras\":[\"brotli\",\"socks\"],\"hash\":\"sha256:cc\",\"install_script\":false,\"kind\":\"wheel\",\"language\":\"python\",\"license\":\"Apache-2.0\",\"name\":\"requests\","
                    "\"pinned\":true,\"published_at\":1690000000,\"requested\":\"requests[socks]>=2,<3, requests>=2.31\",\"size_bytes\":300,\"stage\":\"resolved\",\"version\":\"2.31.0\",\"yanked\":false}]");
        expect_json("pointers", json_object_get(facts, "pointers"),
                    "{\"packages\":[[\"/packages/1\"],[],[\"/packages/2\",\"/packages/0\"]],\"paths\":[[\"attrs\"],[\"requests\",\"idna\"],[\"requests\"]]}");
        expect_json("evidence", json_object_get(facts, "evidence"), "{\"registry_hash\":[true,true,true]}");
        assert_true(json_equal(json_object_get(facts, "request"), json_object_get(asked, "request")));
        assert_int_equal(json_object_size(facts), 5);
        assert_true(rv_facts_is_resolved(facts));
        assert_false(rv_facts_is_resolved(asked));
        json_decref(facts);
        json_decref(asked);
}

static void facts_that_are_not_known(void **state)
{
        static const struct {
                const char *name, *members, *wanted;
        } rows[] = {
                { "nothing", "\"version\":\"1\"",
                  "{\"direct\":false,\"extras\":[],\"language\":\"python\",\"name\":\"idna\",\"pinned\":true,\"requested\":\"\",\"stage\":\"resolved\",\"version\":\"1\"}" },
                { "of another form", "\"version\":\"1\",\"published_at\":\"yesterday\",\"size_bytes\":-1,\"yanked\":0,\"license\":null,\"kind\":[]",
                  "{\"direct\":false,\"extras\":[],\"language\":\"python\",\"name\":\"idna\",\"pinned\":true,\"requested\":\"\",\"stage\":\"resolved\",\"version\":\"1\"}" },
                { "not published yet", "\"published_at\":1750000001",
                  "{\"age_days\":0,\"direct\":false,\"extras\":[],\"language\":\"python\",\"name\":\"idna\",\"pinned\":true,\"published_at\":1750000001,\"requested\":\"\",\"stage\":\"resolved\"}" },
                { "a second before a day", "\"published_at\":1749913601",
                  "{\"age_days\":0,\"direct\":false,\"extras\":[],\"language\":\"python\",\"name\":\"idna\",\"pinned\":true,\"published_at\":1749913601,\"requested\":\"\",\"stage\":\"resolved\"}" },
                { "a day", "\"published_at\":1749913600",
                  "{\"age_days\":1,\"direct\":false,\"extras\":[],\"language\":\"python\",\"name\":\"idna\",\"pinned\":true,\"published_at\":1749913600,\"requested\":\"\",\"stage\":\"resolved\"}" },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                char text[4000];
                json_t *facts;

                snprintf(text, sizeof(text), LOCK_OF("%s"), rows[i].members);
                facts = resolve(REQUEST, text);
                expect_json(rows[i].name, json_array_get(json_object_get(facts, "packages"), 1), rows[i].wanted);
                json_decref(facts);
        }
}

static void order_and_versions(void **state)
{
        static const char request[] = "{\"language\":\"javascript\",\"source\":\"1\",\"packages\":[\"b@^2\"]}";
        static const char lock[] =
                "{\"language\":\"javascript\",\"packages\":["
                "{\"name\":\"b\",\"version\":\"2.0.0\",\"direct\":true,\"requested\":\"b@^2\",\"path\":[\"b\"]},"
                "{\"name\":\"b\",\"version\":\"1.0.0\",\"direct\":false,\"requested\":\"not asked for\",\"path\":[\"b\",\"a\",\"b\"]},"
                "{\"name\":\"a\",\"version\":\"1.0.0\"}]}";
        json_t *facts = resolve(request, lock);

        (void)state;
        expect_json("pointers", json_object_get(facts, "pointers"),
                    "{\"packages\":[[],[],[\"/packages/0\"]],\"paths\":[[\"a\"],[\"b\",\"a\",\"b\"],[\"b\"]]}");
        assert_string_equal(rv_json_get_string(json_array_get(json_object_get(facts, "packages"), 1), "version", ""), "1.0.0");
        assert_string_equal(rv_json_get_string(json_array_get(json_object_get(facts, "packages"), 1), "requested", "?"), "");
        json_decref(facts);
}

static void what_is_no_lock(void **state)
{
        static const char *const locks[] = {
                "{}", "[]", "{\"packages\":{}}", "{\"packages\":[{}]}", "{\"packages\":[{\"name\":\"\"}]}", "{\"packages\":[{\"name\":1}]}",
                "{\"packages\":[null]}", "{\"language\":\"javascript\",\"packages\":[]}",
        };
        json_t *asked = facts_for(REQUEST), *empty = json_object();

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(locks); i++) {
                json_t *lock = read_json(locks[i]), *facts = (json_t *)0x1;

                if (rv_facts_resolve(asked, lock, NOW, &facts) != -EINVAL || facts != (json_t *)0x1)
                        fail_msg("%s is taken", locks[i]);
                assert_int_equal(rv_facts_resolve(empty, lock, NOW, &facts), -EINVAL);
                json_decref(lock);
        }
        json_decref(asked);
        json_decref(empty);
}

/* ---- Verdicts ---- */

struct judged {
        json_t *facts, *verdict;
        struct rv_policy_notes notes;
};

static struct judged judge(const char *packages, const char *lock)
{
        char policy[4000];
        struct rv_bundle_file file = { "policy.lua", policy, 0, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };
        struct judged d = { .facts = resolve(REQUEST, lock) };

        snprintf(policy, sizeof(policy),
                 "return policy {\npackages = {\n%s\n%s }, network = { default = 'deny' }, idempotency = { default = 'require_key' }, backend = { default = 'tenant' }, "
                 "limits = { timeout_s = { deny_above = 1 } } }",
                 packages, strstr(packages, "default =") ? "" : "default = 'allow'");
        file.size = strlen(policy);
        assert_int_equal(rv_policy_decide_noting(&bundle, d.facts, &d.notes, &d.verdict), 0);
        return d;
}

static void judged_fini(struct judged *d)
{
        json_decref(d->verdict);
        json_decref(d->facts);
}

static void whole_verdict(void **state)
{
        struct judged d = judge("rule { id = 'copyleft', match = { license = 'GPL*' }, deny = 'no' },\n"
                                "rule { id = 'young', when = function(p) return p.age_days < 7 end, deny = 'too young' },\n"
                                "rule { id = 'pinned', match = { name = 'attrs' }, allow = true, pin = '23.1', require_hash = true, newest_published = 'PT1H' },", LOCK);

        (void)state;
        expect_json("a denial", d.verdict,
                    "{\"code\":\"package_denied\",\"denials\":[{\"file\":\"policy.lua\",\"item\":\"idna\",\"line\":4,\"message\":\"too young\",\"rule\":\"young\",\"section\":\"packages\"}],"
                    "\"effect\":\"deny\",\"packages\":["
                    "{\"effect\":\"allow\",\"file\":\"policy.lua\",\"item\":\"attrs\",\"line\":5,\"newest_published_s\":3600,\"pin\":\"23.1\",\"requested\":\"attrs>=1\",\"require_hash\":true,\"rule\":\"pinned\",\"version\":\"23.1.0\"},"
                    "{\"effect\":\"deny\",\"file\":\"policy.lua\",\"item\":\"idna\",\"line\":4,\"requested\":\"\",\"rule\":\"young\",\"version\":\"3.4\"},"
                    "{\"effect\":\"allow\",\"file\":\"policy.lua\",\"item\":\"requests\",\"line\":1,\"requested\":\"requests[socks]>=2,<3, requests>=2.31\",\"rule\":\"default\",\"version\":\"2.31.0\"}],"
                    "\"reason\":{\"file\":\"policy.lua\",\"item\":\"idna\",\"line\":4,\"message\":\"too young\",\"path\":[\"requests\",\"idna\"],\"rule\":\"young\"}}");
        assert_null(d.notes.lacking);
        assert_false(rv_policy_verdict_is_of_obligations(d.verdict));
        judged_fini(&d);
        d = judge("", LOCK);
        expect_json("allowed", json_object_get(d.verdict, "reason"), "null");
        assert_string_equal(rv_policy_verdict_code(d.verdict), "ok");
        assert_int_equal(json_object_size(d.verdict), 5);
        assert_false(rv_policy_verdict_is_of_obligations(d.verdict));
        judged_fini(&d);
}

/* Whether idna is denied, by which rule and why. */
static const struct {
        const char *name, *packages, *idna;
        const char *code, *rule, *message, *unmet, *lacking;
} cases[] = {
        { "the default denies", "rule { id = 'mine', match = { direct = true }, allow = true }, default = 'deny'", IDNA, "package_denied", "default", "allows idna", NULL, NULL },
        { "an older rule reads nothing late", "rule { id = 'a', match = { name = 'idna' }, deny = 'x' },", "\"version\":\"1\"", "package_denied", "a", "x", NULL, NULL },
        { "version", "rule { id = 'a', match = { name = 'idna', version = version '<3.5' }, deny = 'old' },", IDNA, "package_denied", "a", "old", NULL, NULL },
        { "another version", "rule { id = 'a', match = { name = 'idna', version = version '<3.4' }, deny = 'old' },", IDNA, "ok", NULL, NULL, NULL, NULL },
        { "all that is pinned at this stage", "rule { id = 'a', match = { pinned = false }, deny = 'x' },", IDNA, "ok", NULL, NULL, NULL, NULL },
        { "an error", "rule { id = 'a', match = { name = 'idna' }, when = function(p) return p.nam end, deny = 'x' },", IDNA, "policy_error", "a", "unknown fact 'nam'", NULL, NULL },

        { "pin", "rule { id = 'a', match = { name = 'idna' }, allow = true, pin = '3.3' },", IDNA, "package_denied", "a", "pins idna to 3.3, and 3.4 was chosen", "pin", NULL },
        { "pin, satisfied", "rule { id = 'a', match = { name = 'idna' }, allow = true, pin = '3.4' },", IDNA, "ok", NULL, NULL, NULL, NULL },
        { "pin, written otherwise", "rule { id = 'a', match = { name = 'idna' }, allow = true, pin = '3.4.0' },", IDNA, "ok", NULL, NULL, NULL, NULL },
        { "pin, a build of it", "rule { id = 'a', match = { name = 'idna' }, allow = true, pin = '3.4' },", "\"version\":\"3.4+cpu\",\"kind\":\"wheel\"", "ok", NULL, NULL, NULL, NULL },
        { "pin, its pre-release", "rule { id = 'a', match = { name = 'idna' }, allow = true, pin = '3.4' },", "\"version\":\"3.4rc1\",\"kind\":\"wheel\"", "package_denied", "a", "3.4rc1", "pin", NULL },
        { "pin, no version", "rule { id = 'a', match = { name = 'idna' }, allow = true, pin = '3.4' },", "\"version\":\"x y\",\"kind\":\"wheel\"", "package_denied", "a", "x y", "pin", NULL },
        { "a pin of a rule that came too late", "rule { id = 'a', match = {}, allow = true }, rule { id = 'b', match = { name = 'idna' }, allow = true, pin = '1' },", IDNA, "ok", NULL, NULL, NULL, NULL },

        { "hash", "rule { id = 'a', match = {}, allow = true, require_hash = true },", "\"version\":\"3.4\",\"kind\":\"wheel\",\"registry_hash\":false", "package_denied", "a", "asks for a hash of idna 3.4", "require_hash", NULL },
        { "hash, not told at all", "rule { id = 'a', match = {}, allow = true, require_hash = true },", "\"version\":\"3.4\",\"kind\":\"wheel\"", "package_denied", "a", "hash", "require_hash", NULL },
        { "hash, satisfied", "rule { id = 'a', match = {}, allow = true, require_hash = true },", IDNA, "ok", NULL, NULL, NULL, NULL },

        { "newest", "rule { id = 'a', match = { name = 'idna' }, allow = true, newest_published = 'P7D' },", IDNA, "package_denied", "a", "idna 3.4 was published 1 day and 6 hours ago, and rule 'a' allows nothing younger than 7 days", "newest_published", NULL },
        { "newest, of another's rule", "rule { id = 'a', match = { name = 'requests' }, allow = true, newest_published = 'P7D' },", IDNA, "package_denied", "a", "idna 3.4", "newest_published", NULL },
        { "newest, the strictest of several", "rule { id = 'a', match = { name = 'attrs' }, allow = true, newest_published = 'PT1H' }, rule { id = 'b', match = { name = 'requests' }, allow = true, newest_published = 'P2D' },",
          IDNA, "package_denied", "b", "2 days", "newest_published", NULL },
        { "newest, just old enough", "rule { id = 'a', match = {}, allow = true, newest_published = 'P1DT6H' },", IDNA, "ok", NULL, NULL, NULL, NULL },
        { "newest, of a rule that lets nothing through", "rule { id = 'a', match = { name = 'other' }, allow = true, newest_published = 'P7D' },", IDNA, "ok", NULL, NULL, NULL, NULL },
        { "newest, in the future", "rule { id = 'a', match = {}, allow = true, newest_published = 'PT1H' },", "\"version\":\"3.4\",\"published_at\":1760000000", "package_denied", "a", "published 0 minutes ago", "newest_published", NULL },
        { "newest, not known", "rule { id = 'a', match = { name = 'attrs' }, allow = true, newest_published = 'P7D' },", "\"version\":\"3.4\",\"kind\":\"wheel\"", "policy_error", "a", "'published_at' of idna 3.4 is not known", NULL, "published_at" },

        { "built", "", "\"version\":\"3.4\",\"kind\":\"built\"", "package_denied", "default", "has to be built from its source, and the default does not", "allow_source_build", NULL },
        { "built, by a rule", "rule { id = 'a', match = {}, allow = true },", "\"version\":\"3.4\",\"kind\":\"built\"", "package_denied", "a", "and rule 'a' does not", "allow_source_build", NULL },
        { "built, allowed", "rule { id = 'a', match = { name = 'idna' }, allow = true, allow_source_build = true },", "\"version\":\"3.4\",\"kind\":\"built\"", "ok", NULL, NULL, NULL, NULL },
        { "built, and denied", "rule { id = 'a', match = { kind = 'built' }, deny = 'never' },", "\"version\":\"3.4\",\"kind\":\"built\"", "package_denied", "a", "never", NULL, NULL },

        { "read in match", "rule { id = 'a', match = { license = 'GPL*' }, deny = 'x' },", "\"version\":\"3.4\",\"kind\":\"wheel\"", "policy_error", "a", "'license' of idna 3.4 is not known: the registry does not tell it", NULL, "license" },
        { "read in when", "rule { id = 'a', when = function(p) return p.age_days < 7 end, deny = 'x' },", "\"version\":\"3.4\",\"kind\":\"wheel\"", "policy_error", "a", "'age_days' of idna 3.4 is not known", NULL, "age_days" },
        { "read in pairs", "rule { id = 'a', when = function(p) for k in pairs(p) do end return false end, deny = 'x' },", "\"version\":\"3.4\",\"kind\":\"wheel\"", "policy_error", "a", "'hash' of idna 3.4 is not known", NULL, "hash" },
        { "not read", "rule { id = 'a', match = { name = 'other' }, when = function(p) return p.age_days < 7 end, deny = 'x' },", "\"version\":\"3.4\",\"kind\":\"wheel\"", "ok", NULL, NULL, NULL, NULL },
        { "evidence is no fact", "rule { id = 'a', when = function(p) return p.registry_hash end, deny = 'x' },", IDNA, "policy_error", "a", "unknown fact 'registry_hash'", NULL, NULL },
};

static void check_reason(size_t i, const struct judged *d)
{
        const char *message = reason_of(d->verdict, "message");
        const json_t *entry = json_array_get(json_object_get(d->verdict, "packages"), 1);
        const json_t *first_unmet = json_array_get(json_object_get(entry, "unmet"), 0);

        if (strcmp(rv_policy_verdict_code(d->verdict), cases[i].code) != 0)
                fail_msg("%s: %s: %s", cases[i].name, rv_policy_verdict_code(d->verdict), message);
        if (cases[i].rule && strcmp(reason_of(d->verdict, "rule"), cases[i].rule) != 0)
                fail_msg("%s: rule %s", cases[i].name, reason_of(d->verdict, "rule"));
        if (cases[i].message && !strstr(message, cases[i].message))
                fail_msg("%s: %s", cases[i].name, message);
        if (strcmp(cases[i].unmet ? cases[i].unmet : "", json_is_string(first_unmet) ? json_string_value(first_unmet) : "") != 0)
                fail_msg("%s: unmet", cases[i].name);
        if (strcmp(cases[i].lacking ? cases[i].lacking : "", d->notes.lacking ? d->notes.lacking : "") != 0)
                fail_msg("%s: lacks %s", cases[i].name, d->notes.lacking);
        if (cases[i].lacking && (strcmp(d->notes.lacking_package, "idna") != 0 || strcmp(d->notes.lacking_version, "3.4") != 0))
                fail_msg("%s: it is %s %s that lacks it", cases[i].name, d->notes.lacking_package, d->notes.lacking_version);
}

static void verdicts(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                struct judged d, again;
                char text[4000];

                snprintf(text, sizeof(text), LOCK_OF("%s"), cases[i].idna);
                d = judge(cases[i].packages, text);
                again = judge(cases[i].packages, text);
                check_reason(i, &d);
                if (!json_equal(d.verdict, again.verdict))
                        fail_msg("%s: not the same again", cases[i].name);
                if (rv_policy_verdict_is_of_obligations(d.verdict) != (cases[i].unmet != NULL))
                        fail_msg("%s: of obligations, or not", cases[i].name);
                judged_fini(&d);
                judged_fini(&again);
        }
}

static void several_unmet(void **state)
{
        struct judged d = judge("rule { id = 'a', match = { name = 'idna' }, allow = true, pin = '3.3', require_hash = true, newest_published = 'P7D' },",
                                LOCK_OF("\"version\":\"3.4\",\"kind\":\"built\",\"published_at\":1750000000"));
        json_t *obligations = NULL;

        (void)state;
        expect_json("unmet", json_object_get(json_array_get(json_object_get(d.verdict, "packages"), 1), "unmet"),
                    "[\"pin\",\"require_hash\",\"allow_source_build\",\"newest_published\"]");
        assert_int_equal(json_array_size(json_object_get(d.verdict, "denials")), 4);
        assert_true(rv_policy_verdict_is_of_obligations(d.verdict));
        assert_int_equal(rv_policy_obligations(d.verdict, &obligations), 0);
        expect_json("obligations", obligations, "{\"newest_published_s\":604800,\"pins\":{\"idna\":\"3.3\"},\"require_hash\":[\"idna\"],\"source_build\":[]}");
        json_decref(obligations);
        judged_fini(&d);
}

static void a_policy_that_does_not_load(void **state)
{
        struct judged d = judge("rule { id = 'a' },", LOCK);

        (void)state;
        assert_string_equal(rv_policy_verdict_code(d.verdict), "policy_error");
        expect_json("path", json_object_get(json_object_get(d.verdict, "reason"), "path"), "[]");
        assert_int_equal(json_object_size(d.verdict), 5);
        judged_fini(&d);
}

static void a_spent_budget(void **state)
{
        struct judged d = judge("rule { id = 'a', match = { name = 'idna' }, when = function() while true do end end, deny = 'x' },", LOCK);

        (void)state;
        assert_string_equal(rv_policy_verdict_code(d.verdict), "policy_error");
        assert_int_equal(json_array_size(json_object_get(d.verdict, "packages")), 2);
        assert_string_equal(reason_of(d.verdict, "item"), "idna");
        judged_fini(&d);
}

/* ---- Bounds ---- */

static json_t *make_closure(size_t n, size_t license_bytes)
{
        json_t *lock = json_pack("{s:s, s:[]}", "language", "python", "packages"), *list = json_object_get(lock, "packages");
        json_t *asked = facts_for(REQUEST), *facts = NULL;
        char *license = malloc(license_bytes + 1);

        assert_non_null(license);
        memset(license, 'x', license_bytes);
        license[license_bytes] = 0;
        for (size_t i = 0; i < n; i++) {
                char name[32];

                snprintf(name, sizeof(name), "package-%05zu", i);
                assert_int_equal(json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:i, s:b}", "name", name, "version", "1.0", "license", license,
                        "kind", "wheel", "published_at", 1700000000, "direct", 0)), 0);
        }
        free(license);
        assert_int_equal(rv_facts_resolve(asked, lock, NOW, &facts), 0);
        json_decref(asked);
        json_decref(lock);
        return facts;
}

static void bounds(void **state)
{
        static const struct {
                const char *name;
                size_t n, license_bytes;
                const char *message;   /* NULL: within */
        } rows[] = {
                { "2,000 packages", 2000, 3, NULL }, { "2,001 packages", 2001, 3, "comes to 2001 packages, and at most 2000 are judged" },
                { "long texts", 2000, 300, "and at most 1048576 are recorded" }, { "none", 0, 3, NULL },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                json_t *facts = make_closure(rows[i].n, rows[i].license_bytes), *brief = NULL, *verdict = NULL;
                int r = rv_facts_bound(facts, &brief, &verdict);

                if (r != (rows[i].message != NULL))
                        fail_msg("%s: %d", rows[i].name, r);
                if (r && (strcmp(reason_of(verdict, "rule"), "closure_too_large") != 0 || strcmp(rv_policy_verdict_code(verdict), "package_denied") != 0 ||
                          !strstr(reason_of(verdict, "message"), rows[i].message)))
                        fail_msg("%s: %s", rows[i].name, reason_of(verdict, "message"));
                if (r && ((size_t)json_integer_value(json_object_get(brief, "packages_left_out")) != rows[i].n || !rv_facts_is_resolved(brief) ||
                          json_integer_value(json_object_get(brief, "bytes_left_out")) <= 0 || json_object_get(brief, "packages")))
                        fail_msg("%s: the brief facts", rows[i].name);
                json_decref(facts);
                json_decref(brief);
                json_decref(verdict);
        }
}

/* The largest closure that is judged, denied whole with the longest texts: a record (2 MiB) has room for facts and verdict. */
static void the_largest_verdict(void **state)
{
        char policy[2000], text[1001];
        struct rv_bundle_file file = { "policy.lua", policy, 0, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };
        json_t *facts = make_closure(2000, 3), *verdict = NULL;
        struct rv_buf out = { 0 };

        (void)state;
        memset(text, 'n', sizeof(text) - 1);
        text[1000] = 0;
        snprintf(policy, sizeof(policy), "return policy { packages = { rule { id = 'a', match = { name = '*' }, deny = '%s' }, default = 'allow' }, "
                 ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}", text);
        file.size = strlen(policy);
        assert_int_equal(rv_policy_decide(&bundle, facts, &verdict), 0);
        assert_int_equal(json_array_size(json_object_get(verdict, "denials")), 2000);
        assert_string_equal(reason_of(verdict, "message"), text);
        assert_int_equal(rv_json_canonical(verdict, &out), 0);
        assert_true(out.size < 960 * 1024);
        rv_buf_fini(&out);
        json_decref(verdict);
        json_decref(facts);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(facts_of_a_lock),
                cmocka_unit_test(facts_that_are_not_known),
                cmocka_unit_test(order_and_versions),
                cmocka_unit_test(what_is_no_lock),
                cmocka_unit_test(whole_verdict),
                cmocka_unit_test(verdicts),
                cmocka_unit_test(several_unmet),
                cmocka_unit_test(a_policy_that_does_not_load),
                cmocka_unit_test(a_spent_budget),
                cmocka_unit_test(bounds),
                cmocka_unit_test(the_largest_verdict),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
