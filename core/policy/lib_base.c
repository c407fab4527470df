#include "policy/env.h"

#include "policy/matcher.h"
#include "policy/policy.h"
#include "policy/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *rv_text_push(lua_State *L, int index, size_t *ret_n)
{
        char text[64];
        double x;

        switch (lua_type(L, index)) {
        case LUA_TSTRING:
                lua_pushvalue(L, index);
                break;
        case LUA_TBOOLEAN:
                lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false");
                break;
        case LUA_TNIL:
                lua_pushliteral(L, "nil");
                break;
        case LUA_TNUMBER:
                if (lua_isinteger(L, index)) {
                        snprintf(text, sizeof(text), "%lld", (long long)lua_tointeger(L, index));
                        lua_pushstring(L, text);
                        break;
                }
                x = lua_tonumber(L, index);
                /* Platforms do not agree on how to write these ("-nan"), and no verdict needs them. */
                if (!isfinite(x))
                        rv_engine_raise(L, "a number that is not finite has no text");
                for (int digits = 15; digits <= 17; digits++) {
                        snprintf(text, sizeof(text), "%.*g", digits, x);
                        if (strtod(text, NULL) == x)
                                break;
                }
                if (!text[strspn(text, "-0123456789")])
                        strcat(text, ".0");
                lua_pushstring(L, text);
                break;
        default:
                /* A table's or function's text would be its address. */
                rv_engine_raise(L, "only texts, numbers, true, false and nil have a text; this is %s", luaL_typename(L, index));
        }
        return lua_tolstring(L, -1, ret_n);
}

static int raw_tostring(lua_State *L)
{
        luaL_checkany(L, 1);
        rv_text_push(L, 1, NULL);
        return 1;
}

static int raw_type(lua_State *L)
{
        luaL_checkany(L, 1);
        lua_pushstring(L, rv_view_test(L, 1) ? "table" : luaL_typename(L, 1));
        return 1;
}

/* The message goes to the record, so that it must be text: no value of policy's runs code to become one. */
static int raw_error(lua_State *L)
{
        const char *text = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";

        if (!*text)
                return rv_engine_raise(L, "error takes a text");
        return rv_engine_raise(L, "%s", text);
}

static int raw_assert(lua_State *L)
{
        luaL_checkany(L, 1);
        if (lua_toboolean(L, 1))
                return lua_gettop(L);
        if (lua_type(L, 2) == LUA_TSTRING && *lua_tostring(L, 2))
                return rv_engine_raise(L, "%s", lua_tostring(L, 2));
        return rv_engine_raise(L, "assertion failed");
}

static int raw_select(lua_State *L)
{
        lua_Integer n = lua_gettop(L), i;

        if (lua_type(L, 1) == LUA_TSTRING && strcmp(lua_tostring(L, 1), "#") == 0) {
                lua_pushinteger(L, n - 1);
                return 1;
        }
        i = luaL_checkinteger(L, 1);
        if (i < 0)
                i = n + i;
        else if (i > n)
                i = n;
        luaL_argcheck(L, i >= 1, 1, "index out of range");
        return (int)(n - i);
}

static int digit_of(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : c >= 'A' && c <= 'Z'
                ? c - 'A' + 10 : 99;
}

/* tonumber(text, base): digits of the base with an optional sign, blanks around them. */
static int number_in_base(lua_State *L, lua_Integer base)
{
        const char *s = lua_tostring(L, 1), *blanks = " \f\n\r\t\v";
        bool is_negative;
        lua_Unsigned n = 0;

        luaL_checktype(L, 1, LUA_TSTRING);
        luaL_argcheck(L, base >= 2 && base <= 36, 2, "base out of range");
        rv_engine_charge_bytes(L, lua_rawlen(L, 1));
        s += strspn(s, blanks);
        is_negative = *s == '-';
        s += *s == '-' || *s == '+';
        if (digit_of(*s) >= base) {
                lua_pushnil(L);
                return 1;
        }
        for (; digit_of(*s) < base; s++)
                n = n * (lua_Unsigned)base + (lua_Unsigned)digit_of(*s);
        s += strspn(s, blanks);
        if (s == lua_tostring(L, 1) + lua_rawlen(L, 1))
                lua_pushinteger(L, (lua_Integer)(is_negative ? 0u - n : n));
        else
                lua_pushnil(L);
        return 1;
}

static int raw_tonumber(lua_State *L)
{
        size_t n;
        const char *s;

        luaL_checkany(L, 1);
        if (!lua_isnoneornil(L, 2))
                return number_in_base(L, luaL_checkinteger(L, 2));
        if (lua_type(L, 1) == LUA_TNUMBER) {
                lua_settop(L, 1);
                return 1;
        }
        s = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &n) : NULL;
        if (s)
                rv_engine_charge_bytes(L, n);
        if (!s || lua_stringtonumber(L, s) != n + 1)
                lua_pushnil(L);
        return 1;
}

