#include "package/npm_lock.h"

#include "base/base64.h"
#include "package/npm_key.h"
#include "request/problem.h"

#include <stdio.h>
#include <string.h>

#define PLACES_MAX 10000     /* those for other platforms too */
#define LACKING_ROUNDS_MAX 64
#define NAME(place) rv_npm_key_name((place)->key)

static int compare_keys(const void *a, const void *b)
{
        return strcmp(((const struct rv__npm_place *)a)->key, ((const struct rv__npm_place *)b)->key);
}

static int compare_positions(const void *a, const void *b)
{
        size_t x = *(const size_t *)a, y = *(const size_t *)b;

        return (x > y) - (x < y);
}

void rv__npm_lock_fini(struct rv__npm_lock *lock)
{
        for (size_t i = 0; i < lock->n_places; i++)
                free(lock->places[i].needs);
        free(lock->places);
        *lock = (struct rv__npm_lock){ 0 };
}

struct rv__npm_place *rv__npm_lock_find(const struct rv__npm_lock *lock, const char *key, size_t n)
{
        size_t low = 0, high = lock->n_places;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const char *other = lock->places[middle].key;
                int r = strncmp(key, other, n);

                r = r ? r : -(other[n] != 0);
                if (r == 0)
                        return &lock->places[middle];
                if (r < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return NULL;
}

/* What stands at a key, of any platform: what it is called, and that it lies within the project. */
static int read_place(struct rv__closure *c, struct rv__npm_place *place)
{
        const char *name = json_object_get(place->value, "name") ? rv__closure_text(place->value, "name", 214) : NULL;
        char quote[RV_FAULT_QUOTE_SIZE];
        struct rv_version version;

        rv_fault_quote(place->key, strlen(place->key), quote);
        if (!rv_npm_key_is_valid(place->key))
                return rv__closure_refuse(c, "unsafe_archive", "", "a package would be put at %s, outside of node_modules", quote);
        if (!json_is_object(place->value))
                return rv__closure_refuse(c, "unsafe_archive", NAME(place), "the lock's entry %s is no object", quote);
        if (json_object_get(place->value, "link") && !json_is_false(json_object_get(place->value, "link")))
                return rv__closure_refuse(c, "unsafe_archive", NAME(place), "%s would be a link to a directory; packages come from the registry", quote);
        place->name = json_object_get(place->value, "name") ? name : NAME(place);
        if (!place->name || !rv_npm_name_is_valid(place->name, strlen(place->name)))
                return rv__closure_refuse(c, "name_mismatch", NAME(place), "the package at %s has a name that is none", quote);
        place->version = rv__closure_text(place->value, "version", RV_VERSION_SIZE_MAX);
        if (!place->version || place->version[0] < '0' || place->version[0] > '9' || strpbrk(place->version, " \t") ||
                rv_version_parse(RV_VERSION_SEMVER, place->version, strlen(place->version), &version) < 0 ||
                version.n_segments != 3)
                return rv__closure_refuse(c, "name_mismatch", place->name, "the package at %s has a version that is none", quote);
        place->is_optional = json_is_true(json_object_get(place->value, "optional"));
        return 0;
}

static int read_places(struct rv__closure *c, const json_t *packages, struct rv__npm_lock *lock)
{
        const char *key;
        json_t *value;
        int r;

        lock->places = calloc(json_object_size(packages) + 1, sizeof(*lock->places));
        if (!lock->places)
                return rv_raise(-ENOMEM);
        json_object_foreach((json_t *)packages, key, value)
                if (key[0])   /* "" is the project */
                        lock->places[lock->n_places++] = (struct rv__npm_place){ .key = key, .value = value };
        qsort(lock->places, lock->n_places, sizeof(*lock->places), compare_keys);
        for (size_t i = 0; i < lock->n_places; i++) {
                r = read_place(c, &lock->places[i]);
                if (r)
                        return r;
        }
        return 0;
}

/* Where node would find @name for the package at @key: nearest first. */
static struct rv__npm_place *look_up(const struct rv__npm_lock *lock, const char *key, const char *name)
{
        char place[2 * RV_NPM_KEY_SIZE_MAX];
        size_t n = strlen(key);

