#include "package/acquire_private.h"

#include "base/fd.h"
#include "package/closure_paths.h"
#include "package/lock.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rv_acquire_file(size_t index, char ret[RV_ACQUIRE_FILE_SIZE])
{
        snprintf(ret, RV_ACQUIRE_FILE_SIZE, "p%zu", index);
}

int rv__acquire_fail(struct rv_package_failure *f, const char *code, const char *cause, bool is_retryable,
        const char *package, const char *fmt, ...)
{
        va_list ap;

        *f = (struct rv_package_failure){ .code = code, .cause = cause, .is_retryable = is_retryable };
        snprintf(f->package, sizeof(f->package), "%s", package);
        va_start(ap, fmt);
        vsnprintf(f->message, sizeof(f->message), fmt, ap);
        va_end(ap);
        return RV_ACQUIRE_E_FAILED;
}

struct rv_artifact *rv__acquire_artifacts(const json_t *packages, struct rv_arena *arena)
{
        struct rv_artifact *artifacts = calloc(json_array_size(packages) + 1, sizeof(*artifacts));

        for (size_t i = 0; artifacts && i < json_array_size(packages); i++)
                artifacts[i].arena = arena;
        return artifacts;
}

/* ---- Pages ---- */

struct pages {
        const struct rv_acquire *in;
        const json_t *packages;
        json_t *found;
        struct rv_error err;
        int r;
};

/* A page that was kept may be older than what the resolver has just found: then the registry is asked again. */
static int renew_pages(struct pages *p, const char **names)
{
        struct rv_metadata_source now = p->in->source;
        _cleanup_(rv_json_unrefp) json_t *renewed = NULL;
        size_t n = 0;
        json_t *package;
        size_t i;
        int r;

        json_array_foreach((json_t *)p->packages, i, package) {
                const char *name = rv_json_get_string(package, "name", ""), *version = rv_json_get_string(package, "version", "");
                const json_t *page = json_object_get(p->found, name);
                bool is_python = p->in->language == RV_LANGUAGE_PYTHON && *rv_json_get_string(package, "url", "");

                if (strcmp(rv_json_get_string(page, "status", ""), "ok") != 0)
                        continue;
                if (is_python ? rv_metadata_file(page, version, rv_json_get_string(package, "file", "")) : rv_metadata_version(page, version))
                        continue;
                if (!n || strcmp(names[n - 1], name) != 0)
                        names[n++] = name;
        }
        now.cache_ttl_ms = 0;
        r = n ? rv_metadata_get(&now, names, n, &renewed, &p->err) : 0;
        if (r == 0 && renewed && json_object_update(p->found, renewed) < 0)
                r = rv_raise(-ENOMEM);
        return rv_trace(r);
}

static void *read_pages(void *arg)
{
        struct pages *p = arg;
        size_t n = json_array_size(p->packages), n_names = 0;
        _cleanup_(rv_freep) const char **names = calloc(n + 1, sizeof(*names));
        _cleanup_(rv_json_unrefp) json_t *pages = NULL;

        p->found = json_object();
        p->r = names && p->found ? 0 : rv_raise(-ENOMEM);
        for (size_t i = 0; p->r == 0 && i < n; i++) {
                const char *name = rv_json_get_string(json_array_get(p->packages, i), "name", "");
                json_t *page = p->in->prefetched ? json_object_get(p->in->prefetched->pages, name) : NULL;

                if (page && strcmp(rv_json_get_string(page, "status", ""), "ok") == 0)
                        p->r = json_object_set(p->found, name, page) < 0 ? rv_raise(-ENOMEM) : 0;
                else if (!n_names || strcmp(names[n_names - 1], name) != 0)
                        names[n_names++] = name;        /* they are sorted by it */
        }
        if (p->r == 0 && n_names)
                p->r = rv_metadata_get(&p->in->source, names, n_names, &pages, &p->err);
        if (p->r == 0 && pages && json_object_update(p->found, pages) < 0)
                p->r = rv_raise(-ENOMEM);
        if (p->r == 0)
                p->r = renew_pages(p, names);
        return NULL;
}

/* The registry's state, where it keeps a page from us. */
static int check_pages(const json_t *pages, struct rv_package_failure *f)
{
        const char *name;
        json_t *page;

        json_object_foreach((json_t *)pages, name, page)
                if (strcmp(rv_json_get_string(page, "status", ""), "ok") != 0)
                        return rv_package_failure_of_page(page, f);
        return 0;
}

/* ---- The lock ---- */

