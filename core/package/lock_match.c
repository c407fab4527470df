#include "package/lock_match.h"

#include "package/runtime_identity.h"
#include "policy/constraint.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static const json_t *find_direct(const json_t *lock, const char *name)
{
        const json_t *package;
        size_t i;

        json_array_foreach(json_object_get(lock, "packages"), i, package)
                if (json_is_true(json_object_get(package, "direct")) && strcmp(rv_json_get_string(package, "name", ""), name) == 0)
                        return package;
        return NULL;
}

/* What an extra brings in is in the lock only if it was made for that. */
static bool has_extras(const struct rv_package *wanted, const json_t *found)
{
        const json_t *list = json_object_get(found, "extras");

        for (size_t i = 0; i < wanted->n_extras; i++) {
                bool is_there = false;

                for (size_t k = 0; k < json_array_size(list) && !is_there; k++)
                        is_there = strcmp(json_string_value(json_array_get(list, k)), wanted->extras[i]) == 0;
                if (!is_there)
                        return false;
        }
        return true;
}

static bool satisfies(const struct rv_package *wanted, const char *language, const char *text)
{
        struct rv_version version;

        if (strcmp(wanted->constraint, "latest") == 0)
                return true;    /* of when the lock was made */
        return rv_version_parse(rv_version_order_for(language), text, strlen(text), &version) == 0 &&
                rv_constraint_has(wanted->constraint, text, &version) > 0;
}

/* Whose files they are: `cp311-linux_x86_64`, `node-linux-x64-glibc`. */
static bool is_for_this_machine(const char *language, const char *tag)
{
        static const char *const of_node[][2] = { { "x86_64", "x64" }, { "aarch64", "arm64" } };
        struct utsname host = { 0 };
        char part[sizeof(host.machine) + 3];

        if (uname(&host) < 0)
                return true;
        if (strcmp(language, "python") == 0) {
                size_t n = strlen(tag), n_machine = strlen(host.machine);

                return n > n_machine && strcmp(tag + n - n_machine, host.machine) == 0 && tag[n - n_machine - 1] == '_';
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(of_node); i++)
                if (strcmp(host.machine, of_node[i][0]) == 0) {
                        snprintf(part, sizeof(part), "-%s-", of_node[i][1]);
                        return strstr(tag, part) != NULL;
                }
        return true;
}

/* What is direct is judged as it was asked for: then it has to be asked for. */
static const char *find_unasked(const json_t *lock, const struct rv_request *q, char ret[RV_LOCK_FAULT_SIZE])
{
        const json_t *package;
        size_t i;

        json_array_foreach(json_object_get(lock, "packages"), i, package) {
                const char *name = rv_json_get_string(package, "name", "");
                bool is_asked = !json_is_true(json_object_get(package, "direct"));

                for (size_t k = 0; k < q->n_packages && !is_asked; k++)
                        is_asked = strcmp(q->packages[k].name, name) == 0;
                if (is_asked)
                        continue;
                snprintf(ret, RV_LOCK_FAULT_SIZE, "it was made for %.200s too, which is not asked for", name);
                return ret;
        }
        return NULL;
}

const char *rv_lock_find_fault(const json_t *lock, const struct rv_request *q, const struct rv_config_runtime *runtime,
        char ret[RV_LOCK_FAULT_SIZE])
{
        const char *language = rv_json_get_string(lock, "language", ""), *is_for = rv_json_get_string(json_object_get(lock, "runtime"), "version", "");
        const char *tag = rv_json_get_string(json_object_get(lock, "runtime"), "tag", ""), *interpreter = rv_json_get_string(json_object_get(lock, "runtime"), "interpreter", "");
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
        if (!is_for_this_machine(language, tag)) {
                snprintf(ret, RV_LOCK_FAULT_SIZE, "it is for the platform %.80s and this machine is another", tag);
                return ret;
        }
        /* The layer's links lead there. */
        if (q->language == RV_LANGUAGE_PYTHON && runtime && strcmp(interpreter, runtime->python) != 0) {
                snprintf(ret, RV_LOCK_FAULT_SIZE, "it is for the interpreter %.80s and the runtime has %.80s", interpreter, runtime->python);
                return ret;
        }
        for (size_t i = 0; i < q->n_packages; i++) {
                const struct rv_package *wanted = &q->packages[i];
                const json_t *found = find_direct(lock, wanted->name);
                const char *version = rv_json_get_string(found, "version", "");

                if (found && has_extras(wanted, found) && satisfies(wanted, language, version))
                        continue;
                if (found && !has_extras(wanted, found))
                        snprintf(ret, RV_LOCK_FAULT_SIZE, "%.200s is asked for, and it was made without an extra of that", wanted->requested);
                else if (found)
                        snprintf(ret, RV_LOCK_FAULT_SIZE, "%.200s is asked for, and it has %.60s", wanted->requested, version);
                else
                        snprintf(ret, RV_LOCK_FAULT_SIZE, "%.200s is asked for, and it has no such package", wanted->requested);
                return ret;
        }
        return find_unasked(lock, q, ret);
}
