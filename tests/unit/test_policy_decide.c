/*
 * What a policy means: sections, rules, matching, defaults, limits, undecided, and the verdict's shape.
 */
#include "test_policy_util.h"

#define NETWORKED "{\"language\":\"python\",\"source\":\"1\",\"network\":{\"mode\":\"any\"}}"
#define SIX "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"six==1.16.0\"]}"
#define OPEN "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"requests[socks,use-chardet]>=2,<3\"]}"
#define DOMAINS "{\"language\":\"python\",\"source\":\"1\",\"network\":{\"mode\":\"domains\",\"domains\":[\"api.example.com\",\"other.example\"]}}"

struct row {
        const char *name, *sections, *request;
        const char *code, *rule, *item, *path, *message;   /* NULL: whatever it is */
};

static json_t *decide_sections(const char *sections, const char *request)
{
        char text[4000];

        snprintf(text, sizeof(text), "return policy {\n%s%s%s%s%s}", sections, strstr(sections, "packages =") ? "" : ALLOW_PACKAGES,
                strstr(sections, "network =") ? "" : ALLOW_NETWORK, strstr(sections, "idempotency =") ? "" : ALLOW_IDEMPOTENCY,
                strstr(sections, "backend =") ? "" : ALLOW_BACKEND);
        return decide_text(text, request);
}

static void expect_text(const char *name, const char *member, const json_t *verdict, const char *wanted)
{
        if (wanted && strcmp(reason_of(verdict, member), wanted) != 0)
                fail_msg("%s: reason.%s is '%s' and not '%s'", name, member, reason_of(verdict, member), wanted);
}

static void run_rows(const struct row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                json_t *verdict = decide_sections(rows[i].sections, rows[i].request);
                const char *code = rv_policy_verdict_code(verdict), *message = reason_of(verdict, "message");

                if (strcmp(code, rows[i].code) != 0)
                        fail_msg("%s: %s and not %s: %s", rows[i].name, code, rows[i].code, message);
                if (rv_policy_verdict_is_allow(verdict) != (strcmp(code, "ok") == 0))
                        fail_msg("%s: effect and code disagree", rows[i].name);
                expect_text(rows[i].name, "rule", verdict, rows[i].rule);
                expect_text(rows[i].name, "item", verdict, rows[i].item);
                expect_text(rows[i].name, "path", verdict, rows[i].path);
                if (rows[i].message && !strstr(message, rows[i].message))
                        fail_msg("%s: '%s' is not in '%s'", rows[i].name, rows[i].message, message);
                json_decref(verdict);
        }
}

#define RUN(rows) run_rows(rows, RV_N_ELEMENTS(rows))

static void defaults(void **state)
{
        static const struct row rows[] = {
                { "all allow", "", SIX, "ok", "", "", "", "" },
                { "packages deny", "packages = { default = 'deny' },", SIX, "package_denied", "default", "six", "/packages/0", "section packages" },
                { "packages deny, none asked for", "packages = { default = 'deny' },", PLAIN_REQUEST, "ok", NULL, NULL, NULL, NULL },
                { "network denies", "network = { default = 'deny' },", PLAIN_REQUEST, "network_denied", "default", "", "/network/mode", "mode none" },
                { "network denies a domain", "network = { default = 'deny' },", DOMAINS, "network_denied", "default", "api.example.com",
                        "/network/domains/0", "api.example.com" },
                { "a key is required", "idempotency = { default = 'require_key' },", PLAIN_REQUEST, "idempotency_required", "default", "",
                        "/idempotency_key", "default of section idempotency" },
                { "a backend's name", "backend = { default = 'microvm' },", PLAIN_REQUEST, "ok", NULL, NULL, NULL, NULL },
        };
        json_t *verdict;

        RUN(rows);
        verdict = decide_sections("backend = { default = 'microvm' },", PLAIN_REQUEST);
        assert_string_equal(rv_policy_verdict_backend(verdict), "microvm");
        json_decref(verdict);
        verdict = decide_sections("", PLAIN_REQUEST);
        assert_string_equal(rv_policy_verdict_backend(verdict), "tenant");
        assert_false(rv_policy_verdict_requires_key(verdict));
        json_decref(verdict);
}

#define PKG(fields) "packages = { rule { id = 'r', " fields ", deny = 'no' }, default = 'allow' },"
#define MATCHES(what, m, request) { what, PKG("match = { " m " }"), request, "package_denied", "r", NULL, NULL, "no" }
#define MISSES(what, m, request) { what, PKG("match = { " m " }"), request, "ok", NULL, NULL, NULL, NULL }

