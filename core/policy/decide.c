#include "policy/decide_private.h"

#include "policy/facts.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

static const char *const codes[_RV_SECTION_MAX] = { "package_denied", "network_denied", "idempotency_required", "backend_denied" };

static enum rv_engine_fault test_rule(struct rv__judging *j, const struct rv_rule *rule, enum rv_fact_set set,
        const json_t *item, bool *ret)
{
        enum rv_engine_fault fault = rv_match_test(&j->engine, rule, item, ret);

        if (fault != RV_ENGINE_FINE || !*ret || rule->when_ref == LUA_NOREF)
                return fault;
        return rv_engine_call_when(&j->engine, rule->when_ref, set, item, &rule->place, ret);
}

struct rv__judgement rv__judge(struct rv__judging *j, enum rv_section section, const json_t *item)
{
        const struct rv_section_rules *s = &j->engine.policy->sections[section];

        rv_engine_begin_item(&j->engine);
        for (size_t i = 0; i < s->n_rules; i++) {
                const struct rv_rule *rule = s->rules[i];
                bool is_match = false;
                enum rv_engine_fault fault = test_rule(j, rule, rv_section_facts[section], item, &is_match);

                if (fault != RV_ENGINE_FINE)
                        return (struct rv__judgement){ .fault = fault, .rule = rule };
                if (is_match)
                        return (struct rv__judgement){ .rule = rule, .verdict = rule->verdict, .text = rule->text };
        }
        return (struct rv__judgement){ .verdict = s->otherwise, .text = s->otherwise_use };
}

struct rv_finding rv__judge_finding(const struct rv__judging *j, enum rv_section section, const struct rv__judgement *g)
{
        const struct rv_engine_place *place = g->rule ? &g->rule->place : &j->engine.policy->place;

        return (struct rv_finding){
                .section = rv_section_names[section], .rule = g->rule ? g->rule->id : "default",
                .item = "", .path = "", .message = "", .file = place->file, .line = place->line,
        };
}

/* Adds the denial, if it is one. @otherwise is the message where a rule has no text of its own. */
static bool deny_if(struct rv__judging *j, enum rv_section section, const struct rv__judgement *g, const char *item,
        const char *path, const char *otherwise)
{
        struct rv_finding f = rv__judge_finding(j, section, g);

        f.item = item;
        f.path = path;
        if (g->fault == RV_ENGINE_FINE && g->verdict == RV_VERDICT_DENY) {
                f.code = codes[section];
                f.message = g->text ? g->text : otherwise;
        } else if (g->fault != RV_ENGINE_FINE && g->fault != RV_ENGINE_UNDECIDED) {
                f.code = "policy_error";
                f.message = j->engine.message;
                f.file = j->engine.place.file;
                f.line = j->engine.place.line;
        } else {
                return false;
        }
        rv_verdict_deny(&j->verdict, &f);
        return true;
}

static const char *pointer_of(const struct rv__judging *j, const char *member, size_t index, const char *otherwise)
{
        const char *s = json_string_value(json_array_get(json_object_get(json_object_get(j->facts, "pointers"), member), index));

        return s ? s : otherwise;
}

bool rv__judge_is_over(const struct rv__judging *j)
{
        return j->engine.is_spent || j->engine.fault == RV_ENGINE_HOST;
}

json_t *rv__judge_oblige(json_t *entry, const struct rv_rule *rule)
{
        const struct rv_obligations *o = &rule->obliges;

        if ((o->pin && json_object_set_new(entry, "pin", json_string(o->pin)) < 0) ||
            (o->require_hash && json_object_set_new(entry, "require_hash", json_true()) < 0) ||
            (o->newest_published_s && json_object_set_new(entry, "newest_published_s", json_integer(o->newest_published_s)) < 0) ||
            (o->allow_source_build && json_object_set_new(entry, "allow_source_build", json_true()) < 0)) {
                json_decref(entry);
                return NULL;
        }
        return entry;
}

