#include "audit/replay_private.h"

#include "audit/log_private.h"
#include "audit/replay_compare.h"
#include "policy/decide.h"
#include "policy/facts.h"

#include <stdio.h>
#include <string.h>

#define FIELDS_MOST 8

enum class { CLASS_SAME, CLASS_DIFF, CLASS_ERROR, CLASS_UNREPLAYABLE };

struct judgement {
        enum class class;
        enum rv_replay_reason reason;
};

static const struct judgement same = { CLASS_SAME, 0 }, diff = { CLASS_DIFF, 0 }, error = { CLASS_ERROR, 0 };

static struct judgement unreplayable(enum rv_replay_reason reason)
{
        return (struct judgement){ CLASS_UNREPLAYABLE, reason };
}

static void note_corrupt(struct rv_replay_result *part, const struct rv_replay_record *rec, const char *what)
{
        const struct rv_lines *l = rec->where;

        if (part->n_corrupt++ == 0)
                snprintf(part->corrupt, sizeof(part->corrupt), "%s, byte %llu, seq %lld: %s", l->segment,
                         (unsigned long long)l->offset, (long long)rec->seq, what);
}

/* ---- Judging again ---- */

/* 1: there is a bundle to judge by; 0: *@ret says why not; -ENOMEM. */
static int find_bundle(struct rv_replay_worker *w, const struct rv_replay_record *rec, struct rv_span digest,
        const struct rv_bundle **ret_bundle, struct judgement *ret)
{
        struct rv_span name = rv_span_string(digest);
        bool is_same_engine = false;
        int r;

        r = rv_replay_has_same_engine(w, rec->engine, &is_same_engine);
        if (r < 0)
                return r;
        *ret = unreplayable(!is_same_engine ? RV_REPLAY_ENGINE : name.n == 0 ? RV_REPLAY_NO_BUNDLE : RV_REPLAY_REDACTED);
        if (!is_same_engine || name.n == 0 || rv_replay_is_redacted(rec->facts_text))
                return 0;
        *ret = unreplayable(RV_REPLAY_BUNDLE);
        *ret_bundle = w->input->candidate;
        if (!*ret_bundle)
                r = rv_bundle_cache_get(&w->bundles, name.text, name.n, ret_bundle);
        return r < 0 ? r : *ret_bundle != NULL;
}

/* The verdict of @bundle on the facts goes to the record, its canonical form to the worker. */
static void evaluate(struct rv_replay_worker *w, struct rv_replay_record *rec, const struct rv_bundle *bundle)
{
        struct rv_policy_notes notes = { 0 };

        json_decref(rec->verdict);
        rec->verdict = NULL;
        w->verdict.size = 0;
        rec->error = rv_policy_decide_noting(bundle, rec->facts, &notes, &rec->verdict);
        if (rec->error == 0)
                rec->error = rv_json_canonical(rec->verdict, &w->verdict);
        rec->lacking = notes.lacking;
        rec->is_evaluated = true;
}

/* Where bytes differ. @ret_recorded: the recorded verdict as a value, if it came to that. */
static struct judgement judge_difference(const struct rv_replay_worker *w, const struct rv_replay_record *rec,
        struct rv_span recorded, json_t **ret_recorded)
{
        if (rv_replay_is_redacted(recorded))
                return unreplayable(RV_REPLAY_REDACTED);
        if (rv_canonical_read(recorded.text, recorded.n, RV_LOG_DEPTH_MAX, ret_recorded) < 0)
                return error;
        if (!w->input->candidate &&
                (rv_policy_verdict_is_of_memory(*ret_recorded) || rv_policy_verdict_is_of_memory(rec->verdict)))
                return unreplayable(RV_REPLAY_BUDGET);
        return diff;
}

static int count(struct rv_replay_tally *tally, struct judgement j, const struct rv_replay_record *rec)
{
        struct rv_replay_count *counts[] = { &tally->same, &tally->diff, &tally->error,
                &tally->unreplayable[j.reason] };

        tally->n_decisions++;
        rv_replay_add(counts[j.class], (uint64_t)rec->seq, rv_span_string(rec->decision_id));
        return 0;
}

static void copy_text(char *ret, size_t size, struct rv_span s)
{
        snprintf(ret, size, "%.*s", (int)RV_MIN(s.n, size), s.text ? s.text : "");
}