static void matching_packages(void **state)
{
        static const struct row rows[] = {
                MATCHES("nothing asked", "", SIX),
                MATCHES("scalar", "name = 'six'", SIX),
                MISSES("another scalar", "name = 'seven'", SIX),
                MISSES("a scalar is whole", "name = 'si'", SIX),
                MATCHES("list", "name = { 'a', 'six' }", SIX),
                MISSES("list without", "name = { 'a', 'b' }", SIX),
                MATCHES("glob", "name = 's*x'", SIX),
                MATCHES("glob at the end", "name = 'si*'", SIX),
                MATCHES("glob of nothing", "name = 'six*'", SIX),
                MATCHES("glob in a list", "name = { 'a', '*ix' }", SIX),
                MISSES("glob is anchored", "name = '*i'", SIX),
                MATCHES("all of several", "name = 'six', pinned = true, direct = true, stage = 'requested'", SIX),
                MISSES("one of several fails", "name = 'six', pinned = false", SIX),
                MATCHES("boolean", "pinned = false", OPEN),
                MATCHES("requested", "requested = '*>=2,<3'", OPEN),
                MATCHES("a list fact", "extras = 'socks'", OPEN),
                MATCHES("a list fact by list", "extras = { 'x', 'use-*' }", OPEN),
                MISSES("a list fact without", "extras = 'toml'", OPEN),
                MATCHES("language", "language = 'python'", SIX),
                MISSES("the other language", "language = 'javascript'", SIX),
                MATCHES("a request's fact", "network_mode = 'none', package_count = 1", SIX),
                MISSES("a request's number", "package_count = { 2, 3 }", SIX),
                MATCHES("the tenant's name", "tenant = 'loc*'", SIX),
                MISSES("another tenant", "tenant = { 'a', 'b' }", SIX),
                MATCHES("the principal", "principal = 'alice'", SIX),
        };

        RUN(rows);
}

#define NET(fields) "network = { rule { id = 'r', " fields ", deny = 'no' }, default = 'allow' },"

static void matching_domains(void **state)
{
        static const struct row rows[] = {
                { "within", NET("match = { domain = within { 'example.com' } }"), DOMAINS, "network_denied", "r", "api.example.com", "/network/domains/0", "no" },
                { "within by whole labels", NET("match = { domain = within { 'ample.com', 'i.example.com' } }"), DOMAINS, "ok", NULL, NULL, NULL, NULL },
                { "within, canonical", NET("match = { domain = within { 'OTHER.Example.' } }"), DOMAINS, "network_denied", "r", "other.example", "/network/domains/1", NULL },
                { "within in a list", NET("match = { domain = { 'x.y', within { 'example.com' } } }"), DOMAINS, "network_denied", "r", NULL, NULL, NULL },
                { "within in when", NET("when = function(n) return within { 'example.com' }(n.domain) end"), DOMAINS, "network_denied", "r", "api.example.com", NULL, NULL },
                { "no domain outside mode domains", NET("match = { domain = '' }"), PLAIN_REQUEST, "network_denied", "r", "", "/network/mode", NULL },
                { "within never has the empty name", NET("match = { domain = within { 'com' } }"), PLAIN_REQUEST, "ok", NULL, NULL, NULL, NULL },
                { "a wildcard in within", NET("match = { domain = within { '*.example.com' } }"), DOMAINS, "policy_error", NULL, NULL, NULL, "includes its subdomains" },
                { "an empty within", NET("match = { domain = within {} }"), DOMAINS, "policy_error", NULL, NULL, NULL, "1 to 10000" },
                { "within a number", NET("match = { domain = within { 1 } }"), DOMAINS, "policy_error", NULL, NULL, NULL, "entry 1 is number" },
                { "within a text", NET("match = { domain = within 'example.com' }"), DOMAINS, "policy_error", NULL, NULL, NULL, "takes a list" },
        };

        RUN(rows);
}

static void order_and_first_match(void **state)
{
        static const struct row rows[] = {
                { "allow before deny", "packages = { rule { id = 'a', match = { name = 'six' }, allow = true }, rule { id = 'b', match = { name = '*' }, deny = 'x' }, "
                                       "default = 'deny' },", SIX, "ok", NULL, NULL, NULL, NULL },
                { "deny before allow", "packages = { rule { id = 'b', match = { name = '*' }, deny = 'x' }, rule { id = 'a', match = { name = 'six' }, allow = true }, "
                                       "default = 'allow' },", SIX, "package_denied", "b", NULL, NULL, NULL },
                { "match, then when", PKG("match = { name = 'other' }, when = function() error('asked') end"), SIX, "ok", NULL, NULL, NULL, NULL },
                { "match and when", PKG("match = { name = 'six' }, when = function(p, r) return p.pinned and r.package_count == 1 end"), SIX, "package_denied", "r", NULL, NULL, NULL },
                { "match and not when", PKG("match = { name = 'six' }, when = function(p) return false end"), SIX, "ok", NULL, NULL, NULL, NULL },
                { "packages before network", PKG("match = {}") NET("match = {}"), SIX, "package_denied", "r", "six", NULL, NULL },
                { "network before idempotency", NET("match = {}") "idempotency = { default = 'require_key' },", SIX, "network_denied", "r", NULL, NULL, NULL },
                { "idempotency before backend", "idempotency = { default = 'require_key' }, backend = { rule { id = 'x', match = {}, deny = 'x' }, default = 'tenant' },",
                        SIX, "idempotency_required", NULL, NULL, NULL, NULL },
                { "backend before limits", "backend = { rule { id = 'x', match = { mode = 'none' }, deny = 'none here' }, default = 'tenant' }, limits = { timeout_s = { deny_above = 1 } },",
                        SIX, "backend_denied", "x", "", "", "none here" },
                { "limits", "limits = { timeout_s = { deny_above = 29 } },", SIX, "limit_denied", "deny_above", "timeout_s", "/timeout_s", "30 is above 29" },
                { "limits at the bound", "limits = { timeout_s = { deny_above = 30 } },", SIX, "ok", NULL, NULL, NULL, NULL },
        };

        RUN(rows);
}

