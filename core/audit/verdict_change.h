/*
 * verdict_change.h - two verdicts on the same facts, compared
 *
 * Once for those who look for what went wrong: the places in which they differ. Once for those who write policy: what
 * the difference means for a run. `before` is the verdict as it was (recorded), `now` the other's. Verdicts may come
 * from a log, so they may hold anything. Plain functions; any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

/* X(NAME, word, text). Those that can be asked for as a gate come first. */
#define RV_CHANGES(X) \
        X(ALLOW, "allow", "deny → allow") \
        X(DENY, "deny", "allow → deny") \
        X(WIDEN, "widen", "network widened") \
        X(BACKEND, "backend", "backend changed") \
        X(KEY, "key", "key no longer required") \
        X(NARROW, "narrow", "network narrowed") \
        X(KEY_ASKED, "key_asked", "key now required") \
        X(LIMIT_RAISED, "limit_raised", "limit raised") \
        X(LIMIT_LOWERED, "limit_lowered", "limit lowered") \
        X(OTHER, "other", "denied for other reasons")

enum rv_change {
#define X(name, word, text) RV_CHANGE_##name,
        RV_CHANGES(X)
#undef X
        RV_CHANGE_MAX_,
};
#define RV_CHANGE_GATES (RV_CHANGE_KEY + 1)      /* how many of them can be a gate */

extern const char *const rv_change_words[RV_CHANGE_MAX_], *const rv_change_texts[RV_CHANGE_MAX_];

struct rv_verdict_change {
        enum rv_change change;
        const char *section;
        const char *rule_before, *rule_now;      /* that decide; "" where none does */
        const char *before, *now;                /* codes, backends, limits' values; "" where there is nothing to tell */
};

/** rv_verdict_change_fn - told of each change; the texts live for the call */
typedef void (*rv_verdict_change_fn)(void *ctx, const struct rv_verdict_change *change);

/**
 * rv_verdict_changes() - what the difference means for the run
 * @facts: of both
 * @fn:    called at most once for each kind of change (twice for limits); not at all where they mean the same
 *
 * Network access is what a mode other than `none`, or a domain of mode `domains`, was allowed; it is wider where an
 * item is allowed that was not, whatever else denies the run. Which rule allows, and the words and places of rules, are
 * no difference; which rules deny is OTHER, where nothing else is told.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    none
 */
void rv_verdict_changes(
        const json_t *facts, const json_t *before, const json_t *now, rv_verdict_change_fn fn, void *ctx);

/**
 * rv_verdict_fields() - JSON pointers to what differs, separated by blanks, the rest counted
 * @most: pointers at most
 *
 * Context:   any
 * Ownership: adds to @out
 * Return:    0 or -ENOMEM
 */
int rv_verdict_fields(const json_t *before, const json_t *now, unsigned most, struct rv_buf *out);

/** rv_verdict_is_newly_undecided() - does @now leave a package to a later stage that @before decided? Context: any. Ownership: borrows. Return: as named */
bool rv_verdict_is_newly_undecided(const json_t *before, const json_t *now);
