/*
 * The sandbox. Each test carries the number and the name of the pitfall of embedding Lua 5.4 that it closes.
 */
#include "test_policy_util.h"

#include "policy/policy.h"

#include <lauxlib.h>
#include <time.h>

struct row {
        const char *name, *snippet, *message;   /* message NULL: allowed */
};

static void run_rows(const struct row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++)
                expect_outcome(rows[i].name, decide_snippet(rows[i].snippet), rows[i].message);
}

#define RUN(rows) run_rows(rows, RV_N_ELEMENTS(rows))

static double cpu_s(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int dump_into(lua_State *L, const void *data, size_t n, void *ud)
{
        return rv_buf_append(ud, data, n);
}

static void row_01_bytecode(void **state)
{
        static const struct row rows[] = {
                { "load", "load('return 1')", "undefined global 'load'" },
                { "loadstring", "loadstring('return 1')", "undefined global 'loadstring'" },
                { "loadfile", "loadfile('x')", "undefined global 'loadfile'" },
                { "dofile", "dofile('x')", "undefined global 'dofile'" },
                { "require", "require('x')", "undefined global 'require'" },
                { "string.dump", "string.dump(function() end)", "there is no string.dump" },
                { "dump by method", "local s = '' s:dump()", "there is no string.dump" },
        };
        _cleanup_(rv_buf_fini) struct rv_buf code = { 0 };
        struct rv_bundle_file file = { .path = "policy.lua" };
        lua_State *L = luaL_newstate();

        assert_int_equal(luaL_loadstring(L, ALLOW_ALL), LUA_OK);
        assert_int_equal(lua_dump(L, dump_into, &code, 0), 0);
        lua_close(L);
        file.text = code.data;
        file.size = code.size;
        expect_outcome("a compiled policy.lua", decide_files(&file, 1, PLAIN_REQUEST), "binary chunk");
        RUN(rows);
}

static void row_02_blacklists_leak(void **state)
{
        static const char *const names[] = {
                "os", "io", "debug", "package", "coroutine", "utf8", "print", "warn", "next", "rawget", "rawset", "rawequal", "rawlen",
                "getmetatable", "setmetatable", "pcall", "xpcall", "collectgarbage", "load", "loadstring", "dofile", "loadfile",
                "require", "module", "newproxy", "getfenv", "setfenv", "_G", "_VERSION", "arg", "json",
        };
        char snippet[100], message[100];

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                snprintf(snippet, sizeof(snippet), "local x = %s", names[i]);
                snprintf(message, sizeof(message), "undefined global '%s'", names[i]);
                expect_outcome(names[i], decide_snippet(snippet), message);
                snprintf(snippet, sizeof(snippet), "local x = _ENV['%s']", names[i]);
                expect_outcome(names[i], decide_snippet(snippet), message);
        }
}

static void row_03_string_metatable_is_shared(void **state)
{
        static const struct row rows[] = {
                { "methods are the safe ones", "assert(('ab'):rep(2) == 'abab' and ('x'):upper() == 'X')", NULL },
                { "an unbounded rep by method", "local s = ('x'):rep(1 << 40)", "string.rep: a string is longer" },
                { "setting a library's function", "string.rep = function() end", "'rep' cannot be set" },
                { "adding to a library", "table.unpack2 = 1", "'unpack2' cannot be set" },
                { "setting through a string", "local s = 'x' s.rep = 1", "attempt to index a string value" },
                { "no way to the metatable", "getmetatable('').__index = {}", "undefined global 'getmetatable'" },
                { "pairs shows nothing of a library", "for k in pairs(string) do error(k) end", NULL },
                { "an unknown method", "local s = 'x' s:nosuch()", "there is no string.nosuch" },
        };

        RUN(rows);
}

