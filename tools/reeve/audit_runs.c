#include "audit_runs.h"

#include "audit_select.h"

#include "audit/log_private.h"

#include <stdio.h>
#include <string.h>

int audit_runs_init(struct audit_runs *runs)
{
        const char *name = runs->filter.package;
        size_t n = 0;

        for (; name && *name && n + 1 < sizeof(runs->package); name++) {
                bool is_mark = strchr("-_.", *name) != NULL;

                if (is_mark && n && runs->package[n - 1] == '-')
                        continue;
                runs->package[n++] = is_mark ? '-' : (char)(*name >= 'A' && *name <= 'Z' ? *name + 32 : *name);
        }
        runs->package[n] = 0;
        runs->open = json_object();
        return runs->open ? 0 : rv_raise(-ENOMEM);
}

void audit_runs_fini(struct audit_runs *runs)
{
        json_decref(runs->open);
        runs->open = NULL;
}

/* ---- Filters ---- */

static bool is_in_time(const struct audit_runs *runs, const struct audit_record *r)
{
        const struct audit_filter *f = &runs->filter;

        return r->time_number >= f->since_us && r->time_number <= f->until_us &&
                (!f->tenant || audit_record_is(r->tenant, f->tenant));
}

/* Did a rule of that name decide anything of the run? */
static bool has_rule(const json_t *value, const char *rule)
{
        const json_t *child;
        const char *name;
        size_t i;

        if (json_is_array(value)) {
                json_array_foreach((json_t *)value, i, child)
                        if (has_rule(child, rule))
                                return true;
                return false;
        }
        json_object_foreach((json_t *)value, name, child)
                if ((strcmp(name, "rule") == 0 && json_is_string(child) && strcmp(json_string_value(child), rule) == 0) || has_rule(child, rule))
                        return true;
        return false;
}

/* By the name as it was given, and as Python's index writes it. */
static bool has_package(const struct audit_runs *runs, struct rv_span facts)
{
        _cleanup_(rv_json_unrefp) json_t *value = NULL;
        const json_t *package;
        size_t i;

        if (!facts.text || rv_canonical_read(facts.text, facts.n, RV_LOG_DEPTH_MAX, &value) < 0)
                return false;
        json_array_foreach(json_object_get(value, "packages"), i, package) {
                const char *name = rv_json_get_string(package, "name", "");

                if (strcmp(name, runs->filter.package) == 0 || strcmp(name, runs->package) == 0)
                        return true;
        }
        return false;
}

static bool is_outcome_wanted(const struct audit_runs *runs, const json_t *entry)
{
        const char *wanted = runs->filter.outcome;

        return !wanted || strcmp(rv_json_get_string(entry, "status", "open"), wanted) == 0 || strcmp(rv_json_get_string(entry, "code", ""), wanted) == 0;
}

static int tell(struct audit_runs *runs, const json_t *entry)
{
        if (!entry)
                return rv_raise(-ENOMEM);
        return is_outcome_wanted(runs, entry) ? runs->tell(runs->ctx, entry) : 0;
}

/* ---- Entries ---- */

static json_t *begin(const char *type, const struct audit_record *r)
{
        char time[AUDIT_TIME_SIZE];

        return json_pack("{s:s, s:I, s:s, s:I, s:o, s:o, s:o, s:o}", "type", type, "seq", (json_int_t)r->seq_number, "time",
                         audit_time_text(r->time_number, true, time), "time_us", (json_int_t)r->time_number, "tenant", audit_record_text(r->tenant), "principal",
                         audit_record_text(r->principal), "run_id", audit_record_text(r->run_id), "decision_id", audit_record_text(r->decision_id));
}

static void set(json_t *entry, const char *name, json_t *take_value)
{
        json_object_set_new(entry, name, take_value ? take_value : json_null());
}

static void copy(json_t *entry, const char *name, const json_t *from, const char *member)
{
        set(entry, name, json_incref(json_object_get(from, member)));
}

/* A run has the place and time of its first decision, and is denied if either stage denies. */
static bool is_denied_already(const json_t *held)
{
        return strcmp(rv_json_get_string(held, "effect", ""), "deny") == 0;
}

static int keep_place(json_t *entry, const json_t *held)
{
        static const char *const names[] = { "seq", "time", "time_us" };

        for (size_t i = 0; i < RV_N_ELEMENTS(names) && held; i++)
                if (json_object_set(entry, names[i], json_object_get(held, names[i])) < 0)
                        return -ENOMEM;
        return 0;
}

static int add_decision(struct audit_runs *runs, const struct audit_record *r)
{
        _cleanup_(rv_json_unrefp) json_t *verdict = NULL, *entry = NULL, *id = audit_record_text(r->decision_id);
        const json_t *denial, *held;

        if (!json_is_string(id) || !r->verdict.text ||
                rv_canonical_read(r->verdict.text, r->verdict.n, RV_LOG_DEPTH_MAX, &verdict) < 0)
                return -EINVAL;
        held = json_object_get(runs->open, json_string_value(id));
        if (is_denied_already(held))
                return 0;
        /* One stage of a run that is wanted makes all of it wanted. */
        if (!held && (!is_in_time(runs, r) || (runs->filter.rule && !has_rule(verdict, runs->filter.rule)) ||
             (runs->filter.package && !has_package(runs, r->facts))))
                return 0;
        entry = begin("run", r);
        if (!entry || keep_place(entry, held) < 0)
                return -ENOMEM;
        denial = json_array_get(json_object_get(verdict, "denials"), 0);
        set(entry, "stage", audit_record_text(r->stage));
        set(entry, "bundle", audit_record_text(r->bundle));
        copy(entry, "effect", verdict, "effect");
        copy(entry, "verdict_code", verdict, "code");
        copy(entry, "section", denial, "section");
        copy(entry, "rule", denial, "rule");
        copy(entry, "item", denial, "item");
        set(entry, "refused", audit_record_text(r->refused));
        return json_object_set(runs->open, json_string_value(id), entry) < 0 ? -ENOMEM : 0;
}

