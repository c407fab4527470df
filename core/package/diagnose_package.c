#include "package/diagnose_private.h"

#include "policy/constraint.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define NEAR_MAX 5u

/* One package whose page is there, against what is wanted of it. */

struct look {
        const struct rv_package_trouble *t;
        const json_t *page;
        const struct rv__demand *demand;
        const char **versions;       /* the lowest first */
        size_t n;
        bool *is_in;                 /* of each: within what is wanted */
};

static enum rv_version_order order_of(const struct look *l)
{
        return l->t->source->registry->language == RV_LANGUAGE_PYTHON ? RV_VERSION_PEP440 : RV_VERSION_SEMVER;
}

/* 1, 0 or RV_CONSTRAINT_PRE. */
static int satisfies(const struct look *l, const char *constraint, const char *text)
{
        struct rv_version v;
        int r;

        if (rv_version_parse(order_of(l), text, strlen(text), &v) < 0)
                return 0;
        if (order_of(l) == RV_VERSION_SEMVER && strcmp(constraint, "latest") == 0)
                return strcmp(rv_json_get_string(l->page, "latest", ""), text) == 0;
        r = rv_constraint_has(constraint, text, &v);
        return r < 0 ? 0 : r;
}

static bool is_version(const struct look *l, const char *a, const char *b)
{
        struct rv_version x, y;

        return rv_version_parse(order_of(l), a, strlen(a), &x) == 0 &&
                rv_version_parse(order_of(l), b, strlen(b), &y) == 0 && rv_version_compare(&x, &y) == 0;
}

static bool is_pre(const struct look *l, const char *text)
{
        struct rv_version v;

        return rv_version_parse(order_of(l), text, strlen(text), &v) == 0 && rv_version_is_pre(&v);
}

/*
 * Which versions all of the constraints first..end take. A Python pre-release that no constraint names is taken only
 * where there is nothing else: by pip, if no release satisfies them; by uv, if the package has no release at all.
 */
static size_t match(struct look *l, size_t first, size_t end, bool is_pin)
{
        bool is_pip = strcmp(rv_json_get_string(json_object_get(l->t->closure, "tool"), "name", ""), "pip") == 0, has_release = false;
        size_t n_in = 0, n_pre = 0;
        _cleanup_(rv_freep) bool *pre = calloc(l->n + 1, sizeof(*pre));

        for (size_t i = 0; i < l->n; i++) {
                int all = 1;

                for (size_t k = first; k < end && all; k++) {
                        int r = satisfies(l, l->demand->constraints[k], l->versions[i]);

                        all = r == 0 ? 0 : RV_MAX(all, r);
                }
                if (all && is_pin)
                        all = is_version(l, l->demand->pin, l->versions[i]);
                l->is_in[i] = all == 1;
                n_in += all == 1;
                has_release = has_release || !is_pre(l, l->versions[i]);
                if (pre && all == RV_CONSTRAINT_PRE) {
                        pre[i] = true;
                        n_pre++;
                }
        }
        if (n_in || !n_pre || (has_release && !is_pip))
                return n_in;
        memcpy(l->is_in, pre, l->n * sizeof(*pre));
        return n_pre;
}

/* ---- Near versions ---- */

/* Where the first version that a constraint names would stand in the list; its end if it names none. */
static size_t place_of(const struct look *l)
{
        const char *c = l->demand->n_constraints ? l->demand->constraints[0] : l->demand->pin ? l->demand->pin : "";
        struct rv_version wanted, v;
        size_t n, place = 0;
        char text[RV_VERSION_SIZE_MAX];

        c += strcspn(c, "0123456789");
        n = strcspn(c, ", |");
        n = RV_MIN(n, sizeof(text) - 1);
        memcpy(text, c, n);
        text[n] = 0;
        /* 1.x and 1.* stand where 1 does. */
        n = strcspn(text, "xX*");
        while (n && text[n] && text[n - 1] == '.')
                n--;
        if (n == 0 || rv_version_parse(order_of(l), text, n, &wanted) < 0)
                return l->n;
        while (place < l->n && rv_version_parse(order_of(l), l->versions[place], strlen(l->versions[place]), &v) == 0 &&
               rv_version_compare(&v, &wanted) < 0)
                place++;
        return place;
}

enum { NEAR_USABLE, NEAR_RELEASE, NEAR_ANY };

static bool is_candidate(const struct look *l, size_t i, int kind)
{
        if (kind == NEAR_ANY)
                return true;
        if (is_pre(l, l->versions[i]))
                return false;
        return kind == NEAR_RELEASE || rv__version_fault(l->t, l->page, l->versions[i], false, NULL) == RV__FAULT_NONE;
}