/* A policy whose rule loops for each package. */
static void row_04_pcall_swallows_the_limit_error(void **state)
{
        static const char text[] = "return policy { packages = {\n"
                                   "rule { id = 'loop', when = function(p) while true do end end, deny = 'x' }, default = 'allow' },\n"
                ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}";
        static const char request[] = "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"aa==1\",\"bb==1\"]}";
        struct rv_bundle_file file = { "policy.lua", text, sizeof(text) - 1, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };
        json_t *facts = facts_for(request), *verdict = decide_text(text, request);
        const struct rv_rule *rule;
        struct rv_engine e;
        bool answer;

        expect_outcome("pcall", decide_snippet("pcall(function() while true do end end)"), "undefined global 'pcall'");
        expect_outcome("nothing to close", decide_snippet("local x <close> = {}"), "non-closable value");
        assert_int_equal(json_array_size(json_object_get(verdict, "denials")), 1);
        assert_string_equal(reason_of(verdict, "item"), "aa");
        json_decref(verdict);

        /* Sticky: a fresh budget does not make the same state run again. */
        assert_int_equal(rv_engine_init(&e, &bundle, facts), 0);
        assert_int_equal(rv_engine_load(&e), RV_ENGINE_FINE);
        rule = e.policy->sections[RV_SECTION_PACKAGES].rules[0];
        for (int i = 0; i < 3; i++) {
                const json_t *item = json_array_get(json_object_get(facts, "packages"), 0);

                rv_engine_begin_item(&e);
                assert_int_equal(rv_engine_call_when(&e, rule->when_ref, RV_FACTS_PACKAGE, item, &rule->place,
                        &answer), RV_ENGINE_BUDGET);
                if (i > 0)
                        assert_true(e.units <= 200);   /* one step of the count hook, and not 20,000 */
        }
        rv_engine_fini(&e);
        json_decref(facts);
}

static void row_05_xpcall_handlers_run_without_hooks(void **state)
{
        static const struct row rows[] = {
                { "xpcall", "xpcall(function() end, function() end)", "undefined global 'xpcall'" },
                { "no handler of policy's for an error", "error('plain')", "plain" },
        };

        RUN(rows);
}

static void row_06_finalizers_run_without_hooks(void **state)
{
        static const struct row rows[] = {
                { "setmetatable", "setmetatable({}, { __gc = function() end })", "undefined global 'setmetatable'" },
                { "collectgarbage", "collectgarbage()", "undefined global 'collectgarbage'" },
                { "a field named __gc is a field", "local t = { __gc = function() error('ran') end } t = nil", NULL },
        };

        RUN(rows);
}

static void row_07_coroutines_get_a_fresh_counter(void **state)
{
        static const struct row rows[] = {
                { "coroutine", "coroutine.wrap(function() end)()", "undefined global 'coroutine'" },
        };

        RUN(rows);
}

static void row_08_c_functions_are_one_instruction(void **state)
{
        static const struct row rows[] = {
                { "find with a pattern", "local s = ('a'):rep(200) s:find('.-.-.-.-b')", "string.find takes plain text" },
                { "match with a pattern", "('x'):match('%a+')", "string.match takes plain text" },
                { "gmatch with a pattern", "('x'):gmatch('%a+')", "string.gmatch takes plain text" },
                { "gsub with a pattern", "('x'):gsub('%a+', '')", "string.gsub takes plain text" },
                { "gsub with a capture", "('x'):gsub('x', '%0')", "string.gsub takes plain text" },
                { "plain find of magic characters", "assert(('a.b'):find('.', 1, true) == 2)", NULL },
                { "plain find", "local a, b = ('hello'):find('ll') assert(a == 3 and b == 4 and not ('x'):find('y'))", NULL },
                { "glob", "assert(string.glob('evil-thing', 'evil-*') and not string.glob('xevil-', 'evil-*'))", NULL },
                { "many stars", "local s = ('a'):rep(5000) assert(not s:glob(('*a'):rep(200) .. 'b'))", NULL },
                { "gsub", "local s, n = ('a,b,c'):gsub(',', ';') assert(s == 'a;b;c' and n == 2)", NULL },
                { "gsub with a table and a function", "assert(('ab'):gsub('a', { a = 'x' }) == 'xb' and ('ab'):gsub('a', string.upper) == 'Ab')", NULL },
                { "gmatch", "local n = 0 for x in ('a,b,,'):gmatch(',') do n = n + 1 end assert(n == 3)", NULL },
                { "rep of 500 MB", "local s = ('x'):rep(500000000)", "string.rep: a string is longer" },
                { "rep with overflow", "local s = ('xx'):rep(math.maxinteger)", "string.rep: a string is longer" },
                { "rep of little, often", "for i = 1, 10000 do local s = ('x'):rep(100000) end", "budget" },
                { "doubling by ..", "local s = 'x' for i = 1, 28 do s = s .. s end", "a string is longer" },
                { "long strings by ..", "local s = ('x'):rep(100000) for i = 1, 1e6 do local t = s .. i end", "" },
                { "table.insert at the front", "local t = {} for i = 1, 30000 do table.insert(t, 1, i) end", "budget" },
                { "table.remove at the front", "local t = {} for i = 1, 10000 do t[i] = i end while t[1] do table.remove(t, 1) end", "budget" },
                { "table.concat of much", "local t = {} for i = 1, 5000 do t[i] = ('x'):rep(100) end table.concat(t)", "a string is longer" },
                { "table.concat in a loop", "local t = {} for i = 1, 1000 do t[i] = ('x'):rep(100) end for i = 1, 1e5 do table.concat(t) end", "budget" },
                { "table.move of nothing, wide", "table.move({}, 1, 8000000, 1)", "budget" },
                { "table.move past all bounds", "table.move({}, 1, math.maxinteger, 2)", "out of bounds" },
                { "table.unpack of much", "table.unpack({}, 1, 1e7)", "table.unpack: more than 250" },
                { "table.unpack past all bounds", "table.unpack({}, math.mininteger, math.maxinteger)", "table.unpack: more than 250" },
                { "table.sort", "local t = {} for i = 1, 20000 do t[i] = -i end table.sort(t)", "budget" },
                { "string.format's width", "string.format('%1000d', 1)", "at most two digits" },
                { "string.format's precision", "string.format('%.1000f', 1)", "at most two digits" },
                { "string.byte of much", "string.byte(('x'):rep(1000), 1, -1)", "more than 250 bytes" },
                { "tonumber of much", "local s = ('1'):rep(100000) for i = 1, 1e5 do tonumber(s, 10) end", "budget" },
                { "lower in a loop", "local s = ('x'):rep(100000) for i = 1, 1e5 do s:lower() end", "budget" },
                { "find in a loop", "local s = ('x'):rep(100000) for i = 1, 1e5 do s:find('y') end", "budget" },
                { "pairs in a loop", "local t = {} for i = 1, 1000 do t[i] = i end for i = 1, 1e5 do pairs(t) end", "budget" },
                { "select of much", "local function f(...) return select('#', ...) end assert(f(1, 2, nil) == 3)", NULL },
                { "within of much", "local t = {} for i = 1, 10001 do t[i] = 'a.b' end within(t)", "1 to 10000" },
        };

        RUN(rows);
}

