#include "run/packages.h"
#include "run/run_private.h"

#include <string.h>

/*
 * Versions that obligations forbid and that a package manager cannot be told to pass over: what is too young, of one that
 * knows no cutoff, and what the registry tells no hash of. Each such version is named to it, and it chooses again.
 */

#define ROUNDS_MAX 10

static bool needs_hash(const struct rv_packages_work *w, const char *name)
{
        const json_t *entry;
        size_t i;

        json_array_foreach(json_object_get(w->obligations, "require_hash"), i, entry)
                if (strcmp(json_string_value(entry), name) == 0)
                        return true;
        return false;
}

static bool is_too_young(const struct rv_packages_work *w, const json_t *package)
{
        const json_t *published = json_object_get(package, "published_at");

        return w->cutoff_s >= 0 && !w->knows_cutoff &&
                !(json_is_integer(published) && json_integer_value(published) <= w->cutoff_s);
}

/* What was built is judged as it is: its source has been chosen. */
static bool lacks_hash(const struct rv_packages_work *w, const json_t *package)
{
        return strcmp(rv_json_get_string(package, "kind", ""), "wheel") == 0 && !json_is_true(json_object_get(package, "registry_hash")) &&
                needs_hash(w, rv_json_get_string(package, "name", ""));
}

static int find_versions(struct rv_packages_work *w, const char *name)
{
        const char *tag = rv_json_get_string(json_object_get(w->lock, "runtime"), "tag", NULL);
        _cleanup_(rv_json_unrefp) json_t *pages = NULL;
        json_t *versions;
        int r = rv_metadata_get(&w->in.source, &name, 1, &pages, &w->err);

        if (r == 0)
                r = rv_metadata_unfit(json_object_get(pages, name), tag, w->knows_cutoff ? -1 : w->cutoff_s,
                        needs_hash(w, name), &versions);
        if (r < 0)
                return rv_trace(r);
        return json_object_set_new(w->unfit, name, versions) < 0 ? rv_raise(-ENOMEM) : 0;
}

int rv__exclude_find(struct rv_packages_work *w)
{
        json_t *package;
        size_t i;
        int r = 0;

        json_decref(w->unfit);
        w->unfit = json_object();
        w->has_unhashed = false;
        json_array_foreach(json_object_get(w->lock, "packages"), i, package) {
                const char *name = rv_json_get_string(package, "name", "");

                if (r < 0 || (!lacks_hash(w, package) && !is_too_young(w, package)))
                        continue;
                w->has_unhashed = w->has_unhashed || needs_hash(w, name);
                r = find_versions(w, name);
        }
        return rv_trace(r);
}

int rv__exclude_take(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        bool is_new = false;
        const char *name;
        json_t *versions;

        if (!p->exclude)
                p->exclude = json_object();
        json_object_foreach(p->work.unfit, name, versions) {
                if (json_equal(json_object_get(p->exclude, name), versions))
                        continue;       /* but more of them, if policy demands more by now */
                if (json_object_set(p->exclude, name, versions) < 0)
                        return rv_raise(-ENOMEM);
                is_new = true;
        }
        if (!is_new || ++p->n_excludes > ROUNDS_MAX)
                return 0;
        if (p->work.has_unhashed) {
                json_decref(p->spare_lock);
                p->spare_lock = json_incref(p->work.lock);
        }
        return 1;
}
