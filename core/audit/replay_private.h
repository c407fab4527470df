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

/** rv_replay_add() - count one more, and keep it as an example if there is room. Context: any. Ownership: copies. Return: none */
void rv_replay_add(struct rv_replay_count *count, uint64_t seq, struct rv_span decision_id);
/** rv_replay_add_change() - count a change of a tenant's decision. Context: any. Ownership: copies. Return: 0 or -ENOMEM */
int rv_replay_add_change(struct rv_replay_result *result, const struct rv_verdict_change *change, struct rv_span tenant,
        uint64_t seq, struct rv_span decision_id);
/** rv_replay_merge() - add what comes after; @part is used up. Context: any. Ownership: takes what @part holds, not @part. Return: 0 or -ENOMEM */
int rv_replay_merge(struct rv_replay_result *result, struct rv_replay_result *part);
