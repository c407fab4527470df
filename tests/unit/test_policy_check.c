/*
 * `reeve policy check`: what it finds, where, and that it finds nothing in bundles that are sound.
 */
#include "test_policy_util.h"

#include "base/fd.h"
#include "policy/check.h"

#include <ftw.h>
#include <unistd.h>

static char top[64];

static int make_top(void **state)
{
        strcpy(top, "/tmp/reeve-check-XXXXXX");
        return mkdtemp(top) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        return remove(path);
}

static int remove_top(void **state)
{
        return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text)
{
        char full[200], parent[200];

        snprintf(full, sizeof(full), "%s/%s", top, path);
        snprintf(parent, sizeof(parent), "%s", full);
        *strrchr(parent, '/') = 0;
        assert_int_equal(rv_mkdir_p(parent, 0755), 0);
        assert_int_equal(rv_write_file(full, text, strlen(text), 0644, false), 0);
}

static void tell(void *userdata, const struct rv_policy_finding *f)
{
        rv_buf_printf(userdata, "%s:%d: %s\n", f->file, f->line, f->message);
}

/* All findings, one a line. */
static char *check(void)
{
        struct rv_buf said = { 0 };
        int n = rv_policy_check(top, tell, &said), lines = 0;

        rv_buf_puts(&said, "");
        for (const char *p = said.data; p && *p; p++)
                lines += *p == '\n';
        assert_int_equal(n, lines);
        return said.data ? said.data : strdup("");
}

struct row {
        const char *name, *text, *wanted[6];   /* beginnings of the findings, in order */
};

static void run_rows(const struct row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char *said, *save = NULL, *line, *all;
                size_t k = 0;

                put("policy.lua", rows[i].text);
                said = check();
                all = strdup(said);
                for (line = strtok_r(said, "\n", &save); line; line = strtok_r(NULL, "\n", &save), k++)
                        if (k == RV_N_ELEMENTS(rows[i].wanted) || !rows[i].wanted[k] || strncmp(line,
                                rows[i].wanted[k], strlen(rows[i].wanted[k])) != 0)
                                fail_msg("%s: '%s' where '%s' was expected; all: %s", rows[i].name, line,
                                        k < RV_N_ELEMENTS(rows[i].wanted) && rows[i].wanted[k] ? rows[i].wanted[k] : "nothing", all);
                if (k < RV_N_ELEMENTS(rows[i].wanted) && rows[i].wanted[k])
                        fail_msg("%s: '%s' was not found; all: %s", rows[i].name, rows[i].wanted[k], all);
                free(all);
                free(said);
        }
}

#define RUN(rows) run_rows(rows, RV_N_ELEMENTS(rows))
#define REST ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}"

static void sound_bundles(void **state)
{
        static const struct row rows[] = {
                { "the least", ALLOW_ALL, { NULL } },
                { "obligations", "return policy { packages = {\nrule { id = 'a', match = { name = 'x' }, allow = true, pin = '1.2', require_hash = true, newest_published = 'P1DT6H', allow_source_build = true },\n"
                                 "default = 'allow' }, " REST, { NULL } },
                { "everything", "local limit = 7\n"
                                "local function young(p) return p.age_days < limit end\n"
                                "local bad = { 'evil-*', 'worse' }\n"
                                "return policy { packages = {\n"
                                "rule { id = 'a', match = { name = bad }, deny = 'x' },\n"
                                "rule { id = 'b', when = young, deny = 'young' },\n"
                                "rule { id = 'c', when = function(p, r) local t = r.tenant return t.labels.x == 'y' and string.glob(p.name, 'a*') and math.max(1, 2) == 2 end, allow = true },\n"
                                "rule { id = 'd', match = { version = version '^1', name = 'e*' }, allow = true }, default = 'deny' },\n"
                                "network = { rule { id = 'a', match = { domain = within { 'a.b' } }, allow = true }, default = 'deny' },\n"
                                "idempotency = { rule { id = 'a', when = function(i) return i.key_given end, require_key = true }, default = 'none' },\n"
                                "backend = { rule { id = 'a', when = function(b, r) return b.all_pinned and r.now > 0 end, use = 'vm' }, default = 'tenant' },\n"
                                "limits = { timeout_s = { max = 1 } } }", { NULL } },
                { "a custom _ENV is the author's business", "local function f() local _ENV = { x = 1 } return x end\n" ALLOW_ALL, { NULL } },
                { "an argument that is replaced", "local function f(p) p = { anything = 1 } return p.anything == 1 end\n"
                                                  "return policy { packages = { rule { id = 'a', when = f, deny = 'x' }, default = 'allow' }, " REST, { NULL } },
        };

        RUN(rows);
        put("README.md", "text");
        put("tests/x_test.lua", "local t = require('tap') os.exit(0)");
        RUN(rows);
}

