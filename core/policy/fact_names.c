#include "policy/fact_names.h"

#include <stdio.h>
#include <string.h>

#define LANGUAGES "python javascript"
#define MODES "none registries domains any"

static const struct rv_fact package[] = {
        { "language", RV_FACT_STRING, LANGUAGES, false },
        { "name", RV_FACT_STRING, NULL, false },
        { "requested", RV_FACT_STRING, NULL, false },
        { "extras", RV_FACT_LIST, NULL, false },
        { "pinned", RV_FACT_BOOLEAN, NULL, false },
        { "direct", RV_FACT_BOOLEAN, NULL, false },
        { "stage", RV_FACT_STRING, "requested resolved", false },
        { "version", RV_FACT_STRING, NULL, true },
        { "hash", RV_FACT_STRING, NULL, true },
        { "published_at", RV_FACT_INTEGER, NULL, true },
        { "age_days", RV_FACT_INTEGER, NULL, true },
        { "license", RV_FACT_STRING, NULL, true },
        { "kind", RV_FACT_STRING, NULL, true },
        { "yanked", RV_FACT_BOOLEAN, NULL, true },
        { "install_script", RV_FACT_BOOLEAN, NULL, true },
        { "size_bytes", RV_FACT_INTEGER, NULL, true },
};

static const struct rv_fact network[] = {
        { "mode", RV_FACT_STRING, MODES, false },
        { "domain", RV_FACT_STRING, NULL, false },
};

static const struct rv_fact idempotency[] = {
        { "mode", RV_FACT_STRING, MODES, false },
        { "key_given", RV_FACT_BOOLEAN, NULL, false },
};

static const struct rv_fact backend[] = {
        { "mode", RV_FACT_STRING, MODES, false },
        { "package_count", RV_FACT_INTEGER, NULL, false },
        { "all_pinned", RV_FACT_BOOLEAN, NULL, false },
};

static const struct rv_fact request[] = {
        { "language", RV_FACT_STRING, LANGUAGES, false },
        { "source_sha256", RV_FACT_STRING, NULL, false },
        { "source_characters", RV_FACT_INTEGER, NULL, false },
        { "timeout_s", RV_FACT_INTEGER, NULL, false },
        { "memory_mib", RV_FACT_INTEGER, NULL, false },
        { "env_names", RV_FACT_LIST, NULL, false },
        { "package_count", RV_FACT_INTEGER, NULL, false },
        { "network_mode", RV_FACT_STRING, MODES, false },
        { "key_given", RV_FACT_BOOLEAN, NULL, false },
        { "tenant", RV_FACT_TENANT, NULL, false },
        { "principal", RV_FACT_STRING, NULL, false },
        { "now", RV_FACT_INTEGER, NULL, false },
};

static const struct rv_fact tenant[] = {
        { "name", RV_FACT_STRING, NULL, false },
        { "labels", RV_FACT_MAP, NULL, false },
};

const struct rv_fact_table rv_fact_tables[_RV_FACTS_MAX] = {
        [RV_FACTS_PACKAGE] = { "a package", package, RV_N_ELEMENTS(package) },
        [RV_FACTS_NETWORK] = { "network access", network, RV_N_ELEMENTS(network) },
        [RV_FACTS_IDEMPOTENCY] = { "idempotency", idempotency, RV_N_ELEMENTS(idempotency) },
        [RV_FACTS_BACKEND] = { "the backend", backend, RV_N_ELEMENTS(backend) },
        [RV_FACTS_REQUEST] = { "the request", request, RV_N_ELEMENTS(request) },
        [RV_FACTS_TENANT] = { "the tenant", tenant, RV_N_ELEMENTS(tenant) },
};

const struct rv_fact *rv_fact_find(enum rv_fact_set set, const char *name)
{
        const struct rv_fact_table *t = &rv_fact_tables[set];

        for (size_t i = 0; i < t->n_facts; i++)
                if (strcmp(t->facts[i].name, name) == 0)
                        return &t->facts[i];
        return NULL;
}

const char *rv_fact_list(enum rv_fact_set set, char *ret, size_t n)
{
        const struct rv_fact_table *t = &rv_fact_tables[set];
        size_t at = 0;

        ret[0] = 0;
        for (size_t i = 0; i < t->n_facts && at < n; i++)
                at += (size_t)snprintf(ret + at, n - at, "%s%s", i ? ", " : "", t->facts[i].name);
        return ret;
}

const char *rv_fact_describe_lack(const char *fact, const json_t *item, char *ret, size_t n)
{
        snprintf(ret, n, "'%s' of %.214s %.80s is not known: the registry does not tell it", fact, rv_json_get_string(item, "name", "a package"),
                rv_json_get_string(item, "version", ""));
        return ret;
}
