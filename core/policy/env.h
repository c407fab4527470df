/*
 * env.h - the sandbox's environment: every name that policy can read
 *
 * `_ENV` and the libraries are empty tables whose reads are looked up in constant arrays of C functions, and
 * raise for what is not there; writing raises. So a state costs nothing to furnish and nothing in it can be
 * replaced. All functions here are for use inside Lua and may raise, unless said otherwise.
 */
#pragma once

#include "policy/engine.h"

#include <lauxlib.h>

/* Name, functions ending with {NULL, NULL}. */
extern const luaL_Reg rv_lib_base[];
extern const luaL_Reg rv_lib_string[];
extern const luaL_Reg rv_lib_table[];
extern const luaL_Reg rv_lib_math[];

/** rv_env_open() - make the environment and the metatable of strings. Context: once in a state. Ownership: none. Return: none */
void rv_env_open(lua_State *L);
/** rv_env_push() - push `_ENV`. Context: inside Lua. Ownership: none. Return: none */
void rv_env_push(lua_State *L);

/** rv_env_has() - is @name readable, or, with @member, is `name.member`? Needs no state. Context: any. Ownership: borrows. Return: as named; a @name that is no library has every member */
bool rv_env_has(const char *name, const char *member);

/** rv_env_each() - call @visit with each readable name ("math.abs"), in no order. Needs no state. Context: any. Ownership: borrows. Return: none */
void rv_env_each(void (*visit)(void *userdata, const char *name), void *userdata);

/** rv_env_describe_missing() - the message for a global (@lib "") or a library's member that is not there. Context: any. Ownership: borrows; @ret has @n bytes. Return: as snprintf(); 0 if @lib is no library */
int rv_env_describe_missing(const char *lib, const char *name, char *ret, size_t n);

/** raw_sort() - `sort(list [, before])` and `table.sort`, stable, in place. Context: called by Lua. Ownership: none. Return: nothing */
int raw_sort(lua_State *L);

/** rv_lib_push_constant() - push what of `math` is no function. Context: inside Lua. Ownership: borrows. Return: none */
void rv_lib_push_constant(lua_State *L, const char *name);

/**
 * rv_keys_push() - push a new list of a table's keys: integers ascending, then strings bytewise
 *
 * The order of Lua's own iteration differs from run to run. Raises for keys of any other kind, whose order
 * could only be that of addresses.
 *
 * Context:   inside Lua
 * Ownership: none
 * Return:    how many
 */
size_t rv_keys_push(lua_State *L, int table);

/** rv_text_push() - push a scalar as text, numbers the shortest that reads back the same. Context: inside Lua; raises for other values. Ownership: none. Return: the text on the stack */
const char *rv_text_push(lua_State *L, int index, size_t *ret_n);

/** rv_string_check_size() - refuse to make a string longer than one may be, and charge for it. Context: inside Lua; raises. Ownership: borrows. Return: none */
void rv_string_check_size(lua_State *L, const char *function, size_t n);

/** raw_format() - string.format. Context: called by Lua. Ownership: by the state. Return: one text */
int raw_format(lua_State *L);

/** rv_bytes_compare() - strings in bytewise order, whatever the locale. Context: any. Ownership: borrows. Return: as memcmp() */
int rv_bytes_compare(const char *a, size_t n_a, const char *b, size_t n_b);