        if (!rv_npm_name_is_valid(name, strlen(name)))
                return NULL;
        for (;;) {
                struct rv__npm_place *found;
                int size = snprintf(place, sizeof(place), "%.*s%snode_modules/%s", (int)n, key, n ? "/" : "", name);

                found = rv__npm_lock_find(lock, place, (size_t)size);
                if (found || n == 0)
                        return found;
                n = rv_npm_key_parent(key, n);
        }
}

/* Lies in a package that is left out: npm does not even look at it. */
static bool is_within_left_out(const struct rv__npm_lock *lock, const char *key)
{
        for (size_t n = rv_npm_key_parent(key, strlen(key)); n; n = rv_npm_key_parent(key, n)) {
                const struct rv__npm_place *within = rv__npm_lock_find(lock, key, n);

                if (within && within->is_left_out)
                        return true;
        }
        return false;
}

/* A package that cannot do without another that is left out. Returns that one's name, or NULL. */
static const char *lacks(const struct rv__npm_lock *lock, const struct rv__npm_place *place)
{
        const json_t *needed = json_object_get(place->value, "dependencies"), *optional = json_object_get(place->value, "optionalDependencies");
        const char *name;
        json_t *spec;

        json_object_foreach((json_t *)needed, name, spec) {
                const struct rv__npm_place *found = json_object_get(optional, name) ? NULL
                                                                                    : look_up(lock, place->key, name);

                if (found && found->is_left_out)
                        return found->name;
        }
        return NULL;
}

/* Marks what npm leaves out on this platform: what does not fit, what lies in it, and what cannot do without it. */
static int leave_out(struct rv__closure *c, struct rv__npm_lock *lock)
{
        bool is_changed = true;

        for (size_t i = 0; i < lock->n_places; i++) {
                struct rv__npm_place *p = &lock->places[i];

                if (rv__npm_place_fits(p, c->tag))
                        continue;
                if (!p->is_optional)
                        return rv__closure_platform(c, p->name, "the package is for other platforms only");
                p->is_left_out = true;
        }
        for (unsigned round = 0; is_changed; round++) {
                is_changed = false;
                if (round == LACKING_ROUNDS_MAX)
                        return rv__closure_refuse(c, "unsafe_archive", "", "packages for other platforms need each other in too long a row");
                for (size_t i = 0; i < lock->n_places; i++) {
                        struct rv__npm_place *p = &lock->places[i];
                        const char *lacking = NULL;

                        if (p->is_left_out || (!is_within_left_out(lock, p->key) && !(lacking = lacks(lock, p))))
                                continue;
                        if (lacking && !p->is_optional)
                                return rv__closure_platform(c, lacking, "the package is for other platforms only, and something that was asked for needs it");
                        p->is_left_out = is_changed = true;
                }
        }
        return 0;
}

/* In order of precedence: npm lists a package once. */
static const char *const dependency_lists[] = { "dependencies", "optionalDependencies", "peerDependencies" };

static int link_place(const struct rv__npm_lock *lock, struct rv__npm_place *p)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(dependency_lists); i++) {
                const json_t *named = json_object_get(p->value, dependency_lists[i]);
                size_t *needs = reallocarray(p->needs, p->n_needs + json_object_size(named) + 1, sizeof(*needs));
                const char *name;
                json_t *spec;

                if (!needs)
                        return rv_raise(-ENOMEM);
                p->needs = needs;
                json_object_foreach((json_t *)named, name, spec) {
                        const struct rv__npm_place *found = look_up(lock, p->key, name);

                        if (found && !found->is_left_out)
                                needs[p->n_needs++] = (size_t)(found - lock->places);
                }
        }
        qsort(p->needs, p->n_needs, sizeof(*p->needs), compare_positions);
        return 0;
}

static int judge_dependencies(
        struct rv__closure *c, const struct rv__npm_lock *lock, const struct rv__npm_place *p, const char *list)
{
        const json_t *optional = json_object_get(p->value, "optionalDependencies");
        bool is_required = strcmp(list, "dependencies") == 0;
        char quote[RV_FAULT_QUOTE_SIZE];
        const char *name;
        json_t *spec;