static void row_09_memory(void **state)
{
        static const struct row rows[] = {
                { "one large table", "local t = {} for i = 1, 20000 do t[i] = i end for k = 1, 3 do table.move(t, 1, #t, #t + 1) end", "a table has too many entries" },
                { "no garbage is counted twice", "local s = ('x'):rep(100000) for i = 1, 200 do local t = s .. i end", NULL },
                { "deep recursion", "local function f(n) return 1 + f(n + 1) end f(1)", "" },
                { "recursion that returns", "local function f(n) return n == 0 and 0 or 1 + f(n - 1) end assert(f(1000) == 1000)", NULL },
                { "a chain of strings", "local t = {} for i = 1, 200 do t[i] = ('x'):rep(60000) .. i end", "8 MiB" },
        };
        struct rv_bundle_file file = { "policy.lua", ALLOW_ALL, sizeof(ALLOW_ALL) - 1, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };
        struct rv_engine e;

        RUN(rows);
        assert_int_equal(rv_engine_init(&e, &bundle, NULL), 0);
        assert_int_equal(rv_engine_load(&e), RV_ENGINE_FINE);
        assert_true(e.used_bytes > 1000 && e.used_bytes < 100000);
        rv_engine_fini(&e);
        assert_int_equal(e.used_bytes, 0);   /* the account closes: no drift */
}

/*
 * Closed by the budgets: authors are trusted not to attack, and what they can do by mistake ends by itself, since
 * instructions, the bytes that host functions touch and those that are allocated are all counted.
 */
static void row_10_wall_clock(void **state)
{
        static const char *const snippets[] = {
                "while true do end",
                "local s = ('x'):rep(100000) local t = s .. '' while true do local b = s == t end",
                "local s = ('x'):rep(120000) while true do local t = s .. 'y' end",
                "local t = {} while true do t[#t + 1] = {} end",
                "local s = ('ab'):rep(50000) while true do s:gsub('b', 'c') end",
                "local t = {} for i = 1, 60000 do t[i] = i end while true do table.sort(t) end",
                "local t = {} for i = 1, 7000 do t['k' .. i] = { i, i } end while true do for k in pairs(t) do end end",
                "local function f() return f() end f()",
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(snippets); i++) {
                double before = cpu_s(), used;

                expect_outcome(snippets[i], decide_snippet(snippets[i]), "");
                used = cpu_s() - before;
                if (used > 3)
                        fail_msg("%s: took %.1f s", snippets[i], used);
        }
}