static int next_index(lua_State *L)
{
        lua_Integer i = lua_tointeger(L, 2) + 1;

        lua_pushinteger(L, i);
        return lua_geti(L, 1, i) == LUA_TNIL ? 1 : 2;
}

static int raw_ipairs(lua_State *L)
{
        luaL_checkany(L, 1);
        lua_pushcfunction(L, next_index);
        lua_pushvalue(L, 1);
        lua_pushinteger(L, 0);
        return 3;
}

/* Is @text a name that `use` and `data` take: path components without dots at their beginnings? */
static bool is_name(const char *text)
{
        bool is_start = true;

        for (; *text; text++) {
                if (is_start && (*text == '.' || *text == '/' || *text == '-'))
                        return false;
                is_start = *text == '/';
        }
        return !is_start;
}

/* The file of the bundle that is meant by a `use` or `data`; raises if there is none. */
static const struct rv_bundle_file *find_file(lua_State *L, const char *function, const char *prefix,
        const char *suffix)
{
        const struct rv_bundle_file *f = NULL;
        char path[RV_BUNDLE_PATH_MAX + 1];
        const char *name;

        if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TSTRING) {
                rv_engine_raise(L, "%s takes one name, as text", function);
                return NULL;
        }
        name = lua_tostring(L, 1);
        if (is_name(name) && (size_t)snprintf(path, sizeof(path), "%s%s%s", prefix, name, suffix) < sizeof(path))
                f = rv_bundle_find(rv_engine_of(L)->bundle, path);
        if (!f || rv_bundle_is_test(f))
                rv_engine_raise(L, "%s: the bundle has no file %s%.60s%s", function, prefix, name, suffix);
        return f;
}

/* A module runs once in a state; what it returned is kept in the registry under the address of its file. */
static int raw_use(lua_State *L)
{
        const struct rv_bundle_file *f = find_file(L, "use", "", ".lua");
        /* Marks it as being loaded, for this item: a load that failed for one is tried again for the next. */
        void *mark = (void *)(uintptr_t)(rv_engine_of(L)->n_items + 1);

        if (lua_rawgetp(L, LUA_REGISTRYINDEX, f) == LUA_TLIGHTUSERDATA && lua_touserdata(L, -1) == mark)
                return rv_engine_raise(L, "use: %s is already being loaded: a circle of modules", f->path);
        if (!lua_isnil(L, -1) && !lua_islightuserdata(L, -1))
                return 1;
        lua_pushlightuserdata(L, mark);
        lua_rawsetp(L, LUA_REGISTRYINDEX, f);
        rv_engine_load_file(L, f);
        lua_call(L, 0, 1);
        if (lua_isnil(L, -1))
                return rv_engine_raise(L, "use: %s returns nothing; a module returns a value", f->path);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, f);
        return 1;
}

static int raw_data(lua_State *L)
{
        rv_view_push(L, find_file(L, "data", "data/", ".json")->data);
        return 1;
}

static int next_pair(lua_State *L)
{
        lua_Integer i = lua_tointeger(L, lua_upvalueindex(2)) + 1;

        /* [1] is what is iterated; an entry that was removed meanwhile is passed over. */
        for (;; i++) {
                if (lua_rawgeti(L, lua_upvalueindex(1), i) == LUA_TNIL)
                        return 1;
                lua_pushvalue(L, -1);
                if (lua_gettable(L, 1) != LUA_TNIL)
                        break;
                lua_pop(L, 2);
                rv_engine_charge(L, 1);
        }
        lua_pushinteger(L, i);
        lua_replace(L, lua_upvalueindex(2));
        return 2;
}

static int raw_pairs(lua_State *L)
{
        if (!rv_view_test(L, 1))
                luaL_checktype(L, 1, LUA_TTABLE);
        rv_keys_push(L, 1);
        lua_pushinteger(L, 0);
        lua_pushcclosure(L, next_pair, 2);
        lua_pushvalue(L, 1);
        lua_pushnil(L);
        return 3;
}

const luaL_Reg rv_lib_base[] = {
        { "assert", raw_assert }, { "data", raw_data }, { "error", raw_error }, { "ipairs", raw_ipairs },
        { "pairs", raw_pairs }, { "policy", raw_policy }, { "rule", raw_rule }, { "select", raw_select },
        { "sort", raw_sort },
        { "tonumber", raw_tonumber }, { "tostring", raw_tostring }, { "type", raw_type }, { "use", raw_use },
        { "within", raw_within }, { NULL, NULL },
};
