#include "policy/decide_private.h"

#include "policy/version.h"

#include <stdio.h>
#include <string.h>

#define MESSAGE_SIZE 900
#define TEXTS_BYTES_MAX ((size_t)256 << 10)   /* of messages, so that a record can hold what denies 2,000 packages */

/* What went wrong in a rule: the engine's own is the next item's. */
struct fault {
        char message[RV_ENGINE_MESSAGE_MAX];
        struct rv_engine_place place;
};

struct judged {
        const json_t *item;
        struct rv__judgement g;
        struct fault *fault;
};

struct closure {
        struct rv__judging *j;
        const json_t *packages, *paths, *registry_hash;
        struct judged *items;
        size_t n;
        const struct rv_rule *newest;   /* with the strictest `newest_published` of all that let an item through */
        const char *unmet[4];           /* of the item at hand */
        size_t n_unmet;
        size_t texts_bytes;
};

static bool is_allowed(const struct judged *d)
{
        return d->g.fault == RV_ENGINE_FINE && d->g.verdict == RV_VERDICT_ALLOW;
}

/* ---- The rules ---- */

/* An item has a copy of its fault, or NULL if there is no memory for one. */
static bool judge_item(struct closure *c, const json_t *item)
{
        struct judged *d = &c->items[c->n++];
        struct rv_engine *e = &c->j->engine;
        int64_t newest_s;

        *d = (struct judged){ .item = item, .g = rv__judge(c->j, RV_SECTION_PACKAGES, item) };
        if (d->g.fault != RV_ENGINE_FINE) {
                d->fault = malloc(sizeof(*d->fault));
                if (!d->fault)
                        return false;
                memcpy(d->fault->message, e->message, sizeof(d->fault->message));
                d->fault->place = e->place;
        }
        newest_s = is_allowed(d) && d->g.rule ? d->g.rule->obliges.newest_published_s : 0;
        if (newest_s && (!c->newest || newest_s > c->newest->obliges.newest_published_s))
                c->newest = d->g.rule;
        return true;
}

static bool judge_items(struct closure *c)
{
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)c->packages, i, item) {
                if (!judge_item(c, item))
                        return false;
                if (rv__judge_is_over(c->j))
                        break;
        }
        return true;
}

/* ---- Denials ---- */

static void deny(
        struct closure *c, const struct judged *d, const struct rv_rule *rule, const char *code, const char *message)
{
        struct rv__judgement g = { .rule = rule };
        struct rv_finding f = rv__judge_finding(c->j, RV_SECTION_PACKAGES, &g);

        f.item = rv_json_get_string(d->item, "name", "");
        f.names = json_array_get(c->paths, (size_t)(d - c->items));
        f.code = code;
        c->texts_bytes += strlen(message);
        f.message = c->texts_bytes <= TEXTS_BYTES_MAX ? message : "denied as well; the messages before this one fill what a record has room for";
        if (d->fault) {
                f.file = d->fault->place.file;
                f.line = d->fault->place.line;
        }
        rv_verdict_deny(&c->j->verdict, &f);
}

/* What a rule obliges to and was not chosen. */
static void deny_unmet(struct closure *c, const struct judged *d, const struct rv_rule *rule, const char *obligation,
        const char *message)
{
        deny(c, d, rule, "package_denied", message);
        c->unmet[c->n_unmet++] = obligation;
}

static void check_pin(struct closure *c, const struct judged *d)
{
        const char *pin = d->g.rule->obliges.pin, *version = rv_json_get_string(d->item, "version", NULL);
        enum rv_version_order order = c->j->engine.order;
        char set[RV_VERSION_SIZE_MAX + 3], message[MESSAGE_SIZE];
        struct rv_version v;

        if (!version) {
                rv_engine_lacks(&c->j->engine, "version", d->item);
                deny(c, d, d->g.rule, "policy_error", rv_fact_describe_lack("version", d->item, message, sizeof(message)));
                return;
        }
        snprintf(set, sizeof(set), "==%s", pin);
        if (rv_version_parse(order, version, strlen(version), &v) == 0 &&
                rv_version_set_has(order, set, strlen(set), &v) == 1)
                return;
        snprintf(message, sizeof(message), "rule '%s' pins %.214s to %.256s, and %.256s was chosen", d->g.rule->id,
                rv_json_get_string(d->item, "name", ""), pin, version);
        deny_unmet(c, d, d->g.rule, "pin", message);
}

static void check_hash(struct closure *c, const struct judged *d)
{
        char message[MESSAGE_SIZE];

        if (json_is_true(json_array_get(c->registry_hash, (size_t)(d - c->items))))
                return;
        snprintf(message, sizeof(message), "rule '%s' asks for a hash of %.214s %.256s that the registry itself tells, and it tells none",
                d->g.rule->id, rv_json_get_string(d->item, "name", ""), rv_json_get_string(d->item, "version", ""));
        deny_unmet(c, d, d->g.rule, "require_hash", message);
}

