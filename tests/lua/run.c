/*
 * Runs the tests of a policy bundle: each tests/NAME_test.lua in a Lua of its own, outside the sandbox, with two modules:
 *
 *     require("tap")            tests/lua/tap.lua
 *     require("fake.policy")    load(DIR): an object with decide(request), the verdict as a table, and with
 *                               decide(request, lock), that of stage `resolved` on what comes of the request's packages
 *
 *     run LUA_DIR BUNDLE_DIR
 *
 * `load` takes directories below BUNDLE_DIR. A request's `source` may be left out. Requests are judged by
 * core/request first, so that a test cannot ask for what no caller could. Exit status 0 only if each test ran to
 * its tap.done() and nothing failed.
 */
#include "policy/bundle_files.h"
#include "policy/decide.h"
#include "policy/facts.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 20

static const char *bundle_dir;

static json_t *to_json(lua_State *L, int index, int depth)
{
        size_t n;
        const char *s;
        json_t *value;

        if (depth > DEPTH_MAX)
                luaL_error(L, "a request is nested too deeply");
        luaL_checkstack(L, 4, NULL);
        index = lua_absindex(L, index);
        switch (lua_type(L, index)) {
        case LUA_TSTRING:
                s = lua_tolstring(L, index, &n);
                return json_stringn_nocheck(s, n);
        case LUA_TNUMBER: return lua_isinteger(L, index) ? json_integer(lua_tointeger(L, index))
                : json_real(lua_tonumber(L, index));
        case LUA_TBOOLEAN: return json_boolean(lua_toboolean(L, index));
        case LUA_TTABLE:
                break;
        default:
                luaL_error(L, "a request cannot hold a %s", luaL_typename(L, index));
        }
        if (lua_rawlen(L, index) > 0) {
                value = json_array();
                for (lua_Integer i = 1; lua_rawgeti(L, index, i) != LUA_TNIL; i++, lua_pop(L, 1))
                        json_array_append_new(value, to_json(L, -1, depth + 1));
                lua_pop(L, 1);
                return value;
        }
        value = json_object();
        for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
                json_object_set_new_nocheck(value, luaL_checkstring(L, -2), to_json(L, -1, depth + 1));
        return value;
}

static void push_json(lua_State *L, const json_t *value)
{
        const char *key;
        json_t *child;
        size_t i;

        luaL_checkstack(L, 4, NULL);
        switch (json_typeof(value)) {
        case JSON_OBJECT:
                lua_newtable(L);
                json_object_foreach((json_t *)value, key, child) {
                        push_json(L, child);
                        lua_setfield(L, -2, key);
                }
                return;
        case JSON_ARRAY:
                lua_newtable(L);
                json_array_foreach((json_t *)value, i, child) {
                        push_json(L, child);
                        lua_rawseti(L, -2, (lua_Integer)i + 1);
                }
                return;
        case JSON_STRING: lua_pushlstring(L, json_string_value(value), json_string_length(value)); return;
        case JSON_INTEGER: lua_pushinteger(L, json_integer_value(value)); return;
        case JSON_REAL: lua_pushnumber(L, json_real_value(value)); return;
        case JSON_TRUE:
        case JSON_FALSE:
                lua_pushboolean(L, json_is_true(value));
                return;
        case JSON_NULL: lua_pushnil(L); return;
        }
}

/* Facts for the request table at index 2; the message on the stack and NULL for one that is refused. */
static json_t *facts_of(lua_State *L)
{
        json_t *value = to_json(L, 2, 0), *facts = NULL;
        struct rv_facts_tenant tenant = { "local", NULL };
        struct rv_request *request = NULL;
        struct rv_problem *problem = NULL;
        char *text;

        if (!json_object_get(value, "source"))
                json_object_set_new(value, "source", json_string("1"));
        if (rv_request_from_json(value, &request, &problem) != 0) {
                text = json_dumps(value, JSON_SORT_KEYS);
                lua_pushfstring(L, "no caller can send this request: %s", text);
                free(text);
                json_decref(value);
                return NULL;
        }
        json_decref(value);
        if (rv_facts_build(request, &tenant, "tester", 1750000000, &facts) < 0)
                lua_pushliteral(L, "out of memory");
        rv_request_free(request);
        return facts;
}

/* The facts of stage `resolved` for the lock at index 3; takes @asked. The message on the stack and NULL for one that is refused. */
static json_t *resolve(lua_State *L, json_t *asked)
{
        json_t *lock = to_json(L, 3, 0), *facts = NULL;

        if (rv_facts_resolve(asked, lock, 1750000000, &facts) < 0)
                lua_pushliteral(L, "this is no lock: { packages = { { name = \"six\", version = \"1.16.0\", direct = true, … } } }");
        json_decref(lock);
        json_decref(asked);
        return facts;
}

