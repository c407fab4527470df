#include "package/lock_match.h"

#include "package/runtime_identity.h"
#include "policy/constraint.h"

#include <stdio.h>
#include <string.h>

static const json_t *find_direct(const json_t *lock, const char *name)
{
        const json_t *package;
        size_t i;

        json_array_foreach(json_object_get(lock, "packages"), i, package)
                if (json_is_true(json_object_get(package, "direct")) && strcmp(rv_json_get_string(package, "name", ""), name) == 0)
                        return package;
        return NULL;
}

static bool satisfies(const struct rv_package *wanted, const char *language, const char *text)
{
        struct rv_version version;

        if (strcmp(wanted->constraint, "latest") == 0)
                return true;    /* of when the lock was made */
        return rv_version_parse(rv_version_order_for(language), text, strlen(text), &version) == 0 &&
                rv_constraint_has(wanted->constraint, text, &version) > 0;
}

const char *rv_lock_find_fault(const json_t *lock, const struct rv_request *q, const struct rv_config_runtime *runtime,
        char ret[RV_LOCK_FAULT_SIZE])
{
        const char *language = rv_json_get_string(lock, "language", ""), *is_for = rv_json_get_string(json_object_get(lock, "runtime"), "version", "");
        char release[RV_RUNTIME_RELEASE_SIZE];

        if (strcmp(language, rv_language_name(q->language)) != 0) {
                snprintf(ret, RV_LOCK_FAULT_SIZE, "it is of %s and the program of %s", language, rv_language_name(q->language));
                return ret;
        }
        rv_runtime_release(runtime, release);
        if (q->language == RV_LANGUAGE_PYTHON && release[0] && strcmp(release, is_for) != 0) {
                snprintf(ret, RV_LOCK_FAULT_SIZE, "it is for Python %s and the runtime has %s", is_for, release);
                return ret;
        }
        for (size_t i = 0; i < q->n_packages; i++) {
                const struct rv_package *wanted = &q->packages[i];
                const json_t *found = find_direct(lock, wanted->name);
                const char *version = rv_json_get_string(found, "version", "");

                if (found && satisfies(wanted, language, version))
                        continue;
                if (found)
                        snprintf(ret, RV_LOCK_FAULT_SIZE, "%.200s is asked for, and it has %.60s", wanted->requested, version);
                else
                        snprintf(ret, RV_LOCK_FAULT_SIZE, "%.200s is asked for, and it has no such package", wanted->requested);
                return ret;
        }
        return NULL;
}
