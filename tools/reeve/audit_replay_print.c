#include "audit_replay.h"
#include "audit_select.h"
#include "reeve.h"

#include <stdio.h>
#include <string.h>

#define EXIT_DIFFERENCES 1
#define EXIT_UNREPLAYABLE 3

static bool has_gate(const struct replay_options *o, unsigned change)
{
        return o->gates & 1u << change;
}

int replay_status(const struct replay_options *o, const struct rv_replay_result *r)
{
        const struct rv_replay_tally *e = &r->enforced, *s = &r->shadow;

        if (r->n_corrupt || (r->n_broken && r->n_broken == r->n_compared))
                return EXIT_USAGE;
        for (unsigned i = 0; i < RV_CHANGE_GATES; i++)
                if (has_gate(o, i) && r->changes[i].n)
                        return EXIT_DIFFERENCES;
        if (!o->candidate_dir && (e->diff.n || s->diff.n || e->error.n || s->error.n))
                return EXIT_DIFFERENCES;
        return e->error.n || rv_replay_n_unreplayable(e) || rv_replay_n_unreplayable(s) ? EXIT_UNREPLAYABLE : 0;
}

/* ---- JSON ---- */

static json_t *text_json(const char *s)
{
        json_t *value = json_string(s);

        return value ? value : json_string("?");          /* cut inside a character */
}

static json_t *examples_json(const struct rv_replay_count *c)
{
        json_t *list = json_array();

        for (unsigned i = 0; i < c->n_examples; i++)
                json_array_append_new(list, json_pack("{s:I, s:o}", "seq", (json_int_t)c->examples[i].seq, "decision_id", text_json(c->examples[i].decision_id)));
        return list;
}

static json_t *count_json(const struct rv_replay_count *c)
{
        return json_pack("{s:I, s:o}", "n", (json_int_t)c->n, "examples", examples_json(c));
}

static json_t *tally_json(const struct rv_replay_tally *t)
{
        json_t *reasons = json_object();

        for (size_t i = 0; i < RV_REPLAY_REASON_MAX_; i++)
                json_object_set_new(reasons, rv_replay_reason_words[i], count_json(&t->unreplayable[i]));
        return json_pack("{s:I, s:I, s:o, s:o, s:I, s:o}", "decisions", (json_int_t)t->n_decisions, "same", (json_int_t)t->same.n, "diff", count_json(&t->diff),
                         "error", count_json(&t->error), "unreplayable", (json_int_t)rv_replay_n_unreplayable(t), "unreplayable_by_reason", reasons);
}

static json_t *differences_json(const struct rv_replay_result *r)
{
        json_t *list = json_array();

        for (unsigned i = 0; i < r->n_differences; i++) {
                const struct rv_replay_difference *d = &r->differences[i];

                json_array_append_new(list, json_pack("{s:I, s:o, s:b, s:o, s:o, s:o}", "seq", (json_int_t)d->seq, "decision_id", text_json(d->decision_id), "shadow",
                                                      (int)d->is_shadow, "tenant", text_json(d->tenant), "bundle", text_json(d->bundle), "fields", text_json(d->fields)));
        }
        return list;
}

static json_t *changes_json(const struct rv_replay_result *r)
{
        json_t *kinds = json_object(), *groups = json_array();

        for (size_t i = 0; i < RV_CHANGE_MAX_; i++)
                json_object_set_new(kinds, rv_change_words[i], count_json(&r->changes[i]));
        for (size_t i = 0; i < r->n_groups; i++) {
                const struct rv_replay_group *g = &r->groups[i];

                json_array_append_new(groups, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "change", rv_change_words[g->change], "tenant",
                                                        text_json(g->tenant), "section", text_json(g->section), "rule_before", text_json(g->rule_before), "rule_now",
                                                        text_json(g->rule_now), "before", text_json(g->before), "now", text_json(g->now), "n", (json_int_t)g->count.n,
                                                        "examples", examples_json(&g->count)));
        }
        return json_pack("{s:I, s:I, s:I, s:o, s:o, s:I}", "compared", (json_int_t)r->n_compared, "unchanged", (json_int_t)(r->n_compared - r->n_changed), "changed",
                         (json_int_t)r->n_changed, "by_kind", kinds, "groups", groups, "ungrouped", (json_int_t)r->n_ungrouped);
}

static json_t *time_json(uint64_t us)
{
        char text[AUDIT_TIME_SIZE];

        return us ? json_string(audit_time_text(us, true, text)) : json_null();
}

int replay_print_json(const struct replay_options *o, const struct rv_replay_result *r)
{
        _cleanup_(rv_json_unrefp) json_t *value = NULL;
        json_t *gates = json_array();

        for (unsigned i = 0; i < RV_CHANGE_GATES; i++)
                if (has_gate(o, i) && r->changes[i].n)
                        json_array_append_new(gates, json_string(rv_change_words[i]));
        value = json_pack("{s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "schema", "reeve.replay/1", "candidate",
                          o->input.candidate ? json_string(rv_bundle_digest(o->input.candidate)) : json_null(), "records", (json_int_t)r->n_records, "oldest",
                          time_json(r->oldest_us), "newest", time_json(r->newest_us), "enforced", tally_json(&r->enforced), "shadow", tally_json(&r->shadow),
                          "differences", differences_json(r), "changes", changes_json(r), "failed_on", gates, "corrupt",
                          json_pack("{s:I, s:o}", "n", (json_int_t)r->n_corrupt, "first", r->n_corrupt ? text_json(r->corrupt) : json_null()),
                          "candidate_failed", json_pack("{s:I, s:o}", "n", (json_int_t)r->n_broken, "first", r->n_broken ? text_json(r->broken) : json_null()), "exit_status",
                          replay_status(o, r));
        return print_json(value, "the result");
}

