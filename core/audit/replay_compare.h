/*
 * replay_compare.h - what another verdict on the same facts would mean for the run
 *
 * Told in the terms of verdict_change.h, of the run and not of the record: what hangs on the run's other stage waits
 * for it (replay_pair.h). A worker's thread.
 */
#pragma once

#include "audit/replay_private.h"

/* What a candidate's verdict rests on. */
enum rv_replay_evidence {
        RV_REPLAY_EVIDENCE_THERE,
        RV_REPLAY_EVIDENCE_RESOLVED,   /* if the run's stage `resolved` is on record */
        RV_REPLAY_EVIDENCE_MISSING,
};

/**
 * rv_replay_judge_evidence() - are the recorded facts enough for the candidate's verdict, which is another?
 *
 * They are not where it read one that is missing; where it leaves a package to stage `resolved` and there can be no such
 * record; and where all that it denies is what the resolver was not obliged to: it would have chosen otherwise.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    as named
 */
enum rv_replay_evidence rv_replay_judge_evidence(const struct rv_replay_record *rec, const json_t *recorded);

/** rv_replay_compare() - tell what changes from @before to @now; they may be the same value. Context: any. Ownership: borrows; adds to @part. Return: 0 or -ENOMEM */
int rv_replay_compare(
        struct rv_replay_result *part, const struct rv_replay_record *rec, const json_t *before, const json_t *now);
/** rv_replay_compare_undecided() - the same where RV_REPLAY_EVIDENCE_RESOLVED: the decision is counted when that is known. Context: any. Ownership: borrows; adds to @part. Return: 0 or -ENOMEM */
int rv_replay_compare_undecided(
        struct rv_replay_result *part, const struct rv_replay_record *rec, const json_t *before, const json_t *now);
