#include "audit/verdict_change.h"

#include <stdio.h>
#include <string.h>

const char *const rv_change_words[RV_CHANGE_MAX_] = {
#define X(name, word, text) word,
        RV_CHANGES(X)
#undef X
};
const char *const rv_change_texts[RV_CHANGE_MAX_] = {
#define X(name, word, text) text,
        RV_CHANGES(X)
#undef X
};

struct telling {
        const json_t *facts, *before, *now;
        rv_verdict_change_fn fn;
        void *ctx;
        bool is_told;
};

static void tell(struct telling *t, const struct rv_verdict_change *change)
{
        t->is_told = true;
        t->fn(t->ctx, change);
}

static bool is(const json_t *object, const char *name, const char *text)
{
        return strcmp(rv_json_get_string(object, name, ""), text) == 0;
}

static const json_t *section_of(const json_t *verdict, const char *name)
{
        return json_object_get(verdict, name);
}

/* An error, or a budget spent before: the section says nothing. */
static bool is_judged(const json_t *section)
{
        return !is(section, "rule", "");
}

/* The rule that decides an item of a section. */
static const char *rule_of(const json_t *verdict, const char *section, const char *item)
{
        const json_t *entry, *list = section_of(verdict, section);
        size_t i;

        if (json_is_array(list)) {
                json_array_foreach((json_t *)list, i, entry)
                        if (is(entry, "item", item))
                                return rv_json_get_string(entry, "rule", "");
                return "";
        }
        if (strcmp(section, "limits") != 0)
                return rv_json_get_string(list, "rule", "");
        json_array_foreach(json_object_get(verdict, "denials"), i, entry)
                if (is(entry, "section", "limits") && is(entry, "item", item))
                        return "deny_above";
        return "";
}

static void tell_effect(struct telling *t)
{
        bool was = is(t->before, "effect", "allow"), is_now = is(t->now, "effect", "allow");
        const json_t *denial = json_array_get(json_object_get(is_now ? t->before : t->now, "denials"), 0);
        const char *section = rv_json_get_string(denial, "section", ""), *item = rv_json_get_string(denial, "item", "");
        struct rv_verdict_change change = {
                .change = is_now ? RV_CHANGE_ALLOW : RV_CHANGE_DENY, .section = section,
                .before = rv_json_get_string(t->before, "code", ""), .now = rv_json_get_string(t->now, "code", ""),
        };

        if (was == is_now)
                return;
        change.rule_before = was ? rule_of(t->before, section, item) : rv_json_get_string(denial, "rule", "");
        change.rule_now = is_now ? rule_of(t->now, section, item) : rv_json_get_string(denial, "rule", "");
        tell(t, &change);
}

static const json_t *network_item(const json_t *verdict, size_t i, const char *domain)
{
        const json_t *entry = json_array_get(json_object_get(verdict, "network"), i);

        return is(entry, "item", domain) ? entry : NULL;
}

static bool has_port(const json_t *ports, const json_t *port)
{
        const json_t *item;
        size_t i;

        json_array_foreach(ports, i, item)
                if (json_equal(item, port))
                        return true;
        return false;
}

/* Does @now let a port through that @before does not? Without a list every port is. */
static bool lets_more_ports(const json_t *before, const json_t *now)
{
        const json_t *item;
        size_t i;

        if (!before)
                return false;
        if (!now)
                return true;
        json_array_foreach(now, i, item)
                if (!has_port(before, item))
                        return true;
        return false;
}

