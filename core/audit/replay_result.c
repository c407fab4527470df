#include "audit/replay_pair.h"
#include "audit/replay_private.h"

#include <stdio.h>
#include <string.h>

const char *const rv_replay_reason_words[RV_REPLAY_REASON_MAX_] = {
#define X(name, word, text) word,
        RV_REPLAY_REASONS(X)
#undef X
};
const char *const rv_replay_reason_texts[RV_REPLAY_REASON_MAX_] = {
#define X(name, word, text) text,
        RV_REPLAY_REASONS(X)
#undef X
};

void rv_replay_add(struct rv_replay_count *count, uint64_t seq, struct rv_span decision_id)
{
        count->n++;
        if (count->n_examples == RV_REPLAY_EXAMPLES)
                return;
        count->examples[count->n_examples].seq = seq;
        snprintf(count->examples[count->n_examples].decision_id, RV_REPLAY_ID_SIZE, "%.*s", (int)RV_MIN(decision_id.n, (size_t)RV_REPLAY_ID_SIZE),
                 decision_id.text ? decision_id.text : "");
        count->n_examples++;
}

static void merge_count(struct rv_replay_count *to, const struct rv_replay_count *from)
{
        to->n += from->n;
        for (unsigned i = 0; i < from->n_examples && to->n_examples < RV_REPLAY_EXAMPLES; i++)
                to->examples[to->n_examples++] = from->examples[i];
}

static void merge_tally(struct rv_replay_tally *to, const struct rv_replay_tally *from)
{
        to->n_decisions += from->n_decisions;
        merge_count(&to->same, &from->same);
        merge_count(&to->diff, &from->diff);
        merge_count(&to->error, &from->error);
        for (size_t i = 0; i < RV_REPLAY_REASON_MAX_; i++)
                merge_count(&to->unreplayable[i], &from->unreplayable[i]);
}

uint64_t rv_replay_n_unreplayable(const struct rv_replay_tally *tally)
{
        uint64_t n = 0;

        for (size_t i = 0; i < RV_REPLAY_REASON_MAX_; i++)
                n += tally->unreplayable[i].n;
        return n;
}

/* ---- Groups ---- */

void rv_replay_group_fini(struct rv_replay_group *g)
{
        free(g->tenant);
        free(g->section);
        free(g->rule_before);
        free(g->rule_now);
        free(g->before);
        free(g->now);
        *g = (struct rv_replay_group){ 0 };
}

static uint64_t hash_text(uint64_t hash, const char *s, size_t n)
{
        for (size_t i = 0; i < n; i++)
                hash = (hash ^ (uint8_t)s[i]) * UINT64_C(0x100000001b3);
        return (hash ^ 0xff) * UINT64_C(0x100000001b3);      /* so that "ab", "c" is not "a", "bc" */
}

static bool is_same_group(const struct rv_replay_group *a, const struct rv_replay_group *b)
{
        return a->hash == b->hash && a->change == b->change && strcmp(a->tenant, b->tenant) == 0 &&
                strcmp(a->section, b->section) == 0 && strcmp(a->rule_before, b->rule_before) == 0 &&
                strcmp(a->rule_now, b->rule_now) == 0 && strcmp(a->before, b->before) == 0 &&
                strcmp(a->now, b->now) == 0;
}

static struct rv_replay_group *find_group(struct rv_replay_result *result, const struct rv_replay_group *like)
{
        for (size_t i = 0; i < result->n_groups; i++)
                if (is_same_group(&result->groups[i], like))
                        return &result->groups[i];
        return NULL;
}

/* Takes @g. */
static int append_group(struct rv_replay_result *result, struct rv_replay_group *g)
{
        struct rv_replay_group *more = reallocarray(result->groups, result->n_groups + 1, sizeof(*more));

        if (!more) {
                rv_replay_group_fini(g);
                return rv_raise(-ENOMEM);
        }
        result->groups = more;
        more[result->n_groups++] = *g;
        *g = (struct rv_replay_group){ 0 };
        return 0;
}

static int copy_group(const struct rv_replay_group *like, struct rv_replay_group *ret)
{
        *ret = *like;
        ret->tenant = strdup(like->tenant);
        ret->section = strdup(like->section);
        ret->rule_before = strdup(like->rule_before);
        ret->rule_now = strdup(like->rule_now);
        ret->before = strdup(like->before);
        ret->now = strdup(like->now);
        if (ret->tenant && ret->section && ret->rule_before && ret->rule_now && ret->before && ret->now)
                return 0;
        rv_replay_group_fini(ret);
        return rv_raise(-ENOMEM);
}

