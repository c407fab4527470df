#include "policy/facts.h"

#include <stdio.h>
#include <string.h>

#define DAY_S 86400

/* A package of the lock and where it stood there. */
struct entry {
        const json_t *package;
        const char *name, *requested;
        size_t index;
};

struct building {
        const json_t *asked, *lock;
        int64_t now_s;
        const char *language;
        json_t *packages, *pointers, *paths, *registry_hash;   /* of the facts; borrowed */
};

bool rv_facts_is_resolved(const json_t *facts)
{
        return strcmp(rv_json_get_string(facts, "stage", ""), "resolved") == 0;
}

static int compare_entries(const void *pa, const void *pb)
{
        const struct entry *a = pa, *b = pb;
        int r = strcmp(a->name, b->name);

        if (r == 0)
                r = strcmp(a->requested, b->requested);
        return r ? r : a->index < b->index ? -1 : 1;
}

static int append(json_t *array, json_t *item)
{
        return json_array_append_new(array, item) < 0 ? rv_raise(-ENOMEM) : 0;
}

static int set(json_t *object, const char *key, json_t *value)
{
        return json_object_set_new(object, key, value) < 0 ? rv_raise(-ENOMEM) : 0;
}

/* A fact that the lock has in the right form; else it is not known. */
static int copy_fact(json_t *facts, const json_t *package, const char *name, bool (*is_right)(const json_t *))
{
        json_t *value = json_object_get(package, name);

        if (!value || !is_right(value))
                return 0;
        return json_object_set(facts, name, value) < 0 ? rv_raise(-ENOMEM) : 0;
}

static bool is_text(const json_t *value)
{
        return json_is_string(value);
}

static bool is_count(const json_t *value)
{
        return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool is_truth(const json_t *value)
{
        return json_is_boolean(value);
}

static int add_known(json_t *facts, const json_t *package, int64_t now_s)
{
        static const struct {
                const char *name;
                bool (*is_right)(const json_t *);
        } known[] = {
                { "version", is_text }, { "hash", is_text }, { "published_at", is_count }, { "license", is_text }, { "kind", is_text },
                { "yanked", is_truth }, { "install_script", is_truth }, { "size_bytes", is_count },
        };
        const json_t *published;
        int r = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(known) && r == 0; i++)
                r = copy_fact(facts, package, known[i].name, known[i].is_right);
        published = json_object_get(facts, "published_at");
        if (r == 0 && published) {
                int64_t age_s = now_s - json_integer_value(published);

                r = set(facts, "age_days", json_integer(age_s > 0 ? age_s / DAY_S : 0));
        }
        return rv_trace(r);
}

static int compare_texts(const void *a, const void *b)
{
        return strcmp(json_string_value(*(json_t *const *)a), json_string_value(*(json_t *const *)b));
}

static json_t *sorted_extras(const json_t *package)
{
        const json_t *extras = json_object_get(package, "extras"), *extra;
        size_t n = 0, n_all = json_array_size(extras), i;
        _cleanup_(rv_freep) json_t **sorted = calloc(n_all + 1, sizeof(*sorted));
        json_t *list = json_array();

        json_array_foreach((json_t *)extras, i, extra)
                if (sorted && json_is_string(extra))
                        sorted[n++] = (json_t *)extra;
        if (n)
                qsort(sorted, n, sizeof(json_t *), compare_texts);
        for (i = 0; i < n && list; i++)
                if (json_array_append(list, sorted[i]) < 0)
                        list = (json_decref(list), NULL);
        if (!sorted)
                list = (json_decref(list), NULL);
        return list;
}

static int add_facts(struct building *b, const struct entry *e)
{
        bool is_direct = json_is_true(json_object_get(e->package, "direct"));
        json_t *facts = json_pack("{s:s, s:s, s:s, s:o, s:b, s:b, s:s}", "language", b->language, "name", e->name, "requested", e->requested,
                "extras", sorted_extras(e->package), "pinned", 1, "direct", (int)is_direct, "stage", "resolved");
        int r = append(b->packages, facts);

        return r < 0 ? r : rv_trace(add_known(facts, e->package, b->now_s));
}