/* ---- For a person ---- */

static void print_count(const char *indent, const char *what, const struct rv_replay_count *c, const char *text)
{
        char examples[RV_REPLAY_EXAMPLES * (RV_REPLAY_ID_SIZE + 2) + 1] = "";
        size_t n = 0;

        for (unsigned i = 0; i < c->n_examples; i++)
                n += (size_t)snprintf(examples + n, sizeof(examples) - n, " %s", c->examples[i].decision_id);
        print_text("%s%-20s %10llu%s%s%s%s", indent, what, (unsigned long long)c->n, *text ? "  " : "", text, n ? ":" : "", examples);
}

static void print_tally(
        const struct rv_replay_tally *t, const char *same, const struct rv_replay_result *r, bool is_candidate)
{
        struct rv_replay_count plain = { .n = t->same.n };

        if (is_candidate) {
                plain.n = r->n_compared - r->n_changed;
                print_count("  ", "unchanged", &plain, "");
                plain.n = r->n_changed;
                print_count("  ", "changed", &plain, "");
        } else {
                print_count("  ", same, &plain, "");
                print_count("  ", "different", &t->diff, "");
        }
        print_count("  ", "error", &t->error, "");
        plain.n = rv_replay_n_unreplayable(t);
        print_count("  ", "unreplayable", &plain, "");
        for (size_t i = 0; i < RV_REPLAY_REASON_MAX_; i++)
                if (t->unreplayable[i].n)
                        print_count("    ", rv_replay_reason_words[i], &t->unreplayable[i], rv_replay_reason_texts[i]);
}

static void print_differences(const struct rv_replay_result *r)
{
        for (unsigned i = 0; i < r->n_differences; i++) {
                const struct rv_replay_difference *d = &r->differences[i];

                print_text("different%s: seq %llu, decision %s, tenant %s, bundle %.12s: %s", d->is_shadow ? " (shadow)" : "", (unsigned long long)d->seq, d->decision_id,
                           d->tenant, d->bundle, d->fields);
        }
        if (r->n_differences < r->enforced.diff.n + r->shadow.diff.n)
                print_text("… and %llu more", (unsigned long long)(r->enforced.diff.n + r->shadow.diff.n - r->n_differences));
}

static void print_group(const struct rv_replay_group *g)
{
        bool has_values = *g->before || *g->now;

        print_text("  %llu  tenant %s, %s: %s%s%s%s → %s%s%s%s", (unsigned long long)g->count.n, g->tenant, *g->section ? g->section : "-",
                   *g->rule_before ? g->rule_before : "-", has_values ? " (" : "", g->before, has_values ? ")" : "", *g->rule_now ? g->rule_now : "-",
                   has_values ? " (" : "", g->now, has_values ? ")" : "");
        for (unsigned i = 0; i < g->count.n_examples; i++)
                print_text("      decision %s (seq %llu)", g->count.examples[i].decision_id, (unsigned long long)g->count.examples[i].seq);
}

static void print_changes(const struct replay_options *o, const struct rv_replay_result *r)
{
        for (unsigned change = 0; change < RV_CHANGE_MAX_; change++) {
                if (!r->changes[change].n)
                        continue;
                print_text("%s: %llu%s", rv_change_texts[change], (unsigned long long)r->changes[change].n, has_gate(o, change) ? "  (--fail-on)" : "");
                for (size_t i = 0; i < r->n_groups; i++)
                        if (r->groups[i].change == change)
                                print_group(&r->groups[i]);
        }
        if (r->n_ungrouped)
                print_text("and %llu changes in further groups", (unsigned long long)r->n_ungrouped);
}

void replay_print(const struct replay_options *o, const struct rv_replay_result *r)
{
        char oldest[AUDIT_TIME_SIZE], newest[AUDIT_TIME_SIZE];
        bool is_candidate = o->input.candidate != NULL;

        if (is_candidate)
                print_text("candidate %s", rv_bundle_digest(o->input.candidate));
        print_text("%llu decisions%s%s%s%s", (unsigned long long)r->enforced.n_decisions, r->oldest_us ? " from " : "",
                   r->oldest_us ? audit_time_text(r->oldest_us, false, oldest) : "", r->oldest_us ? " to " : "",
                   r->oldest_us ? audit_time_text(r->newest_us, false, newest) : "");
        print_tally(&r->enforced, "same", r, is_candidate);
        if (r->shadow.n_decisions) {
                print_text("%llu verdicts of shadows", (unsigned long long)r->shadow.n_decisions);
                print_tally(&r->shadow, "same", r, false);
        }
        print_differences(r);
        if (!is_candidate && r->n_compared)
                print_text("enforced → shadow: %llu compared, %llu unchanged, %llu changed", (unsigned long long)r->n_compared,
                           (unsigned long long)(r->n_compared - r->n_changed), (unsigned long long)r->n_changed);
        print_changes(o, r);
        if (r->n_broken)
                print_text("the candidate itself fails on %llu of them: %s; see `reeve policy check`", (unsigned long long)r->n_broken, r->broken);
        if (r->n_corrupt)
                print_text("corrupt: %llu records; the first: %s", (unsigned long long)r->n_corrupt, r->corrupt);
}