/* As long as both are there. */
static struct rv_replay_group borrow_group(const struct rv_verdict_change *change, char *tenant)
{
        return (struct rv_replay_group){
                .change = change->change,
                .tenant = tenant,
                .section = (char *)change->section,
                .rule_before = (char *)change->rule_before,
                .rule_now = (char *)change->rule_now,
                .before = (char *)change->before,
                .now = (char *)change->now,
        };
}

int rv_replay_add_change(struct rv_replay_result *result, const struct rv_verdict_change *change, struct rv_span tenant,
        uint64_t seq, struct rv_span decision_id)
{
        _cleanup_(rv_freep) char *name = strndup(tenant.text ? tenant.text : "", tenant.n);
        struct rv_replay_group like = borrow_group(change, name);
        const char *const texts[] = { name, like.section, like.rule_before, like.rule_now, like.before, like.now };
        struct rv_replay_group *g, copy;
        int r;

        if (!name)
                return rv_raise(-ENOMEM);
        rv_replay_add(&result->changes[change->change], seq, decision_id);
        like.hash = (uint64_t)change->change;
        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++)
                like.hash = hash_text(like.hash, texts[i], strlen(texts[i]));
        g = find_group(result, &like);
        if (!g && result->n_groups == RV_REPLAY_GROUPS_MAX) {
                result->n_ungrouped++;
                return 0;
        }
        if (!g) {
                r = copy_group(&like, &copy);
                if (r == 0)
                        r = append_group(result, &copy);
                if (r < 0)
                        return rv_trace(r);
                g = &result->groups[result->n_groups - 1];
        }
        rv_replay_add(&g->count, seq, decision_id);
        return 0;
}

int rv_replay_group_make(const struct rv_verdict_change *change, struct rv_span tenant, uint64_t seq,
        struct rv_span decision_id, struct rv_replay_group *ret)
{
        _cleanup_(rv_freep) char *name = strndup(tenant.text ? tenant.text : "", tenant.n);
        struct rv_replay_group like = borrow_group(change, name);

        if (!name)
                return rv_raise(-ENOMEM);
        rv_replay_add(&like.count, seq, decision_id);
        return rv_trace(copy_group(&like, ret));
}

static int merge_groups(struct rv_replay_result *result, struct rv_replay_result *part)
{
        for (size_t i = 0; i < part->n_groups; i++) {
                struct rv_replay_group *from = &part->groups[i], *g = find_group(result, from);

                if (g)
                        merge_count(&g->count, &from->count);
                else if (result->n_groups == RV_REPLAY_GROUPS_MAX)
                        result->n_ungrouped += from->count.n;
                else if (append_group(result, from) < 0)
                        return -ENOMEM;
        }
        result->n_ungrouped += part->n_ungrouped;
        return 0;
}

/* ---- The whole ---- */

int rv_replay_merge(struct rv_replay_result *result, struct rv_replay_result *part)
{
        result->n_records += part->n_records;
        if (part->oldest_us && (!result->oldest_us || part->oldest_us < result->oldest_us))
                result->oldest_us = part->oldest_us;
        result->newest_us = RV_MAX(result->newest_us, part->newest_us);
        merge_tally(&result->enforced, &part->enforced);
        merge_tally(&result->shadow, &part->shadow);
        for (unsigned i = 0; i < part->n_differences && result->n_differences < RV_REPLAY_DIFFERENCES; i++)
                result->differences[result->n_differences++] = part->differences[i];
        result->n_compared += part->n_compared;
        result->n_changed += part->n_changed;
        if (!result->n_broken)
                memcpy(result->broken, part->broken, sizeof(result->broken));
        result->n_broken += part->n_broken;
        for (size_t i = 0; i < RV_CHANGE_MAX_; i++)
                merge_count(&result->changes[i], &part->changes[i]);
        if (part->n_corrupt && !result->n_corrupt)
                memcpy(result->corrupt, part->corrupt, sizeof(result->corrupt));
        result->n_corrupt += part->n_corrupt;
        if (merge_groups(result, part) < 0)
                return -ENOMEM;
        return rv_trace(rv_replay_stages_merge(result, part));
}

void rv_replay_free(struct rv_replay_result *result)
{
        if (!result)
                return;
        for (size_t i = 0; i < result->n_groups; i++)
                rv_replay_group_fini(&result->groups[i]);
        free(result->groups);
        rv_replay_stages_fini(result);
        free(result);
}