static void row_11_limits_are_counted_for_each_item(void **state)
{
        static const char text[] = "return policy { packages = { rule { id = 'r', when = function(p)\n"
                                   "local n = 0 for i = 1, 4500 do n = n + i end return n == 0 end, deny = 'x' }, default = 'allow' },\n"
                ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}";
        char request[2000], *p = request + sprintf(request, "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"p0==1\"");

        for (int i = 1; i < 50; i++)
                p += sprintf(p, ",\"p%d==1\"", i);
        strcpy(p, "]}");
        /* 50 items of some 18,000 instructions each: far more in all than any one budget. */
        expect_outcome("50 items", decide_text(text, request), NULL);
        for (int i = 0; i < 10000; i++)
                expect_outcome("10,000 decisions", decide_text(ALLOW_ALL, PLAIN_REQUEST), NULL);
}

static void row_12_error_objects_and_returned_tables(void **state)
{
        static const struct row rows[] = {
                { "error with a table", "error({ __tostring = function() while true do end end })", "error takes a text" },
                { "error with nothing", "error()", "error takes a text" },
                { "assert with a table", "assert(false, {})", "assertion failed" },
                { "assert with text", "assert(nil, 'said so')", "said so" },
                { "a table instead of a policy", "do return { packages = { default = 'allow' } } end", "must return policy" },
                { "two results", "do return policy { packages = { default = 'allow' }, network = { default = 'allow' }, "
                                 "idempotency = { default = 'none' }, backend = { default = 'tenant' } }, 1 end", "must return policy" },
                { "bytes that are no text", "error('\\xff\\xfe bad')", "?? bad" },
        };

        RUN(rows);
}

static void row_13_deep_nesting_and_huge_constants(void **state)
{
        static char text[60100];
        size_t n = 60000;
        char *p = text;

        p += sprintf(p, "local x = ");
        for (int i = 0; i < 500; i++)
                *p++ = '(';
        *p++ = '1';
        for (int i = 0; i < 500; i++)
                *p++ = ')';
        *p = 0;
        expect_outcome("500 parentheses", decide_snippet(text), "C stack overflow");
        p = text + sprintf(text, "local t = {");
        while (p < text + n)
                p += sprintf(p, "{},");
        strcpy(p, "}");
        expect_outcome("a large table", decide_snippet(text), NULL);
        p = text + sprintf(text, "local s = '");
        memset(p, 'x', n - 1000);
        strcpy(p + n - 1000, "'");
        expect_outcome("a long constant", decide_snippet(text), NULL);
}

static void row_14_global_typos_and_writes(void **state)
{
        static const struct row rows[] = {
                { "reading", "local x = reqest", "undefined global 'reqest'" },
                { "calling", "polcy {}", "undefined global 'polcy'" },
                { "writing", "x = 1", "'x' cannot be set" },
                { "a function statement", "function helper() end", "'helper' cannot be set" },
                { "replacing", "assert = nil", "'assert' cannot be set" },
                { "through _ENV", "_ENV.x = 1", "'x' cannot be set" },
                { "an unknown library member", "local x = math.random()", "there is no math.random" },
                { "line of the error", "\n\n\nlocal x = reqest", "undefined global 'reqest'" },
        };
        json_t *verdict = decide_snippet("\n\n\nlocal x = reqest");

        RUN(rows);
        assert_int_equal(reason_line(verdict), 4);
        json_decref(verdict);
}

