#include "package/diagnose_private.h"

#include "package/wheel_tags.h"
#include "policy/constraint.h"

#include <string.h>

/* One version against the runtime and the obligations. */

static const char *runtime_of(const struct rv_package_trouble *t, const char *member)
{
        return rv_json_get_string(json_object_get(t->closure, "runtime"), member, "");
}

static bool is_too_new(const struct rv_package_trouble *t, const json_t *entry)
{
        const json_t *at = json_object_get(entry, "published_at");

        return t->cutoff_s >= 0 && (!json_is_integer(at) || json_integer_value(at) > t->cutoff_s);
}

/* What is no specifier counts as none, as installers have it. */
bool rv__takes_python(const struct rv_package_trouble *t, const json_t *file)
{
        const char *requires = rv_json_get_string(file, "requires_python", ""), *version = runtime_of(t, "version");
        struct rv_version v;

        if (!*requires || !*version || rv_version_parse(RV_VERSION_PEP440, version, strlen(version), &v) < 0)
                return true;
        return rv_constraint_has(requires, version, &v) != 0;
}

bool rv__is_built(const struct rv_package_trouble *t, const char *name, const char *version)
{
        const json_t *built;
        size_t i;

        json_array_foreach((json_t *)t->built, i, built)
                if (strcmp(rv_json_get_string(built, "name", ""), name) == 0 && strcmp(rv_json_get_string(built, "version", ""), version) == 0)
                        return true;
        return false;
}

static bool is_archive(const char *file)
{
        size_t n = strlen(file);

        return (n > 7 && strcmp(file + n - 7, ".tar.gz") == 0) || (n > 4 && strcmp(file + n - 4, ".zip") == 0);
}

const json_t *rv__version_source(
        const struct rv_package_trouble *t, const json_t *page, const char *version, bool is_pinned)
{
        const json_t *entry = json_object_get(json_object_get(page, "versions"), version), *file, *found = NULL;
        const char *name = rv_json_get_string(page, "name", "");
        struct rv_index_file parts;
        size_t i;

        json_array_foreach(json_object_get(entry, "files"), i, file) {
                const char *text = rv_json_get_string(file, "file", "");

                if ((json_is_true(json_object_get(file, "yanked")) && !is_pinned) || is_too_new(t, file) || !rv__takes_python(t, file))
                        continue;
                if (!is_archive(text) || !rv_index_file_parse(text, name, &parts) || parts.kind != RV_INDEX_SDIST)
                        continue;
                if (!found || strcmp(text + strlen(text) - 4, ".zip") != 0)
                        found = file;
        }
        return found;
}

static enum rv__fault file_fault(const struct rv_package_trouble *t, const char *name, const json_t *file)
{
        struct rv_index_file parts;

        if (!rv_index_file_parse(rv_json_get_string(file, "file", ""), name, &parts))
                return RV__FAULT_NO_WHEEL;
        if (parts.kind == RV_INDEX_SDIST)
                return RV__FAULT_NO_WHEEL;
        if (parts.kind == RV_INDEX_WHEEL)
                switch (rv_wheel_fit(&parts, runtime_of(t, "tag"))) {
                case RV_WHEEL_OTHER_PLATFORM: return RV__FAULT_PLATFORM;
                case RV_WHEEL_OTHER_PYTHON: return RV__FAULT_RUNTIME;
                case RV_WHEEL_FITS: break;
                }
        return rv__takes_python(t, file) ? RV__FAULT_NONE : RV__FAULT_RUNTIME;
}

/* The best of its files says what is wrong: a wheel for another Python is nearer than one for another platform. */
static unsigned distance(enum rv__fault fault)
{
        static const unsigned char table[] = {
                [RV__FAULT_NONE] = 0,
                [RV__FAULT_RUNTIME] = 1,
                [RV__FAULT_PLATFORM] = 2,
                [RV__FAULT_NO_WHEEL] = 3,
                [RV__FAULT_TOO_NEW] = 4,
                [RV__FAULT_YANKED] = 5,
        };

        return table[fault];
}

static enum rv__fault python_fault(const struct rv_package_trouble *t, const json_t *page, const json_t *entry,
        bool is_pinned, const json_t **ret_file)
{
        enum rv__fault best = RV__FAULT_YANKED;
        json_t *file;
        size_t i;

        json_array_foreach(json_object_get(entry, "files"), i, file) {
                enum rv__fault fault;

                if (json_is_true(json_object_get(file, "yanked")) && !is_pinned)
                        continue;
                fault = is_too_new(t, file) ? RV__FAULT_TOO_NEW : file_fault(t, rv_json_get_string(page, "name", ""), file);
                if (distance(fault) < distance(best)) {
                        best = fault;
                        *ret_file = file;
                }
        }
        return best;
}

/* As npm's install checks: a name, or "!name" for all but it. */
static bool takes_platform(const json_t *list, const char *own)
{
        bool is_named = false, has_negative = false, is_listed = false;
        json_t *entry;
        size_t i;

        json_array_foreach(list, i, entry) {
                const char *name = json_string_value(entry);

                if (!name)
                        continue;
                if (*name == '!') {
                        has_negative = true;
                        if (strcmp(name + 1, own) == 0)
                                return false;
                        continue;
                }
                is_listed = true;
                is_named = is_named || strcmp(name, own) == 0 || strcmp(name, "any") == 0;
        }
        return is_named || (has_negative && !is_listed) || (!has_negative && !is_listed);
}

/* The runtime's tag is node-OS-CPU-LIBC. */
static enum rv__fault npm_fault(const struct rv_package_trouble *t, const json_t *entry)
{
        static const char *const lists[] = { "os", "cpu", "libc" };
        char tag[64], *rest = tag, *part;

        if (is_too_new(t, entry))
                return RV__FAULT_TOO_NEW;
        if (strncmp(runtime_of(t, "tag"), "node-", 5) != 0 || strlen(runtime_of(t, "tag")) >= sizeof(tag))
                return RV__FAULT_NONE;
        memcpy(tag, runtime_of(t, "tag") + 5, strlen(runtime_of(t, "tag") + 5) + 1);
        for (size_t i = 0; i < RV_N_ELEMENTS(lists) && (part = strsep(&rest, "-")) != NULL; i++)
                if (!takes_platform(json_object_get(entry, lists[i]), part))
                        return RV__FAULT_PLATFORM;
        return RV__FAULT_NONE;
}

enum rv__fault rv__version_fault(const struct rv_package_trouble *t, const json_t *page, const char *version,
        bool is_pinned, const json_t **ret_file)
{
        const json_t *entry = json_object_get(json_object_get(page, "versions"), version), *file = NULL;
        enum rv__fault fault;

        if (rv__is_built(t, rv_json_get_string(page, "name", ""), version))
                fault = RV__FAULT_NONE;
        else if (t->source->registry->language == RV_LANGUAGE_PYTHON)
                fault = python_fault(t, page, entry, is_pinned, &file);
        else
                fault = npm_fault(t, entry);
        if (ret_file)
                *ret_file = file ? file : entry;
        return fault;
}