/* At most NEAR_MAX around a place, by turns below and above it; in their order, joined by commas. */
static size_t near_of_kind(const struct look *l, int kind, char *ret, size_t size)
{
        size_t below = place_of(l), above = below, n = 0, used = 0;
        bool chosen_below = true;
        _cleanup_(rv_freep) bool *chosen = calloc(l->n + 1, sizeof(*chosen));

        *ret = 0;
        if (!chosen)
                return 0;
        while (n < NEAR_MAX && (below > 0 || above < l->n)) {
                size_t i;

                chosen_below = above >= l->n || (below > 0 && chosen_below);
                i = chosen_below ? --below : above++;
                if (is_candidate(l, i, kind)) {
                        chosen[i] = true;
                        n++;
                        chosen_below = !chosen_below;
                }
        }
        for (size_t i = 0; i < l->n && used < size; i++)
                if (chosen[i] && strlen(l->versions[i]) < 40)
                        used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? ", " : "", l->versions[i]);
        return n;
}

static const char *near_versions(const struct look *l, char *ret, size_t size)
{
        for (int kind = NEAR_USABLE; kind <= NEAR_ANY; kind++)
                if (near_of_kind(l, kind, ret, size))
                        return ret;
        return "";
}

/* "; versions near it: …", of those that this runtime could have, or "". */
static const char *others(const struct look *l, char *ret, size_t size)
{
        char list[240];

        if (!near_of_kind(l, NEAR_USABLE, list, sizeof(list)))
                return "";
        snprintf(ret, size, "; versions that can be had: %s", list);
        return ret;
}

/* ---- What is told ---- */

static const char *wanted(const struct look *l, char *ret, size_t size)
{
        size_t used = 0;

        *ret = 0;
        for (size_t i = 0; i < l->demand->n_constraints && used < size; i++)
                used += (size_t)snprintf(ret + used, size - used, "%s%.80s", i ? " and " : "", l->demand->constraints[i]);
        return ret;
}

static void tell_missing(const struct look *l, struct rv__finding *f)
{
        char near[240], want[200];
        const char *name = l->demand->name, *by = l->demand->is_hint ? ", which something that was asked for needs" : "";

        if (l->n == 0)
                rv__find(f, RV_PACKAGE_CAUSE_MISSING_VERSION, name, "the registry has the package %s and no version of it that can be installed", name);
        else
                rv__find(f, RV_PACKAGE_CAUSE_MISSING_VERSION, name, "%s has no version that satisfies %s%s; the nearest are %s: ask for one of these", name,
                         wanted(l, want, sizeof(want)), by, near_versions(l, near, sizeof(near)));
}

static void tell_conflict(const struct look *l, bool is_pin, struct rv__finding *f)
{
        char want[200];
        const char *name = l->demand->name;

        if (is_pin)
                rv__find(f, RV_PACKAGE_CAUSE_CONFLICT, name, "policy pins %s to %.60s, which does not satisfy %s: ask for that version", name,
                         l->demand->pin, wanted(l, want, sizeof(want)));
        else
                rv__find(f, RV_PACKAGE_CAUSE_CONFLICT, name, "no version of %s satisfies %s at once: ask for one of them", name,
                         wanted(l, want, sizeof(want)));
}

/* npm takes a pin only as the version is spelled: what is shorter is a range. */
static bool has_pin(const struct look *l)
{
        bool is_exact = order_of(l) == RV_VERSION_SEMVER;

        for (size_t i = 0; i < l->n; i++)
                if (is_exact ? strcmp(l->demand->pin, l->versions[i]) == 0
                             : is_version(l, l->demand->pin, l->versions[i]))
                        return true;
        return false;
}

static void tell_missing_pin(const struct look *l, struct rv__finding *f)
{
        char near[240];

        rv__find(f, RV_PACKAGE_CAUSE_MISSING_VERSION, l->demand->name, "policy pins %s to %.60s, and the registry has no such version; the nearest are %s: change the pin in the policy",
                 l->demand->name, l->demand->pin, near_versions(l, near, sizeof(near)));
}

static void tell_too_new(const struct look *l, const char *version, const json_t *entry, struct rv__finding *f)
{
        char day[32], more[300];
        time_t cutoff = (time_t)l->t->cutoff_s;
        struct tm tm;

        if (!json_is_integer(json_object_get(entry, "published_at"))) {
                rv__find(f, RV_PACKAGE_CAUSE_TOO_NEW, l->demand->name,
                         "the registry does not say when %s %s was published, and policy wants it to be known to be old enough", l->demand->name, version);
                return;
        }
        gmtime_r(&cutoff, &tm);
        strftime(day, sizeof(day), "%Y-%m-%d %H:%M", &tm);
        rv__find(f, RV_PACKAGE_CAUSE_TOO_NEW, l->demand->name, "%s %s was published after %s UTC, the latest that policy allows%s", l->demand->name,
                 version, day, others(l, more, sizeof(more)));
}