static int add_difference(struct rv_replay_result *part, const struct rv_replay_record *rec, struct rv_span bundle,
        bool is_shadow, const json_t *recorded)
{
        _cleanup_(rv_buf_fini) struct rv_buf fields = { 0 };
        struct rv_replay_difference *d = &part->differences[part->n_differences];

        if (part->n_differences == RV_REPLAY_DIFFERENCES)
                return 0;
        *d = (struct rv_replay_difference){ .seq = (uint64_t)rec->seq, .is_shadow = is_shadow };
        copy_text(d->decision_id, sizeof(d->decision_id), rv_span_string(rec->decision_id));
        copy_text(d->tenant, sizeof(d->tenant), rv_replay_text(rec->tenant));
        copy_text(d->bundle, sizeof(d->bundle), rv_span_string(bundle));
        if (rv_verdict_fields(recorded, rec->verdict, FIELDS_MOST, &fields) < 0)
                return -ENOMEM;
        copy_text(d->fields, sizeof(d->fields), (struct rv_span){ fields.data, fields.size });
        part->n_differences++;
        return 0;
}

/* ---- The enforced verdict ---- */

/* A candidate that fails denies; who would put it in force wants to know why. */
static void note_broken(struct rv_replay_result *part, const json_t *verdict)
{
        const json_t *denial = json_array_get(json_object_get(verdict, "denials"), 0);

        if (strcmp(rv_json_get_string(verdict, "code", ""), "policy_error") != 0 || part->n_broken++ > 0)
                return;
        snprintf(part->broken, sizeof(part->broken), "%s:%lld: %s", rv_json_get_string(denial, "file", ""),
                (long long)json_integer_value(json_object_get(denial, "line")),
                rv_json_get_string(json_object_get(verdict, "reason"), "message", ""));
}

static int finish_enforced(
        struct rv_replay_worker *w, struct rv_replay_record *rec, struct judgement j, struct rv_replay_result *part)
{
        _cleanup_(rv_json_unrefp) json_t *recorded = NULL;
        bool is_candidate = w->input->candidate != NULL;
        int r = 0;

        if (rec->is_evaluated && rec->error == -ENOMEM)
                return -ENOMEM;
        if (rec->is_evaluated && rec->error && json_is_integer(json_object_get(rec->facts, "bytes_left_out")))
                j = unreplayable(RV_REPLAY_TOO_LARGE);
        else if (rec->is_evaluated)
                j = rec->error ? error : rec->is_same ? same : judge_difference(w, rec, rec->verdict_text, &recorded);
        if (is_candidate && rec->is_evaluated && !rec->error)
                note_broken(part, rec->verdict);
        if (j.class == CLASS_SAME && is_candidate)
                r = rv_replay_compare(part, rec, rec->verdict, rec->verdict);
        if (j.class == CLASS_DIFF && is_candidate) {
                enum rv_replay_evidence evidence = rv_replay_judge_evidence(rec, recorded);

                if (evidence == RV_REPLAY_EVIDENCE_MISSING)
                        return count(&part->enforced, unreplayable(RV_REPLAY_EVIDENCE), rec);
                if (evidence == RV_REPLAY_EVIDENCE_RESOLVED)
                        return rv_replay_compare_undecided(part, rec, recorded, rec->verdict);
                r = rv_replay_compare(part, rec, recorded, rec->verdict);
                j = same;
        } else if (j.class == CLASS_DIFF) {
                r = add_difference(part, rec, rec->bundle, false, recorded);
        }
        return r < 0 ? r : count(&part->enforced, j, rec);
}

/* ---- The shadow's ---- */

struct shadow {
        struct rv_span bundle, error, verdict, verdict_sha256;
};

static bool read_shadow(struct rv_span text, struct shadow *ret)
{
        struct rv_canonical_object o;
        struct rv_span name;
        int r;

        *ret = (struct shadow){ 0 };
        rv_canonical_open(&o, text.text, text.n);
        while ((r = rv_canonical_next(&o, &name)) > 0) {
                struct rv_span *value = rv_span_is(name, "bundle")    ? &ret->bundle
                        : rv_span_is(name, "error")                   ? &ret->error
                        : rv_span_is(name, "verdict")                 ? &ret->verdict
                        : rv_span_is(name, "verdict_sha256")          ? &ret->verdict_sha256
                                                                      : NULL;

                if (value)
                        (void)rv_canonical_skip(&o, value);
        }
        return r == 0 && ret->bundle.text && (ret->error.text || (ret->verdict.text && ret->verdict_sha256.text));
}