static int set(json_t *object, const char *name, json_t *value)
{
        return json_object_set_new(object, name, value) < 0 ? rv_raise(-ENOMEM) : 0;
}

static json_t *copy_or(const json_t *from, const char *name, json_t *otherwise)
{
        json_t *value = json_object_get(from, name);

        if (!value)
                return otherwise;
        json_decref(otherwise);
        return json_incref(value);
}

/* npm's artifacts have no name of their own that counts. */
json_t *rv__acquire_name_file(const json_t *package, enum rv_language language)
{
        const char *name = rv_json_get_string(package, "name", ""), *slash = strrchr(name, '/');

        if (language == RV_LANGUAGE_PYTHON)
                return json_incref(json_object_get(package, "file"));
        return json_sprintf("%s-%s.tgz", slash ? slash + 1 : name, rv_json_get_string(package, "version", ""));
}

static const char *kind_of(const json_t *package, enum rv_language language)
{
        if (language == RV_LANGUAGE_JAVASCRIPT)
                return "npm";
        return *rv_json_get_string(package, "url", "") ? "wheel" : "built";
}

/* What policy judges by, found out. */
static int set_facts(json_t *entry, const struct rv_artifact *a)
{
        int r = set(entry, "size_bytes", json_integer((json_int_t)a->size_bytes));

        if (r == 0 && a->has_published_at)
                r = set(entry, "published_at", json_integer(a->published_at));
        if (r == 0)
                r = set(entry, "license", json_string(a->license));
        if (r == 0)
                r = set(entry, "yanked", json_boolean(a->is_yanked));
        if (r == 0)
                r = set(entry, "install_script", json_boolean(a->has_install_script));
        if (r == 0)
                r = set(entry, "registry_hash", json_boolean(a->has_registry_hash));
        return r;
}

static json_t *make_entry(
        const struct rv_acquire *in, const json_t *package, const struct rv_artifact *a, const json_t *path)
{
        json_t *entry = json_pack("{s:O, s:O, s:o, s:o, s:s, s:s, s:O, s:O}", "name", json_object_get(package, "name"), "version",
                                  json_object_get(package, "version"), "hash", json_sprintf("sha256:%s", a->sha256), "file",
                                  rv__acquire_name_file(package, in->language), "url", a->url, "kind", kind_of(package, in->language), "direct",
                                  json_object_get(package, "direct"), "requested", json_object_get(package, "requested"));
        int r = entry ? 0 : rv_raise(-ENOMEM);

        if (r == 0)
                r = set_facts(entry, a);
        if (r == 0)
                r = set(entry, "extras", copy_or(package, "extras", json_array()));
        if (r == 0)
                r = set(entry, "path", json_incref((json_t *)path));
        if (r == 0 && in->language == RV_LANGUAGE_JAVASCRIPT)
                r = set(entry, "integrity", copy_or(package, "integrity", NULL));
        if (r == 0 && in->language == RV_LANGUAGE_JAVASCRIPT)
                r = set(entry, "at", copy_or(package, "at", NULL));
        if (r == 0)
                return entry;
        json_decref(entry);
        return NULL;
}

/* The runtime as locks name it: a JavaScript layer is good for every node of this platform. */
static json_t *make_runtime(const json_t *closure)
{
        return json_incref(json_object_get(closure, "runtime"));
}

static int make_lock(const struct rv_acquire *in, const json_t *closure, const struct rv_artifact *artifacts,
        const json_t *paths, json_t **ret, struct rv_error *err)
{
        const json_t *packages = json_object_get(closure, "packages"), *package;
        _cleanup_(rv_json_unrefp) json_t *lock = json_pack("{s:s, s:s, s:o, s:[]}", "schema", RV_LOCK_SCHEMA, "language",
                                                           rv_language_name(in->language), "runtime", make_runtime(closure), "packages");
        size_t i;
        int r;

        if (!lock)
                return rv_raise(-ENOMEM);
        json_array_foreach((json_t *)packages, i, package) {
                json_t *entry = make_entry(in, package, &artifacts[i], json_array_get(paths, i));

                if (!entry || json_array_append_new(json_object_get(lock, "packages"), entry) < 0)
                        return rv_raise(-ENOMEM);
        }
        r = rv_lock_check(lock, err);
        if (r == 0)
                *ret = rv_take(&lock);
        return r < 0 ? rv_trace(r) : 0;
}

/* ---- All of it ---- */

/*
 * Pages and files at the same time, where it is known from the closure where the files are. What is not is fetched when
 * the pages are there.
 */
