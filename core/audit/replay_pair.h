/*
 * replay_pair.h - the two decisions of one run, told as one
 *
 * A run with packages has a decision of stage `requested` and, if that allows, one of stage `resolved`; it is denied
 * if either denies. So what another bundle would change of the one is told only when what it says of the other is
 * known: a package denied as requested is no allow → deny of a run that was denied as resolved, and a package that
 * waits for the stage `resolved` lacks no evidence where that stage is on record.
 *
 *     a stretch: rv_replay_stage_add()*  ->  rv_replay_stages_merge() in the log's order  ->  rv_replay_stages_end()
 *
 * Of stages `requested` those wait that something hangs on, until their other one comes, which in a log is soon; what
 * is left at the end was never resolved. The threads of replay.h, under its mutex where results are shared.
 */
#pragma once

#include "audit/replay.h"

struct rv_replay_stage {
        bool is_resolved;
        bool was_allowed, is_allowed;        /* by the recorded and by the other verdict */
        bool needs_resolved;                 /* it leaves to stage `resolved` what the recorded verdict decided; not counted yet */
        bool is_changed;                     /* `change` is to be told */
        bool is_told;                        /* something else is told of it already, so it counts as compared and changed */
        struct rv_replay_group change;       /* the effect's; its one example is the decision. Where it was denied, by what */
};

/** rv_replay_stage_fini() - release. Context: any. Ownership: takes the content. Return: none */
void rv_replay_stage_fini(struct rv_replay_stage *stage);
/** rv_replay_stage_add() - keep a stage with the results of its stretch. Context: any. Ownership: takes the content of @stage, also on failure. Return: 0 or -ENOMEM */
int rv_replay_stage_add(struct rv_replay_result *part, struct rv_replay_stage *stage);
/** rv_replay_stages_merge() - tell what the stages of @part complete; those that wait go to @result. Context: in the order of the log. Ownership: takes the stages of @part. Return: 0 or -ENOMEM */
int rv_replay_stages_merge(struct rv_replay_result *result, struct rv_replay_result *part);
/** rv_replay_stages_end() - there is no more of the log: what waits has no other stage. Context: once, at the end. Ownership: none. Return: 0 or -ENOMEM */
int rv_replay_stages_end(struct rv_replay_result *result);
/** rv_replay_stages_fini() - release. Context: any. Ownership: takes the stages. Return: none */
void rv_replay_stages_fini(struct rv_replay_result *result);
