/*
 * matcher.h - `within { … }`, `version "…"` and globs: comparisons that a plain value cannot say
 *
 * A matcher is a userdata of the state; policy may also call it, `within { "a.example" }(n.domain)`. Matching
 * is linear in its input. One thread, that of the engine.
 */
#pragma once

#include "policy/engine.h"

#define RV_WITHIN_NAMES_MAX 10000
#define RV_DOMAIN_SIZE_MAX 253

enum rv_matcher_kind { RV_MATCHER_WITHIN, RV_MATCHER_VERSION };

struct rv_matcher {
        enum rv_matcher_kind kind;
        size_t n_names;
        const char *const *names;   /* `within`: canonical domain names */
        const char *set;            /* `version`: as written */
        size_t set_size;
};

/** raw_within() - `within { "example.com", … }`. Context: called by Lua. Ownership: by the state. Return: one userdata */
int raw_within(lua_State *L);
/** raw_version() - `version ">=1,<2"`, through the call of the `version` table. Context: called by Lua. Ownership: by the state. Return: one userdata */
int raw_version(lua_State *L);
/** raw_version_compare() - `version.compare(a, b [, language])`: -1, 0 or 1. Context: called by Lua. Ownership: none. Return: one integer */
int raw_version_compare(lua_State *L);

/** rv_matcher_open() - make the metatable. Context: once in a state. Ownership: none. Return: none */
void rv_matcher_open(lua_State *L);
/** rv_matcher_test() - Context: inside Lua. Ownership: borrowed from the stack's value. Return: the matcher at @index, or NULL */
const struct rv_matcher *rv_matcher_test(lua_State *L, int index);

/**
 * rv_matcher_has() - does a text fit
 *
 * Context:   any, one thread
 * Ownership: borrows
 * Return:    1, 0; -EINVAL the text is no version in @order, or the set none: @why (200 bytes) says which
 */
int rv_matcher_has(const struct rv_matcher *m, enum rv_version_order order, const char *text, size_t n, char *why);

/** rv_glob_has() - does all of a text fit a pattern in which `*` stands for any run of bytes? Linear. Context: any. Ownership: borrows. Return: as named */
bool rv_glob_has(const char *pattern, size_t n_pattern, const char *text, size_t n);
