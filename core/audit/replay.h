/*
 * replay.h - decisions of a log evaluated again
 *
 * Each decision record holds all that policy could read and the digest of the bundle that judged it. Replay has the
 * same evaluator judge the same facts by the same bundle and compares the verdict with the recorded one, byte for byte;
 * policy cannot tell it from the first time. With a candidate that bundle judges instead, and what is told is what
 * would have been different. Where a decision has a shadow's verdict too, that is replayed as well, and the difference
 * between the two recorded verdicts is told in the same terms.
 *
 *   rv_replay() -> the result is read -> rv_replay_free()
 *
 * The two decisions of a run with packages are replayed each, and counted each; what changes is told of the run, which
 * is denied if either denies (replay_pair.h).
 *
 * The log is read through once, in stretches that several threads share; results come together in the order of the log,
 * so they are the same whatever the number of threads. Memory is bounded by that number, not by the log: of what is
 * counted some examples are kept, those that come first. The chain is not looked at here (verify.h).
 *
 * A result is plain memory that rv_replay_free() releases. One thread at a time.
 */
#pragma once

#include "audit/lines.h"
#include "audit/verdict_change.h"
#include "policy/bundle.h"

#define RV_REPLAY_JOBS_MAX 64
#define RV_REPLAY_EXAMPLES 3             /* decisions named for each thing counted */
#define RV_REPLAY_DIFFERENCES 20         /* of them that are told in full */
#define RV_REPLAY_GROUPS_MAX 1000        /* of changes */
#define RV_REPLAY_ID_SIZE 33

/* X(NAME, word, text): why a decision cannot be evaluated again. */
#define RV_REPLAY_REASONS(X) \
        X(ENGINE, "engine", "made by another Lua release, sandbox or limits") \
        X(NO_BUNDLE, "no_bundle", "made without a bundle, as none could be loaded") \
        X(BUNDLE, "bundle", "the bundle is not there, or not what its digest says") \
        X(REDACTED, "redacted", "facts or verdict are redacted") \
        X(BUDGET, "budget", "the bound on memory was met once and not the other time") \
        X(TOO_LARGE, "too_large", "there was more to judge than a record holds, and it was denied without policy") \
        X(EVIDENCE, "needs_new_evidence", "the candidate needs a fact that was not recorded")

enum rv_replay_reason {
#define X(name, word, text) RV_REPLAY_##name,
        RV_REPLAY_REASONS(X)
#undef X
        RV_REPLAY_REASON_MAX_,
};
extern const char *const rv_replay_reason_words[RV_REPLAY_REASON_MAX_],
        *const rv_replay_reason_texts[RV_REPLAY_REASON_MAX_];

struct rv_replay_input {
        const struct rv_segments *segments;
        int bundles_fd;                          /* directory of bundles by digest, or -EBADF */
        const struct rv_bundle *candidate;       /* or NULL */
        uint64_t from_seq, to_seq;               /* both included */
        uint64_t from_us, to_us;                 /* both included */
        const char *tenant;                      /* or NULL: all */
        unsigned jobs;                           /* threads, 1 to RV_REPLAY_JOBS_MAX */
};

struct rv_replay_count {
        uint64_t n;
        unsigned n_examples;
        struct {
                uint64_t seq;
                char decision_id[RV_REPLAY_ID_SIZE];
        } examples[RV_REPLAY_EXAMPLES];
};

/* A verdict that came out different. */
struct rv_replay_difference {
        uint64_t seq;
        char decision_id[RV_REPLAY_ID_SIZE];
        bool is_shadow;
        char tenant[80], bundle[RV_REPLAY_ID_SIZE * 2], fields[300];
};

/* One kind of change, of one tenant, between two rules. */
struct rv_replay_group {
        enum rv_change change;
        char *tenant, *section, *rule_before, *rule_now, *before, *now;
        uint64_t hash;                           /* of all these */
        struct rv_replay_count count;
};

struct rv_replay_tally {
        uint64_t n_decisions;                    /* of which: */
        struct rv_replay_count same, diff, error, unreplayable[RV_REPLAY_REASON_MAX_];
};

struct rv_replay_result {
        uint64_t n_records;                      /* lines looked at, of all kinds */
        uint64_t oldest_us, newest_us;           /* of the decisions; 0 without any */
        struct rv_replay_tally enforced, shadow; /* enforced: or the candidate */
        struct rv_replay_difference differences[RV_REPLAY_DIFFERENCES];
        unsigned n_differences;
        /* From the recorded verdict to the candidate's, or from the enforced to the shadow's. */
        uint64_t n_compared, n_changed;          /* decisions */
        struct rv_replay_count changes[RV_CHANGE_MAX_];
        struct rv_replay_group *groups;          /* in the order in which they came up */
        size_t n_groups;
        uint64_t n_ungrouped;                    /* changes past RV_REPLAY_GROUPS_MAX */
        struct rv_replay_stage *stages;          /* replay_pair.h; none are left in a result */
        size_t n_stages, n_stages_room;
        json_t *waiting;
        uint64_t n_broken;                       /* decisions on which the candidate itself failed (policy_error) */
        char broken[256];                        /* how, on the first of them */
        /* Digests that do not fit what stands in the record. */
        uint64_t n_corrupt;
        char corrupt[256];                       /* the first: where, and what */
};

/**
 * rv_replay() - evaluate the decisions of a log again
 * @ret: untouched on failure
 *
 * Context:   blocks; starts threads and ends them
 * Ownership: borrows @input meanwhile; release @ret with rv_replay_free()
 * Return:    0; -EBADMSG a log that cannot be read as one; -ENOMEM; -errno
 */
int rv_replay(const struct rv_replay_input *input, struct rv_replay_result **ret, struct rv_error *err);
/** rv_replay_free() - release; NULL is allowed. Context: any. Ownership: takes @result. Return: none */
void rv_replay_free(struct rv_replay_result *result);
RV_DEFINE_CLEANUP(struct rv_replay_result, rv_replay_free)

/** rv_replay_n_unreplayable() - those of all reasons. Context: any. Ownership: none. Return: the number */
uint64_t rv_replay_n_unreplayable(const struct rv_replay_tally *tally);
