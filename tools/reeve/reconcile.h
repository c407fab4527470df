/*
 * reconcile.h - does what the log says of decisions, outcomes, keys and stored bytes go together?
 *
 * The log is read through once. Held are some 60 bytes a decision and 80 a key, so a log of a million records takes
 * some 50 MiB. What does not go together is told by a callback, in the order in which it comes to light.
 *
 *   reconcile() -> (found)* -> the counts
 *
 * One thread.
 */
#pragma once

#include "audit.h"

/* X(name, what it means): the kinds of findings. */
#define RECONCILE_KINDS(X)                                                                              \
        X(decision_without_outcome, "a decision has no outcome, and whoever made it is gone")            \
        X(outcome_without_decision, "an outcome, and so a run, without a decision")                      \
        X(outcome_before_decision, "an outcome stands before its decision")                              \
        X(two_outcomes, "a decision has more than one outcome")                                          \
        X(replay_without_outcome, "an outcome was given again that is not on record")                    \
        X(key_ran_twice, "an idempotency key let two runs begin within 24 hours")                        \
        X(stored_without_record, "stored bytes of an outcome that is not on record")                     \
        X(stored_differs, "stored bytes with another digest than the record's")                          \
        X(stored_missing, "an outcome that may still be asked for has no stored bytes")

enum reconcile_kind {
#define X(name, text) RECONCILE_##name,
        RECONCILE_KINDS(X)
#undef X
        RECONCILE_KINDS_MAX,
};

struct reconcile_finding {
        enum reconcile_kind kind;
        char decision_id[33];
        bool has_seq;
        uint64_t seq;            /* of the record that shows it */
        const char *detail;      /* further words, or "" */
};

struct reconcile_counts {
        uint64_t records, decisions, outcomes, in_flight, replays, keys, stored, findings;
};

/**
 * reconcile() - read a log through
 * @place: of it; where it is no state directory, stored bytes are not looked for
 * @found: called for each finding
 *
 * Context:   may block
 * Ownership: borrows; what @found gets is its until it returns
 * Return:    0, also with findings; -EBADMSG the log itself is damaged; -errno
 */
int reconcile(const struct audit_place *place, void (*found)(void *ctx, const struct reconcile_finding *finding),
        void *ctx, struct reconcile_counts *ret, struct rv_error *err);

/** reconcile_kind_name() - as in --json. Context: any. Ownership: static. Return: the name */
const char *reconcile_kind_name(enum reconcile_kind kind);
/** reconcile_kind_text() - for a person. Context: any. Ownership: static. Return: the text */
const char *reconcile_kind_text(enum reconcile_kind kind);
