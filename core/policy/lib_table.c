/*
 * `table` in the sandbox. Each function pays for the entries that it moves or compares. Tables are read and
 * written raw; concat, unpack and the source of move may also be read-only lists (facts, datasets).
 */
#include "policy/env.h"

#include "policy/view.h"

#include <string.h>

#define UNPACK_MAX 250   /* what fits Lua's stack without growing it much */

static lua_Integer length(lua_State *L, int index)
{
        const struct rv_view *view = rv_view_test(L, index);

        if (view && view->kind == RV_VIEW_LIST)
                return (lua_Integer)json_array_size(view->value);
        luaL_checktype(L, index, LUA_TTABLE);
        return (lua_Integer)lua_rawlen(L, index);
}

/* A table that may be written: not a view, which says so better than a type error would. */
static lua_Integer check_writable(lua_State *L, int index)
{
        if (rv_view_test(L, index))
                rv_engine_raise(L, "facts and data are read-only");
        luaL_checktype(L, index, LUA_TTABLE);
        return (lua_Integer)lua_rawlen(L, index);
}

static void get(lua_State *L, int index, lua_Integer i)
{
        if (lua_istable(L, index))
                lua_rawgeti(L, index, i);
        else
                lua_geti(L, index, i);
}

static int raw_concat(lua_State *L)
{
        size_t n_separator, total = 0, n;
        lua_Integer count = length(L, 1), from, to;
        const char *separator = luaL_optlstring(L, 2, "", &n_separator);
        luaL_Buffer b;

        from = luaL_optinteger(L, 3, 1);
        to = luaL_optinteger(L, 4, count);
        luaL_argcheck(L, from >= 1 && to <= count + 1, 3, "outside the list");
        lua_settop(L, 2);
        luaL_buffinit(L, &b);
        for (lua_Integer i = from; i <= to; i++) {
                get(L, 1, i);
                if (lua_type(L, -1) != LUA_TSTRING && lua_type(L, -1) != LUA_TNUMBER)
                        rv_engine_raise(L, "table.concat: entry %lld is %s and not a text", (long long)i, luaL_typename(L, -1));
                rv_text_push(L, -1, &n);
                lua_remove(L, -2);
                total += n + n_separator;
                if (total > RV_ENGINE_STRING_MAX + n_separator)
                        rv_string_check_size(L, "table.concat", total);
                rv_engine_charge_bytes(L, n + n_separator);
                luaL_addvalue(&b);
                if (i < to)
                        luaL_addlstring(&b, separator, n_separator);
        }
        luaL_pushresult(&b);
        return 1;
}

static int raw_insert(lua_State *L)
{
        lua_Integer n = check_writable(L, 1), at = n + 1;

        if (lua_gettop(L) != 2 && lua_gettop(L) != 3)
                return rv_engine_raise(L, "table.insert takes a table, a position if it is not the end, and a value");
        if (lua_gettop(L) == 3) {
                at = luaL_checkinteger(L, 2);
                luaL_argcheck(L, at >= 1 && at <= n + 1, 2, "position out of bounds");
                rv_engine_charge(L, 1 + (size_t)(n + 1 - at) / 4);
        }
        for (lua_Integer i = n + 1; i > at; i--) {
                lua_rawgeti(L, 1, i - 1);
                lua_rawseti(L, 1, i);
        }
        lua_settop(L, lua_gettop(L) == 3 ? 3 : 2);
        lua_rawseti(L, 1, at);
        return 0;
}

static int raw_remove(lua_State *L)
{
        lua_Integer n = check_writable(L, 1), at = luaL_optinteger(L, 2, n);

        luaL_argcheck(L, (n == 0 && (at == 0 || at == 1)) || (at >= 1 && at <= n + 1), 2, "position out of bounds");
        lua_rawgeti(L, 1, at);
        if (at < n)
                rv_engine_charge(L, 1 + (size_t)(n - at) / 4);
        for (; at < n; at++) {
                lua_rawgeti(L, 1, at + 1);
                lua_rawseti(L, 1, at);
        }
        lua_pushnil(L);
        lua_rawseti(L, 1, at);
        return 1;
}

/* move(from, first, last, to [, other]): entries first…last to other[to…], as if all were read before. */
static int raw_move(lua_State *L)
{
        lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3), to = luaL_checkinteger(L, 4);
        int target = lua_isnoneornil(L, 5) ? 1 : 5;

        length(L, 1);
        check_writable(L, target);
        luaL_argcheck(L, first >= 1 && last <= RV_ENGINE_MEMORY_MAX && to >= 1 && to <= RV_ENGINE_MEMORY_MAX, 2, "out of bounds");
        if (last >= first)
                rv_engine_charge(L, 1 + (size_t)(last - first) / 4);
        if (to > first && to <= last && target == 1) {
                for (lua_Integer i = last; i >= first; i--) {
                        get(L, 1, i);
                        lua_rawseti(L, target, to + (i - first));
                }
        } else {
                for (lua_Integer i = first; i <= last; i++) {
                        get(L, 1, i);
                        lua_rawseti(L, target, to + (i - first));
                }
        }
        lua_pushvalue(L, target);
        return 1;
}