static void judge_packages(struct rv__judging *j)
{
        const json_t *packages = json_object_get(j->facts, "packages"), *item;
        char message[400];
        size_t i;

        json_array_foreach((json_t *)packages, i, item) {
                const char *name = rv_json_get_string(item, "name", ""), *requested = rv_json_get_string(item, "requested", "");
                struct rv__judgement g = rv__judge(j, RV_SECTION_PACKAGES, item);
                struct rv_finding f = rv__judge_finding(j, RV_SECTION_PACKAGES, &g);
                const char *effect = "allow";
                json_t *entry;

                snprintf(message, sizeof(message), "no rule of section packages allows %.214s, and the section's default is to deny", name);
                if (deny_if(j, RV_SECTION_PACKAGES, &g, name, pointer_of(j, "packages", i, "/packages"), message))
                        effect = "deny";
                else if (g.fault == RV_ENGINE_UNDECIDED)
                        effect = "undecided";
                entry = json_pack("{s:s, s:s, s:s}", "item", name, "requested", requested, "effect", effect);
                if (g.rule && strcmp(effect, "allow") == 0)
                        entry = rv__judge_oblige(entry, g.rule);
                rv_verdict_add(&j->verdict, j->verdict.packages, entry, &f);
                if (rv__judge_is_over(j))
                        return;
        }
}

/* The entry of an item that is allowed, with what its rule obliges it to. */
static json_t *make_network_entry(const struct rv__judgement *g, const char *domain, bool is_denied)
{
        json_t *entry = json_pack("{s:s, s:s}", "item", domain, "effect", is_denied ? "deny" : "allow"), *ports;

        if (!entry || is_denied || !g->rule || !g->rule->n_ports)
                return entry;
        ports = json_array();
        for (size_t i = 0; i < g->rule->n_ports; i++)
                if (json_array_append_new(ports, json_integer(g->rule->ports[i])) < 0)
                        ports = (json_decref(ports), NULL);
        if (json_object_set_new(entry, "ports", ports) < 0)
                entry = (json_decref(entry), NULL);
        return entry;
}

static void judge_network(struct rv__judging *j)
{
        const json_t *network = json_object_get(j->facts, "network"), *item;
        char message[400];
        size_t i;

        json_array_foreach((json_t *)network, i, item) {
                const char *domain = rv_json_get_string(item, "domain", "");
                struct rv__judgement g = rv__judge(j, RV_SECTION_NETWORK, item);
                struct rv_finding f = rv__judge_finding(j, RV_SECTION_NETWORK, &g);
                bool is_denied;

                snprintf(message, sizeof(message), "no rule of section network allows %s%.253s, and the section's default is to deny",
                        *domain ? "" : "mode ", *domain ? domain : rv_json_get_string(item, "mode", ""));
                is_denied = deny_if(j, RV_SECTION_NETWORK, &g, domain, pointer_of(j, "network", i, "/network/mode"), message);
                rv_verdict_add(&j->verdict, j->verdict.network, make_network_entry(&g, domain, is_denied), &f);
                if (rv__judge_is_over(j))
                        return;
        }
}

static void judge_idempotency(struct rv__judging *j)
{
        const json_t *item = json_object_get(j->facts, "idempotency");
        struct rv__judgement g = rv__judge(j, RV_SECTION_IDEMPOTENCY, item);
        struct rv_finding f = rv__judge_finding(j, RV_SECTION_IDEMPOTENCY, &g);
        bool is_required = g.fault == RV_ENGINE_FINE && g.verdict == RV_VERDICT_REQUIRE_KEY;

        if (is_required && !json_is_true(json_object_get(item, "key_given"))) {
                struct rv_finding denial = f;

                denial.code = codes[RV_SECTION_IDEMPOTENCY];
                denial.path = "/idempotency_key";
                denial.message = g.rule ? "this run needs an idempotency key, and the request has none"
                                        : "the default of section idempotency asks for a key, and the request has none";
                rv_verdict_deny(&j->verdict, &denial);
        } else {
                deny_if(j, RV_SECTION_IDEMPOTENCY, &g, "", "/idempotency_key", "");
        }
        rv_verdict_set(&j->verdict, "idempotency", json_pack("{s:b}", "require_key", (int)is_required), &f);
}

static void judge_backend(struct rv__judging *j)
{
        struct rv__judgement g = rv__judge(j, RV_SECTION_BACKEND, json_object_get(j->facts, "backend"));
        struct rv_finding f = rv__judge_finding(j, RV_SECTION_BACKEND, &g);
        bool is_denied = deny_if(j, RV_SECTION_BACKEND, &g, "", "", "");

        rv_verdict_set(&j->verdict, "backend",
                json_pack("{s:s, s:s}", "effect", is_denied ? "deny" : "allow", "use", is_denied ? "" : g.text), &f);
}

