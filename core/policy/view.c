#include "policy/view.h"

#include "policy/engine.h"
#include "policy/object.h"

#include <lauxlib.h>
#include <string.h>

static const char metatable_key;

static void push_view(lua_State *L, const json_t *value, enum rv_view_kind kind, enum rv_fact_set set)
{
        struct rv_view *v = lua_newuserdatauv(L, sizeof(*v), 0);

        *v = (struct rv_view){ value, kind, set };
        lua_rawgetp(L, LUA_REGISTRYINDEX, &metatable_key);
        lua_setmetatable(L, -2);
}

void rv_view_push(lua_State *L, const json_t *value)
{
        if (!value) {
                lua_pushnil(L);
                return;
        }
        switch (json_typeof(value)) {
        case JSON_STRING:
                rv_engine_charge_bytes(L, json_string_length(value));
                lua_pushlstring(L, json_string_value(value), json_string_length(value));
                return;
        case JSON_INTEGER: lua_pushinteger(L, json_integer_value(value)); return;
        case JSON_REAL: lua_pushnumber(L, json_real_value(value)); return;
        case JSON_TRUE: lua_pushboolean(L, 1); return;
        case JSON_FALSE: lua_pushboolean(L, 0); return;
        case JSON_NULL: lua_pushnil(L); return;
        case JSON_ARRAY: push_view(L, value, RV_VIEW_LIST, _RV_FACTS_MAX); return;
        case JSON_OBJECT: push_view(L, value, RV_VIEW_OBJECT, _RV_FACTS_MAX); return;
        }
}

void rv_view_push_record(lua_State *L, const json_t *value, enum rv_fact_set set)
{
        push_view(L, value, RV_VIEW_RECORD, set);
}

const struct rv_view *rv_view_test(lua_State *L, int index)
{
        return rv_object_test(L, index, &metatable_key);
}

/* A name that is not in a record: a fact that is not known yet, or one that there is not. */
static int missing(lua_State *L, const struct rv_view *v, const char *name)
{
        const char *stage = rv_json_get_string(v->value, "stage", "");
        const struct rv_fact *fact = rv_fact_find(v->set, name);
        char names[400];

        if (fact && fact->is_resolved_only && strcmp(stage, "resolved") != 0)
                return rv_engine_undecided(L);
        if (fact)
                rv_engine_lacks(rv_engine_of(L), fact->name, v->value);
        if (fact && fact->is_resolved_only)
                return rv_engine_raise(L, "%s", rv_fact_describe_lack(name, v->value, names, sizeof(names)));
        return rv_engine_raise(L, "unknown fact '%.60s' of %s; there are %s", name, rv_fact_tables[v->set].title,
                rv_fact_list(v->set, names, sizeof(names)));
}

static int raw_index_record(lua_State *L, const struct rv_view *v)
{
        const json_t *value;
        const char *name;

        if (lua_type(L, 2) != LUA_TSTRING)
                return rv_engine_raise(L, "the facts of %s are read by name", rv_fact_tables[v->set].title);
        name = lua_tostring(L, 2);
        value = rv_fact_find(v->set, name) ? json_object_get(v->value, name) : NULL;
        if (!value)
                return missing(L, v, name);
        if (v->set == RV_FACTS_REQUEST && strcmp(name, "tenant") == 0)
                rv_view_push_record(L, value, RV_FACTS_TENANT);
        else
                rv_view_push(L, value);
        return 1;
}

static int raw_index(lua_State *L)
{
        const struct rv_view *v = lua_touserdata(L, 1);
        lua_Integer i;
        int is_integer;

        rv_engine_charge(L, 1);
        if (v->kind == RV_VIEW_RECORD)
                return raw_index_record(L, v);
        if (v->kind == RV_VIEW_OBJECT) {
                size_t n;
                const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &n) : NULL;

                rv_view_push(L, key && strlen(key) == n ? json_object_get(v->value, key) : NULL);
                return 1;
        }
        if (lua_type(L, 2) != LUA_TNUMBER)
                return rv_engine_raise(L, "a list has entries 1, 2, … and no members");
        i = lua_tointegerx(L, 2, &is_integer);
        rv_view_push(L, is_integer && i >= 1 ? json_array_get(v->value, (size_t)i - 1) : NULL);
        return 1;
}

static int raw_newindex(lua_State *L)
{
        return rv_engine_raise(L, "facts and data are read-only");
}

static int raw_len(lua_State *L)
{
        const struct rv_view *v = lua_touserdata(L, 1);

        lua_pushinteger(L, v->kind == RV_VIEW_LIST ? (lua_Integer)json_array_size(v->value)
                : (lua_Integer)json_object_size(v->value));
        return 1;
}

static int raw_eq(lua_State *L)
{
        const struct rv_view *a = rv_view_test(L, 1), *b = rv_view_test(L, 2);

        lua_pushboolean(L, a && b && a->value == b->value);
        return 1;
}

void rv_view_open(lua_State *L)
{
        static const luaL_Reg methods[] = {
                { "__index", raw_index }, { "__newindex", raw_newindex }, { "__len", raw_len }, { "__eq", raw_eq }, { NULL, NULL },
        };

        lua_createtable(L, 0, 6);
        luaL_setfuncs(L, methods, 0);
        /* What Lua's own messages call it: "attempt to call a table value". */
        lua_pushliteral(L, "table");
        lua_setfield(L, -2, "__name");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_rawsetp(L, LUA_REGISTRYINDEX, &metatable_key);
}
