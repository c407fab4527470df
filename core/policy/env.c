#include "policy/env.h"

#include "policy/matcher.h"

#include <stdio.h>
#include <string.h>

static int raw_index_env(lua_State *L);
static int raw_index_string(lua_State *L);
static int raw_index_table(lua_State *L);
static int raw_index_math(lua_State *L);
static int raw_index_version(lua_State *L);

static const luaL_Reg lib_version[] = { { "compare", raw_version_compare }, { NULL, NULL } };

static const char *const math_constants[] = { "huge", "maxinteger", "mininteger", "pi", NULL };
static const char *const no_constants[] = { NULL };

/* Names are looked up in these, so that a state has no table to fill. The first is `_ENV` itself. */
static const struct lib {
        const char *name;
        const luaL_Reg *functions;
        const char *const *constants;
        lua_CFunction index;
} libs[] = {
        { "", rv_lib_base, no_constants, raw_index_env },
        { "string", rv_lib_string, no_constants, raw_index_string },
        { "table", rv_lib_table, no_constants, raw_index_table },
        { "math", rv_lib_math, math_constants, raw_index_math },
        { "version", lib_version, no_constants, raw_index_version },
};

static void list_names(const struct lib *lib, char *ret, size_t n)
{
        size_t at = 0;

        ret[0] = 0;
        for (const luaL_Reg *f = lib->functions; f->name && at < n; f++)
                at += (size_t)snprintf(ret + at, n - at, "%s%s", at ? ", " : "", f->name);
        for (const char *const *c = lib->constants; *c && at < n; c++)
                at += (size_t)snprintf(ret + at, n - at, ", %s", *c);
        for (size_t i = 1; lib == &libs[0] && i < RV_N_ELEMENTS(libs) && at < n; i++)
                at += (size_t)snprintf(ret + at, n - at, ", %s", libs[i].name);
}

int rv_env_describe_missing(const char *lib, const char *name, char *ret, size_t n)
{
        char names[RV_ENGINE_MESSAGE_MAX];

        for (size_t i = 0; i < RV_N_ELEMENTS(libs); i++) {
                if (strcmp(libs[i].name, lib) != 0)
                        continue;
                list_names(&libs[i], names, sizeof(names));
                return i == 0 ? snprintf(ret, n, "undefined global '%.60s'; there are %s", name, names)
                              : snprintf(ret, n, "there is no %s.%.60s here; there are %s", lib, name, names);
        }
        return 0;
}

static const luaL_Reg *find_function(const struct lib *lib, const char *name)
{
        for (const luaL_Reg *f = lib->functions; f->name; f++)
                if (strcmp(f->name, name) == 0)
                        return f;
        return NULL;
}

static bool has_constant(const struct lib *lib, const char *name)
{
        for (const char *const *c = lib->constants; *c; c++)
                if (strcmp(*c, name) == 0)
                        return true;
        return false;
}

static int read_name(lua_State *L, const struct lib *lib)
{
        const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
        const luaL_Reg *f = name ? find_function(lib, name) : NULL;
        char text[RV_ENGINE_MESSAGE_MAX];

        if (f) {
                lua_pushcfunction(L, f->func);
                return 1;
        }
        if (name && has_constant(lib, name)) {
                rv_lib_push_constant(L, name);
                return 1;
        }
        for (size_t i = 1; name && lib == &libs[0] && i < RV_N_ELEMENTS(libs); i++) {
                if (strcmp(libs[i].name, name) != 0)
                        continue;
                lua_rawgetp(L, LUA_REGISTRYINDEX, &libs[i]);
                return 1;
        }
        rv_env_describe_missing(lib->name, name ? name : "[…]", text, sizeof(text));
        return rv_engine_raise(L, "%s", text);
}

static int raw_index_env(lua_State *L)
{
        return read_name(L, &libs[0]);
}

static int raw_index_string(lua_State *L)
{
        return read_name(L, &libs[1]);
}

static int raw_index_table(lua_State *L)
{
        return read_name(L, &libs[2]);
}

static int raw_index_math(lua_State *L)
{
        return read_name(L, &libs[3]);
}

static int raw_index_version(lua_State *L)
{
        return read_name(L, &libs[4]);
}

static int raw_newindex(lua_State *L)
{
        const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "[…]";

        return rv_engine_raise(L, "'%.60s' cannot be set: globals and libraries are frozen; use a local variable", name);
}

static void push_frozen(lua_State *L, const struct lib *lib)
{
        lua_createtable(L, 0, 0);
        lua_createtable(L, 0, 4);
        lua_pushcfunction(L, lib->index);
        lua_setfield(L, -2, "__index");
        lua_pushcfunction(L, raw_newindex);
        lua_setfield(L, -2, "__newindex");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        if (lib->functions == lib_version) {
                lua_pushcfunction(L, raw_version);
                lua_setfield(L, -2, "__call");
        }
        lua_setmetatable(L, -2);
}

/*
 * All strings share one metatable, through which ("").rep would reach an unbounded function whatever `_ENV`
 * holds. It has no arithmetic either: "10" + 5 is an error and not 15.
 */
static void open_strings(lua_State *L)
{
        lua_pushliteral(L, "");
        lua_createtable(L, 0, 2);
        lua_pushcfunction(L, raw_index_string);
        lua_setfield(L, -2, "__index");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_setmetatable(L, -2);
        lua_pop(L, 1);
}

void rv_env_open(lua_State *L)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(libs); i++) {
                push_frozen(L, &libs[i]);
                lua_rawsetp(L, LUA_REGISTRYINDEX, &libs[i]);
        }
        open_strings(L);
        rv_matcher_open(L);
}

void rv_env_push(lua_State *L)
{
        lua_rawgetp(L, LUA_REGISTRYINDEX, &libs[0]);
}

bool rv_env_has(const char *name, const char *member)
{
        for (size_t i = 1; i < RV_N_ELEMENTS(libs); i++)
                if (strcmp(libs[i].name, name) == 0)
                        return !member || find_function(&libs[i], member) || has_constant(&libs[i], member);
        return find_function(&libs[0], name) != NULL;
}

void rv_env_each(void (*visit)(void *userdata, const char *name), void *userdata)
{
        char text[80];

        for (size_t i = 0; i < RV_N_ELEMENTS(libs); i++) {
                const char *dot = i ? "." : "";

                if (i)
                        visit(userdata, libs[i].name);
                for (const luaL_Reg *f = libs[i].functions; f->name; f++) {
                        snprintf(text, sizeof(text), "%s%s%s", libs[i].name, dot, f->name);
                        visit(userdata, text);
                }
                for (const char *const *c = libs[i].constants; *c; c++) {
                        snprintf(text, sizeof(text), "%s%s%s", libs[i].name, dot, *c);
                        visit(userdata, text);
                }
        }
}