static void tell_fault(
        const struct look *l, enum rv__fault fault, const char *version, const json_t *file, struct rv__finding *f)
{
        const json_t *runtime = json_object_get(l->t->closure, "runtime");
        const char *name = l->demand->name, *requires = rv_json_get_string(file, "requires_python", ""), *dash;
        char more[300];

        switch (fault) {
        case RV__FAULT_YANKED:
                rv__find(f, RV_PACKAGE_CAUSE_YANKED, name, "every version of %s within what was asked for is yanked, such as %s: ask for another, or for exactly that one%s",
                         name, version, others(l, more, sizeof(more)));
                break;
        case RV__FAULT_TOO_NEW: tell_too_new(l, version, file, f); break;
        case RV__FAULT_NO_WHEEL:
                rv__find(f, RV_PACKAGE_CAUSE_NO_WHEEL, name, "%s %s is there as source only, and %s%s", name, version,
                         l->t->is_for_build ? "what is needed for a build is not built itself" : "policy lets nothing be built", others(l, more, sizeof(more)));
                break;
        case RV__FAULT_PLATFORM:
                dash = strchr(rv_json_get_string(runtime, "tag", ""), '-');
                rv__find(f, RV_PACKAGE_CAUSE_PLATFORM, name, "%s %s is there for other platforms only, not for %.40s%s", name, version,
                         dash && rv_index_is_line(dash + 1, 40) ? dash + 1 : "this one", others(l, more, sizeof(more)));
                break;
        case RV__FAULT_RUNTIME:
                rv__find(f, RV_PACKAGE_CAUSE_RUNTIME, name, "%s %s needs another Python (%.80s) than this runtime's %.16s%s", name, version,
                         *requires && !rv__takes_python(l->t, file) ? requires : rv_json_get_string(file, "file", "its wheels are for others"),
                         rv_json_get_string(runtime, "version", ""), others(l, more, sizeof(more)));
                break;
        case RV__FAULT_NONE: break;
        }
}

/* The newest that could be built, where there is nothing to be had as it is. */
static void find_source(const struct look *l, struct rv__finding *f)
{
        for (size_t i = l->n; i-- > 0 && l->t->ret_source && !f->source;) {
                const json_t *file = l->is_in[i]
                        ? rv__version_source(l->t, l->page, l->versions[i], l->demand->is_pinned)
                        : NULL;

                if (file)
                        f->source = json_pack("{s:s, s:s, s:O, s:O, s:O*, s:O*, s:O*, s:b, s:O}", "name", l->demand->name, "version", l->versions[i], "file",
                                              json_object_get(file, "file"), "url", json_object_get(file, "url"), "sha256", json_object_get(file, "sha256"), "published_at",
                                              json_object_get(file, "published_at"), "size_bytes", json_object_get(file, "size_bytes"), "yanked",
                                              (int)json_is_true(json_object_get(file, "yanked")), "page", l->page);
        }
}

/* The newest that can be had, or what is wrong with the newest that is neither yanked nor too young, else with the newest. */
static const char *judge(const struct look *l, struct rv__finding *f)
{
        enum rv__fault best = RV__FAULT_NONE;
        const json_t *best_file = NULL, *file;
        const char *best_version = NULL;

        for (size_t i = l->n; i-- > 0;) {
                enum rv__fault fault;
                bool is_better;

                if (!l->is_in[i])
                        continue;
                fault = rv__version_fault(l->t, l->page, l->versions[i], l->demand->is_pinned, &file);
                if (fault == RV__FAULT_NONE)
                        return l->versions[i];
                is_better = !best_version || (best <= RV__FAULT_TOO_NEW && fault > best);
                if (is_better) {
                        best = fault;
                        best_file = file;
                        best_version = l->versions[i];
                }
        }
        if (best_version) {
                tell_fault(l, best, best_version, best_file, f);
                find_source(l, f);
        }
        return NULL;
}

static const char *look_at(struct look *l, struct rv__finding *f)
{
        const struct rv__demand *d = l->demand;

        if (d->pin && l->n && !has_pin(l)) {
                tell_missing_pin(l, f);
                return NULL;
        }
        for (size_t i = 0; i < d->n_constraints; i++)
                if (match(l, i, i + 1, false) == 0) {
                        struct rv__demand alone = { .name = d->name,
                                .constraints = { d->constraints[i] },
                                .n_constraints = 1,
                                .is_hint = d->is_hint };
                        struct look one = *l;

                        one.demand = &alone;
                        tell_missing(&one, f);
                        return NULL;
                }
        if (d->n_constraints == 0 && l->n == 0)
                tell_missing(l, f);
        else if (match(l, 0, d->n_constraints, false) == 0)
                tell_conflict(l, false, f);
        else if (d->pin && match(l, 0, d->n_constraints, true) == 0)
                tell_conflict(l, true, f);
        else
                return judge(l, f);
        return NULL;
}

int rv__diagnose_package(const struct rv_package_trouble *t, const json_t *page, const struct rv__demand *demand,
        struct rv__finding *f, const char **ret_version)
{
        _cleanup_(rv_freep) const char **versions = NULL;
        _cleanup_(rv_freep) bool *is_in = NULL;
        struct look l = { .t = t, .page = page, .demand = demand };
        int r;

        *ret_version = NULL;
        r = rv_metadata_versions(page, &versions, &l.n);
        if (r < 0)
                return rv_trace(r);
        is_in = calloc(l.n + 1, sizeof(*is_in));
        if (!is_in)
                return rv_raise(-ENOMEM);
        l.versions = versions;
        l.is_in = is_in;
        *ret_version = look_at(&l, f);
        return 0;
}