static void row_15_request_and_libraries_are_read_only(void **state)
{
        static const struct row rows[] = {
                { "a fact", "n.mode = 'any'", "read-only" },
                { "a new fact", "n.x = 1", "read-only" },
                { "a request's fact", "r.timeout_s = 1", "read-only" },
                { "a list", "r.env_names[1] = 'X'", "read-only" },
                { "a list by insert", "table.insert(r.env_names, 'X')", "read-only" },
                { "a list by sort", "table.sort(r.env_names)", "read-only" },
                { "the tenant", "r.tenant.name = 'x'", "read-only" },
                { "the labels", "r.tenant.labels.team = 'x'", "read-only" },
                { "an unknown fact", "local x = n.modus", "unknown fact 'modus' of network access; there are mode, domain" },
                { "an unknown fact of the request", "local x = r.timeout", "unknown fact 'timeout' of the request" },
                { "an unknown fact of the tenant", "local x = r.tenant.id", "unknown fact 'id' of the tenant" },
                { "an index instead of a name", "local x = n[1]", "read by name" },
                { "a name instead of an index", "local x = r.env_names.first", "entries 1, 2" },
                { "reading all of it", "assert(n.mode == 'none' and r.tenant.labels.team == 'blue' and r.tenant.labels.x == nil and "
                                       "#r.env_names == 0 and r.env_names[1] == nil and r.principal == 'alice' and r.now == 1750000000)", NULL },
                { "types are those of tables", "assert(type(n) == 'table' and type(r.env_names) == 'table' and type(r.now) == 'number')", NULL },
        };
        char text[1000];

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                snprintf(text, sizeof(text), "return policy { " ALLOW_PACKAGES ALLOW_IDEMPOTENCY ALLOW_BACKEND "network = { rule { "
                        "id = 'r', when = function(n, r) %s return false end, deny = 'x' }, default = 'allow' } }", rows[i].snippet);
                expect_outcome(rows[i].name, decide_text(text, PLAIN_REQUEST), rows[i].message);
        }
}

/* Evaluates deeper and deeper in the C stack: Lua seeds its hashes with an address there, among others. */
static __attribute__((noinline)) json_t *decide_at_depth(const char *text, const char *request, int depth)
{
        volatile char room[48 + 16];
        json_t *verdict;

        room[0] = (char)depth;
        verdict = depth > 0 ? decide_at_depth(text, request, depth - 1) : decide_text(text, request);
        return room[0] == (char)depth ? verdict : NULL;
}

static __attribute__((noinline)) void order_at_depth(char *ret, size_t n, int depth)
{
        volatile char room[48 + 16];
        lua_State *L;

        room[0] = (char)depth;
        if (depth > 0) {
                order_at_depth(ret, n, depth - 1);
                ret[n - 1] = room[0] == (char)depth ? 0 : 1;
                return;
        }
        L = luaL_newstate();
        assert_int_equal(luaL_dostring(L, "return { alpha = 1, beta = 2, gamma = 3, delta = 4, epsilon = 5, zeta = 6, eta = 7 }"), LUA_OK);
        ret[0] = 0;
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
                strncat(ret, lua_tostring(L, -2), n - strlen(ret) - 1);
        lua_close(L);
}

static void row_16_pairs_order_varies(void **state)
{
        static const char text[] =
                "local t = { [10] = 1, [2] = 1, [-3] = 1, b = 1, a = 1, aa = 1, B = 1, ['\\xff'] = 1, [''] = 1 }\n"
                "for i = 1, 40 do t['key' .. i] = i end\n"
                "local order = {}\n"
                "for k in pairs(t) do order[#order + 1] = k end\n"
                "return policy { packages = { rule { id = 'order', match = { name = '*' }, deny = table.concat(order, ' ', 1, 8) .. '|' .. #order }, "
                "default = 'allow' }, network = { rule { id = 'labels', when = function(n, r) for k, v in pairs(r.tenant.labels) do "
                "return k == 'team' and v == 'blue' end end, deny = 'labels' }, default = 'allow' }, " ALLOW_IDEMPOTENCY ALLOW_BACKEND "}";
        static const char request[] = "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"aa==1\"]}";
        char orders[2][200] = { "", "" };
        char *first = NULL;
        bool differ = false;

        for (int depth = 0; depth < 40; depth++) {
                _cleanup_(rv_buf_fini) struct rv_buf bytes = { 0 };
                json_t *verdict = decide_at_depth(text, request, depth);

                assert_int_equal(rv_json_canonical(verdict, &bytes), 0);
                if (!first)
                        first = strdup(bytes.data);
                assert_string_equal(bytes.data, first);
                assert_string_equal(reason_of(verdict, "message"), "-3 2 10  B a aa b|49");
                assert_int_equal(json_array_size(json_object_get(verdict, "denials")), 2);
                json_decref(verdict);
                order_at_depth(orders[depth > 0], sizeof(orders[0]), depth);
                differ = differ || (depth > 0 && strcmp(orders[0], orders[1]) != 0);
        }
        free(first);
        assert_true(differ);   /* else all of this was under one seed and shows nothing */
        expect_outcome("next", decide_snippet("next({})"), "undefined global 'next'");
}