static void the_projects_own_bundles(void **state)
{
        static const char *const names[] = { "default", "strict", "examples/cooldown", "examples/licenses" };

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf said = { 0 };
                char dir[300];

                snprintf(dir, sizeof(dir), SOURCE_ROOT "/policies/%s", names[i]);
                if (rv_policy_check(dir, tell, &said) != 0)
                        fail_msg("%s: %s", names[i], said.data);
        }
}

static void obligations(void **state)
{
        static const struct row rows[] = {
                { "no exact version", "return policy { packages = {\nrule { id = 'a', match = { name = 'x' }, allow = true, pin = '>=1' },\ndefault = 'allow' }, " REST,
                        { "policy.lua:2: rule 'a': `pin` is one exact version" } },
                { "no version of its language", "return policy { packages = {\n\nrule { id = 'a', match = { language = 'javascript' }, allow = true, pin = '1.2' },\ndefault = 'allow' }, " REST,
                        { "policy.lua:3: rule 'a': `pin` is one exact version, and '1.2' is none of javascript" } },
                { "each", "return policy { packages = {\nrule { id = 'a', match = { name = 'x' }, allow = true, newest_published = 'P1M' },\nrule { id = 'b', match = { name = 'y' }, deny = 'x', require_hash = true },\n"
                          "default = 'allow' }, " REST,
                        { "policy.lua:2: rule 'a': `newest_published` is a duration", "policy.lua:3: rule 'b': `require_hash` belongs to a rule of section packages that allows" } },
        };

        (void)state;
        RUN(rows);
}

static void undefined_globals(void **state)
{
        static const struct row rows[] = {
                { "run", "local x = reqest\n" ALLOW_ALL, { "policy.lua:1: undefined global 'reqest'" } },
                { "in functions that are never called", "local function f()\n  return function()\n    return os.time()\n  end\nend\n" ALLOW_ALL, { "policy.lua:3: undefined global 'os'" } },
                { "in when", "return policy { packages = {\nrule { id = 'a', when = function(p)\n return ip(p.name) end, deny = 'x' }, default = 'allow' }, " REST,
                        { "policy.lua:3: undefined global 'ip'" } },
                { "several, in order", "local function f() return a, b end\nlocal function g() return c end\n" ALLOW_ALL,
                        { "policy.lua:1: undefined global 'a'", "policy.lua:1: undefined global 'b'", "policy.lua:2: undefined global 'c'" } },
                { "written", "local function f() x = 1 end\n" ALLOW_ALL, { "policy.lua:1: 'x' cannot be set" } },
                { "a function statement", "function helper() end\n" ALLOW_ALL, { "policy.lua:1: 'helper' cannot be set" } },
                { "members of libraries", "local function f() return math.random(), string.dump, table.nosuch end\n" ALLOW_ALL,
                        { "policy.lua:1: there is no math.random", "policy.lua:1: there is no string.dump", "policy.lua:1: there is no table.nosuch" } },
                { "a member of a local is no library's", "local math = { random = 1 } local x = math.random\n" ALLOW_ALL, { NULL } },
        };

        RUN(rows);
}