static int raw_pack(lua_State *L)
{
        int n = lua_gettop(L);

        rv_engine_charge(L, 1 + (size_t)n / 4);
        lua_createtable(L, n, 1);
        lua_insert(L, 1);
        for (int i = n; i >= 1; i--)
                lua_rawseti(L, 1, i);
        lua_pushinteger(L, n);
        lua_setfield(L, 1, "n");
        return 1;
}

static int raw_unpack(lua_State *L)
{
        lua_Integer from = luaL_optinteger(L, 2, 1), to = luaL_optinteger(L, 3, length(L, 1));

        if (from > to)
                return 0;
        if ((lua_Unsigned)to - (lua_Unsigned)from >= UNPACK_MAX)
                return rv_engine_raise(L, "table.unpack: more than %d values", UNPACK_MAX);
        luaL_checkstack(L, (int)(to - from) + 1, "table.unpack");
        for (lua_Integer i = from;; i++) {
                get(L, 1, i);
                if (i == to)
                        break;
        }
        return (int)(to - from) + 1;
}

/* Is the value at @a before the one at @b? By the function [2], or the order of numbers or of bytes. */
static bool is_before(lua_State *L, int a, int b)
{
        bool is_less;

        rv_engine_charge(L, 1);
        if (lua_isnil(L, 2)) {
                if (lua_type(L, a) == LUA_TNUMBER && lua_type(L, b) == LUA_TNUMBER)
                        return lua_compare(L, a, b, LUA_OPLT);
                if (lua_type(L, a) == LUA_TSTRING && lua_type(L, b) == LUA_TSTRING) {
                        rv_engine_charge_bytes(L, RV_MIN(lua_rawlen(L, a), lua_rawlen(L, b)));
                        return rv_bytes_compare(lua_tostring(L, a), lua_rawlen(L, a), lua_tostring(L, b),
                                lua_rawlen(L, b)) < 0;
                }
                rv_engine_raise(L, "table.sort cannot compare %s with %s", luaL_typename(L, a), luaL_typename(L, b));
        }
        lua_pushvalue(L, 2);
        lua_pushvalue(L, a < 0 ? a - 1 : a);
        lua_pushvalue(L, b < 0 ? b - 2 : b);
        lua_call(L, 2, 1);
        is_less = lua_toboolean(L, -1);
        lua_pop(L, 1);
        return is_less;
}

/* Merges the runs [low, middle) and [middle, high) of table @source into @target; equal ones keep their order. */
static void merge(lua_State *L, int source, int target, lua_Integer low, lua_Integer middle, lua_Integer high)
{
        lua_Integer left = low, right = middle;

        for (lua_Integer i = low; i < high; i++) {
                bool is_right = left >= middle;

                if (left < middle && right < high) {
                        lua_rawgeti(L, source, right);
                        lua_rawgeti(L, source, left);
                        is_right = is_before(L, -2, -1);
                        lua_pop(L, 2);
                }
                lua_rawgeti(L, source, is_right ? right++ : left++);
                lua_rawseti(L, target, i);
        }
}

/*
 * sort(list [, before]): stable, and so the same on every machine whatever is equal; Lua's own takes its pivot
 * from the clock. A function that contradicts itself gives some order, but always the same, and ends.
 */
int raw_sort(lua_State *L)
{
        lua_Integer n = check_writable(L, 1);
        int source = 3, target = 4;

        if (!lua_isnoneornil(L, 2))
                luaL_checktype(L, 2, LUA_TFUNCTION);
        lua_settop(L, 2);
        rv_engine_charge(L, 1 + (size_t)n / 2);
        lua_createtable(L, (int)n, 0);
        lua_createtable(L, (int)n, 0);
        for (lua_Integer i = 1; i <= n; i++) {
                lua_rawgeti(L, 1, i);
                lua_rawseti(L, source, i);
        }
        for (lua_Integer width = 1; width < n; width *= 2) {
                for (lua_Integer low = 1; low <= n; low += 2 * width)
                        merge(L, source, target, low, RV_MIN(low + width, n + 1), RV_MIN(low + 2 * width, n + 1));
                source = 7 - source;
                target = 7 - target;
        }
        for (lua_Integer i = 1; i <= n; i++) {
                lua_rawgeti(L, source, i);
                lua_rawseti(L, 1, i);
        }
        return 0;
}

const luaL_Reg rv_lib_table[] = {
        { "concat", raw_concat }, { "insert", raw_insert }, { "move", raw_move }, { "pack", raw_pack },
        { "remove", raw_remove }, { "sort", raw_sort }, { "unpack", raw_unpack }, { NULL, NULL },
};