/* The first item of each direction tells for all of them. */
static void tell_network(struct telling *t)
{
        bool is_wider = false, is_narrower = false;
        const json_t *item;
        size_t i;

        json_array_foreach(json_object_get(t->facts, "network"), i, item) {
                const char *domain = rv_json_get_string(item, "domain", "");
                const json_t *before = network_item(t->before, i, domain), *now = network_item(t->now, i, domain);
                const json_t *ports_before = json_object_get(before, "ports"), *ports_now = json_object_get(now, "ports");
                bool was = is(before, "effect", "allow"), is_now = is(now, "effect", "allow");
                bool is_widened = was ? is_now && lets_more_ports(ports_before, ports_now) : is_now;
                bool is_narrowed = was && (!is_now || lets_more_ports(ports_now, ports_before));
                struct rv_verdict_change change = {
                        .change = is_widened ? RV_CHANGE_WIDEN : RV_CHANGE_NARROW, .section = "network",
                        .rule_before = rv_json_get_string(before, "rule", ""), .rule_now = rv_json_get_string(now, "rule", ""),
                        .before = "", .now = "",
                };
                bool *is_seen = is_widened ? &is_wider : &is_narrower;

                if ((!is_widened && !is_narrowed) || *is_seen || is(item, "mode", "none"))
                        continue;
                *is_seen = true;
                tell(t, &change);
        }
}

static void tell_backend(struct telling *t)
{
        const json_t *before = section_of(t->before, "backend"), *now = section_of(t->now, "backend");
        struct rv_verdict_change change = {
                .change = RV_CHANGE_BACKEND, .section = "backend",
                .rule_before = rv_json_get_string(before, "rule", ""), .rule_now = rv_json_get_string(now, "rule", ""),
                .before = rv_json_get_string(before, "use", ""), .now = rv_json_get_string(now, "use", ""),
        };

        /* Where one denies there is no backend that could have changed. */
        if (*change.before && *change.now && strcmp(change.before, change.now) != 0)
                tell(t, &change);
}

static void tell_key(struct telling *t)
{
        const json_t *before = section_of(t->before, "idempotency"), *now = section_of(t->now, "idempotency");
        bool was = json_is_true(json_object_get(before, "require_key")), is_now = json_is_true(json_object_get(now, "require_key"));
        struct rv_verdict_change change = {
                .change = is_now ? RV_CHANGE_KEY_ASKED : RV_CHANGE_KEY, .section = "idempotency",
                .rule_before = rv_json_get_string(before, "rule", ""), .rule_now = rv_json_get_string(now, "rule", ""),
                .before = was ? "required" : "none", .now = is_now ? "required" : "none",
        };

        if (was != is_now && is_judged(before) && is_judged(now))
                tell(t, &change);
}

static void tell_limits(struct telling *t)
{
        const json_t *limits = json_object_get(t->before, "limits"), *value;
        const char *name;

        json_object_foreach((json_t *)limits, name, value) {
                const json_t *other = json_object_get(json_object_get(t->now, "limits"), name);
                json_int_t was = json_integer_value(value), is_now = json_integer_value(other);
                struct rv_verdict_change change = {
                        .change = is_now > was ? RV_CHANGE_LIMIT_RAISED : RV_CHANGE_LIMIT_LOWERED, .section = "limits",
                        .rule_before = name, .rule_now = name,
                };
                char before[24], now[24];

                if (!json_is_integer(value) || !json_is_integer(other) || was == is_now)
                        continue;
                snprintf(before, sizeof(before), "%lld", (long long)was);
                snprintf(now, sizeof(now), "%lld", (long long)is_now);
                change.before = before;
                change.now = now;
                tell(t, &change);
        }
}

/* Refused for the same reasons, whatever the words and wherever the rules stand. */
static bool has_same_denials(const json_t *a, const json_t *b)
{
        static const char *const names[] = { "section", "rule", "item" };
        const json_t *ours = json_object_get(a, "denials"), *theirs = json_object_get(b, "denials"), *denial;
        size_t i;

        if (json_array_size(ours) != json_array_size(theirs) || !is(b, "code", rv_json_get_string(a, "code", "")))
                return false;
        json_array_foreach((json_t *)ours, i, denial)
                for (size_t k = 0; k < RV_N_ELEMENTS(names); k++)
                        if (!is(json_array_get(theirs, i), names[k], rv_json_get_string(denial, names[k], "")))
                                return false;
        return true;
}