/* More constants than the short form of an access can name. */
static void undefined_globals_far(void **state)
{
        char *text = malloc(40000), *p = text;
        char *said;

        assert_non_null(text);
        p += sprintf(p, "local t = {\n");
        for (int i = 0; i < 400; i++)
                p += sprintf(p, "'constant%d',\n", i);
        p += sprintf(p, "}\nlocal x = assert and true\nlocal y = assert(t, nosuch)\nlocal function f() return t end\nfar = f\n%s", ALLOW_ALL);
        put("policy.lua", text);
        said = check();
        assert_non_null(strstr(said, "policy.lua:404: undefined global 'nosuch'"));
        assert_non_null(strstr(said, "policy.lua:406: 'far' cannot be set"));
        assert_null(strstr(said, "'assert'"));
        assert_null(strstr(said, "'policy'"));
        free(said);
        free(text);
}

static void facts_in_functions(void **state)
{
        static const struct row rows[] = {
                { "of the item", "return policy { packages = {\nrule { id = 'a', when = function(p)\n return p.verison == 'x' end, deny = 'x' }, default = 'allow' }, " REST,
                        { "policy.lua:3: unknown fact 'verison' of a package" } },
                { "of the request", "return policy { packages = {\nrule { id = 'a', when = function(p, r) return r.timeout > 1 end, deny = 'x' }, default = 'allow' }, " REST,
                        { "policy.lua:2: unknown fact 'timeout' of the request" } },
                { "of another section", "return policy { " ALLOW_PACKAGES ALLOW_IDEMPOTENCY ALLOW_BACKEND "network = {\nrule { id = 'a', when = function(n) return n.name == 'x' end, deny = 'x' }, default = 'allow' } }",
                        { "policy.lua:2: unknown fact 'name' of network access" } },
                { "of a table of one's own", "return policy { packages = {\nrule { id = 'a', when = function(p) local q = { verison = 1 } return q.verison == p.name end, deny = 'x' }, default = 'allow' }, " REST, { NULL } },
                { "in a function inside", "return policy { packages = {\nrule { id = 'a', when = function(p) local f = function(q) return q.anything end return f({ anything = true }) end, deny = 'x' }, default = 'allow' }, " REST, { NULL } },
        };

        RUN(rows);
}

static void rules_and_sections(void **state)
{
        static const struct row rows[] = {
                { "all faults, not the first", "return policy { packages = {\nrule { id = 'a', match = { nam = 'x' }, deny = 'x' },\nrule { id = 'b', mach = {}, deny = 'x' },\n"
                                               "rule { id = 'c', match = {}, deny = 'x', allow = true } },\nnetwork = {}, idempotency = { default = 'x' }, backend = { default = 'tenant' } }",
                        { "policy.lua:1: section idempotency: its default is \"none\" or \"require_key\"", "policy.lua:1: section network has no default",
                          "policy.lua:1: section packages has no default", "policy.lua:2: rule 'a': match.nam: unknown fact", "policy.lua:3: rule 'b': unknown field 'mach'", "policy.lua:4: rule 'c' has both 'allow' and 'deny'" } },
                { "a section is missing", "return policy { packages = { default = 'allow' }, network = { default = 'allow' }, idempotency = { default = 'none' } }",
                        { "policy.lua:1: section backend is missing" } },
                { "an id twice", "return policy { packages = {\nrule { id = 'a', match = { name = 'x' }, deny = 'x' },\nrule { id = 'a', match = { name = 'y' }, deny = 'x' }, default = 'allow' }, " REST,
                        { "policy.lua:3: rule 'a': its id is not unique" } },
                { "no policy", "return {}", { "policy.lua:1: policy.lua must return policy" } },
                { "a syntax error", "\nreturn policy {", { "policy.lua:2: unexpected symbol" } },
                { "an error while loading", "\nerror('not today')\n" ALLOW_ALL, { "policy.lua:2: not today" } },
                { "a loop while loading", "\nwhile true do end\n", { "policy.lua:2: the budget of 100000 instructions" } },
                { "only for one language", "if version.compare('1.0.0', '1.0.0-alpha.beta') == 1 then end\n" ALLOW_ALL, { "policy.lua:1: version.compare: '1.0.0-alpha.beta' is no version of PEP 440" } },
        };

        RUN(rows);
}

