/*
 * `math` in the sandbox: what IEEE 754 defines to the last bit. Random numbers and the transcendental
 * functions, whose last digits differ between C libraries, would let one policy decide differently on two
 * machines.
 */
#include "policy/env.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void push_whole(lua_State *L, double x)
{
        lua_Integer i;

        if (lua_numbertointeger(x, &i))
                lua_pushinteger(L, i);
        else
                lua_pushnumber(L, x);
}

static int raw_abs(lua_State *L)
{
        if (lua_isinteger(L, 1)) {
                lua_Integer i = lua_tointeger(L, 1);

                lua_pushinteger(L, i < 0 ? (lua_Integer)(0u - (lua_Unsigned)i) : i);
        } else {
                luaL_checktype(L, 1, LUA_TNUMBER);
                lua_pushnumber(L, fabs(lua_tonumber(L, 1)));
        }
        return 1;
}

static int round_with(lua_State *L, double (*f)(double))
{
        luaL_checktype(L, 1, LUA_TNUMBER);
        if (lua_isinteger(L, 1))
                lua_settop(L, 1);
        else
                push_whole(L, f(lua_tonumber(L, 1)));
        return 1;
}

static int raw_ceil(lua_State *L)
{
        return round_with(L, ceil);
}

static int raw_floor(lua_State *L)
{
        return round_with(L, floor);
}

static int raw_fmod(lua_State *L)
{
        luaL_checktype(L, 1, LUA_TNUMBER);
        luaL_checktype(L, 2, LUA_TNUMBER);
        if (!lua_isinteger(L, 1) || !lua_isinteger(L, 2)) {
                lua_pushnumber(L, fmod(lua_tonumber(L, 1), lua_tonumber(L, 2)));
                return 1;
        }
        luaL_argcheck(L, lua_tointeger(L, 2) != 0, 2, "zero");
        /* The smallest integer by -1 overflows in C. */
        lua_pushinteger(L, lua_tointeger(L, 2) == -1 ? 0 : lua_tointeger(L, 1) % lua_tointeger(L, 2));
        return 1;
}

static int extreme(lua_State *L, int op)
{
        int best = 1;

        luaL_checktype(L, 1, LUA_TNUMBER);
        for (int i = 2; i <= lua_gettop(L); i++) {
                luaL_checktype(L, i, LUA_TNUMBER);
                if (op < 0 ? lua_compare(L, i, best, LUA_OPLT) : lua_compare(L, best, i, LUA_OPLT))
                        best = i;
        }
        lua_pushvalue(L, best);
        return 1;
}

static int raw_max(lua_State *L)
{
        return extreme(L, 1);
}

static int raw_min(lua_State *L)
{
        return extreme(L, -1);
}

static int raw_modf(lua_State *L)
{
        double x, whole;

        luaL_checktype(L, 1, LUA_TNUMBER);
        x = lua_tonumber(L, 1);
        whole = x < 0 ? ceil(x) : floor(x);
        lua_pushnumber(L, whole);
        lua_pushnumber(L, x == whole ? 0.0 : x - whole);
        return 2;
}

static int raw_sqrt(lua_State *L)
{
        luaL_checktype(L, 1, LUA_TNUMBER);
        lua_pushnumber(L, sqrt(lua_tonumber(L, 1)));
        return 1;
}

static int raw_tointeger(lua_State *L)
{
        int is_integer = 0;
        lua_Integer i = lua_type(L, 1) == LUA_TNUMBER ? lua_tointegerx(L, 1, &is_integer) : 0;

        luaL_checkany(L, 1);
        if (is_integer)
                lua_pushinteger(L, i);
        else
                lua_pushnil(L);
        return 1;
}

static int raw_type(lua_State *L)
{
        luaL_checkany(L, 1);
        if (lua_type(L, 1) == LUA_TNUMBER)
                lua_pushstring(L, lua_isinteger(L, 1) ? "integer" : "float");
        else
                lua_pushnil(L);
        return 1;
}

static int raw_ult(lua_State *L)
{
        lua_pushboolean(L, (lua_Unsigned)luaL_checkinteger(L, 1) < (lua_Unsigned)luaL_checkinteger(L, 2));
        return 1;
}

void rv_lib_push_constant(lua_State *L, const char *name)
{
        if (strcmp(name, "huge") == 0)
                lua_pushnumber(L, HUGE_VAL);
        else if (strcmp(name, "pi") == 0)
                lua_pushnumber(L, 3.141592653589793238462643383279502884);
        else
                lua_pushinteger(L, strcmp(name, "maxinteger") == 0 ? LUA_MAXINTEGER : LUA_MININTEGER);
}

const luaL_Reg rv_lib_math[] = {
        { "abs", raw_abs }, { "ceil", raw_ceil }, { "floor", raw_floor }, { "fmod", raw_fmod }, { "max", raw_max },
        { "min", raw_min }, { "modf", raw_modf }, { "sqrt", raw_sqrt }, { "tointeger", raw_tointeger },
        { "type", raw_type }, { "ult", raw_ult }, { NULL, NULL },
};