static void undecided(void **state)
{
        static const struct row rows[] = {
                { "in when", PKG("when = function(p) return p.age_days < 7 end"), SIX, "ok", NULL, NULL, NULL, NULL },
                { "in match", PKG("match = { license = 'GPL-3.0' }"), SIX, "ok", NULL, NULL, NULL, NULL },
                { "version in match", PKG("match = { version = version '<2' }"), SIX, "ok", NULL, NULL, NULL, NULL },
                { "every fact of the resolved stage", PKG("when = function(p) for _, k in ipairs { 'version', 'hash', 'published_at', 'license', 'kind', 'yanked', "
                        "'install_script', 'size_bytes' } do local x = p[k] end return true end"), SIX, "ok", NULL, NULL, NULL, NULL },
                { "iterating reads all", PKG("when = function(p) for k in pairs(p) do end return true end"), SIX, "ok", NULL, NULL, NULL, NULL },
                { "ends the evaluation", "packages = { rule { id = 'a', when = function(p) return p.yanked end, deny = 'x' }, rule { id = 'b', match = {}, deny = 'x' }, default = 'deny' },",
                        SIX, "ok", NULL, NULL, NULL, NULL },
                { "not read, not undecided", "packages = { rule { id = 'a', when = function(p) return p.name == 'x' and p.yanked end, deny = 'x' }, rule { id = 'b', match = {}, deny = 'x' }, "
                        "default = 'deny' },", SIX, "package_denied", "b", NULL, NULL, NULL },
                { "a known fact excludes the rule", "packages = { rule { id = 'a', match = { yanked = true, name = 'x' }, deny = 'x' }, rule { id = 'b', match = {}, deny = 'x' }, default = 'deny' },",
                        SIX, "package_denied", "b", NULL, NULL, NULL },
                { "a match that fails is before when", "packages = { rule { id = 'a', match = { name = 'x' }, when = function(p) return p.yanked end, deny = 'x' }, default = 'deny' },",
                        SIX, "package_denied", "default", NULL, NULL, NULL },
                { "other sections are judged", PKG("when = function(p) return p.yanked end") NET("match = {}"), SIX, "network_denied", "r", NULL, NULL, NULL },
                { "not a fact at all", PKG("when = function(p) return p.age < 7 end"), SIX, "policy_error", "r", "six", "/packages/0", "unknown fact 'age' of a package" },
        };
        json_t *verdict, *package;

        RUN(rows);
        verdict = decide_sections(rows[0].sections, SIX);
        package = json_array_get(json_object_get(verdict, "packages"), 0);
        assert_string_equal(rv_json_get_string(package, "effect", ""), "undecided");
        assert_string_equal(rv_json_get_string(package, "rule", ""), "r");
        assert_int_equal(json_array_size(json_object_get(verdict, "denials")), 0);
        json_decref(verdict);
}

/* What the resolved stage will ask: the same evaluator, with facts that have more in them. */
static void resolved_facts_are_judged(void **state)
{
        static const char text[] = "return policy { packages = {\n"
                                   "rule { id = 'old', match = { version = version '<2' }, deny = 'old' },\n"
                                   "rule { id = 'young', when = function(p) return p.age_days < 7 end, deny = 'young' },\n"
                                   "default = 'allow' }, " ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}";
        static const struct {
                const char *version;
                int age_days;
                const char *rule;
        } table[] = { { "1.16.0", 100, "old" }, { "2.0rc1", 100, "old" }, { "2.0", 100, "default" }, { "3.0", 6, "young" }, { "3.0", 7, "default" }, { "2004d", 100, "old" } };
        struct rv_bundle_file file = { "policy.lua", text, sizeof(text) - 1, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };

        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                json_t *facts = facts_for(SIX), *item = json_array_get(json_object_get(facts, "packages"), 0), *verdict = NULL;
                const char *rule;

                json_object_set_new(item, "stage", json_string("resolved"));
                json_object_set_new(item, "version", json_string(table[i].version));
                json_object_set_new(item, "age_days", json_integer(table[i].age_days));
                assert_int_equal(rv_policy_decide(&bundle, facts, &verdict), 0);
                rule = rv_json_get_string(json_array_get(json_object_get(verdict, "packages"), 0), "rule", "");
                assert_string_equal(rule, table[i].rule);
                if (strcmp(table[i].version, "2004d") == 0)
                        assert_non_null(strstr(reason_of(verdict, "message"), "'2004d' is no version of PEP 440"));
                json_decref(verdict);
                json_decref(facts);
        }
}

