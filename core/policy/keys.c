#include "policy/env.h"

#include "policy/view.h"

#include <string.h>

struct key {
        const char *text;   /* NULL: an integer */
        size_t n;
        lua_Integer integer;
};

int rv_bytes_compare(const char *a, size_t n_a, const char *b, size_t n_b)
{
        int r = memcmp(a, b, RV_MIN(n_a, n_b));

        return r ? r : n_a < n_b ? -1 : n_a > n_b;
}

static int compare_keys(const void *pa, const void *pb)
{
        const struct key *a = pa, *b = pb;

        if (!a->text || !b->text)
                return a->text ? 1 : b->text ? -1 : a->integer < b->integer ? -1 : a->integer > b->integer;
        return rv_bytes_compare(a->text, a->n, b->text, b->n);
}

static size_t log2_of(size_t n)
{
        size_t bits = 1;

        while (n >>= 1)
                bits++;
        return bits;
}

/* Fills @keys with a table's keys; their texts live as long as the table does not change. */
static size_t collect(lua_State *L, int table, struct key *keys)
{
        size_t n = 0;

        for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
                struct key *k = &keys[n++];

                *k = (struct key){ 0 };
                if (lua_type(L, -2) == LUA_TSTRING)
                        k->text = lua_tolstring(L, -2, &k->n);
                else if (lua_isinteger(L, -2))
                        k->integer = lua_tointeger(L, -2);
                else
                        rv_engine_raise(L, "a table that is iterated has texts and whole numbers as keys; this one has %s",
                                lua_type(L, -2) == LUA_TNUMBER ? "a fraction" : luaL_typename(L, -2));
        }
        return n;
}

static size_t collect_view(lua_State *L, const struct rv_view *view, struct key *keys)
{
        const char *name;
        json_t *value;
        size_t n = 0;

        if (view->kind == RV_VIEW_LIST) {
                for (size_t i = 0; i < json_array_size(view->value); i++)
                        keys[n++] = (struct key){ .integer = (lua_Integer)i + 1 };
                return n;
        }
        json_object_foreach((json_t *)view->value, name, value)
                keys[n++] = (struct key){ .text = name, .n = strlen(name) };
        return n;
}

/* Iterating a package's facts reads all of them, those that are not known yet too. */
static void check_record(lua_State *L, const struct rv_view *view)
{
        const struct rv_fact_table *t = &rv_fact_tables[RV_FACTS_PACKAGE];
        char text[400];

        if (view->kind != RV_VIEW_RECORD || view->set != RV_FACTS_PACKAGE)
                return;
        if (strcmp(rv_json_get_string(view->value, "stage", ""), "resolved") != 0)
                rv_engine_undecided(L);
        for (size_t i = 0; i < t->n_facts; i++) {
                if (!t->facts[i].is_resolved_only || json_object_get(view->value, t->facts[i].name))
                        continue;
                rv_engine_lacks(rv_engine_of(L), t->facts[i].name, view->value);
                rv_engine_raise(L, "%s", rv_fact_describe_lack(t->facts[i].name, view->value, text, sizeof(text)));
        }
}

size_t rv_keys_push(lua_State *L, int table)
{
        const struct rv_view *view = rv_view_test(L, table);
        struct key *keys;
        size_t n = 0;

        if (view) {
                check_record(L, view);
                n = view->kind == RV_VIEW_LIST ? json_array_size(view->value) : json_object_size(view->value);
        } else {
                for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
                        n++;
        }
        rv_engine_charge(L, 1 + n * log2_of(n) / 16);
        keys = lua_newuserdatauv(L, (n + 1) * sizeof(*keys), 0);
        n = view ? collect_view(L, view, keys) : collect(L, table, keys);
        qsort(keys, n, sizeof(*keys), compare_keys);
        lua_createtable(L, (int)n, 0);
        for (size_t i = 0; i < n; i++) {
                if (keys[i].text)
                        lua_pushlstring(L, keys[i].text, keys[i].n);
                else
                        lua_pushinteger(L, keys[i].integer);
                lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        lua_remove(L, -2);
        return n;
}