static int fetch(const struct rv_acquire *in, const json_t *packages, struct rv_artifact *artifacts, json_t **ret_pages,
        struct rv_package_failure *f, struct rv_error *err)
{
        struct pages p = { .in = in, .packages = packages };
        pthread_t thread;
        int r = 0, e;

        e = pthread_create(&thread, NULL, read_pages, &p);
        if (e)
                read_pages(&p);
        else
                r = rv__acquire_fetch(in, packages, artifacts, NULL, f, err);
        if (!e)
                pthread_join(thread, NULL);
        if (r == 0 && p.r < 0) {
                *err = p.err;
                r = p.r;
        }
        if (r == 0)
                r = check_pages(p.found, f);
        if (r == 0)
                r = rv__acquire_fetch(in, packages, artifacts, p.found, f, err);
        if (r == 0)
                *ret_pages = json_incref(p.found);
        json_decref(p.found);
        return rv_trace(r);
}

int rv_acquire(const struct rv_acquire *in, const json_t *closure, json_t **ret_lock,
        struct rv_package_failure *ret_failure, struct rv_error *err)
{
        const json_t *packages = json_object_get(closure, "packages");
        _cleanup_(rv_json_unrefp) json_t *pages = NULL, *scanned = NULL, *paths = NULL;
        _cleanup_(rv_arena_fini) struct rv_arena arena = { 0 };
        struct rv_artifact *artifacts = rv__acquire_artifacts(packages, &arena);
        int r;

        if (!artifacts)
                return rv_raise(-ENOMEM);
        r = fetch(in, packages, artifacts, &pages, ret_failure, err);
        if (r == 0)
                r = rv__acquire_scan(in, packages, artifacts, &scanned, ret_failure, err);
        if (r == 0)
                r = rv__acquire_compare(in, packages, artifacts, pages, ret_failure);
        if (r == 0)
                r = rv__acquire_paths(in, packages, scanned, &paths);
        if (r == 0)
                r = make_lock(in, closure, artifacts, paths, ret_lock, err);
        free(artifacts);
        return r < 0 ? rv_trace(r) : r;
}

static int replace_facts(json_t *lock, const struct rv_artifact *artifacts, struct rv_error *err)
{
        json_t *package;
        size_t i;

        json_array_foreach(json_object_get(lock, "packages"), i, package) {
                (void)json_object_del(package, "published_at");
                if (set_facts(package, &artifacts[i]) < 0)
                        return rv_raise(-ENOMEM);
        }
        return rv_trace(rv_lock_check(lock, err));
}

int rv_acquire_given(const struct rv_acquire *in, const json_t *given, json_t **ret_lock,
        struct rv_package_failure *ret_failure, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *lock = json_deep_copy(given), *pages = NULL, *scanned = NULL;
        const json_t *packages = json_object_get(lock, "packages");
        _cleanup_(rv_arena_fini) struct rv_arena arena = { 0 };
        struct rv_artifact *artifacts = rv__acquire_artifacts(packages, &arena);
        int r = lock && artifacts ? 0 : rv_raise(-ENOMEM);

        if (r == 0)
                r = fetch(in, packages, artifacts, &pages, ret_failure, err);
        if (r == 0)
                r = rv__acquire_scan(in, packages, artifacts, &scanned, ret_failure, err);
        if (r == 0)
                r = rv__acquire_check_hashes(packages, artifacts, ret_failure);
        if (r == 0)
                r = rv__acquire_compare(in, packages, artifacts, pages, ret_failure);
        if (r == 0)
                r = replace_facts(lock, artifacts, err);
        if (r == 0)
                *ret_lock = rv_take(&lock);
        free(artifacts);
        return r < 0 ? rv_trace(r) : r;
}

int rv_acquire_take_facts(const json_t *given, const json_t *known, json_t **ret_lock)
{
        static const char *const facts[] = { "size_bytes", "published_at", "license", "yanked", "install_script", "registry_hash" };
        _cleanup_(rv_json_unrefp) json_t *lock = json_deep_copy(given);
        const json_t *from = json_object_get(known, "packages");
        json_t *package;
        size_t i;

        if (!lock)
                return rv_raise(-ENOMEM);
        json_array_foreach(json_object_get(lock, "packages"), i, package)
                for (size_t k = 0; k < RV_N_ELEMENTS(facts); k++) {
                        json_t *fact = json_object_get(json_array_get(from, i), facts[k]);

                        (void)json_object_del(package, facts[k]);
                        if (fact && json_object_set(package, facts[k], fact) < 0)
                                return rv_raise(-ENOMEM);
                }
        *ret_lock = rv_take(&lock);
        return 0;
}
