#include "base/buf.h"
#include "base/utf8.h"
#include "request/judge.h"

#include <stdio.h>
#include <string.h>

/* Any string is judged as a name: what is too long for one says so itself, at either end. */
static int judge_domain(struct rv_judge *j, const char *pointer, const json_t *value)
{
        struct rv_request *q = j->request;
        char name[RV_DOMAIN_SIZE];
        struct rv_fault fault;

        if (!rv_judge_is_type(j, pointer, value, JSON_STRING))
                return 0;
        if (!rv_utf8_check(json_string_value(value), json_string_length(value), NULL)) {
                rv_problem_add(j->problem, pointer, RV_FAULT_ENCODING, "this is not well-formed UTF-8");
                return 0;
        }
        if (rv_domain_parse(json_string_value(value), json_string_length(value), name, &fault)) {
                rv_problem_add(j->problem, pointer, fault.code, "%s", fault.message);
                return 0;
        }
        q->domains[q->n_domains] = strdup(name);
        if (!q->domains[q->n_domains])
                return rv_raise(-ENOMEM);
        q->n_domains++;
        return 0;
}

struct named {
        char *name;
        size_t position;
};

static int compare_named(const void *pa, const void *pb)
{
        const struct named *a = pa, *b = pb;
        int r = strcmp(a->name, b->name);

        return r ? r : (a->position > b->position) - (a->position < b->position);
}

/* Sort, and drop what stands twice; each keeps the position where it stood first. */
static int settle_domains(struct rv_request *q)
{
        _cleanup_(rv_freep) struct named *named = calloc(q->n_domains + 1, sizeof(*named));
        size_t n = q->n_domains, kept = 0;

        q->domain_positions = calloc(n + 1, sizeof(*q->domain_positions));
        if (!named || !q->domain_positions)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                named[i] = (struct named){ q->domains[i], i };
        qsort(named, n, sizeof(*named), compare_named);
        for (size_t i = 0; i < n; i++) {
                if (kept && strcmp(q->domains[kept - 1], named[i].name) == 0) {
                        free(named[i].name);
                        continue;
                }
                q->domains[kept] = named[i].name;
                q->domain_positions[kept++] = named[i].position;
        }
        q->n_domains = kept;
        return 0;
}

static int judge_domains(struct rv_judge *j, const json_t *value)
{
        struct rv_request *q = j->request;
        size_t n = json_array_size(value);
        char pointer[48];
        int r;

        q->domains = calloc(n ? n : 1, sizeof(*q->domains));
        if (!q->domains)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < n; i++) {
                snprintf(pointer, sizeof(pointer), "/network/domains/%zu", i);
                r = judge_domain(j, pointer, json_array_get(value, i));
                if (r < 0)
                        return rv_trace(r);
        }
        return rv_trace(settle_domains(q));
}

/* Returns the mode, or -1 after a fault. */
static int judge_mode(struct rv_judge *j, const json_t *value)
{
        char quote[RV_FAULT_QUOTE_SIZE];
        const char *name;
        int mode = -1;

        if (!value) {
                rv_problem_add(j->problem, "/network/mode", RV_FAULT_MISSING,
                               "the mode must be given: none, registries, domains or any");
                return -1;
        }
        if (!rv_judge_is_type(j, "/network/mode", value, JSON_STRING))
                return -1;
        name = json_string_value(value);
        if (strlen(name) == json_string_length(value))
                mode = rv_network_mode_parse(name);
        if (mode >= 0)
                return mode;
        rv_problem_add(j->problem, "/network/mode", RV_FAULT_UNSUPPORTED,
                       "there is no mode %s: write none, registries, domains or any",
                       rv_fault_quote(name, json_string_length(value), quote));
        return -1;
}

static int judge_unknown(struct rv_judge *j, const json_t *network)
{
        _cleanup_(rv_freep) const char **names = NULL;
        int r = rv_judge_names(network, &names);

        for (size_t i = 0; r == 0 && names[i]; i++) {
                _cleanup_(rv_buf_fini) struct rv_buf pointer = { 0 };

                if (strcmp(names[i], "mode") == 0 || strcmp(names[i], "domains") == 0)
                        continue;
                rv_buf_puts(&pointer, "/network");
                rv_pointer_append(&pointer, names[i], strlen(names[i]));
                r = rv_buf_error(&pointer);
                if (r == 0)
                        rv_problem_add(j->problem, pointer.data, RV_FAULT_UNKNOWN,
                                       "the network has the members \"mode\" and \"domains\" only");
        }
        return r < 0 ? rv_trace(r) : 0;
}

int rv_judge_network(struct rv_judge *j, const json_t *value)
{
        const json_t *domains;
        int mode, r = 0;

        if (!value || !rv_judge_is_type(j, "/network", value, JSON_OBJECT))
                return 0;
        mode = judge_mode(j, json_object_get(value, "mode"));
        if (mode >= 0)
                j->request->network_mode = (enum rv_network_mode)mode;
        domains = json_object_get(value, "domains");
        if (!domains) {
                if (mode == RV_NETWORK_DOMAINS)
                        rv_problem_add(j->problem, "/network/domains", RV_FAULT_MISSING,
                                       "mode domains needs the names: \"domains\": [\"api.example.com\"]");
        } else if (mode >= 0 && mode != RV_NETWORK_DOMAINS) {
                rv_problem_add(j->problem, "/network/domains", RV_FAULT_CONFLICT,
                               "names go with mode domains only: leave them out, or write \"mode\": \"domains\"");
        } else if (rv_judge_is_type(j, "/network/domains", domains, JSON_ARRAY)) {
                rv_judge_count(j, "/network/domains", json_array_size(domains), RV_BOUND_ID_domains);
                r = judge_domains(j, domains);
        }
        return r < 0 ? rv_trace(r) : judge_unknown(j, value);
}