/* Which of several faults is reported must not be chance either. */
static void row_16_errors_do_not_depend_on_order(void **state)
{
        static const char *const texts[] = {
                "return policy { zebra = 1, yak = 2, xenon = 3, walrus = 4, vole = 5, unicorn = 6, packages = 7, network = 8 }",
                "return policy { packages = { rule { id = 'a', zebra = 1, yak = 2, walrus = 3, vole = 4, match = { zz = 1, yy = 2, xx = 3, ww = 4 } } } }",
                "return policy { packages = { rule { id = 'a', allow = true, match = { zz = 1, yy = 2, xx = 3, ww = 4, vv = 5 } }, default = 'allow' } }",
                "return policy { packages = { rule { id = 'a', allow = true, deny = 'x', use = 'b', require_key = true, match = {} } } }",
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++) {
                char first[RV_ENGINE_MESSAGE_MAX] = "";

                for (int depth = 0; depth < 40; depth++) {
                        json_t *verdict = decide_at_depth(texts[i], PLAIN_REQUEST, depth);

                        if (!*first)
                                snprintf(first, sizeof(first), "%s", reason_of(verdict, "message"));
                        assert_string_equal(reason_of(verdict, "message"), first);
                        json_decref(verdict);
                }
        }
}

static void row_17_addresses_leak(void **state)
{
        static const struct row rows[] = {
                { "tostring of a table", "tostring({})", "only texts, numbers" },
                { "tostring of a function", "tostring(assert)", "only texts, numbers" },
                { "tostring of a rule", "tostring(rule { id = 'a', match = {}, allow = true })", "only texts, numbers" },
                { "format %p", "string.format('%p', {})", "there is no '%p'" },
                { "format %a", "string.format('%a', 1.5)", "there is no '%a'" },
                { "format %s of a table", "string.format('%s', {})", "only texts, numbers" },
                { "a table in ..", "local s = '' .. {}", "attempt to concatenate a table value" },
                { "table keys", "for k in pairs({ [{}] = 1 }) do end", "texts and whole numbers as keys; this one has table" },
                { "function keys", "for k in pairs({ [assert] = 1 }) do end", "texts and whole numbers as keys" },
                { "boolean keys", "for k in pairs({ [true] = 1 }) do end", "texts and whole numbers as keys" },
                { "fraction keys", "for k in pairs({ [1.5] = 1 }) do end", "this one has a fraction" },
                { "order of tables", "local b = {} < {}", "attempt to compare two table values" },
                { "sorting tables", "table.sort({ {}, {} })", "cannot compare table with table" },
                { "tostring of scalars", "assert(tostring(12) == '12' and tostring(true) == 'true' and tostring(nil) == 'nil' and tostring('x') == 'x')", NULL },
        };

        RUN(rows);
}

static void row_18_sort_is_unstable(void **state)
{
        static const struct row rows[] = {
                { "stable", "local t = {} for i = 1, 300 do t[i] = { k = i % 3, i = i } end table.sort(t, function(a, b) return a.k < b.k end) "
                            "for i = 2, 300 do assert(t[i - 1].k < t[i].k or (t[i - 1].k == t[i].k and t[i - 1].i < t[i].i)) end", NULL },
                { "numbers", "local t = { 3, 1, 2.5, -1 } table.sort(t) assert(t[1] == -1 and t[2] == 1 and t[3] == 2.5 and t[4] == 3)", NULL },
                { "bytes, not a locale", "local t = { 'b', 'B', 'a', '\\xe4', '' } table.sort(t) assert(table.concat(t, ',') == ',B,a,b,\\xe4')", NULL },
                { "one and none", "table.sort({}) table.sort({ 1 })", NULL },
                { "a contradictory order ends", "local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() return true end)", NULL },
                { "mixed kinds", "table.sort({ 1, 'a' })", "cannot compare" },
                { "an order that raises", "table.sort({ 1, 2 }, function(a, b) return a.x < b.x end)", "attempt to index a number value" },
                { "an order that loops", "table.sort({ 1, 2 }, function() while true do end end)", "budget" },
        };

        RUN(rows);
}