/* The two recorded verdicts, in the terms of what changes. */
static int compare_shadow(struct rv_replay_result *part, const struct rv_replay_record *rec, const struct shadow *s)
{
        _cleanup_(rv_json_unrefp) json_t *enforced = NULL, *shadow = NULL;
        bool is_same;
        int r;

        if (rv_replay_is_redacted(rec->verdict_text) || rv_replay_is_redacted(s->verdict))
                return 0;
        is_same = rec->verdict_text.n == s->verdict.n &&
                memcmp(rec->verdict_text.text, s->verdict.text, s->verdict.n) == 0;
        if (is_same && !rv_facts_is_resolved(rec->facts))
                return rv_replay_compare(part, rec, NULL, NULL);
        r = rv_canonical_read(rec->verdict_text.text, rec->verdict_text.n, RV_LOG_DEPTH_MAX, &enforced);
        if (r == 0 && is_same)
                return rv_replay_compare(part, rec, enforced, enforced);
        if (r == 0)
                r = rv_canonical_read(s->verdict.text, s->verdict.n, RV_LOG_DEPTH_MAX, &shadow);
        return r == 0 ? rv_replay_compare(part, rec, enforced, shadow) : r == -ENOMEM ? r : 0;
}

static int judge_shadow(struct rv_replay_worker *w, struct rv_replay_record *rec, struct rv_replay_result *part)
{
        _cleanup_(rv_json_unrefp) json_t *recorded = NULL;
        const struct rv_bundle *bundle = NULL;
        struct judgement j;
        struct shadow s;
        int r;

        if (!read_shadow(rec->shadow, &s))
                return count(&part->shadow, error, rec);
        if (s.error.text)
                return count(&part->shadow, unreplayable(RV_REPLAY_NO_BUNDLE), rec);
        if (!rv_replay_is_digest_right(s.verdict, s.verdict_sha256)) {
                note_corrupt(part, rec, "shadow.verdict_sha256 is not the digest of the shadow's verdict");
                return 0;
        }
        r = compare_shadow(part, rec, &s);
        if (r < 0)
                return r;
        r = find_bundle(w, rec, s.bundle, &bundle, &j);
        if (r > 0) {
                evaluate(w, rec, bundle);
                if (rec->error == -ENOMEM)
                        return -ENOMEM;
                j = rec->error ? error
                        : s.verdict.n == w->verdict.size && memcmp(s.verdict.text, w->verdict.data, s.verdict.n) == 0
                        ? same
                        : judge_difference(w, rec, s.verdict, &recorded);
                r = j.class == CLASS_DIFF ? add_difference(part, rec, s.bundle, true, recorded) : 0;
        }
        return r < 0 ? r : count(&part->shadow, j, rec);
}

/* ---- A line ---- */

static bool is_wanted(const struct rv_replay_worker *w, const struct rv_replay_record *rec)
{
        const struct rv_replay_input *in = w->input;

        return rec->is_decision && (uint64_t)rec->seq >= in->from_seq && (uint64_t)rec->seq <= in->to_seq &&
                (uint64_t)rec->time_us >= in->from_us && (uint64_t)rec->time_us <= in->to_us &&
                (!in->tenant || rv_span_is(rv_replay_text(rec->tenant), in->tenant));
}

/* All that judging needs stands before the verdict, so that it is judged when the verdict is come to. */
static int take_verdict(
        struct rv_replay_worker *w, struct rv_replay_record *rec, struct rv_canonical_object *o, struct judgement *ret)
{
        const struct rv_bundle *bundle = NULL;
        const char *start = o->p;
        int r;

        if (!rec->facts || !rec->bundle.text || !rec->engine.text || !rec->context_sha256.text)
                return rv_canonical_skip(o, &rec->verdict_text) < 0 ? -EINVAL : 0;
        r = find_bundle(w, rec, rec->bundle, &bundle, ret);
        if (r < 0)
                return r;
        if (r > 0) {
                evaluate(w, rec, bundle);
                rec->is_same = rec->error == 0 && rv_canonical_expect(o, w->verdict.data, w->verdict.size);
        }
        if (rec->is_same)
                rec->verdict_text = (struct rv_span){ start, w->verdict.size };
        return rec->is_same || rv_canonical_skip(o, &rec->verdict_text) == 0 ? 0 : -EINVAL;
}

