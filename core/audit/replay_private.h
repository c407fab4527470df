/*
 * replay_private.h - what the files of replay share
 *
 * A worker is one thread's: what it keeps from one record to the next makes it faster and changes nothing. A part is
 * the result of one stretch of the log. One thread each.
 */
#pragma once

#include "audit/bundle_cache.h"
#include "audit/replay.h"
#include "base/canonical.h"
#include "base/hash.h"

struct rv_replay_worker {
        const struct rv_replay_input *input;
        struct rv_bundle_cache bundles;
        struct rv_canonical_cache cache;
        struct rv_buf verdict;                   /* as it came out, canonical */
        struct rv_buf engine;                    /* this one's, canonical */
        struct rv_span limits;                   /* in it */
        struct rv_buf other_engine;              /* the last that was another, */
        bool is_other_same;                      /* and whether it judges as this one */
};

/* A decision record as far as it was read. */
struct rv_replay_record {
        const struct rv_lines *where;
        struct rv_span bundle, context_sha256, decision_id, engine, facts_text, shadow, tenant, verdict_text,
                verdict_sha256;
        bool is_decision;
        int64_t seq, time_us;
        json_t *facts;
        /* Of the verdict that came out. */
        bool is_evaluated, is_same;
        int error;                               /* of the evaluator */
        const char *lacking;
        json_t *verdict;
};

/** rv_replay_worker_init() - Context: any. Ownership: release with rv_replay_worker_fini(), also after a failure. Return: 0 or -ENOMEM */
int rv_replay_worker_init(struct rv_replay_worker *w, const struct rv_replay_input *input);
/** rv_replay_worker_fini() - release. Context: any. Ownership: takes the content. Return: none */
void rv_replay_worker_fini(struct rv_replay_worker *w);

/**
 * rv_replay_line() - count one line of the log
 * @where: its segment and offset, for messages
 * @part:  added to
 *
 * Context:   the worker's thread
 * Ownership: borrows
 * Return:    0 or -ENOMEM
 */
int rv_replay_line(struct rv_replay_worker *w, const char *line, size_t n, const struct rv_lines *where,
        struct rv_replay_result *part);

/** rv_replay_is_redacted() - does a value hold something hidden (redact.h)? Canonical form has no such bytes inside a text, where quotes are escaped. Context: any. Ownership: borrows. Return: as named */
bool rv_replay_is_redacted(struct rv_span s);
/** rv_replay_is_context_right() - is context_sha256 the digest of what stands in the record? Context: the worker's thread. Ownership: borrows. Return: as named */
bool rv_replay_is_context_right(const struct rv_replay_worker *w, const struct rv_replay_record *rec);
/** rv_replay_is_digest_right() - is @recorded the digest of a value as it lies? Context: any. Ownership: borrows. Return: as named */
bool rv_replay_is_digest_right(struct rv_span text, struct rv_span recorded);
/** rv_replay_has_same_engine() - does the engine of a record judge as this one? The release of reeve around it does not matter. Context: the worker's thread. Ownership: borrows. Return: 0 or -ENOMEM */
int rv_replay_has_same_engine(struct rv_replay_worker *w, struct rv_span engine, bool *ret);
/** rv_replay_text() - a text without its quotes; of what is hidden its commitment; anything else as it lies. Context: any. Ownership: points into @s. Return: it */
struct rv_span rv_replay_text(struct rv_span s);

/** rv_replay_add() - count one more, and keep it as an example if there is room. Context: any. Ownership: copies. Return: none */
void rv_replay_add(struct rv_replay_count *count, uint64_t seq, struct rv_span decision_id);
/** rv_replay_add_change() - count a change of a tenant's decision. Context: any. Ownership: copies. Return: 0 or -ENOMEM */
int rv_replay_add_change(struct rv_replay_result *result, const struct rv_verdict_change *change, struct rv_span tenant,
        uint64_t seq, struct rv_span decision_id);
/** rv_replay_group_fini() - release the texts. Context: any. Ownership: takes the content. Return: none */
void rv_replay_group_fini(struct rv_replay_group *group);
/** rv_replay_group_make() - a group of one decision's change. Context: any. Ownership: copies; release with rv_replay_group_fini(). Return: 0 or -ENOMEM */
int rv_replay_group_make(const struct rv_verdict_change *change, struct rv_span tenant, uint64_t seq,
        struct rv_span decision_id, struct rv_replay_group *ret);
/** rv_replay_merge() - add what comes after; @part is used up. Context: any. Ownership: takes what @part holds, not @part. Return: 0 or -ENOMEM */
int rv_replay_merge(struct rv_replay_result *result, struct rv_replay_result *part);