        json_object_foreach((json_t *)json_object_get(p->value, list), name, spec) {
                rv_fault_quote(name, strlen(name), quote);
                if (!json_is_string(spec) || json_string_length(spec) != strlen(json_string_value(spec)) ||
                        !rv_npm_spec_is_plain(json_string_value(spec)))
                        return rv__closure_refuse(c, "unsafe_archive", p->name, "%s wants %s from elsewhere than the registry", p->name, quote);
                if (is_required && !json_object_get(optional, name) && !look_up(lock, p->key, name))
                        return rv__closure_refuse(c, "name_mismatch", p->name, "%s needs %s, which the resolver's answer does not have", p->name, quote);
        }
        return 0;
}

static bool is_sha512(const char *integrity)
{
        uint8_t digest[64];

        return integrity && strncmp(integrity, "sha512-", 7) == 0 &&
               rv_base64_read(integrity + 7, strlen(integrity + 7), digest, sizeof(digest)) == (ssize_t)sizeof(digest);
}

/* What is installed has to come from the registry, whole, with a hash. */
static int judge_place(struct rv__closure *c, const struct rv__npm_lock *lock, struct rv__npm_place *p)
{
        const json_t *bundle = json_object_get(p->value, "bundleDependencies");

        if (json_object_get(p->value, "resolved"))
                return rv__closure_refuse(c, "unsafe_archive", p->name, "%s does not come from the registry", p->name);
        if (json_object_get(p->value, "inBundle") || json_array_size(bundle) || json_is_true(bundle))
                return rv__closure_refuse(c, "unsafe_archive", p->name, "%s %s other packages within its own, which cannot be judged", p->name,
                        json_object_get(p->value, "inBundle") ? "lies in one that brings" : "brings");
        p->integrity = rv__closure_text(p->value, "integrity", 95);
        if (!is_sha512(p->integrity))
                return rv__closure_refuse(c, "unsafe_archive", p->name, "the registry gives no SHA-512 for %s, so that what it sends could be anything", p->name);
        for (size_t i = 0; i < RV_N_ELEMENTS(dependency_lists); i++) {
                int r = judge_dependencies(c, lock, p, dependency_lists[i]);

                if (r)
                        return r;
        }
        return 0;
}

/* Marks all that the requested packages need, and leaves out what is optional and not among it. */
static int reach(struct rv__closure *c, struct rv__npm_lock *lock)
{
        _cleanup_(rv_freep) size_t *queue = calloc(lock->n_places + 1, sizeof(*queue));
        size_t n = 0;

        if (!queue)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < c->n_requested; i++) {
                struct rv__npm_place *p = look_up(lock, "", c->requested[i].name);

                if (p && !p->is_left_out && !p->is_reached) {
                        p->is_reached = true;
                        queue[n++] = (size_t)(p - lock->places);
                }
        }
        for (size_t at = 0; at < n; at++) {
                const struct rv__npm_place *p = &lock->places[queue[at]];

                for (size_t i = 0; i < p->n_needs; i++) {
                        struct rv__npm_place *q = &lock->places[p->needs[i]];

                        if (!q->is_reached)
                                queue[n++] = p->needs[i];
                        q->is_reached = true;
                }
        }
        for (size_t i = 0; i < lock->n_places; i++)
                lock->places[i].is_left_out = lock->places[i].is_left_out ||
                        (lock->places[i].is_optional && !lock->places[i].is_reached);
        return 0;
}

int rv__npm_lock_read(struct rv__closure *c, const json_t *value, struct rv__npm_lock *ret, struct rv_error *err)
{
        json_int_t version = json_integer_value(json_object_get(value, "lockfileVersion"));
        const json_t *packages = json_object_get(value, "packages");
        int r;

        if (version != 2 && version != 3)
                return rv_error_set(err, rv_raise(-EINVAL), "npm wrote a lock of a kind that is not read: lockfileVersion 2 and 3 are");
        if (!json_is_object(packages))
                return rv_error_set(err, rv_raise(-EINVAL), "npm wrote a lock without a list of packages");
        if (json_object_size(packages) > PLACES_MAX)
                return rv__closure_too_large(c, json_object_size(packages));
        r = read_places(c, packages, ret);
        r = r ? r : leave_out(c, ret);
        for (size_t i = 0; i < ret->n_places && r == 0; i++)
                if (!ret->places[i].is_left_out)
                        r = link_place(ret, &ret->places[i]);
        r = r ? r : reach(c, ret);
        for (size_t i = 0; i < ret->n_places && r == 0; i++)
                if (!ret->places[i].is_left_out)
                        r = judge_place(c, ret, &ret->places[i]);
        return r;
}
