#include "package/npm_key.h"
#include "package/npm_lock.h"

#include <string.h>

static int compare_places(const void *a, const void *b)
{
        const struct rv__npm_place *x = *(struct rv__npm_place *const *)a, *y = *(struct rv__npm_place *const *)b;
        int r = strcmp(x->name, y->name);

        r = r ? r : strcmp(x->version, y->version);
        return r ? r : strcmp(x->key, y->key);
}

/* node-OS-CPU-LIBC, as the driver says it. */
static bool is_tag(const char *tag)
{
        size_t n_dashes = 0;

        for (const char *p = tag; *p; p++)
                n_dashes += *p == '-';
        return strncmp(tag, "node-", 5) == 0 && n_dashes == 3 && !strchr(tag, '/') && !strstr(tag, "--");
}

static bool is_same(const struct rv__npm_place *a, const struct rv__npm_place *b)
{
        return strcmp(a->name, b->name) == 0 && strcmp(a->version, b->version) == 0;
}

/* The name by which a place is found is the package's own, and it lies in the project's node_modules. */
static bool is_at_top(const struct rv__npm_place *p)
{
        return rv_npm_key_parent(p->key, strlen(p->key)) == 0 && strcmp(rv_npm_key_name(p->key), p->name) == 0;
}

static int add_names(json_t *entry, const struct rv__npm_lock *lock, const struct rv__npm_place *p)
{
        json_t *requires = json_object_get(entry, "requires"), *needs = json_object_get(entry, "needs");

        for (size_t i = 0; i < p->n_needs; i++) {
                const struct rv__npm_place *q = &lock->places[p->needs[i]];

                if (json_array_append_new(requires, json_string(q->name)) < 0 ||
                        json_array_append_new(needs, json_integer((json_int_t)q->package)) < 0)
                        return rv_raise(-ENOMEM);
        }
        return 0;
}

static int compare_integers(const void *a, const void *b)
{
        json_int_t x = *(const json_int_t *)a, y = *(const json_int_t *)b;

        return (x > y) - (x < y);
}

/* Sorts a list of positions, each once. */
static int sort_positions(json_t *list)
{
        size_t n = json_array_size(list);
        _cleanup_(rv_freep) json_int_t *sorted = calloc(n + 1, sizeof(*sorted));

        if (!sorted)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                sorted[i] = json_integer_value(json_array_get(list, i));
        qsort(sorted, n, sizeof(*sorted), compare_integers);
        json_array_clear(list);
        for (size_t i = 0; i < n; i++)
                if ((i == 0 || sorted[i] != sorted[i - 1]) && json_array_append_new(list, json_integer(sorted[i])) < 0)
                        return rv_raise(-ENOMEM);
        return 0;
}

/* One package with all its places, places[0] to places[n - 1]. */
static int add_package(
        struct rv__closure *c, const struct rv__npm_lock *lock, struct rv__npm_place *const *places, size_t n)
{
        const struct rv__npm_place *first = places[0];
        const char *license = rv__closure_text(first->value, "license", 256);
        bool has_script = false, is_optional = true, is_top = false;
        json_t *at = json_array(), *entry;
        int r = 0;

        entry = json_pack("{s:s, s:s, s:s, s:o, s:[], s:[]}", "name", first->name, "version", first->version, "integrity", first->integrity, "at", at,
                "requires", "needs");
        if (!entry || json_array_append_new(c->packages, entry) < 0)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < n && r == 0; i++) {
                const struct rv__npm_place *p = places[i];

                if (strcmp(p->integrity, first->integrity) != 0)
                        return rv__closure_refuse(c, "name_mismatch", p->name, "%s %s is there twice, with two hashes", p->name, p->version);
                has_script = has_script || json_is_true(json_object_get(p->value, "hasInstallScript"));
                is_optional = is_optional && p->is_optional;
                is_top = is_top || is_at_top(p);
                if (json_array_append_new(at, json_string(p->key)) < 0)
                        return rv_raise(-ENOMEM);
                r = add_names(entry, lock, p);
        }
        if (r == 0)
                r = rv__closure_sort_texts(json_object_get(entry, "requires"));
        if (r == 0)
                r = sort_positions(json_object_get(entry, "needs"));
        if (r == 0 && (json_object_set_new(entry, "install_script", json_boolean(has_script)) < 0 ||
                              json_object_set_new(entry, "optional", json_boolean(is_optional)) < 0 ||
                              (license && json_object_set_new(entry, "license", json_string(license)) < 0)))
                r = rv_raise(-ENOMEM);
        return r ? r : rv__closure_asked(c, entry, is_top);
}

static int add_left_out(struct rv__closure *c, const struct rv__npm_lock *lock)
{
        for (size_t i = 0; i < lock->n_places; i++) {
                const struct rv__npm_place *p = &lock->places[i];

                if (p->is_left_out &&
                        json_array_append_new(c->not_installed, json_pack("{s:s, s:s, s:s}", "name", p->name, "version", p->version, "at", p->key)) < 0)
                        return rv_raise(-ENOMEM);
        }
        return 0;
}

/* What is installed, by name, version and place; each place is told the position of its package. Returns how many places. */
static size_t order_places(struct rv__npm_lock *lock, struct rv__npm_place **sorted, size_t *ret_n_packages)
{
        size_t n = 0, n_packages = 0;

        for (size_t i = 0; i < lock->n_places; i++)
                if (!lock->places[i].is_left_out)
                        sorted[n++] = &lock->places[i];
        qsort(sorted, n, sizeof(*sorted), compare_places);
        for (size_t i = 0; i < n; i++) {
                n_packages += i == 0 || !is_same(sorted[i - 1], sorted[i]);
                sorted[i]->package = n_packages - 1;
        }
        *ret_n_packages = n_packages;
        return n;
}

static int make_lists(struct rv__closure *c, struct rv__npm_lock *lock)
{
        _cleanup_(rv_freep) struct rv__npm_place **sorted = calloc(lock->n_places + 1, sizeof(struct rv__npm_place *));
        size_t n, n_packages;
        int r;

        if (!sorted)
                return rv_raise(-ENOMEM);
        n = order_places(lock, sorted, &n_packages);
        if (n_packages > RV_CLOSURE_PACKAGES_MAX)
                return rv__closure_too_large(c, n_packages);
        for (size_t i = 0, next; i < n; i = next) {
                for (next = i + 1; next < n && is_same(sorted[i], sorted[next]);)
                        next++;
                r = add_package(c, lock, sorted + i, next - i);
                if (r)
                        return r;
        }
        return add_left_out(c, lock);
}

int rv__closure_npm(struct rv__closure *c, const json_t *value, struct rv_error *err)
{
        struct rv__npm_lock lock = { 0 };
        int r;

        if (!is_tag(c->tag))
                return rv_error_set(err, rv_raise(-EINVAL), "the resolver's answer does not say what runtime it is for");
        r = rv__npm_lock_read(c, value, &lock, err);
        if (r == 0)
                r = make_lists(c, &lock);
        rv__npm_lock_fini(&lock);
        return r;
}
