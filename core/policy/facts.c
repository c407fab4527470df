#include "policy/facts.h"

#include "base/hash.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* An entry of the request and where it stood before it was sorted. */
struct entry {
        const char *name, *requested;
        size_t index;
};

static int compare_entries(const void *pa, const void *pb)
{
        const struct entry *a = pa, *b = pb;
        int r = strcmp(a->name, b->name);

        if (r == 0)
                r = strcmp(a->requested, b->requested);
        return r ? r : a->index < b->index ? -1 : 1;
}

static int compare_strings(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Takes @item; NULL, an allocation that failed, is passed on. */
static int append(json_t *array, json_t *item)
{
        return json_array_append_new(array, item) < 0 ? rv_raise(-ENOMEM) : 0;
}

static int set(json_t *object, const char *key, json_t *value)
{
        return json_object_set_new(object, key, value) < 0 ? rv_raise(-ENOMEM) : 0;
}

static int append_pointer(json_t *array, const char *member, size_t index)
{
        char text[64];

        snprintf(text, sizeof(text), "/%s/%zu", member, index);
        return append(array, json_string(text));
}

/* Sorted, each name once: a list's order never depends on the order in which a caller wrote. */
static json_t *sorted_list(const char **names, size_t n)
{
        json_t *list = json_array();

        if (n)
                qsort(names, n, sizeof(*names), compare_strings);
        for (size_t i = 0; i < n && list; i++) {
                if (i && strcmp(names[i], names[i - 1]) == 0)
                        continue;
                if (append(list, json_string(names[i])) < 0) {
                        json_decref(list);
                        return NULL;
                }
        }
        return list;
}

static json_t *env_names(const struct rv_request *request)
{
        _cleanup_(rv_freep) const char **names = calloc(request->n_env + 1, sizeof(*names));

        if (!names)
                return NULL;
        for (size_t i = 0; i < request->n_env; i++)
                names[i] = request->env[i].name;
        return sorted_list(names, request->n_env);
}

static json_t *extras(const struct rv_package *package)
{
        _cleanup_(rv_freep) const char **names = calloc(package->n_extras + 1, sizeof(*names));

        if (!names)
                return NULL;
        for (size_t i = 0; i < package->n_extras; i++)
                names[i] = package->extras[i];
        return sorted_list(names, package->n_extras);
}

static int check_tenant(const struct rv_facts_tenant *tenant, const char *principal)
{
        const char *key;
        json_t *value;

        if (!rv_utf8_check(tenant->name, strlen(tenant->name), NULL) || !rv_utf8_check(principal, strlen(principal),
                NULL))
                return rv_raise(-EINVAL);
        if (tenant->labels && !json_is_object(tenant->labels))
                return rv_raise(-EINVAL);
        json_object_foreach((json_t *)tenant->labels, key, value)
                if (!json_is_string(value))
                        return rv_raise(-EINVAL);
        return 0;
}

static int add_request(json_t *facts, const struct rv_request *q, const struct rv_facts_tenant *tenant,
        const char *principal, int64_t now_s)
{
        char sha256[RV_SHA256_HEX_SIZE];

        rv_sha256_hex(q->source, q->source_bytes, sha256);
        return set(facts, "request",
                json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:I, s:s, s:b, s:{s:s, s:o}, s:s, s:I}",
                        "language", rv_language_name(q->language),
                        "source_sha256", sha256,
                        "source_characters", (json_int_t)q->source_characters,
                        "timeout_s", (json_int_t)q->timeout_s,
                        "memory_mib", (json_int_t)q->memory_mib,
                        "env_names", env_names(q),
                        "package_count", (json_int_t)q->n_packages,
                        "network_mode", rv_network_mode_name(q->network_mode),
                        "key_given", q->idempotency_key != NULL,
                        "tenant", "name", tenant->name,
                        "labels", tenant->labels ? json_deep_copy(tenant->labels) : json_object(),
                        "principal", principal,
                        "now", (json_int_t)now_s));
}