static void idempotency(void **state)
{
        static const char with_key[] = "{\"language\":\"python\",\"source\":\"1\",\"idempotency_key\":\"k\",\"network\":{\"mode\":\"any\"}}";
        static const char rules[] = "idempotency = { rule { id = 'key', match = { mode = { 'domains', 'any' } }, require_key = true }, default = 'none' },";
        static const struct row rows[] = {
                { "missing", rules, NETWORKED, "idempotency_required", "key", "", "/idempotency_key", "needs an idempotency key" },
                { "given", rules, with_key, "ok", NULL, NULL, NULL, NULL },
                { "not asked for", rules, PLAIN_REQUEST, "ok", NULL, NULL, NULL, NULL },
                { "a rule may excuse", "idempotency = { rule { id = 'free', match = { mode = 'any' }, require_key = false }, default = 'require_key' },", NETWORKED, "ok", NULL, NULL, NULL, NULL },
                { "key_given is a fact", "idempotency = { rule { id = 'free', match = { key_given = false }, require_key = false }, default = 'require_key' },", NETWORKED, "ok", NULL, NULL, NULL, NULL },
        };
        json_t *verdict;

        RUN(rows);
        verdict = decide_sections(rules, with_key);
        assert_true(rv_policy_verdict_requires_key(verdict));
        json_decref(verdict);
}

static void limits(void **state)
{
        static const struct {
                const char *name, *limits, *request;
                unsigned timeout_s, memory_mib;
        } table[] = {
                { "none", "", PLAIN_REQUEST, 30, 512 },
                { "lowered", "limits = { timeout_s = { max = 10 }, memory_mib = { max = 128 } },", PLAIN_REQUEST, 10, 128 },
                { "never raised", "limits = { timeout_s = { max = 100 }, memory_mib = { max = 2048 } },", PLAIN_REQUEST, 30, 512 },
                { "refused and lowered", "limits = { memory_mib = { max = 200, deny_above = 511 } },", PLAIN_REQUEST, 30, 200 },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                json_t *verdict = decide_sections(table[i].limits, table[i].request);

                if (rv_policy_verdict_timeout_s(verdict) != table[i].timeout_s ||
                        rv_policy_verdict_memory_mib(verdict) != table[i].memory_mib)
                        fail_msg("%s: %u s, %u MiB", table[i].name, rv_policy_verdict_timeout_s(verdict), rv_policy_verdict_memory_mib(verdict));
                json_decref(verdict);
        }
}