/* Members that are kept as they lie. */
static struct rv_span *place_for(struct rv_replay_record *rec, struct rv_span name)
{
        return rv_span_is(name, "bundle")             ? &rec->bundle
                : rv_span_is(name, "context_sha256")  ? &rec->context_sha256
                : rv_span_is(name, "decision_id")     ? &rec->decision_id
                : rv_span_is(name, "engine")          ? &rec->engine
                : rv_span_is(name, "shadow")          ? &rec->shadow
                : rv_span_is(name, "tenant")          ? &rec->tenant
                : rv_span_is(name, "verdict_sha256")  ? &rec->verdict_sha256
                                                      : NULL;
}

/* 1: a decision that is wanted, read to its end; 0: not wanted; -EINVAL not in canonical form; -ENOMEM. */
static int read_record(
        struct rv_replay_worker *w, struct rv_replay_record *rec, const char *line, size_t n, struct judgement *ret)
{
        struct rv_canonical_object o;
        struct rv_span name, value;
        int r;

        rv_canonical_open(&o, line, n);
        while ((r = rv_canonical_next(&o, &name)) > 0) {
                struct rv_span *place = place_for(rec, name);

                r = 0;
                if (place) {
                        r = rv_canonical_skip(&o, place);
                } else if (rv_span_is(name, "facts")) {
                        r = rv_canonical_take(&o, RV_LOG_DEPTH_MAX, &w->cache, &rec->facts, &rec->facts_text);
                } else if (rv_span_is(name, "kind") || rv_span_is(name, "seq") || rv_span_is(name, "time_us")) {
                        r = rv_canonical_skip(&o, &value);
                        if (*name.text == 'k')
                                rec->is_decision = rv_span_is(value, "\"decision\"");
                        else
                                *(*name.text == 's' ? &rec->seq : &rec->time_us) = rv_span_integer(value);
                        if (r < 0 || (*name.text == 'k' && !rec->is_decision))
                                return r;
                } else if (rv_span_is(name, "verdict")) {
                        if (!is_wanted(w, rec))
                                return 0;
                        r = take_verdict(w, rec, &o, ret);
                }
                if (r < 0)
                        return r == -ELOOP ? -EINVAL : r;
        }
        return r < 0 ? r : is_wanted(w, rec);
}

static int finish(
        struct rv_replay_worker *w, struct rv_replay_record *rec, struct judgement j, struct rv_replay_result *part)
{
        int r;

        if (!rec->facts || !rec->bundle.text || !rec->engine.text || !rec->context_sha256.text ||
                !rec->verdict_text.text || !rec->verdict_sha256.text)
                return count(&part->enforced, error, rec);
        if (!rv_replay_is_context_right(w, rec)) {
                note_corrupt(part, rec, "context_sha256 is not the digest of facts, bundle and limits");
                return 0;
        }
        if (!rv_replay_is_digest_right(rec->verdict_text, rec->verdict_sha256)) {
                note_corrupt(part, rec, "verdict_sha256 is not the digest of the verdict");
                return 0;
        }
        r = finish_enforced(w, rec, j, part);
        if (r == 0 && rec->shadow.text && !w->input->candidate)
                r = judge_shadow(w, rec, part);
        return r;
}

int rv_replay_line(struct rv_replay_worker *w, const char *line, size_t n, const struct rv_lines *where,
        struct rv_replay_result *part)
{
        struct rv_replay_record rec = { .where = where, .seq = -1, .time_us = -1 };
        struct judgement j = error;
        int r;

        part->n_records++;
        r = read_record(w, &rec, line, n, &j);
        if (r > 0) {
                part->oldest_us = part->oldest_us ? RV_MIN(part->oldest_us, (uint64_t)rec.time_us)
                                                  : (uint64_t)rec.time_us;
                part->newest_us = RV_MAX(part->newest_us, (uint64_t)rec.time_us);
                r = finish(w, &rec, j, part);
        } else if (r == -EINVAL) {
                note_corrupt(part, &rec, "is no record in canonical form");
                r = 0;
        }
        json_decref(rec.facts);
        json_decref(rec.verdict);
        return rv_trace(r);
}
