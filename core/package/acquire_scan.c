#include "package/acquire_private.h"

#include "base/base64.h"
#include "package/closure_paths.h"
#include "package/unpack.h"

#include <stdio.h>
#include <string.h>

/* What the artifacts are, as reeve-unpack reads them, and whether everybody says the same of them. */

/* What is known of each by now: nothing (null), or what was found when the file was prefetched. The others make the job. */
static int make_job(const struct rv_acquire *in, const json_t *packages, const struct rv_artifact *artifacts,
        json_t *job, json_t *list)
{
        json_t *package;
        size_t i;

        json_array_foreach((json_t *)packages, i, package) {
                char file[RV_ACQUIRE_FILE_SIZE];
                const json_t *known = NULL;
                json_t *entry;
                int r;

                rv_acquire_file(i, file);
                entry = json_pack("{s:s, s:O, s:O, s:o}", "file", file, "name", json_object_get(package, "name"), "version",
                                  json_object_get(package, "version"), "file_name", rv__acquire_name_file(package, in->language));
                if (entry && artifacts[i].is_prefetched)
                        known = rv_prefetched_scan(in->prefetched, artifacts[i].url, entry);
                r = json_array_append_new(list, known ? json_incref((json_t *)known) : json_null());
                if (known)
                        json_decref(entry);
                else if (r == 0)
                        r = json_array_append_new(job, entry);
                if (r < 0)
                        return rv_raise(-ENOMEM);
        }
        return 0;
}

/* Those that nothing is known of, by reeve-unpack. */
static int look_at_others(const struct rv_acquire *in, const json_t *job, json_t *list, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp)
                json_t *whole = json_pack("{s:s, s:O}", "language", rv_language_name(in->language), "artifacts", job),
                       *result = NULL;
        const json_t *found;
        size_t n = 0;
        int r;

        if (!whole)
                return rv_raise(-ENOMEM);
        r = rv_unpack_scan(in->unpack_fd, in->dir_fd, whole, in->source.stop, in->source.deadline_us, &result, err);
        if (r < 0)
                return rv_trace(r);
        found = json_object_get(result, "artifacts");
        if (json_array_size(found) != json_array_size(job))
                return rv_error_set(err, rv_raise(-EPROTO), "the helper reeve-unpack told of other artifacts than it was asked for");
        for (size_t i = 0; i < json_array_size(list); i++)
                if (json_is_null(json_array_get(list, i)) && json_array_set(list, i, json_array_get(found, n++)) < 0)
                        return rv_raise(-ENOMEM);
        return 0;
}

int rv_acquire_fault(const json_t *fault, const json_t *package, struct rv_package_failure *ret)
{
        static const char *const causes[] = { "unsafe_archive", "name_mismatch", "hash_mismatch", "build_failed" };
        const char *told = rv_json_get_string(fault, "cause", ""), *cause = "build_failed";
        const char *name = package ? rv_json_get_string(package, "name", "") : rv_json_get_string(fault, "package", "");

        for (size_t i = 0; i < RV_N_ELEMENTS(causes); i++)
                if (strcmp(told, causes[i]) == 0)
                        cause = causes[i];
        /* What could not be read or written here may be by the next time; what is in a file stays. */
        return rv__acquire_fail(ret, RV_PACKAGE_INSTALL_FAILED, cause, strcmp(cause, "build_failed") == 0, name, "%.214s%s%.60s cannot be installed: %.400s", name, package ? " " : "",
                                package ? rv_json_get_string(package, "version", "") : "", rv_json_get_string(fault, "text", ""));
}

int rv__acquire_scan(const struct rv_acquire *in, const json_t *packages, struct rv_artifact *artifacts, json_t **ret,
        struct rv_package_failure *f, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *job = json_array(), *list = json_array();
        json_t *found;
        size_t i;
        int r = job && list ? make_job(in, packages, artifacts, job, list) : rv_raise(-ENOMEM);

        if (r == 0 && json_array_size(job))
                r = look_at_others(in, job, list, err);
        if (r < 0)
                return rv_trace(r);
        json_array_foreach(list, i, found) {
                artifacts[i].sha256 = rv_arena_strdup(artifacts[i].arena, rv_json_get_string(found, "sha256", ""));
                artifacts[i].sha512 = rv_arena_strdup(artifacts[i].arena, rv_json_get_string(found, "sha512", ""));
                artifacts[i].license = rv_arena_strdup(artifacts[i].arena, rv_json_get_string(found, "license", ""));
                artifacts[i].size_bytes = (uint64_t)json_integer_value(json_object_get(found, "size_bytes"));
                artifacts[i].has_install_script = json_is_true(json_object_get(found, "install_script"));
                if (!artifacts[i].sha256 || !artifacts[i].sha512 || !artifacts[i].license)
                        return rv_raise(-ENOMEM);
                artifacts[i].fault = json_object_get(found, "fault");
        }
        *ret = rv_take(&list);
        return 0;
}