static void conclude(json_t *entry, const struct audit_record *r)
{
        char time[AUDIT_TIME_SIZE];

        set(entry, "status", r ? audit_record_text(r->status) : NULL);
        set(entry, "code", r ? audit_record_text(r->code) : NULL);
        set(entry, "started", r ? audit_record_text(r->started) : NULL);
        set(entry, "recovered", json_boolean(r && rv_span_is(r->recovered, "true")));
        set(entry, "outcome_seq", r ? json_integer((json_int_t)r->seq_number) : NULL);
        set(entry, "outcome_time", r ? json_string(audit_time_text(r->time_number, true, time)) : NULL);
        set(entry, "outcome_sha256", r ? audit_record_text(r->outcome_sha256) : NULL);
}

static int add_outcome(struct audit_runs *runs, const struct audit_record *r)
{
        _cleanup_(rv_json_unrefp) json_t *id = audit_record_text(r->decision_id), *entry = NULL;

        if (!json_is_string(id))
                return 0;
        entry = json_incref(json_object_get(runs->open, json_string_value(id)));
        if (!entry)
                return 0;        /* not wanted */
        json_object_del(runs->open, json_string_value(id));
        conclude(entry, r);
        return tell(runs, entry);
}

static int add_rejected(struct audit_runs *runs, const struct audit_record *r)
{
        _cleanup_(rv_json_unrefp) json_t *entry = NULL;
        json_t *errors = NULL;

        if (!is_in_time(runs, r) || runs->filter.rule || runs->filter.package)
                return 0;
        entry = begin("rejected", r);
        if (r->errors.text)
                (void)rv_canonical_read(r->errors.text, r->errors.n, RV_LOG_DEPTH_MAX, &errors);
        set(entry, "status", json_string("rejected"));
        set(entry, "http_status", r->status.text ? json_integer((json_int_t)rv_span_integer(r->status)) : NULL);
        set(entry, "errors", errors);
        return tell(runs, entry);
}

static int add_replay(struct audit_runs *runs, const struct audit_record *r)
{
        _cleanup_(rv_json_unrefp) json_t *entry = NULL;

        if (!is_in_time(runs, r) || runs->filter.rule || runs->filter.package)
                return 0;
        entry = begin("replayed", r);
        set(entry, "status", json_string("replayed"));
        set(entry, "outcome_sha256", audit_record_text(r->outcome_sha256));
        return tell(runs, entry);
}

static int add_other(struct audit_runs *runs, const struct audit_record *r)
{
        static const char *const names[] = { "name", "version", "digest", "role", "file", "message", "cause", "cut_bytes", "size", "root" };
        const struct rv_span values[] = { r->name, r->version, r->digest, r->role, r->file, r->message, r->cause,
                r->cut_bytes, r->size, r->root };
        _cleanup_(rv_json_unrefp) json_t *entry = NULL, *kind = audit_record_text(r->kind);

        if (!runs->filter.is_all || !is_in_time(runs, r) || runs->filter.rule || runs->filter.package ||
                runs->filter.outcome)
                return 0;
        entry = begin(json_is_string(kind) ? json_string_value(kind) : "?", r);
        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++)
                if (values[i].text)
                        set(entry, names[i], audit_record_text(values[i]));
        return tell(runs, entry);
}

int audit_runs_add(struct audit_runs *runs, const struct audit_record *r)
{
        if (audit_record_is(r->kind, "decision"))
                return add_decision(runs, r);
        if (audit_record_is(r->kind, "outcome"))
                return add_outcome(runs, r);
        if (audit_record_is(r->kind, "rejected"))
                return add_rejected(runs, r);
        if (audit_record_is(r->kind, "idempotent_replay"))
                return add_replay(runs, r);
        return add_other(runs, r);
}

static int compare_entries(const void *a, const void *b)
{
        json_int_t x = json_integer_value(json_object_get(*(json_t *const *)a, "seq")), y = json_integer_value(json_object_get(*(json_t *const *)b, "seq"));

        return x < y ? -1 : x > y;
}

int audit_runs_end(struct audit_runs *runs)
{
        size_t n = json_object_size(runs->open), i = 0;
        _cleanup_(rv_freep) json_t **entries = calloc(n + 1, sizeof(*entries));
        const char *id;
        json_t *entry;
        int r = 0;

        if (!entries)
                return rv_raise(-ENOMEM);
        json_object_foreach(runs->open, id, entry)
                entries[i++] = entry;
        qsort(entries, n, sizeof(json_t *), compare_entries);
        for (i = 0; i < n && r == 0; i++) {
                conclude(entries[i], NULL);
                r = tell(runs, entries[i]);
        }
        return r;
}