/* Ill-formed policies: the message names what is wrong and what there is. */
static void ill_formed(void **state)
{
        static const struct row rows[] = {
                { "an unknown section", "pakages = {}, ", SIX, "policy_error", NULL, NULL, NULL, "unknown section 'pakages'; a policy has packages" },
                { "a section's default is missing", "packages = {}, ", SIX, "policy_error", NULL, NULL, NULL, "section packages has no default" },
                { "a default of another section", "packages = { default = 'none' }, ", SIX, "policy_error", NULL, NULL, NULL, "default is \"allow\" or \"deny\"" },
                { "a default that is no text", "packages = { default = true }, ", SIX, "policy_error", NULL, NULL, NULL, "default is" },
                { "a backend that is no name", "backend = { default = 'a b' }, ", SIX, "policy_error", NULL, NULL, NULL, "a backend's name or \"tenant\"" },
                { "an unknown field of a section", "packages = { defualt = 'allow', default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "unknown field 'defualt'" },
                { "a section that is no table", "packages = 'allow', ", SIX, "policy_error", NULL, NULL, NULL, "is a list of rules with a default" },
                { "a table that is no rule", "packages = { { id = 'a' }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "packages[1] is table and not a rule" },
                { "a rule without id", "packages = { rule { match = {}, allow = true }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "a rule has no id" },
                { "an id that is empty", "packages = { rule { id = '', match = {}, allow = true }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "id is a text" },
                { "an id of two lines", "packages = { rule { id = 'a\\nb', match = {}, allow = true }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "without control characters" },
                { "the id default", "packages = { rule { id = 'default', match = {}, allow = true }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "is no id for a rule" },
                { "one id twice", "packages = { rule { id = 'a', match = {}, allow = true }, rule { id = 'a', match = {}, allow = true }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL,
                        "its id is not unique" },
                { "the same id in another section", NET("match = { mode = 'any' }") PKG("match = { name = 'x' }"), SIX, "ok", NULL, NULL, NULL, NULL },
                { "an unknown field", PKG("match = {}, reason = 'x'"), SIX, "policy_error", NULL, NULL, NULL, "unknown field 'reason'; a rule has id, match, when" },
                { "neither match nor when", "packages = { rule { id = 'a', deny = 'x' }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "neither `match` nor `when`" },
                { "no verdict", "packages = { rule { id = 'a', match = {} }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "has no verdict" },
                { "two verdicts", PKG("match = {}, allow = true"), SIX, "policy_error", NULL, NULL, NULL, "has both 'allow' and 'deny'" },
                { "allow = false", "packages = { rule { id = 'a', match = {}, allow = false }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "`allow` is true" },
                { "deny = true", "packages = { rule { id = 'a', match = {}, deny = true }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "`deny` is the reason" },
                { "deny is empty", "packages = { rule { id = 'a', match = {}, deny = '' }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "`deny` is the reason" },
                { "deny is no UTF-8", "packages = { rule { id = 'a', match = {}, deny = '\\xff' }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "`deny` is the reason" },
                { "use in packages", "packages = { rule { id = 'a', match = {}, use = 'x' }, default = 'allow' }, ", SIX, "policy_error", NULL, NULL, NULL, "'use' is no verdict of section packages" },
                { "allow in backend", "backend = { rule { id = 'a', match = {}, allow = true }, default = 'x' }, ", SIX, "policy_error", NULL, NULL, NULL, "'allow' is no verdict of section backend" },
                { "deny in idempotency", "idempotency = { rule { id = 'a', match = {}, deny = 'x' }, default = 'none' }, ", SIX, "policy_error", NULL, NULL, NULL, "'deny' is no verdict of section idempotency" },
                { "require_key = 1", "idempotency = { rule { id = 'a', match = {}, require_key = 1 }, default = 'none' }, ", SIX, "policy_error", NULL, NULL, NULL, "`require_key` is true or false" },
                { "an unknown fact in match", PKG("match = { verison = '1' }"), SIX, "policy_error", NULL, NULL, NULL, "match.verison: unknown fact; there are, of a package" },
                { "a fact of another section", NET("match = { name = 'x' }"), SIX, "policy_error", NULL, NULL, NULL, "match.name: unknown fact; there are, of network access, mode, domain" },
                { "a word that cannot be", NET("match = { mode = 'domain' }"), SIX, "policy_error", NULL, NULL, NULL, "'domain' is not one of: none registries domains any" },
                { "a text for a boolean", PKG("match = { pinned = 'yes' }"), SIX, "policy_error", NULL, NULL, NULL, "match.pinned: is true or false" },
                { "a number for a text", PKG("match = { name = 3 }"), SIX, "policy_error", NULL, NULL, NULL, "match.name: is a text" },
                { "within for a name", PKG("match = { name = within { 'a.b' } }"), SIX, "policy_error", NULL, NULL, NULL, "within is for `domain`" },
                { "version for a name", PKG("match = { name = version '1' }"), SIX, "policy_error", NULL, NULL, NULL, "version is for `version`" },
                { "an ill-formed set", PKG("match = { version = version '>>1' }"), SIX, "policy_error", NULL, NULL, NULL, "is no set of versions" },
                { "a set of the other ecosystem only", PKG("match = { version = version '<2.0.0-alpha.1' }"), SIX, "ok", NULL, NULL, NULL, NULL },
                { "a function in match", PKG("match = { name = function() end }"), SIX, "policy_error", NULL, NULL, NULL, "match.name: takes a text" },
                { "a list in a list", PKG("match = { name = { { 'a' } } }"), SIX, "policy_error", NULL, NULL, NULL, "match.name: takes a text" },
                { "an empty list", PKG("match = { name = {} }"), SIX, "policy_error", NULL, NULL, NULL, "an empty list matches nothing" },
                { "match that is no table", PKG("match = 'six'"), SIX, "policy_error", NULL, NULL, NULL, "`match` is a table" },
                { "a list as match", PKG("match = { 'six' }"), SIX, "policy_error", NULL, NULL, NULL, "match names facts" },
                { "when that is no function", PKG("when = true"), SIX, "policy_error", NULL, NULL, NULL, "`when` is a function" },
                { "an unknown limit", "limits = { time = { max = 1 } }, ", SIX, "policy_error", NULL, NULL, NULL, "unknown limit 'time'" },
                { "an unknown field of a limit", "limits = { timeout_s = { min = 1 } }, ", SIX, "policy_error", NULL, NULL, NULL, "unknown field 'min'" },
                { "a limit below the bound", "limits = { memory_mib = { max = 64 } }, ", SIX, "policy_error", NULL, NULL, NULL, "at least 128" },
                { "a limit of nothing", "limits = { memory_mib = {} }, ", SIX, "policy_error", NULL, NULL, NULL, "says nothing" },
                { "a limit that is no table", "limits = { memory_mib = 128 }, ", SIX, "policy_error", NULL, NULL, NULL, "limits.memory_mib is a table" },
                { "limits with a default", "limits = { default = 1 }, ", SIX, "policy_error", NULL, NULL, NULL, "unknown limit 'default'" },
                { "ports that are none", NET("match = {}, ports = 443"), SIX, "policy_error", NULL, NULL, NULL, "`ports` is a list of 1 to 64 ports" },
                { "no ports", NET("match = {}, ports = {}"), SIX, "policy_error", NULL, NULL, NULL, "`ports` is a list of 1 to 64 ports" },
                { "ports by name", NET("match = {}, ports = { 443, https = 443 }"), SIX, "policy_error", NULL, NULL, NULL, "`ports` is a list of 1 to 64 ports" },
                { "port 0", NET("match = {}, ports = { 443, 0 }"), SIX, "policy_error", NULL, NULL, NULL, "a port is a whole number from 1 to 65535" },
                { "port 65536", NET("match = {}, ports = { 65536 }"), SIX, "policy_error", NULL, NULL, NULL, "a port is a whole number from 1 to 65535" },
                { "a port as a text", NET("match = {}, ports = { '443' }"), SIX, "policy_error", NULL, NULL, NULL, "a port is a whole number from 1 to 65535" },
                { "a port with a fraction", NET("match = {}, ports = { 443.0 }"), SIX, "policy_error", NULL, NULL, NULL, "a port is a whole number from 1 to 65535" },
                { "ports of a denial", NET("match = {}, ports = { 443 }"), SIX, "policy_error", NULL, NULL, NULL, "`ports` belongs to a rule of section network that allows" },
                { "ports of a package", PKG("match = {}, ports = { 443 }"), SIX, "policy_error", NULL, NULL, NULL, "`ports` belongs to a rule of section network that allows" },
        };

        RUN(rows);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                json_t *verdict = decide_sections(rows[i].sections, rows[i].request);

                if (strcmp(rows[i].code, "ok") != 0 && (reason_line(verdict) < 1 || strcmp(reason_of(verdict, "file"), "policy.lua") != 0))
                        fail_msg("%s: no place", rows[i].name);
                json_decref(verdict);
        }
}

/* Of the item whose rule has it, in order, each once; nothing where a rule has none. */
static void ports_of_a_rule(void **state)
{
        json_t *verdict = decide_sections("network = { rule { id = 'r', match = { domain = 'api.example.com' }, ports = { 8443, 443, 8443 }, allow = true }, default = 'allow' },", DOMAINS);
        const json_t *network = json_object_get(verdict, "network");
        char *text = json_dumps(json_object_get(json_array_get(network, 0), "ports"), JSON_COMPACT);

        (void)state;
        assert_string_equal(text, "[443,8443]");
        assert_null(json_object_get(json_array_get(network, 1), "ports"));
        free(text);
        json_decref(verdict);
}

static void errors_in_when(void **state)
{
        static const struct row rows[] = {
                { "nil", PKG("when = function() end"), SIX, "policy_error", "r", "six", "/packages/0", "it returned nothing" },
                { "a number", PKG("when = function() return 1 end"), SIX, "policy_error", "r", NULL, NULL, "it returned number" },
                { "two values", PKG("when = function() return true, 1 end"), SIX, "policy_error", "r", NULL, NULL, "more than one value" },
                { "an error", PKG("when = function() error('broken') end"), SIX, "policy_error", "r", NULL, NULL, "broken" },
                { "an unknown global", PKG("when = function() return os.time() > 0 end"), SIX, "policy_error", "r", NULL, NULL, "undefined global 'os'" },
                { "nil arithmetic", PKG("when = function(p, r) return r.tenant.labels.x + 1 > 0 end"), SIX, "policy_error", "r", NULL, NULL, "attempt to perform arithmetic on a nil value" },
                { "a C function", PKG("when = tostring"), SIX, "policy_error", "r", NULL, NULL, "only texts" },
        };
        json_t *verdict;

        RUN(rows);
        /* An error is a denial of its item; the other items and sections are judged all the same. */
        verdict = decide_sections(PKG("when = function(p) return p.name == 'a1' and error('broken') or p.name == 'b1' end") NET("match = {}"),
                "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"a1==1\",\"b1==1\",\"c1==1\"]}");
        assert_int_equal(json_array_size(json_object_get(verdict, "denials")), 3);
        assert_string_equal(rv_policy_verdict_code(verdict), "policy_error");
        assert_int_equal(json_array_size(json_object_get(verdict, "packages")), 3);
        json_decref(verdict);
}

static void places(void **state)
{
        static const char text[] = "local mine = use 'lib/mine'\n"
                                   "return policy {\n"
                                   "  packages = {\n"
                                   "    mine.rule,\n"
                                   "    rule {\n"
                                   "      id = 'second',\n"
                                   "      match = { name = 'b1' }, deny = 'x' },\n"
                                   "    rule { id = 'third', when = function(p)\n"
                                   "      local x = p.nosuch\n"
                                   "    end, allow = true },\n"
                                   "    default = 'deny' }, " ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}\n";
        static const char module[] = "\nlocal m = {}\nm.rule = rule { id = 'first', match = { name = 'a1' }, deny = 'x' }\nreturn m\n";
        static const struct {
                const char *rule, *file;
                int line;
        } wanted[] = { { "first", "lib/mine.lua", 3 }, { "second", "policy.lua", 5 }, { "third", "policy.lua", 9 } };
        struct rv_bundle_file files[] = {
                { "lib/mine.lua", module, sizeof(module) - 1, NULL },
                { "policy.lua", text, sizeof(text) - 1, NULL },
        };
        json_t *verdict = decide_files(files, 2, "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"a1==1\",\"b1==1\",\"c1==1\"]}"), *denials;

        denials = json_object_get(verdict, "denials");
        assert_int_equal(json_array_size(denials), 3);
        for (size_t i = 0; i < 3; i++) {
                const json_t *denial = json_array_get(denials, i);

                assert_string_equal(rv_json_get_string(denial, "rule", ""), wanted[i].rule);
                assert_string_equal(rv_json_get_string(denial, "file", ""), wanted[i].file);
                assert_int_equal(json_integer_value(json_object_get(denial, "line")), wanted[i].line);
        }
        json_decref(verdict);
}

static void modules(void **state)
{
        static const struct {
                const char *name, *policy, *a, *b, *message;   /* message NULL: allowed */
        } table[] = {
                { "once, and the same", "assert(use 'a' == use 'a' and (use 'a').n == 1)", "return { n = 1 }", "", NULL },
                { "through another", "assert(use 'a' == 'b')", "return use 'b'", "return 'b'", NULL },
                { "a circle", "use 'a'", "return use 'b'", "return use 'a'", "a circle of modules" },
                { "itself", "use 'policy'", "", "", "" },
                { "one that is not there", "use 'nosuch'", "", "", "the bundle has no file nosuch.lua" },
                { "a test", "use 'tests/x_test'", "", "", "the bundle has no file tests/x_test.lua" },
                { "out of the bundle", "use '../a'", "", "", "the bundle has no file" },
                { "absolute", "use '/a'", "", "", "the bundle has no file" },
                { "no text", "use(1)", "", "", "use takes one name" },
                { "nothing returned", "use 'a'", "local x = 1", "", "a.lua returns nothing" },
                { "a syntax error", "use 'a'", "\nreturn {", "", "unexpected symbol" },
                { "globals are not shared", "use 'a'", "x = 1 return 1", "", "'x' cannot be set" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                char text[1000];
                struct rv_bundle_file files[] = {
                        { "a.lua", table[i].a, strlen(table[i].a), NULL },
                        { "b.lua", table[i].b, strlen(table[i].b), NULL },
                        { "policy.lua", text, 0, NULL },
                        { "tests/x_test.lua", "return 1", 8, NULL },
                };
                json_t *verdict;
                const char *code;

                snprintf(text, sizeof(text), "%s\n%s", table[i].policy, ALLOW_ALL);
                files[2].size = strlen(text);
                verdict = decide_files(files, 4, PLAIN_REQUEST);
                code = rv_policy_verdict_code(verdict);
                if (strcmp(code, table[i].message ? "policy_error" : "ok") != 0 ||
                        (table[i].message && !strstr(reason_of(verdict, "message"), table[i].message)))
                        fail_msg("%s: %s: %s", table[i].name, code, reason_of(verdict, "message"));
                json_decref(verdict);
        }
}

/* A module that fails for one item is tried again for the next, and fails for its own reason. */
static void modules_that_fail_twice(void **state)
{
        static const char text[] = "return policy { packages = { rule { id = 'r', when = function(p) return use 'a' end, deny = 'x' }, "
                                   "default = 'allow' }, " ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}";
        static const char module[] = "error('broken module')";
        struct rv_bundle_file files[] = {
                { "a.lua", module, sizeof(module) - 1, NULL },
                { "policy.lua", text, sizeof(text) - 1, NULL },
        };
        json_t *verdict = decide_files(files, 2, "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"a1==1\",\"b1==1\"]}"), *denials;

        denials = json_object_get(verdict, "denials");
        assert_int_equal(json_array_size(denials), 2);
        for (size_t i = 0; i < 2; i++)
                assert_string_equal(rv_json_get_string(json_array_get(denials, i), "message", ""), "broken module");
        json_decref(verdict);
}

static void datasets_in_match(void **state)
{
        static const char text[] = "return policy { packages = { rule { id = 'known', match = { name = data 'bad' }, deny = 'x' }, default = 'allow' }, " ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}";
        struct rv_bundle_file files[] = { { "data/bad.json", "", 0, NULL }, { "policy.lua", text, sizeof(text) - 1, NULL } };
        json_t *list = json_pack("[s, s, s]", "aaa", "ev*", "six"), *verdict;

        files[0].data = list;
        verdict = decide_files(files, 2, SIX);
        assert_string_equal(reason_of(verdict, "rule"), "known");
        json_decref(verdict);
        verdict = decide_files(files, 2, OPEN);
        assert_true(rv_policy_verdict_is_allow(verdict));
        json_decref(verdict);
        json_decref(list);
}

static void version_compare(void **state)
{
        static const struct {
                const char *name, *request, *snippet, *message;
        } table[] = {
                { "python", PLAIN_REQUEST, "assert(version.compare('1.0', '1.0.0') == 0 and version.compare('1.0rc1', '1.0') == -1 and version.compare('1.10', '1.9') == 1)", NULL },
                { "named", PLAIN_REQUEST, "assert(version.compare('1.0.0-alpha.1', '1.0.0', 'javascript') == -1)", NULL },
                { "javascript", "{\"language\":\"javascript\",\"source\":\"1\"}", "assert(version.compare('1.0.0-alpha.beta', '1.0.0-beta') == -1)", NULL },
                { "no version", PLAIN_REQUEST, "version.compare('x', '1')", "'x' is no version of PEP 440" },
                { "a number", PLAIN_REQUEST, "version.compare(1.10, '1')", "takes versions as text" },
                { "no language", PLAIN_REQUEST, "version.compare('1', '1', 'ruby')", "'ruby' is no language" },
                { "called", PLAIN_REQUEST, "assert(version('>=1,<2')('1.5') and not version('>=1,<2')('2.0'))", NULL },
                { "called with a number", PLAIN_REQUEST, "version('>=1')(2)", "called with one text" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                char text[1000];

                snprintf(text, sizeof(text), "%s\n%s", table[i].snippet, ALLOW_ALL);
                expect_outcome(table[i].name, decide_text(text, table[i].request), table[i].message);
        }
}

static void all_denials_are_listed(void **state)
{
        json_t *verdict = decide_sections(PKG("match = {}") NET("match = {}") "idempotency = { default = 'require_key' }, "
                "backend = { rule { id = 'b', match = {}, deny = 'no backend' }, default = 'tenant' }, limits = { timeout_s = { deny_above = 1 }, memory_mib = { deny_above = 1 } }, ",
                "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"b1==1\",\"a1==1\"],\"network\":{\"mode\":\"domains\",\"domains\":[\"z.example\",\"a.example\"]}}");
        static const char *const wanted[][3] = {
                { "packages", "r", "a1" }, { "packages", "r", "b1" }, { "network", "r", "a.example" }, { "network", "r", "z.example" },
                { "idempotency", "default", "" }, { "backend", "b", "" }, { "limits", "deny_above", "timeout_s" }, { "limits", "deny_above", "memory_mib" },
        };
        const json_t *denials = json_object_get(verdict, "denials");

        assert_int_equal(json_array_size(denials), RV_N_ELEMENTS(wanted));
        for (size_t i = 0; i < RV_N_ELEMENTS(wanted); i++) {
                const json_t *denial = json_array_get(denials, i);

                assert_string_equal(rv_json_get_string(denial, "section", ""), wanted[i][0]);
                assert_string_equal(rv_json_get_string(denial, "rule", ""), wanted[i][1]);
                assert_string_equal(rv_json_get_string(denial, "item", ""), wanted[i][2]);
                assert_int_equal(json_object_size(denial), 6);
        }
        json_decref(verdict);
}

static void verdicts_can_be_recorded(void **state)
{
        static const char *const sections[] = { "", "packages = {}, ", PKG("when = function(p) return p.yanked end"), "while = 1, " };

        for (size_t i = 0; i < RV_N_ELEMENTS(sections); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf bytes = { 0 };
                json_t *verdict = decide_sections(sections[i], SIX);

                assert_int_equal(rv_json_canonical(verdict, &bytes), 0);
                assert_int_equal(json_object_size(verdict), 9);
                json_decref(verdict);
        }
}

static void bundles_that_cannot_be_loaded(void **state)
{
        json_t *verdict = rv_policy_verdict_error("policy.lua: no such file", "policy.lua", 0);

        assert_false(rv_policy_verdict_is_allow(verdict));
        assert_string_equal(rv_policy_verdict_code(verdict), "policy_error");
        assert_string_equal(reason_of(verdict, "message"), "policy.lua: no such file");
        assert_string_equal(rv_policy_verdict_backend(verdict), "");
        assert_int_equal(rv_policy_verdict_timeout_s(verdict), 0);
        json_decref(verdict);
}

static void facts_that_are_none(void **state)
{
        struct rv_bundle_file file = { "policy.lua", ALLOW_ALL, sizeof(ALLOW_ALL) - 1, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };
        static const char *const texts[] = { "{}", "[]", "{\"request\":{}}", "{\"request\":{},\"packages\":[],\"network\":[]}" };

        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++) {
                json_t *facts = json_loads(texts[i], 0, NULL), *verdict = (void *)0x1;

                assert_int_equal(rv_policy_decide(&bundle, facts, &verdict), -EINVAL);
                assert_ptr_equal(verdict, (void *)0x1);
                json_decref(facts);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(defaults), cmocka_unit_test(matching_packages), cmocka_unit_test(matching_domains),
                cmocka_unit_test(order_and_first_match), cmocka_unit_test(undecided),
                cmocka_unit_test(resolved_facts_are_judged),
                cmocka_unit_test(idempotency), cmocka_unit_test(limits), cmocka_unit_test(ill_formed),
                cmocka_unit_test(ports_of_a_rule), cmocka_unit_test(errors_in_when),
                cmocka_unit_test(places), cmocka_unit_test(modules), cmocka_unit_test(modules_that_fail_twice),
                cmocka_unit_test(datasets_in_match),
                cmocka_unit_test(version_compare),
                cmocka_unit_test(all_denials_are_listed), cmocka_unit_test(verdicts_can_be_recorded),
                cmocka_unit_test(bundles_that_cannot_be_loaded), cmocka_unit_test(facts_that_are_none),
        };

        return cmocka_run_group_tests_name("policy decide", tests, NULL, NULL);
}