/* ---- Who says what ---- */

static int mismatch(struct rv_package_failure *f, const json_t *package, const char *who)
{
        const char *name = rv_json_get_string(package, "name", "");

        return rv__acquire_fail(f, "package_install_failed", "hash_mismatch", false, name,
                                "%s %s: the file that came is not the one that %s names by its hash; somebody has changed it, or the registry is damaged", name,
                                rv_json_get_string(package, "version", ""), who);
}

/* Of a wheel in a lock that was given, whose source is not at hand: the least favourable of what that version has. */
static void take_source_facts(const json_t *version, struct rv_artifact *a)
{
        const json_t *file;
        size_t i;

        json_array_foreach(json_object_get(version, "files"), i, file) {
                const json_t *published = json_object_get(file, "published_at");
                const char *name = rv_json_get_string(file, "name", ""), *end = strrchr(name, '.');

                if (end && strcmp(end, ".whl") == 0)
                        continue;
                a->has_published_at = a->has_published_at || json_is_integer(published);
                a->published_at = RV_MAX(a->published_at, (int64_t)json_integer_value(published));
                a->is_yanked = a->is_yanked || json_is_true(json_object_get(file, "yanked"));
        }
}

/* The facts are its source's; code of the package's own ran, as an install script's would. */
static int compare_built(const struct rv_acquire *in, const json_t *package, struct rv_artifact *a, const json_t *page,
        struct rv_package_failure *f)
{
        const json_t *built = rv__acquire_find_built(in, package), *published = json_object_get(built, "published_at");

        a->has_install_script = true;
        a->has_registry_hash = false;
        if (!built && json_object_get(package, "hash")) {
                take_source_facts(rv_metadata_version(page, rv_json_get_string(package, "version", "")), a);
                return 0;
        }
        if (strcmp(rv_json_get_string(built, "sha256", ""), a->sha256) != 0)
                return mismatch(f, package, "its build");
        a->has_published_at = json_is_integer(published);
        a->published_at = json_integer_value(published);
        a->is_yanked = json_is_true(json_object_get(built, "yanked"));
        return 0;
}

static int compare_python(
        const json_t *package, struct rv_artifact *a, const json_t *page, struct rv_package_failure *f)
{
        const json_t *file = rv_metadata_file(page, rv_json_get_string(package, "version", ""), rv_json_get_string(package, "file", ""));
        const char *told = rv_json_get_string(file, "sha256", NULL), *closure = rv_json_get_string(package, "sha256", NULL);
        const json_t *published = json_object_get(file, "published_at");

        if (!file)
                return rv__acquire_fail(f, "package_unavailable", "registry_invalid", true, rv_json_get_string(package, "name", ""),
                                        "the registry's page of %s does not list %s", rv_json_get_string(package, "name", ""), rv_json_get_string(package, "file", ""));
        if (told && strcmp(told, a->sha256) != 0)
                return mismatch(f, package, "the registry");
        if (closure && strcmp(closure, a->sha256) != 0)
                return mismatch(f, package, "the package manager");
        a->has_registry_hash = told != NULL;
        a->has_published_at = json_is_integer(published);
        a->published_at = json_integer_value(published);
        a->is_yanked = json_is_true(json_object_get(file, "yanked"));
        return 0;
}

/* "sha512-…" of a hash in hex. */
static bool make_integrity(const char *sha512, char ret[8 + RV_BASE64_SIZE(64)])
{
        uint8_t bytes[64];

        if (strlen(sha512) != 2 * sizeof(bytes))
                return false;
        for (size_t i = 0; i < sizeof(bytes); i++) {
                unsigned byte;

                if (sscanf(sha512 + 2 * i, "%2x", &byte) != 1)
                        return false;
                bytes[i] = (uint8_t)byte;
        }
        strcpy(ret, "sha512-");
        rv_base64(bytes, sizeof(bytes), ret + 7);
        return true;
}

static int compare_npm(const json_t *package, struct rv_artifact *a, const json_t *page, struct rv_package_failure *f)
{
        const json_t *version = rv_metadata_version(page, rv_json_get_string(package, "version", ""));
        const json_t *published = json_object_get(version, "published_at");
        const char *told = rv_json_get_string(version, "integrity", "");
        char integrity[8 + RV_BASE64_SIZE(64)];

        if (!make_integrity(a->sha512, integrity) || strcmp(integrity, rv_json_get_string(package, "integrity", "")) != 0)
                return mismatch(f, package, "the package manager");
        if (!strncmp(told, "sha512-", 7) && !strchr(told, ' ') && strcmp(integrity, told) != 0)
                return mismatch(f, package, "the registry");
        a->has_registry_hash = true;
        a->has_published_at = json_is_integer(published);
        a->published_at = json_integer_value(published);
        return 0;
}