#define UNREACHABLE(what, first, second) \
        { what, "return policy { packages = {\nrule { id = 'a', " first ", allow = true },\nrule { id = 'b', " second ", deny = 'x' }, default = 'allow' }, " REST, \
          { "policy.lua:3: rule 'b' can never be reached: rule 'a' (policy.lua:2)" } }
#define REACHABLE(what, first, second) \
        { what, "return policy { packages = {\nrule { id = 'a', " first ", allow = true },\nrule { id = 'b', " second ", deny = 'x' }, default = 'allow' }, " REST, { NULL } }

static void unreachable_rules(void **state)
{
        static const struct row rows[] = {
                UNREACHABLE("after one that matches all", "match = {}", "match = { name = 'x' }"),
                UNREACHABLE("after a star", "match = { name = '*' }", "when = function() return true end"),
                UNREACHABLE("after the same", "match = { name = 'x', pinned = true }", "match = { pinned = true, name = 'x' }"),
                UNREACHABLE("after a wider one", "match = { name = { 'x', 'y' } }", "match = { name = 'y', pinned = true }"),
                UNREACHABLE("after a glob", "match = { name = 'ev*' }", "match = { name = { 'evil', 'ever' } }"),
                UNREACHABLE("with when", "match = { direct = true }", "match = { direct = true }, when = function() return true end"),
                REACHABLE("after one with when", "match = {}, when = function() return true end", "match = { name = 'x' }"),
                REACHABLE("after a narrower one", "match = { name = 'x', pinned = true }", "match = { name = 'x' }"),
                REACHABLE("after another", "match = { name = 'x' }", "match = { name = { 'x', 'y' } }"),
                REACHABLE("after a star of a list", "match = { extras = '*' }", "match = { name = 'x' }"),
                REACHABLE("a glob after a text", "match = { name = 'ev' }", "match = { name = 'ev*' }"),
        };

        RUN(rows);
}

static void other_files(void **state)
{
        char *said;

        put("policy.lua", "local m = use 'lib/m'\n" ALLOW_ALL);
        put("lib/m.lua", "local m = {}\nfunction m.f() return nosuch end\nreturn m\n");
        put("unused.lua", "return nope");
        put("tests/a_test.lua", "local x = (");
        said = check();
        assert_non_null(strstr(said, "lib/m.lua:2: undefined global 'nosuch'"));
        assert_non_null(strstr(said, "unused.lua:1: undefined global 'nope'"));
        assert_non_null(strstr(said, "tests/a_test.lua:1: unexpected symbol"));
        free(said);
}

static void what_cannot_be_loaded(void **state)
{
        char *said;

        said = check();
        assert_int_equal(strncmp(said, "policy.lua:0: not in the policy bundle", 38), 0);
        free(said);
        put("policy.lua", ALLOW_ALL);
        put("bundle.yaml", "name: x\nauthor: y\n");
        said = check();
        assert_string_equal(said, "bundle.yaml:2: unknown key 'author'; there are name, version, description\n");
        free(said);
        put("bundle.yaml", "name: x\n");
        put("data/x.json", "{");
        said = check();
        assert_int_equal(strncmp(said, "data/x.json:1: line 1", 21), 0);
        free(said);
        strcat(top, "/nosuch");
        said = check();
        assert_int_equal(strncmp(said, ":0: cannot open the policy bundle", 33), 0);
        free(said);
        *strrchr(top, '/') = 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_top, remove_top)
        const struct CMUnitTest tests[] = {
                TEST(sound_bundles), TEST(the_projects_own_bundles), TEST(obligations), TEST(undefined_globals),
                TEST(undefined_globals_far), TEST(facts_in_functions),
                TEST(rules_and_sections), TEST(unreachable_rules), TEST(other_files), TEST(what_cannot_be_loaded),
        };

        return cmocka_run_group_tests_name("policy check", tests, NULL, NULL);
}