/* Where a section was not reached: that it is there spares readers a case. */
static void fill_sections(struct rv__judging *j)
{
        struct rv_finding none = { .rule = "", .file = "", .line = 0 };

        if (!json_object_get(j->verdict.root, "idempotency"))
                rv_verdict_set(&j->verdict, "idempotency", json_pack("{s:b}", "require_key", 0), &none);
        if (!json_object_get(j->verdict.root, "backend"))
                rv_verdict_set(&j->verdict, "backend", json_pack("{s:s, s:s}", "effect", "deny", "use", ""), &none);
}

static void judge_limits(struct rv__judging *j)
{
        const struct rv_policy *policy = j->engine.policy;
        json_t *limits = json_object();
        char message[200], path[40];

        for (size_t i = 0; i < _RV_LIMIT_MAX; i++) {
                const char *name = rv_limit_names[i];
                json_int_t value = json_integer_value(json_object_get(j->request, name));

                if (policy && policy->limits[i].has_deny_above && value > policy->limits[i].deny_above) {
                        struct rv_finding f = { "limits", "limit_denied", "deny_above", name, path, message,
                                policy->place.file, policy->place.line, NULL };

                        snprintf(path, sizeof(path), "/%s", name);
                        snprintf(message, sizeof(message), "%s %lld is above %lld, the most that policy lets pass", name,
                                (long long)value, (long long)policy->limits[i].deny_above);
                        rv_verdict_deny(&j->verdict, &f);
                }
                if (policy && policy->limits[i].has_max)
                        value = RV_MIN(value, (json_int_t)policy->limits[i].max);
                if (json_object_set_new(limits, name, json_integer(value)) < 0)
                        j->verdict.is_failed = true;
        }
        rv_verdict_set(&j->verdict, "limits", limits, NULL);
}

static void judge_sections(struct rv__judging *j)
{
        static void (*const sections[])(struct rv__judging *) = { judge_packages, judge_network, judge_idempotency,
                judge_backend };

        for (size_t i = 0; i < RV_N_ELEMENTS(sections) && !rv__judge_is_over(j); i++)
                sections[i](j);
}

static void load(struct rv__judging *j)
{
        struct rv_finding f = { "policy", "policy_error", "", "", "", j->engine.message, j->engine.place.file, 0, NULL };

        if (rv_engine_load(&j->engine) == RV_ENGINE_FINE)
                return;
        f.line = j->engine.place.line;
        rv_verdict_deny(&j->verdict, &f);
}

int rv_policy_decide(const struct rv_bundle *bundle, const json_t *facts, json_t **ret)
{
        struct rv_policy_notes notes;

        return rv_policy_decide_noting(bundle, facts, &notes, ret);
}

/* The other verdicts of the request stand as they were: only the packages are judged anew. */
static void judge_resolved(struct rv__judging *j)
{
        rv_verdict_begin_packages(&j->verdict);
        load(j);
        if (j->engine.policy)
                rv__judge_closure(j);
}

static void judge_requested(struct rv__judging *j)
{
        rv_verdict_begin(&j->verdict);
        load(j);
        if (j->engine.policy)
                judge_sections(j);
        fill_sections(j);
        judge_limits(j);
}

int rv_policy_decide_noting(const struct rv_bundle *bundle, const json_t *facts, struct rv_policy_notes *ret_notes,
        json_t **ret)
{
        struct rv__judging j = { .facts = facts, .request = json_object_get(facts, "request") };
        bool is_resolved = rv_facts_is_resolved(facts);
        int r;

        if (!json_is_object(j.request) || !json_is_array(json_object_get(facts, "packages")) ||
                (!is_resolved && json_array_size(json_object_get(facts, "network")) == 0))
                return rv_raise(-EINVAL);
        r = rv_engine_init(&j.engine, bundle, facts);
        if (r < 0)
                return rv_trace(r);
        if (is_resolved)
                judge_resolved(&j);
        else
                judge_requested(&j);
        r = j.engine.fault == RV_ENGINE_HOST ? rv_raise(-ENOMEM) : rv_verdict_end(&j.verdict, ret);
        if (r == 0)
                *ret_notes = (struct rv_policy_notes){
                        .lacking = j.engine.lacking,
                        .lacking_package = rv_json_get_string(j.engine.lacking_of, "name", NULL),
                        .lacking_version = rv_json_get_string(j.engine.lacking_of, "version", NULL),
                };
        rv_verdict_fini(&j.verdict);
        rv_engine_fini(&j.engine);
        return rv_trace(r);
}
