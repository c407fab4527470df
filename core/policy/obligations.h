/*
 * obligations.h - what a verdict obliges the resolver to
 *
 * Gathered from the entries of `packages` that carry obligations, of either stage, into one value that the resolver
 * is given:
 *
 *     { "pins": {"idna": "3.4"}, "newest_published_s": 604800, "require_hash": ["idna"], "source_build": ["lxml"] }
 *
 * `newest_published_s` is the strictest of all, absent where no rule has it. Lists are sorted, each name once. Of two
 * pins of one name (two versions in a closure) the first in the verdict's order stands. What comes of a round of
 * resolving is judged again; obligations of that verdict are joined to those of before, and a round that brings nothing
 * new ends it. Plain values; one thread at a time.
 */
#pragma once

#include "base/json.h"

/**
 * rv_policy_obligations() - those of one verdict
 * @ret: untouched on failure
 *
 * Context:   any thread
 * Ownership: borrows; a new reference to the caller
 * Return:    0 or -ENOMEM
 */
int rv_policy_obligations(const json_t *verdict, json_t **ret);

/**
 * rv_policy_obligations_join() - add @more to @into
 * @ret_is_new: did that change @into? May be NULL
 *
 * Context:   any thread
 * Ownership: borrows @more, changes @into
 * Return:    0 or -ENOMEM, @into is then partly changed
 */
int rv_policy_obligations_join(json_t *into, const json_t *more, bool *ret_is_new);

/** rv_policy_obligations_is_none() - is there nothing in it? Context: any. Ownership: borrows. Return: as named */
bool rv_policy_obligations_is_none(const json_t *obligations);

/**
 * rv_policy_verdict_is_of_obligations() - is each denial one for an obligation that was not met?
 *
 * Then resolving again with what the verdict obliges to may find what can be allowed; a rule that denies by itself
 * would deny again.
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    as named; false for a verdict that allows
 */
bool rv_policy_verdict_is_of_obligations(const json_t *verdict);
