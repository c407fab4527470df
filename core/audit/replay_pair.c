#include "audit/replay_pair.h"

#include "audit/replay_private.h"

#include <string.h>

static struct rv_span span_of(const char *text)
{
        return (struct rv_span){ text, strlen(text) };
}

static const char *id_of(const struct rv_replay_stage *s)
{
        return s->change.count.examples[0].decision_id;
}

void rv_replay_stage_fini(struct rv_replay_stage *stage)
{
        rv_replay_group_fini(&stage->change);
        *stage = (struct rv_replay_stage){ 0 };
}

int rv_replay_stage_add(struct rv_replay_result *part, struct rv_replay_stage *stage)
{
        if (part->n_stages == part->n_stages_room) {
                size_t n = part->n_stages_room ? part->n_stages_room * 2 : 16;
                struct rv_replay_stage *more = reallocarray(part->stages, n, sizeof(*more));

                if (!more) {
                        rv_replay_stage_fini(stage);
                        return rv_raise(-ENOMEM);
                }
                part->stages = more;
                part->n_stages_room = n;
        }
        part->stages[part->n_stages++] = *stage;
        *stage = (struct rv_replay_stage){ 0 };
        return 0;
}

void rv_replay_stages_fini(struct rv_replay_result *result)
{
        for (size_t i = 0; i < result->n_stages; i++)
                rv_replay_stage_fini(&result->stages[i]);
        free(result->stages);
        json_decref(result->waiting);
        result->stages = NULL;
        result->waiting = NULL;
        result->n_stages = result->n_stages_room = 0;
}

/* ---- Who waits ---- */

/* `waiting` says where in `stages` one stands. A record that came twice is no second run. */
static int wait_for_other(struct rv_replay_result *result, struct rv_replay_stage *stage)
{
        _cleanup_(rv_json_unrefp) json_t *at = json_integer((json_int_t)result->n_stages);
        int r;

        if (!result->waiting)
                result->waiting = json_object();
        if (!at || !result->waiting || json_object_set_nocheck(result->waiting, id_of(stage), at) < 0) {
                rv_replay_stage_fini(stage);
                return rv_raise(-ENOMEM);
        }
        r = rv_replay_stage_add(result, stage);
        if (r < 0)
                json_object_del(result->waiting, id_of(stage));
        return rv_trace(r);
}

/* Takes it out; the last one moves to its place. */
static bool take_waiting(struct rv_replay_result *result, const char *id, struct rv_replay_stage *ret)
{
        const json_t *at = json_object_get(result->waiting, id);
        size_t i = (size_t)json_integer_value(at), last = result->n_stages - 1;

        if (!at)
                return false;
        *ret = result->stages[i];
        json_object_del(result->waiting, id);
        result->n_stages--;
        if (i == last)
                return true;
        result->stages[i] = result->stages[last];
        at = json_object_get(result->waiting, id_of(&result->stages[i]));
        if ((size_t)json_integer_value(at) == last)
                json_integer_set((json_t *)at, (json_int_t)i);
        return true;
}

/* ---- Telling ---- */

static int tell(
        struct rv_replay_result *result, const struct rv_replay_stage *s, const struct rv_verdict_change *change)
{
        const struct rv_replay_count *where = &s->change.count;

        result->n_changed += !s->is_told;
        return rv_replay_add_change(
                result, change, span_of(s->change.tenant), where->examples[0].seq, span_of(id_of(s)));
}

static int tell_own(struct rv_replay_result *result, const struct rv_replay_stage *s)
{
        const struct rv_replay_group *g = &s->change;
        struct rv_verdict_change change = {
                .change = g->change,
                .section = g->section,
                .rule_before = g->rule_before,
                .rule_now = g->rule_now,
                .before = g->before,
                .now = g->now,
        };

        return s->is_changed ? tell(result, s, &change) : 0;
}

/* The run was denied as resolved, and is as requested. */
static int tell_earlier(struct rv_replay_result *result, const struct rv_replay_stage *requested,
        const struct rv_replay_stage *resolved)
{
        struct rv_verdict_change change = {
                .change = RV_CHANGE_OTHER,
                .section = requested->change.section,
                .rule_before = resolved->change.rule_before,
                .rule_now = requested->change.rule_now,
                .before = resolved->change.before,
                .now = requested->change.now,
        };

        return tell(result, requested, &change);
}

static void count_as(struct rv_replay_result *result, const struct rv_replay_stage *s, struct rv_replay_count *count)
{
        result->enforced.n_decisions++;
        rv_replay_add(count, s->change.count.examples[0].seq, span_of(id_of(s)));
}

static int settle(struct rv_replay_result *result, const struct rv_replay_stage *requested,
        const struct rv_replay_stage *resolved)
{
        if (requested && requested->needs_resolved) {
                count_as(result, requested, &result->enforced.same);
                result->n_compared += !requested->is_told;
        }
        if (!requested || requested->is_allowed)
                return tell_own(result, resolved);
        return resolved->was_allowed ? tell_own(result, requested) : tell_earlier(result, requested, resolved);
}

static int settle_resolved(struct rv_replay_result *result, const struct rv_replay_stage *resolved)
{
        struct rv_replay_stage requested = { 0 };
        bool is_there = take_waiting(result, id_of(resolved), &requested);
        int r = settle(result, is_there ? &requested : NULL, resolved);

        rv_replay_stage_fini(&requested);
        return rv_trace(r);
}

int rv_replay_stages_merge(struct rv_replay_result *result, struct rv_replay_result *part)
{
        int r = 0;

        for (size_t i = 0; i < part->n_stages && r == 0; i++) {
                struct rv_replay_stage *s = &part->stages[i];

                r = s->is_resolved ? settle_resolved(result, s) : wait_for_other(result, s);
        }
        rv_replay_stages_fini(part);
        return rv_trace(r);
}

static int compare_stages(const void *pa, const void *pb)
{
        const struct rv_replay_stage *a = pa, *b = pb;
        uint64_t x = a->change.count.examples[0].seq, y = b->change.count.examples[0].seq;

        return x < y ? -1 : x > y;
}

int rv_replay_stages_end(struct rv_replay_result *result)
{
        int r = 0;

        if (result->n_stages)
                qsort(result->stages, result->n_stages, sizeof(*result->stages), compare_stages);
        for (size_t i = 0; i < result->n_stages && r == 0; i++) {
                const struct rv_replay_stage *s = &result->stages[i];

                if (s->needs_resolved)
                        count_as(result, s, &result->enforced.unreplayable[RV_REPLAY_EVIDENCE]);
                else
                        r = tell_own(result, s);
        }
        rv_replay_stages_fini(result);
        return rv_trace(r);
}