static void row_19_floats(void **state)
{
        static const struct row rows[] = {
                { "shortest text", "assert(tostring(0.1 + 0.2) == '0.30000000000000004' and tostring(0.1) == '0.1' and tostring(2^53) == '9007199254740992.0')", NULL },
                { "nan has no text", "tostring(0 / 0)", "not finite" },
                { "infinity has no text", "tostring(math.huge)", "not finite" },
                { "format of nan", "string.format('%g', 0 / 0)", "not finite" },
                { "concat of nan", "table.concat({ 0 / 0 })", "not finite" },
                { "a fraction in a result", "do return policy { limits = { timeout_s = { max = 1.5 } }, " ALLOW_PACKAGES ALLOW_NETWORK
                        ALLOW_IDEMPOTENCY ALLOW_BACKEND "} end", "limits.timeout_s.max is a whole number" },
                { "2^53 in a result", "do return policy { limits = { timeout_s = { max = 1 << 53 } }, " ALLOW_PACKAGES ALLOW_NETWORK
                        ALLOW_IDEMPOTENCY ALLOW_BACKEND "} end", "limits.timeout_s.max is a whole number" },
                { "a fraction in match", "do return policy { packages = { rule { id = 'a', match = { direct = 1.5 }, allow = true }, default = 'allow' }, "
                        ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "} end", "a number here is a whole one" },
                { "floor and friends", "assert(math.floor(1.5) == 1 and math.ceil(1.5) == 2 and math.type(math.floor(1.5)) == 'integer' and "
                        "math.abs(-3) == 3 and math.max(1, 3, 2) == 3 and math.min(2, 1) == 1 and math.fmod(7, 3) == 1 and math.tointeger(3.0) == 3 and "
                        "math.sqrt(9) == 3.0 and math.ult(1, -1) and math.fmod(math.mininteger, -1) == 0 and math.modf(-1.5) == -1.0)", NULL },
                { "format", "assert(string.format('%d|%5.2f|%-4s|%x|%q', 3, 1.005, 'ab', 255) == '')", "there is no '%q'" },
                { "format again", "assert(string.format('%03d|%5.2f|%-4s|%4s|%.1s|%x|%%|%c', 3, 1.5, 'ab', 'ab', 'ab', 255, 65) == '003| 1.50|ab  |  ab|a|ff|%|A')", NULL },
        };

        RUN(rows);
}

static void row_20_coercions_and_holes(void **state)
{
        static const struct row rows[] = {
                { "text + number", "local x = '10' + 5", "attempt to perform arithmetic on a string value" },
                { "hexadecimal text + number", "local x = ('0x10') + 0", "attempt to perform arithmetic on a string value" },
                { "text | number", "local x = '10' | 1", "attempt to perform bitwise operation on a string value" },
                { "-text", "local x = -'10'", "attempt to perform arithmetic on a string value" },
                { "text < number", "local x = '1' < 2", "attempt to compare" },
                { "tonumber is explicit", "assert(tonumber('10') + 5 == 15 and tonumber('x') == nil and tonumber('ff', 16) == 255 and tonumber('-7', 8) == -7 "
                        "and tonumber('8', 8) == nil and tonumber('0x10') == 16 and tonumber(' 3 ') == 3 and tonumber('') == nil)", NULL },
                { "a hole in a section", "do return policy { packages = { rule { id = 'a', match = {}, allow = true }, nil, rule { id = 'b', match = {}, "
                        "allow = true }, default = 'allow' }, " ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "} end", "without holes" },
                { "a hole in a list", "rule { id = 'a', match = { name = { 'x', nil, 'y' } }, allow = true }", "without holes" },
                { "pack counts", "local t = table.pack(1, nil, 3) assert(t.n == 3)", NULL },
        };

        RUN(rows);
}

static void row_21_json(void **state)
{
        static const char data[] = "{\"empty_list\":[],\"empty_object\":{},\"list\":[1,null,3],\"none\":null,\"deep\":{\"a\":[{\"b\":\"c\"}]},\"x\":1.5}";
        static const char text[] = "local d = data 'set'\n"
                                   "assert(#d.empty_list == 0 and type(d.empty_list) == 'table' and #d.list == 3 and d.list[2] == nil and d.list[3] == 3)\n"
                                   "assert(d.none == nil and d.missing == nil and d.deep.a[1].b == 'c' and d.x == 1.5 and d.deep == d.deep)\n"
                                   "local keys = {} for k in pairs(d) do keys[#keys + 1] = k end\n"
                                   "assert(table.concat(keys, ' ') == 'deep empty_list empty_object list x')\n"
                                   "local n = 0 for i, v in ipairs((data 'set').deep.a) do n = n + i end assert(n == 1)\n" ALLOW_ALL;
        struct rv_bundle_file files[] = {
                { "data/set.json", data, sizeof(data) - 1, NULL },
                { "policy.lua", text, sizeof(text) - 1, NULL },
        };
        json_t *value = NULL;

        assert_int_equal(rv_json_read(data, sizeof(data) - 1, 10, &value, NULL), 0);
        files[0].data = value;
        expect_outcome("a dataset", decide_files(files, 2, PLAIN_REQUEST), NULL);
        json_decref(value);
        expect_outcome("a dataset that is not there", decide_snippet("data 'nosuch'"), "data: the bundle has no file data/nosuch.json");
        expect_outcome("a path out of the bundle", decide_snippet("data '../../etc/passwd'"), "the bundle has no file");
        assert_int_equal(rv_json_read("{\"a\":1,\"a\":2}", 13, 10, &value, NULL), -EINVAL);
}

