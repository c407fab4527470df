/* What the policy language makes of a table: userdata that a script can pass on and nothing else. */
#pragma once

#include <lua.h>
#include <stddef.h>

/**
 * rv_object_push() - push a new object's anchor, a table for what it refers to, and the object
 * @size: bytes of it, which are zeroed
 * @kind: what tells this kind from others, by its address; its metatable is made at the first
 * @name: of the kind, for messages
 *
 * Context:   inside Lua; raises when memory ends
 * Ownership: the state's; lives as long as it is reachable
 * Return:    the object
 */
void *rv_object_push(lua_State *L, size_t size, const void *kind, const char *name);

/** rv_object_test() - the object at @index if it is of @kind. Context: inside Lua. Ownership: borrowed. Return: NULL if it is not */
void *rv_object_test(lua_State *L, int index, const void *kind);
