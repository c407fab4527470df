/*
 * obligation.h - what a rule of section packages obliges those to whom it lets through
 *
 * An obligation narrows what may be chosen: it acts on the item that its rule allows, `newest_published` on the
 * whole closure. At stage `requested` the resolver is told (obligations.h); at stage `resolved` what was chosen is
 * held against it, and what does not satisfy it is denied. Part of a rule: lives as long as the state. One thread.
 */
#pragma once

#include "base/rv.h"

#include <lua.h>

#define RV_NEWEST_PUBLISHED_S_MAX ((int64_t)36500 * 86400)

struct rv_rule;

/* Zeroed: none. */
struct rv_obligations {
        const char *pin;
        int64_t newest_published_s;
        bool require_hash, allow_source_build;
};

/**
 * rv_obligation_duration() - an ISO 8601 duration of days, hours or weeks: P7D, PT12H, P1DT6H, P2W
 *
 * Years and months have no fixed length, and minutes are no age of a package: they are refused.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; -EINVAL it is none, is 0, or is more than 36,500 days
 */
int rv_obligation_duration(const char *text, size_t n, int64_t *ret_s);

/** rv_obligation_age() - "7 days", "1 day and 6 hours", "90 minutes". Context: any. Ownership: @ret has @n bytes. Return: @ret */
const char *rv_obligation_age(int64_t seconds, char *ret, size_t n);

/**
 * rv_obligation_is_pin() - is it one exact version?
 * @language: "python", "javascript", or NULL if it may be either
 *
 * Context:   any
 * Ownership: borrows
 * Return:    as named
 */
bool rv_obligation_is_pin(const char *language, const char *text);

/** rv_obligation_is_field() - Context: any. Ownership: borrows. Return: is it the name of an obligation about packages? */
bool rv_obligation_is_field(const char *name);

/**
 * rv_obligation_take() - one field of a `rule { … }`
 * @name:   rv_obligation_is_field(); its value is on top of the stack
 * @anchor: stack index of a table that keeps what the rule points at
 *
 * Context:   inside Lua; reports faults with rv_engine_report() at the rule's place
 * Ownership: by the state
 * Return:    none; fills the rule's `obliges`
 */
void rv_obligation_take(lua_State *L, struct rv_rule *rule, const char *name, int anchor);

/** rv_obligation_place() - may a rule of that section and verdict have what it has? Context: inside Lua; reports, once the rule's conditions are known. Ownership: borrows. Return: none */
void rv_obligation_place(lua_State *L, struct rv_rule *rule, bool can_oblige);
