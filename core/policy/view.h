/*
 * view.h - JSON values as policy sees them: read-only, without a copy
 *
 * A view is a userdata that points at a jansson value of the facts or of a dataset, both of which outlive the
 * state. A record (the facts of an item) raises for a name it does not have; an object of a dataset, or the
 * tenant's labels, answers nil; a list answers its entries from 1. Writing raises. `#` counts, the sandbox's
 * `pairs` and `ipairs` iterate. All functions are for use inside Lua and may raise.
 */
#pragma once

#include "base/json.h"
#include "policy/fact_names.h"

#include <lua.h>

enum rv_view_kind { RV_VIEW_LIST, RV_VIEW_OBJECT, RV_VIEW_RECORD };

struct rv_view {
        const json_t *value;
        enum rv_view_kind kind;
        enum rv_fact_set set;   /* of a record */
};

/** rv_view_open() - make the metatable. Context: once in a state. Ownership: none. Return: none */
void rv_view_open(lua_State *L);
/** rv_view_push() - push any value; null and NULL are nil. Context: inside Lua. Ownership: borrows @value. Return: none */
void rv_view_push(lua_State *L, const json_t *value);
/** rv_view_push_record() - push the facts @value as a record of @set. Context: inside Lua. Ownership: borrows. Return: none */
void rv_view_push_record(lua_State *L, const json_t *value, enum rv_fact_set set);
/** rv_view_test() - Context: inside Lua. Ownership: borrowed from the stack's value. Return: the view at @index, or NULL if it is something else */
const struct rv_view *rv_view_test(lua_State *L, int index);
