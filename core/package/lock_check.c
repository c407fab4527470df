#include "package/lock_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define INTEGER_MAX ((json_int_t)1 << 53)
#define ADVICE "make the lock anew with `reeve package lock`"

struct checker {
        struct rv_error *err;
        enum rv_language language;
        char at[128];                    /* pointer to what is being looked at */
        json_t *names;                   /* of all packages; borrowed keys are copied by jansson */
        json_t *places;                  /* of `at`, of all packages */
};

typedef const char *(*text_check)(const struct checker *c, const char *text, size_t n);

/* ---- Saying what is wrong ---- */

/* An object of another's choosing: names in a pointer are shown, never obeyed. */
static int fail(const struct checker *c, const char *member, const char *fmt, ...) RV_PRINTF(3, 4);
static int fail(const struct checker *c, const char *member, const char *fmt, ...)
{
        char text[600];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        return rv_error_set(c->err, -EINVAL, "lock: %s%s%s: %s; " ADVICE, c->at[0] || member[0] ? c->at : "the document",
                            member[0] ? "/" : "", member, text);
}

static int fail_memory(const struct checker *c)
{
        return rv_error_set(c->err, rv_raise(-ENOMEM), "lock: out of memory");
}

static int fail_needs(const struct checker *c, const char *member, const json_t *value, const char *needs)
{
        char quote[RV_FAULT_QUOTE_SIZE];

        if (!value)
                return fail(c, member, "it is missing: it needs %s", needs);
        if (!json_is_string(value))
                return fail(c, member, "it needs %s", needs);
        return fail(c, member, "it needs %s, which %s is not", needs, rv_fault_quote(json_string_value(value), json_string_length(value), quote));
}