/* Of a package that was asked for, the members of the request that did. */
static int add_pointers(struct building *b, const struct entry *e)
{
        const json_t *from = json_object_get(json_object_get(b->asked, "pointers"), "packages"), *package;
        json_t *list = json_array();
        size_t i;
        int r = append(b->pointers, list);

        if (r < 0 || !json_is_true(json_object_get(e->package, "direct")))
                return rv_trace(r);
        json_array_foreach(json_object_get(b->asked, "packages"), i, package)
                if (strcmp(rv_json_get_string(package, "name", ""), e->name) == 0 && json_is_string(json_array_get(from, i)) &&
                    json_array_append(list, json_array_get(from, i)) < 0)
                        return rv_raise(-ENOMEM);
        return 0;
}

/* Without a path in the lock it is the package alone. */
static int add_path(struct building *b, const struct entry *e)
{
        const json_t *path = json_object_get(e->package, "path"), *name;
        bool is_right = json_array_size(path) > 0;
        size_t i;

        json_array_foreach((json_t *)path, i, name)
                is_right = is_right && json_is_string(name);
        return append(b->paths, is_right ? json_deep_copy(path) : json_pack("[s]", e->name));
}

static int read_entries(const json_t *packages, struct entry *entries)
{
        const json_t *package;
        size_t i;

        json_array_foreach((json_t *)packages, i, package) {
                entries[i] = (struct entry){ package, rv_json_get_string(package, "name", NULL), rv_json_get_string(package, "requested", ""), i };
                if (!entries[i].name || !*entries[i].name)
                        return rv_raise(-EINVAL);
                if (!json_is_true(json_object_get(package, "direct")))
                        entries[i].requested = "";
        }
        if (json_array_size(packages))
                qsort(entries, json_array_size(packages), sizeof(*entries), compare_entries);
        return 0;
}

static int add_packages(struct building *b)
{
        const json_t *packages = json_object_get(b->lock, "packages");
        size_t n = json_array_size(packages);
        _cleanup_(rv_freep) struct entry *entries = calloc(n + 1, sizeof(*entries));
        int r;

        if (!entries)
                return rv_raise(-ENOMEM);
        r = read_entries(packages, entries);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = add_facts(b, &entries[i]);
                if (r == 0)
                        r = add_pointers(b, &entries[i]);
                if (r == 0)
                        r = add_path(b, &entries[i]);
                if (r == 0)
                        r = append(b->registry_hash, json_boolean(json_is_true(json_object_get(entries[i].package, "registry_hash"))));
        }
        return rv_trace(r);
}

/* The request as it was, at the time at which it is judged now. */
static json_t *copy_request(const json_t *asked, int64_t now_s)
{
        json_t *request = json_deep_copy(json_object_get(asked, "request"));

        if (request && json_object_set_new(request, "now", json_integer(now_s)) < 0)
                request = (json_decref(request), NULL);
        return request;
}

int rv_facts_resolve(const json_t *requested_facts, const json_t *lock, int64_t now_s, json_t **ret)
{
        struct building b = { .asked = requested_facts, .lock = lock, .now_s = now_s };
        _cleanup_(rv_json_unrefp) json_t *facts = NULL;
        int r;

        b.language = rv_json_get_string(json_object_get(requested_facts, "request"), "language", NULL);
        if (!b.language || strcmp(rv_json_get_string(lock, "language", b.language), b.language) != 0 || !json_is_array(json_object_get(lock, "packages")))
                return rv_raise(-EINVAL);
        b.packages = json_array();
        b.pointers = json_array();
        b.paths = json_array();
        b.registry_hash = json_array();
        facts = json_pack("{s:s, s:o, s:o, s:{s:o, s:o}, s:{s:o}}", "stage", "resolved", "request", copy_request(requested_facts, now_s),
                "packages", b.packages, "pointers", "packages", b.pointers, "paths", b.paths, "evidence", "registry_hash", b.registry_hash);
        if (!facts)
                return rv_raise(-ENOMEM);
        r = add_packages(&b);
        if (r < 0)
                return rv_trace(r);
        *ret = rv_take(&facts);
        return 0;
}
