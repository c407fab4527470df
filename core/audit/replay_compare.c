#include "audit/replay_compare.h"

#include "audit/replay_pair.h"
#include "policy/decide.h"
#include "policy/facts.h"
#include "policy/obligations.h"

#include <string.h>

struct changes {
        struct rv_replay_result *part;
        const struct rv_replay_record *rec;
        struct rv_replay_stage *stage;           /* takes what hangs on the run's other stage; NULL: nothing does */
        int r;
        bool is_any;                             /* told already */
};

static bool has_packages(const struct rv_replay_record *rec)
{
        return json_array_size(json_object_get(rec->facts, "packages")) > 0;
}

enum rv_replay_evidence rv_replay_judge_evidence(const struct rv_replay_record *rec, const json_t *recorded)
{
        bool was_allowed = rv_policy_verdict_is_allow(recorded);

        if (rec->lacking)
                return RV_REPLAY_EVIDENCE_MISSING;
        if (rv_facts_is_resolved(rec->facts))
                return was_allowed && rv_policy_verdict_is_of_obligations(rec->verdict) ? RV_REPLAY_EVIDENCE_MISSING
                                                                                        : RV_REPLAY_EVIDENCE_THERE;
        if (!rv_policy_verdict_is_allow(rec->verdict) || !rv_verdict_is_newly_undecided(recorded, rec->verdict))
                return RV_REPLAY_EVIDENCE_THERE;
        return was_allowed ? RV_REPLAY_EVIDENCE_RESOLVED : RV_REPLAY_EVIDENCE_MISSING;
}

static int keep(struct changes *c, const struct rv_verdict_change *change, bool is_changed)
{
        rv_replay_stage_fini(c->stage);
        c->stage->is_changed = is_changed;
        return rv_replay_group_make(change, rv_replay_text(c->rec->tenant), (uint64_t)c->rec->seq,
                rv_span_string(c->rec->decision_id), &c->stage->change);
}

static void on_change(void *ctx, const struct rv_verdict_change *change)
{
        bool is_of_effect = change->change == RV_CHANGE_ALLOW || change->change == RV_CHANGE_DENY ||
                change->change == RV_CHANGE_OTHER;
        struct changes *c = ctx;

        if (c->r < 0)
                return;
        if (c->stage && is_of_effect) {
                c->r = keep(c, change, true);
                return;
        }
        c->is_any = true;
        c->r = rv_replay_add_change(c->part, change, rv_replay_text(c->rec->tenant), (uint64_t)c->rec->seq,
                rv_span_string(c->rec->decision_id));
}

/* What denied it before, in case that an earlier stage does now; of one that was allowed only whose it is. */
static int keep_unchanged(struct changes *c, const json_t *before)
{
        const json_t *denial = json_array_get(json_object_get(before, "denials"), 0);
        struct rv_verdict_change change = {
                .change = RV_CHANGE_OTHER, .section = rv_json_get_string(denial, "section", ""), .rule_before = rv_json_get_string(denial, "rule", ""),
                .rule_now = "", .before = rv_json_get_string(before, "code", ""), .now = "",
        };

        return keep(c, &change, false);
}

static int compare(struct changes *c, const json_t *before, const json_t *now)
{
        if (before != now)
                rv_verdict_changes(c->rec->facts, before, now, on_change, c);
        if (c->stage && c->r == 0 && !c->stage->change.tenant)
                c->r = keep_unchanged(c, before);
        c->part->n_changed += c->is_any;
        return c->r;
}

/* Does anything of it hang on the run's other stage? */
static bool is_paired(const struct rv_replay_record *rec, const json_t *before, const json_t *now)
{
        if (rv_facts_is_resolved(rec->facts))
                return true;
        return has_packages(rec) && rv_policy_verdict_is_allow(before) && !rv_policy_verdict_is_allow(now);
}

static int compare_stage(struct changes *c, const json_t *before, const json_t *now, bool needs_resolved)
{
        struct rv_replay_stage stage = { 0 };
        int r;

        c->stage = &stage;
        r = compare(c, before, now);
        if (r < 0) {
                rv_replay_stage_fini(&stage);
                return r;
        }
        stage.is_resolved = rv_facts_is_resolved(c->rec->facts);
        stage.was_allowed = rv_policy_verdict_is_allow(before);
        stage.is_allowed = rv_policy_verdict_is_allow(now);
        stage.needs_resolved = needs_resolved;
        stage.is_told = c->is_any;
        if (needs_resolved)
                c->part->n_compared += c->is_any;
        return rv_replay_stage_add(c->part, &stage);
}

int rv_replay_compare(
        struct rv_replay_result *part, const struct rv_replay_record *rec, const json_t *before, const json_t *now)
{
        struct changes c = { .part = part, .rec = rec };

        part->n_compared++;
        return is_paired(rec, before, now) ? compare_stage(&c, before, now, false) : compare(&c, before, now);
}

int rv_replay_compare_undecided(
        struct rv_replay_result *part, const struct rv_replay_record *rec, const json_t *before, const json_t *now)
{
        struct changes c = { .part = part, .rec = rec };

        return compare_stage(&c, before, now, true);
}