static int check_type(const struct checker *c, const char *member, const json_t *value, json_type type)
{
        static const char *const names[] = { [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a text",
                [JSON_INTEGER] = "an integer", [JSON_TRUE] = "true or false" };

        if (value && (json_typeof(value) == type || (type == JSON_TRUE && json_is_boolean(value))))
                return 0;
        return fail_needs(c, member, value, names[type]);
}

static int check_text(const struct checker *c, const char *member, const json_t *value, text_check check)
{
        const char *needs;
        int r = check_type(c, member, value, JSON_STRING);

        if (r < 0)
                return r;
        needs = strlen(json_string_value(value)) == json_string_length(value) ? check(c, json_string_value(value), json_string_length(value)) : "a text without NUL";
        return needs ? fail_needs(c, member, value, needs) : 0;
}

/* ---- The members ---- */

#define TEXT_CHECK(name, call)                                                        \
        static const char *name(const struct checker *c, const char *text, size_t n)  \
        {                                                                             \
                (void)c;                                                              \
                return call;                                                          \
        }
TEXT_CHECK(is_name, rv__lock_name(c->language, text, n))
TEXT_CHECK(is_version, rv__lock_version(c->language, text, n))
TEXT_CHECK(is_extra, rv__lock_extra(text, n))
TEXT_CHECK(is_file, rv__lock_file(text, n))
TEXT_CHECK(is_hash, rv__lock_hash(text, n))
TEXT_CHECK(is_integrity, rv__lock_integrity(text, n))
TEXT_CHECK(is_url, n ? rv__lock_url(text, n) : NULL)   /* "": see check_place() */
TEXT_CHECK(is_place, rv__lock_place(text, n))
TEXT_CHECK(is_path, rv__lock_path(text, n))
TEXT_CHECK(is_tag, rv__lock_tag(text, n))
TEXT_CHECK(is_license, rv__lock_text(text, n, RV_LOCK_TEXT_MAX))
TEXT_CHECK(is_requested, rv__lock_text(text, n, RV_LOCK_REQUESTED_MAX))

static const char *is_kind(const struct checker *c, const char *text, size_t n)
{
        (void)n;
        if (c->language == RV_LANGUAGE_JAVASCRIPT)
                return strcmp(text, "npm") ? "\"npm\"" : NULL;
        return strcmp(text, "wheel") && strcmp(text, "built") ? "\"wheel\" or \"built\"" : NULL;
}

static const char *is_runtime_version(const struct checker *c, const char *text, size_t n)
{
        if (c->language == RV_LANGUAGE_PYTHON)
                return rv__lock_minor(text, n);
        return n ? "an empty text" : NULL;
}

enum { ALWAYS, OF_JAVASCRIPT, OPTIONAL };

struct member {
        const char *name;
        json_type type;
        int when;
        text_check check;                /* of a text, or of each text of a list */
        size_t n_min, n_max;             /* of a list */
        bool is_set;                     /* a list in order, each once */
};

static const struct member package_members[] = {
        { "name", JSON_STRING, ALWAYS, is_name, 0, 0, false },
        { "version", JSON_STRING, ALWAYS, is_version, 0, 0, false },
        { "file", JSON_STRING, ALWAYS, is_file, 0, 0, false },
        { "hash", JSON_STRING, ALWAYS, is_hash, 0, 0, false },
        { "url", JSON_STRING, ALWAYS, is_url, 0, 0, false },
        { "kind", JSON_STRING, ALWAYS, is_kind, 0, 0, false },
        { "size_bytes", JSON_INTEGER, ALWAYS, NULL, 0, 0, false },
        { "published_at", JSON_INTEGER, OPTIONAL, NULL, 0, 0, false },
        { "license", JSON_STRING, ALWAYS, is_license, 0, 0, false },
        { "direct", JSON_TRUE, ALWAYS, NULL, 0, 0, false },
        { "requested", JSON_STRING, ALWAYS, is_requested, 0, 0, false },
        { "extras", JSON_ARRAY, ALWAYS, is_extra, 0, RV_LOCK_EXTRAS_MAX, true },
        { "yanked", JSON_TRUE, ALWAYS, NULL, 0, 0, false },
        { "install_script", JSON_TRUE, ALWAYS, NULL, 0, 0, false },
        { "registry_hash", JSON_TRUE, ALWAYS, NULL, 0, 0, false },
        { "path", JSON_ARRAY, ALWAYS, is_name, 1, RV_LOCK_PATH_MAX, false },
        { "integrity", JSON_STRING, OF_JAVASCRIPT, is_integrity, 0, 0, false },
        { "at", JSON_ARRAY, OF_JAVASCRIPT, is_place, 1, RV_LOCK_PLACES_MAX, true },
};
static const struct member runtime_members[] = {
        { "tag", JSON_STRING, ALWAYS, is_tag, 0, 0, false },
        { "version", JSON_STRING, ALWAYS, is_runtime_version, 0, 0, false },
        { "interpreter", JSON_STRING, ALWAYS, is_path, 0, 0, false },
};

static int check_list(const struct checker *c, const struct member *m, const json_t *list)
{
        char item[64];
        const char *last = NULL;
        size_t n = json_array_size(list);
        int r;

        if (n < m->n_min || n > m->n_max)
                return fail(c, m->name, "it has %zu entries, and needs %zu to %zu", n, m->n_min, m->n_max);
        for (size_t i = 0; i < n; i++) {
                const json_t *value = json_array_get(list, i);

                snprintf(item, sizeof(item), "%s/%zu", m->name, i);
                r = check_text(c, item, value, m->check);
                if (r < 0)
                        return r;
                if (m->is_set && last && strcmp(last, json_string_value(value)) >= 0)
                        return fail(c, item, "entries stand in order, each once");
                last = json_string_value(value);
        }
        return 0;
}

static int check_member(const struct checker *c, const struct member *m, const json_t *value)
{
        int r;

        if (m->type == JSON_STRING)
                return check_text(c, m->name, value, m->check);
        r = check_type(c, m->name, value, m->type);
        if (r < 0)
                return r;
        if (m->type == JSON_INTEGER && (json_integer_value(value) < 0 || json_integer_value(value) >= INTEGER_MAX))
                return fail(c, m->name, "it needs a number from 0 to 2^53-1");
        return m->type == JSON_ARRAY ? check_list(c, m, value) : 0;
}

/* Every member that has to be there, none besides. */
static int check_members(const struct checker *c, const json_t *object, const struct member *members, size_t n_members)
{
        char quote[RV_FAULT_QUOTE_SIZE];
        const char *name;
        json_t *value;
        size_t n = 0;
        int r;

        for (size_t i = 0; i < n_members; i++) {
                const struct member *m = &members[i];

                value = json_object_get(object, m->name);
                if (m->when == OF_JAVASCRIPT && c->language != RV_LANGUAGE_JAVASCRIPT)
                        continue;
                n += value != NULL;
                if (!value && m->when == OPTIONAL)
                        continue;
                r = check_member(c, m, value);
                if (r < 0)
                        return r;
        }
        if (n == json_object_size(object))
                return 0;
        json_object_foreach((json_t *)object, name, value) {
                bool is_known = false;

                for (size_t i = 0; i < n_members; i++)
                        is_known = is_known ||
                                (strcmp(members[i].name, name) == 0 &&
                                        (members[i].when != OF_JAVASCRIPT || c->language == RV_LANGUAGE_JAVASCRIPT));
                if (!is_known)
                        return fail(c, "", "there is no member %s here", rv_fault_quote(name, strlen(name), quote));
        }
        return 0;
}

/* ---- A package ---- */

static const char *text_of(const json_t *package, const char *name)
{
        return json_string_value(json_object_get(package, name));
}

/* What was asked for is said of a direct package alone, whose path is itself. */
static int check_origin(const struct checker *c, const json_t *package)
{
        const json_t *path = json_object_get(package, "path");
        size_t n = json_array_size(path);
        bool is_direct = json_is_true(json_object_get(package, "direct"));

        if (is_direct != (text_of(package, "requested")[0] != 0))
                return fail(c, "requested", is_direct ? "it needs the text that was asked for, as the package is direct" : "it needs to be empty, as the package is not direct");
        if (is_direct && n != 1)
                return fail(c, "path", "it needs to be the package alone, as that is direct");
        if (!is_direct && n < 2)
                return fail(c, "path", "it needs two names or more, as the package is not direct");
        if (strcmp(json_string_value(json_array_get(path, n - 1)), text_of(package, "name")) != 0)
                return fail(c, "path", "it needs to end with the package itself");
        return 0;
}

/* What was built is nowhere to be fetched, and everything else has to be somewhere. */
static int check_place(const struct checker *c, const json_t *package)
{
        bool is_built = strcmp(text_of(package, "kind"), "built") == 0;
        const json_t *url = json_object_get(package, "url");

        if (is_built && json_string_length(url))
                return fail_needs(c, "url", url, "an empty text, as the package is built");
        return is_built || json_string_length(url) ? 0 : fail_needs(c, "url", url, rv__lock_url("", 0));
}

static int add_places(struct checker *c, const json_t *package)
{
        const json_t *list = json_object_get(package, "at");
        char item[32];

        for (size_t i = 0; i < json_array_size(list); i++) {
                const char *place = json_string_value(json_array_get(list, i));

                snprintf(item, sizeof(item), "at/%zu", i);
                if (json_object_get(c->places, place))
                        return fail(c, item, "another package has this place already");
                if (json_object_set_new_nocheck(c->places, place, json_true()) < 0)
                        return fail_memory(c);
                if (json_object_size(c->places) > RV_LOCK_PLACES_MAX)
                        return fail(c, item, "the lock has more than %d places", RV_LOCK_PLACES_MAX);
        }
        return 0;
}

/* By name, version and file; of Python, which can have one version of a package at a time, each name once. */
static int check_order(const struct checker *c, const json_t *before, const json_t *package)
{
        int r = strcmp(text_of(before, "name"), text_of(package, "name"));

        if (r == 0 && c->language == RV_LANGUAGE_PYTHON)
                return fail(c, "name", "the package is listed twice");
        if (r == 0)
                r = strcmp(text_of(before, "version"), text_of(package, "version"));
        if (r == 0)
                return fail(c, "version", "this version of the package is listed twice");
        return r < 0 ? 0 : fail(c, "", "packages stand sorted by name and version, and this one does not");
}

/* True for a name that was asked for, in one version or another. */
static int add_name(struct checker *c, const json_t *package)
{
        const char *name = text_of(package, "name");
        bool is_direct = json_is_true(json_object_get(package, "direct")) || json_is_true(json_object_get(c->names, name));

        return json_object_set_new_nocheck(c->names, name, json_boolean(is_direct)) < 0 ? fail_memory(c) : 0;
}

static int check_package(struct checker *c, const json_t *before, const json_t *package)
{
        int r = check_type(c, "", package, JSON_OBJECT);

        if (r == 0)
                r = check_members(c, package, package_members, RV_N_ELEMENTS(package_members));
        if (r == 0 && before)
                r = check_order(c, before, package);
        if (r == 0)
                r = check_origin(c, package);
        if (r == 0)
                r = check_place(c, package);
        if (r == 0 && c->language == RV_LANGUAGE_JAVASCRIPT)
                r = add_places(c, package);
        if (r == 0)
                r = add_name(c, package);
        return r;
}

/* ---- What only all of them show ---- */

/* Names of a path are packages of the lock, and the first of them one that was asked for. */
static int check_path(const struct checker *c, const json_t *path)
{
        const json_t *known;
        char item[32];

        for (size_t i = 0; i < json_array_size(path); i++) {
                snprintf(item, sizeof(item), "path/%zu", i);
                known = json_object_get(c->names, json_string_value(json_array_get(path, i)));
                if (!known)
                        return fail_needs(c, item, json_array_get(path, i), "the name of a package of this lock");
                if (i == 0 && !json_is_true(known))
                        return fail_needs(c, item, json_array_get(path, i), "the name of a direct package");
        }
        return 0;
}

/* A place within another package is of no use without that package. */
static int check_parents(const struct checker *c, const json_t *list)
{
        char item[32];

        for (size_t i = 0; i < json_array_size(list); i++) {
                const char *place = json_string_value(json_array_get(list, i)), *last = place;
                char parent[RV_LOCK_PLACE_MAX + 1];

                for (const char *p = place; (p = strstr(p, "/node_modules/")); p++)
                        last = p;
                snprintf(item, sizeof(item), "at/%zu", i);
                snprintf(parent, sizeof(parent), "%.*s", (int)(last - place), place);
                if (last > place && !json_object_get(c->places, parent))
                        return fail_needs(c, item, json_array_get(list, i), "a place within a package of this lock");
        }
        return 0;
}

static int check_packages(struct checker *c, const json_t *list)
{
        size_t n = json_array_size(list);
        int r = 0;

        if (n == 0 || n > RV_LOCK_PACKAGES_MAX)
                return fail(c, "packages", "it has %zu entries, and needs 1 to %d", n, RV_LOCK_PACKAGES_MAX);
        for (size_t i = 0; r == 0 && i < n; i++) {
                snprintf(c->at, sizeof(c->at), "/packages/%zu", i);
                r = check_package(c, i ? json_array_get(list, i - 1) : NULL, json_array_get(list, i));
        }
        for (size_t i = 0; r == 0 && i < n; i++) {
                const json_t *package = json_array_get(list, i);

                snprintf(c->at, sizeof(c->at), "/packages/%zu", i);
                r = check_path(c, json_object_get(package, "path"));
                if (r == 0)
                        r = check_parents(c, json_object_get(package, "at"));
        }
        return r;
}

static int check_runtime(struct checker *c, const json_t *runtime)
{
        int r = check_type(c, "runtime", runtime, JSON_OBJECT);

        snprintf(c->at, sizeof(c->at), "/runtime");
        if (r == 0)
                r = check_members(c, runtime, runtime_members, RV_N_ELEMENTS(runtime_members));
        c->at[0] = 0;
        return r;
}

static const char *is_schema(const struct checker *c, const char *text, size_t n)
{
        (void)c;
        (void)n;
        return strcmp(text, RV_LOCK_SCHEMA) ? "\"" RV_LOCK_SCHEMA "\"" : NULL;
}

static const char *is_language(const struct checker *c, const char *text, size_t n)
{
        (void)c;
        (void)n;
        return rv_language_parse(text) < 0 ? "\"python\" or \"javascript\"" : NULL;
}

static int check_document(struct checker *c, const json_t *lock)
{
        char quote[RV_FAULT_QUOTE_SIZE];
        const char *name;
        json_t *value;
        int r = check_type(c, "", lock, JSON_OBJECT);

        if (r == 0)
                r = check_text(c, "schema", json_object_get(lock, "schema"), is_schema);
        if (r == 0)
                r = check_text(c, "language", json_object_get(lock, "language"), is_language);
        if (r < 0)
                return r;
        c->language = (enum rv_language)rv_language_parse(json_string_value(json_object_get(lock, "language")));
        r = check_runtime(c, json_object_get(lock, "runtime"));
        if (r == 0)
                r = check_type(c, "packages", json_object_get(lock, "packages"), JSON_ARRAY);
        if (r < 0)
                return r;
        json_object_foreach((json_t *)lock, name, value)
                if (strcmp(name, "schema") && strcmp(name, "language") && strcmp(name, "runtime") && strcmp(name, "packages"))
                        return fail(c, "", "there is no member %s here", rv_fault_quote(name, strlen(name), quote));
        return check_packages(c, json_object_get(lock, "packages"));
}

int rv_lock_check(const json_t *lock, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *names = json_object(), *places = json_object();
        struct checker c = { .err = err, .names = names, .places = places };

        if (!names || !places)
                return fail_memory(&c);
        return check_document(&c, lock);
}