static void row_22_time_random_environment(void **state)
{
        static const struct row rows[] = {
                { "os.time", "os.time()", "undefined global 'os'" },
                { "os.getenv", "os.getenv('HOME')", "undefined global 'os'" },
                { "math.random", "math.random()", "there is no math.random" },
                { "math.randomseed", "math.randomseed(1)", "there is no math.randomseed" },
                { "io", "io.open('/etc/passwd')", "undefined global 'io'" },
        };

        RUN(rows);
}

static void row_23_stale_state(void **state)
{
        static const char text[] = "local n = 0\n"
                                   "return policy { network = { rule { id = 'count', when = function() n = n + 1 return n > 1 end, deny = 'seen before' }, "
                                   "default = 'allow' }, " ALLOW_PACKAGES ALLOW_IDEMPOTENCY ALLOW_BACKEND "}";
        struct rv_bundle_file file = { "policy.lua", text, sizeof(text) - 1, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };
        json_t *facts = facts_for(PLAIN_REQUEST);
        struct rv_engine e;

        for (int i = 0; i < 5; i++)
                expect_outcome("each decision begins anew", decide_text(text, PLAIN_REQUEST), NULL);
        assert_int_equal(rv_engine_init(&e, &bundle, facts), 0);
        assert_int_equal(lua_gettop(e.L), 0);
        assert_int_equal(rv_engine_load(&e), RV_ENGINE_FINE);
        assert_int_equal(lua_gettop(e.L), 0);
        rv_engine_fini(&e);
        json_decref(facts);
}

/* The version row: the system's Lua is linked, so that what matters is that the release is the one compiled for. */
static void row_00_version(void **state)
{
        struct rv_bundle_file file = { "policy.lua", ALLOW_ALL, sizeof(ALLOW_ALL) - 1, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };
        struct rv_engine e;

        assert_int_equal(rv_engine_init(&e, &bundle, NULL), 0);
        assert_int_equal((int)lua_version(e.L), 504);
        rv_engine_fini(&e);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(row_00_version),
                cmocka_unit_test(row_01_bytecode),
                cmocka_unit_test(row_02_blacklists_leak),
                cmocka_unit_test(row_03_string_metatable_is_shared),
                cmocka_unit_test(row_04_pcall_swallows_the_limit_error),
                cmocka_unit_test(row_05_xpcall_handlers_run_without_hooks),
                cmocka_unit_test(row_06_finalizers_run_without_hooks),
                cmocka_unit_test(row_07_coroutines_get_a_fresh_counter),
                cmocka_unit_test(row_08_c_functions_are_one_instruction),
                cmocka_unit_test(row_09_memory),
                cmocka_unit_test(row_10_wall_clock),
                cmocka_unit_test(row_11_limits_are_counted_for_each_item),
                cmocka_unit_test(row_12_error_objects_and_returned_tables),
                cmocka_unit_test(row_13_deep_nesting_and_huge_constants),
                cmocka_unit_test(row_14_global_typos_and_writes),
                cmocka_unit_test(row_15_request_and_libraries_are_read_only),
                cmocka_unit_test(row_16_pairs_order_varies),
                cmocka_unit_test(row_16_errors_do_not_depend_on_order),
                cmocka_unit_test(row_17_addresses_leak),
                cmocka_unit_test(row_18_sort_is_unstable),
                cmocka_unit_test(row_19_floats),
                cmocka_unit_test(row_20_coercions_and_holes),
                cmocka_unit_test(row_21_json),
                cmocka_unit_test(row_22_time_random_environment),
                cmocka_unit_test(row_23_stale_state),
        };

        return cmocka_run_group_tests_name("policy sandbox", tests, NULL, NULL);
}