/* policy:decide(request) and policy:decide(request, lock) */
static int raw_decide(lua_State *L)
{
        struct rv_bundle **bundle = luaL_checkudata(L, 1, "fake.policy");
        json_t *facts, *verdict = NULL;

        luaL_checktype(L, 2, LUA_TTABLE);
        facts = facts_of(L);
        if (facts && !lua_isnoneornil(L, 3)) {
                luaL_checktype(L, 3, LUA_TTABLE);
                facts = resolve(L, facts);
        }
        if (!facts)
                return lua_error(L);
        if (rv_policy_decide(*bundle, facts, &verdict) < 0)
                return luaL_error(L, "out of memory");
        json_decref(facts);
        push_json(L, verdict);
        json_decref(verdict);
        return 1;
}

static int raw_collect(lua_State *L)
{
        struct rv_bundle **bundle = luaL_checkudata(L, 1, "fake.policy");

        rv_bundle_free(*bundle);
        *bundle = NULL;
        return 0;
}

/* load(dir) */
static int raw_load(lua_State *L)
{
        const char *dir = lua_pushfstring(L, "%s/%s", bundle_dir, luaL_checkstring(L, 1));
        struct rv_bundle **bundle = lua_newuserdatauv(L, sizeof(*bundle), 0);
        struct rv_error err = { 0 };

        *bundle = NULL;
        if (luaL_newmetatable(L, "fake.policy")) {
                lua_pushvalue(L, -1);
                lua_setfield(L, -2, "__index");
                lua_pushcfunction(L, raw_decide);
                lua_setfield(L, -2, "decide");
                lua_pushcfunction(L, raw_collect);
                lua_setfield(L, -2, "__gc");
        }
        lua_setmetatable(L, -2);
        if (rv_bundle_load(dir, bundle, &err) < 0)
                return luaL_error(L, "%s", err.message);
        return 1;
}

static int raw_open(lua_State *L)
{
        static const luaL_Reg functions[] = { { "load", raw_load }, { NULL, NULL } };

        luaL_newlib(L, functions);
        return 1;
}

static int traceback(lua_State *L)
{
        luaL_traceback(L, L, lua_tostring(L, 1), 1);
        return 1;
}

/* One test file; did it end well? */
static bool run_file(const char *lua_dir, const struct rv_bundle_file *f)
{
        lua_State *L = luaL_newstate();
        char name[RV_BUNDLE_PATH_MAX + 2];
        bool is_good;

        luaL_openlibs(L);
        luaL_requiref(L, "fake.policy", raw_open, 0);
        lua_getglobal(L, "package");
        lua_pushfstring(L, "%s/?.lua", lua_dir);
        lua_setfield(L, -2, "path");
        lua_settop(L, 0);
        lua_pushcfunction(L, traceback);
        snprintf(name, sizeof(name), "@%s", f->path);
        is_good = luaL_loadbufferx(L, f->text, f->size, name, "t") == LUA_OK && lua_pcall(L, 0, 0, 1) == LUA_OK;
        fflush(stdout);
        if (!is_good)
                fprintf(stderr, "%s: %s\n", f->path, lua_tostring(L, -1));
        if (is_good) {
                is_good = luaL_dostring(L, "return require('tap').is_done") == LUA_OK && lua_toboolean(L, -1);
                if (!is_good)
                        fprintf(stderr, "%s: ended without tap.done()\n", f->path);
        }
        lua_close(L);
        return is_good;
}

int main(int argc, char **argv)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = NULL;
        struct rv_error err = { 0 };
        size_t n_run = 0, n_failed = 0;

        if (argc != 3) {
                fprintf(stderr, "usage: run LUA_DIR BUNDLE_DIR\n");
                return 2;
        }
        bundle_dir = argv[2];
        if (rv_bundle_load(bundle_dir, &bundle, &err) < 0) {
                fprintf(stderr, "%s\n", err.message);
                return 1;
        }
        for (size_t i = 0; i < bundle->n_files; i++) {
                size_t n = strlen(bundle->files[i].path);

                if (!rv_bundle_is_test(&bundle->files[i]) || n < 9 || strcmp(bundle->files[i].path + n - 9, "_test.lua") != 0)
                        continue;
                n_run++;
                printf("# %s\n", bundle->files[i].path);
                n_failed += !run_file(argv[1], &bundle->files[i]);
        }
        if (n_run == 0)
                fprintf(stderr, "%s has no tests\n", bundle_dir);
        return n_run == 0 || n_failed > 0;
}