static void check_kind(struct closure *c, const struct judged *d)
{
        char message[MESSAGE_SIZE];

        if (strcmp(rv_json_get_string(d->item, "kind", ""), "built") != 0 || (d->g.rule && d->g.rule->obliges.allow_source_build))
                return;
        snprintf(message, sizeof(message), "%.214s %.256s has to be built from its source, and %s%s%s does not allow it (allow_source_build)",
                rv_json_get_string(d->item, "name", ""), rv_json_get_string(d->item, "version", ""),
                d->g.rule ? "rule '" : "the default", d->g.rule ? d->g.rule->id : "", d->g.rule ? "'" : "");
        deny_unmet(c, d, d->g.rule, "allow_source_build", message);
}

static void check_age(struct closure *c, const struct judged *d)
{
        const json_t *published = json_object_get(d->item, "published_at");
        int64_t now = json_integer_value(json_object_get(c->j->request, "now")), asked_s = c->newest->obliges.newest_published_s;
        int64_t age_s = now - json_integer_value(published);
        char message[MESSAGE_SIZE], asked[80], age[80];

        if (!json_is_integer(published)) {
                rv_engine_lacks(&c->j->engine, "published_at", d->item);
                deny(c, d, c->newest, "policy_error", rv_fact_describe_lack("published_at", d->item, message, sizeof(message)));
                return;
        }
        if (age_s >= asked_s)
                return;
        snprintf(message, sizeof(message),
                "%.214s %.256s was published %s ago, and rule '%s' allows nothing younger than %s",
                rv_json_get_string(d->item, "name", ""), rv_json_get_string(d->item, "version", ""),
                rv_obligation_age(age_s < 0 ? 0 : age_s, age, sizeof(age)), c->newest->id,
                rv_obligation_age(asked_s, asked, sizeof(asked)));
        deny_unmet(c, d, c->newest, "newest_published", message);
}

static void check_obligations(struct closure *c, const struct judged *d)
{
        if (d->g.rule && d->g.rule->obliges.pin)
                check_pin(c, d);
        if (d->g.rule && d->g.rule->obliges.require_hash)
                check_hash(c, d);
        check_kind(c, d);
        if (c->newest)
                check_age(c, d);
}

/* ---- The verdict ---- */

static json_t *make_entry(const struct closure *c, const struct judged *d, bool is_denied)
{
        json_t *entry = json_pack("{s:s, s:s, s:s, s:s}", "item", rv_json_get_string(d->item, "name", ""), "requested",
                rv_json_get_string(d->item, "requested", ""), "version", rv_json_get_string(d->item, "version", ""), "effect", is_denied ? "deny" : "allow");
        json_t *unmet;

        /* A denial for what was not met has what there was to meet: it is resolved again with that. */
        if (entry && d->g.rule && is_allowed(d))
                entry = rv__judge_oblige(entry, d->g.rule);
        if (!entry || !c->n_unmet)
                return entry;
        unmet = json_array();
        for (size_t i = 0; i < c->n_unmet; i++)
                if (json_array_append_new(unmet, json_string(c->unmet[i])) < 0)
                        unmet = (json_decref(unmet), NULL);
        if (json_object_set_new(entry, "unmet", unmet) < 0)
                entry = (json_decref(entry), NULL);
        return entry;
}

static void conclude_item(struct closure *c, const struct judged *d)
{
        struct rv_finding f = rv__judge_finding(c->j, RV_SECTION_PACKAGES, &d->g);
        size_t n_denials = json_array_size(c->j->verdict.denials);
        char message[400];

        c->n_unmet = 0;
        if (d->fault) {
                deny(c, d, d->g.rule, "policy_error", d->fault->message);
        } else if (is_allowed(d)) {
                check_obligations(c, d);
        } else {
                snprintf(message, sizeof(message), "no rule of section packages allows %.214s, and the section's default is to deny",
                        rv_json_get_string(d->item, "name", ""));
                deny(c, d, d->g.rule, "package_denied", d->g.text ? d->g.text : message);
        }
        rv_verdict_add(&c->j->verdict, c->j->verdict.packages,
                make_entry(c, d, json_array_size(c->j->verdict.denials) > n_denials), &f);
}

void rv__judge_closure(struct rv__judging *j)
{
        struct closure c = {
                .j = j, .packages = json_object_get(j->facts, "packages"),
                .paths = json_object_get(json_object_get(j->facts, "pointers"), "paths"),
                .registry_hash = json_object_get(json_object_get(j->facts, "evidence"), "registry_hash"),
        };

        c.items = calloc(json_array_size(c.packages) + 1, sizeof(*c.items));
        if (!c.items || !judge_items(&c))
                j->verdict.is_failed = true;
        for (size_t i = 0; i < c.n && !j->verdict.is_failed; i++)
                conclude_item(&c, &c.items[i]);
        for (size_t i = 0; i < c.n; i++)
                free(c.items[i].fault);
        free(c.items);
}