static json_t *package_facts(const struct rv_request *q, const struct rv_package *package)
{
        return json_pack("{s:s, s:s, s:s, s:o, s:b, s:b, s:s}",
                "language", rv_language_name(q->language),
                "name", package->name,
                "requested", package->requested,
                "extras", extras(package),
                "pinned", (int)package->is_pinned,
                "direct", 1,
                "stage", "requested");
}

static int add_packages(json_t *facts, json_t *pointers, const struct rv_request *q)
{
        _cleanup_(rv_freep) struct entry *entries = calloc(q->n_packages + 1, sizeof(*entries));
        json_t *list = json_array(), *from = json_array();
        int r;

        r = set(facts, "packages", list);
        if (r == 0)
                r = set(pointers, "packages", from);
        else
                json_decref(from);
        if (!entries)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < q->n_packages; i++)
                entries[i] = (struct entry){ q->packages[i].name, q->packages[i].requested, i };
        if (q->n_packages)
                qsort(entries, q->n_packages, sizeof(*entries), compare_entries);
        for (size_t i = 0; i < q->n_packages && r == 0; i++) {
                r = append(list, package_facts(q, &q->packages[entries[i].index]));
                if (r == 0)
                        r = append_pointer(from, "packages", q->packages[entries[i].index].position);
        }
        return r;
}

static int add_network(json_t *facts, json_t *pointers, const struct rv_request *q)
{
        size_t n = q->network_mode == RV_NETWORK_DOMAINS ? q->n_domains : 0;
        _cleanup_(rv_freep) struct entry *entries = calloc(n + 1, sizeof(*entries));
        const char *mode = rv_network_mode_name(q->network_mode);
        json_t *list = json_array(), *from = json_array();
        int r;

        r = set(facts, "network", list);
        if (r == 0)
                r = set(pointers, "network", from);
        else
                json_decref(from);
        if (!entries)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                entries[i] = (struct entry){ q->domains[i], "", i };
        if (n)
                qsort(entries, n, sizeof(*entries), compare_entries);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = append(list, json_pack("{s:s, s:s}", "mode", mode, "domain", entries[i].name));
                if (r == 0)
                        r = append_pointer(from, "network/domains", q->domain_positions ? q->domain_positions[entries[i].index] : entries[i].index);
        }
        if (n == 0 && r == 0)
                r = append(list, json_pack("{s:s, s:s}", "mode", mode, "domain", ""));
        if (n == 0 && r == 0)
                r = append(from, json_string("/network/mode"));
        return r;
}

static int add_rest(json_t *facts, const struct rv_request *q)
{
        const char *mode = rv_network_mode_name(q->network_mode);
        bool all_pinned = true;
        int r;

        for (size_t i = 0; i < q->n_packages; i++)
                all_pinned = all_pinned && q->packages[i].is_pinned;
        r = set(facts, "idempotency", json_pack("{s:s, s:b}", "mode", mode, "key_given", q->idempotency_key != NULL));
        if (r < 0)
                return rv_trace(r);
        return set(facts, "backend", json_pack("{s:s, s:I, s:b}", "mode", mode,
                        "package_count", (json_int_t)q->n_packages, "all_pinned", (int)all_pinned));
}

int rv_facts_build(const struct rv_request *request, const struct rv_facts_tenant *tenant, const char *principal,
        int64_t now_s, json_t **ret)
{
        _cleanup_(rv_json_unrefp) json_t *facts = json_object();
        json_t *pointers = json_object();
        int r;

        if (!principal)
                principal = "";
        r = check_tenant(tenant, principal);
        if (r == 0)
                r = set(facts, "stage", json_string("requested"));
        if (r == 0)
                r = set(facts, "pointers", json_incref(pointers));
        if (r == 0)
                r = add_request(facts, request, tenant, principal, now_s);
        if (r == 0)
                r = add_packages(facts, pointers, request);
        if (r == 0)
                r = add_network(facts, pointers, request);
        if (r == 0)
                r = add_rest(facts, request);
        json_decref(pointers);
        if (r < 0)
                return rv_trace(r);
        *ret = rv_take(&facts);
        return 0;
}