int rv__acquire_compare(const struct rv_acquire *in, const json_t *packages, struct rv_artifact *artifacts,
        const json_t *pages, struct rv_package_failure *f)
{
        json_t *package;
        size_t i;
        int r = 0;

        json_array_foreach((json_t *)packages, i, package) {
                const json_t *page = json_object_get(pages, rv_json_get_string(package, "name", ""));

                r = rv__acquire_is_built(package)        ? compare_built(in, package, &artifacts[i], page, f)
                        : in->language == RV_LANGUAGE_PYTHON ? compare_python(package, &artifacts[i], page, f)
                                                       : compare_npm(package, &artifacts[i], page, f);
                /* A file that is another's is told as that, and not for what is in it. */
                if (r == 0 && artifacts[i].fault)
                        r = rv_acquire_fault(artifacts[i].fault, package, f);
                if (r)
                        break;
        }
        return r;
}

/* A wheel says itself what it needs; of npm's packages the closure knows. */
int rv__acquire_paths(const struct rv_acquire *in, const json_t *packages, const json_t *scanned, json_t **ret)
{
        _cleanup_(rv_json_unrefp) json_t *list = NULL;
        json_t *package;
        size_t i;

        if (in->language == RV_LANGUAGE_JAVASCRIPT)
                return rv_trace(rv_closure_paths(packages, ret));
        list = json_array();
        json_array_foreach((json_t *)packages, i, package) {
                json_t *requires = json_object_get(json_array_get(scanned, i), "requires");

                if (json_array_append_new(list, json_pack("{s:O, s:O, s:o}", "name", json_object_get(package, "name"), "direct",
                                                          json_object_get(package, "direct"), "requires",
                                                          requires ? json_incref(requires) : json_array())) < 0)
                        return rv_raise(-ENOMEM);
        }
        return rv_trace(rv_closure_paths(list, ret));
}

/* ---- Those of a lock ---- */

int rv__acquire_check_hashes(const json_t *packages, const struct rv_artifact *artifacts, struct rv_package_failure *f)
{
        json_t *package;
        size_t i;

        json_array_foreach((json_t *)packages, i, package) {
                const char *hash = rv_json_get_string(package, "hash", "");

                if (strncmp(hash, "sha256:", 7) != 0 || strcmp(hash + 7, artifacts[i].sha256) != 0)
                        return mismatch(f, package, "the lock");
                if (artifacts[i].fault)
                        return rv_acquire_fault(artifacts[i].fault, package, f);
        }
        return 0;
}

/* A tarball's host may be known from its package's page alone. */
static int fetch_locked(const struct rv_acquire *in, const json_t *packages, struct rv_artifact *artifacts,
        struct rv_package_failure *f, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *pages = NULL;
        size_t n = json_array_size(packages), n_names = 0;
        _cleanup_(rv_freep) const char **names = calloc(n + 1, sizeof(*names));
        int r = names ? rv__acquire_fetch(in, packages, artifacts, NULL, f, err) : rv_raise(-ENOMEM);

        for (size_t i = 0; i < n && r == 0; i++)
                if (!artifacts[i].is_there)
                        names[n_names++] = rv_json_get_string(json_array_get(packages, i), "name", "");
        if (r || !n_names)
                return r;
        r = rv_metadata_get(&in->source, names, n_names, &pages, err);
        return r < 0 ? rv_trace(r) : rv__acquire_fetch(in, packages, artifacts, pages, f, err);
}

int rv_acquire_locked(
        const struct rv_acquire *in, const json_t *lock, struct rv_package_failure *ret_failure, struct rv_error *err)
{
        const json_t *packages = json_object_get(lock, "packages");
        _cleanup_(rv_json_unrefp) json_t *scanned = NULL;
        _cleanup_(rv_arena_fini) struct rv_arena arena = { 0 };
        struct rv_artifact *artifacts = rv__acquire_artifacts(packages, &arena);
        int r;

        if (!artifacts)
                return rv_raise(-ENOMEM);
        r = fetch_locked(in, packages, artifacts, ret_failure, err);
        if (r == 0)
                r = rv__acquire_scan(in, packages, artifacts, &scanned, ret_failure, err);
        if (r == 0)
                r = rv__acquire_check_hashes(packages, artifacts, ret_failure);
        free(artifacts);
        return r < 0 ? rv_trace(r) : r;
}
