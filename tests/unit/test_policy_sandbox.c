/*
 * The sandbox. Each test carries the number and the name of the pitfall of embedding Lua 5.4 that it closes.
 */
#include "test_policy_util.h"

#include "policy/engine.h"

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

/* A policy whose rule loops for the first package; the second would be denied by a rule that is fine. */
static void row_04_pcall_swallows_the_limit_error(void **state)
{
        static const char text[] =
                "return policy { packages = {\n"
                "rule { id = 'loop', when = function(p) while true do end end, deny = 'x' }, default = 'allow' },\n"
                ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}";
        struct rv_bundle_file file = { "policy.lua", text, sizeof(text) - 1, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };
        struct rv_engine_place place = { "policy.lua", 2 };
        struct rv_engine e;
        json_t *facts, *verdict;
        bool answer;

        expect_outcome("pcall", decide_snippet("pcall(function() while true do end end)"), "undefined global 'pcall'");
        expect_outcome("nothing to close", decide_snippet("local x <close> = {}"), "non-closable value");
        verdict = decide_text(text, "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"aa==1\",\"bb==1\"]}");
        assert_int_equal(json_array_size(json_object_get(verdict, "denials")), 1);
        assert_string_equal(reason_of(verdict, "rule"), "loop");
        assert_string_equal(reason_of(verdict, "item"), "aa");
        json_decref(verdict);

        /* Sticky: in the same state nothing runs any more, a fresh budget or not. */
        facts = facts_for("{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"aa==1\"]}");
        assert_int_equal(rv_engine_init(&e, &bundle, facts), 0);
        assert_int_equal(rv_engine_load(&e), RV_ENGINE_FINE);
        for (int i = 0; i < 3; i++) {
                const struct rv_rule *const *rules = *(const struct rv_rule *const **)&(const void *){ NULL };

                (void)rules;
                rv_engine_begin_item(&e);
                assert_int_equal(rv_engine_call_when(&e, 0, RV_FACTS_PACKAGE, NULL, &place, &answer) == RV_ENGINE_FINE, 0);
        }
        rv_engine_fini(&e);
        json_decref(facts);
}