static void tell_other(struct telling *t)
{
        const json_t *before = json_array_get(json_object_get(t->before, "denials"), 0);
        const json_t *now = json_array_get(json_object_get(t->now, "denials"), 0);
        struct rv_verdict_change change = {
                .change = RV_CHANGE_OTHER, .section = rv_json_get_string(now ? now : before, "section", ""),
                .rule_before = rv_json_get_string(before, "rule", ""), .rule_now = rv_json_get_string(now, "rule", ""),
                .before = rv_json_get_string(t->before, "code", ""), .now = rv_json_get_string(t->now, "code", ""),
        };

        tell(t, &change);
}

void rv_verdict_changes(
        const json_t *facts, const json_t *before, const json_t *now, rv_verdict_change_fn fn, void *ctx)
{
        struct telling t = { .facts = facts, .before = before, .now = now, .fn = fn, .ctx = ctx };

        tell_effect(&t);
        tell_network(&t);
        tell_backend(&t);
        tell_key(&t);
        tell_limits(&t);
        if (!t.is_told && !has_same_denials(before, now))
                tell_other(&t);
}

/* ---- Fields ---- */

struct fields {
        struct rv_buf *out;
        unsigned most, n;
        char path[200];
};

static void compare(struct fields *f, size_t n_path, const json_t *a, const json_t *b);

static void compare_members(struct fields *f, size_t n_path, const json_t *a, const json_t *b, bool is_only_new)
{
        const char *name;
        const json_t *value;

        json_object_foreach((json_t *)a, name, value) {
                const json_t *other = json_object_get(b, name);
                int n = snprintf(f->path + n_path, sizeof(f->path) - n_path, "/%.40s", name);

                if (!is_only_new || !other)
                        compare(f, n_path + (size_t)n, value, other);
        }
}

static void compare_entries(struct fields *f, size_t n_path, const json_t *a, const json_t *b)
{
        size_t n = RV_MAX(json_array_size(a), json_array_size(b));

        for (size_t i = 0; i < n; i++) {
                int n_more = snprintf(f->path + n_path, sizeof(f->path) - n_path, "/%zu", i);

                compare(f, n_path + (size_t)n_more, json_array_get(a, i), json_array_get(b, i));
        }
}

/* Verdicts are flat; a path that does not fit belongs to something else, and ends where it got to. */
static void compare(struct fields *f, size_t n_path, const json_t *a, const json_t *b)
{
        bool has_room = n_path + 64 < sizeof(f->path);

        if (has_room && json_is_object(a) && json_is_object(b)) {
                compare_members(f, n_path, a, b, false);
                compare_members(f, n_path, b, a, true);
                return;
        }
        if (has_room && json_is_array(a) && json_is_array(b)) {
                compare_entries(f, n_path, a, b);
                return;
        }
        if (a == b || (a && b && json_equal(a, b)))
                return;
        if (f->n++ < f->most)
                rv_buf_printf(f->out, "%s%.*s", f->n > 1 ? " " : "", (int)RV_MIN(n_path, sizeof(f->path) - 1), f->path);
}

int rv_verdict_fields(const json_t *before, const json_t *now, unsigned most, struct rv_buf *out)
{
        struct fields f = { .out = out, .most = most };

        compare(&f, 0, before, now);
        if (f.n > most)
                rv_buf_printf(out, " and %u more", f.n - most);
        return rv_buf_error(out);
}

bool rv_verdict_is_newly_undecided(const json_t *before, const json_t *now)
{
        const json_t *package;
        size_t i;

        json_array_foreach(json_object_get(now, "packages"), i, package)
                if (is(package, "effect", "undecided") && !is(json_array_get(json_object_get(before, "packages"), i), "effect", "undecided"))
                        return true;
        return false;
}
