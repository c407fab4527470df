#include "request/request.h"

#include "base/json.h"
#include "request/document.h"
#include "request/judge.h"

#include <string.h>

static const char *const languages[] = {
        [RV_LANGUAGE_PYTHON] = "python",
        [RV_LANGUAGE_JAVASCRIPT] = "javascript",
};

static const char *const modes[] = {
        [RV_NETWORK_NONE] = "none",
        [RV_NETWORK_REGISTRIES] = "registries",
        [RV_NETWORK_DOMAINS] = "domains",
        [RV_NETWORK_ANY] = "any",
};

/* The members of a request in the order in which faults are listed. */
static const struct {
        const char *name;
        int (*judge)(struct rv_judge *j, const json_t *value);
} fields[] = {
        { "language", rv_judge_language },
        { "source", rv_judge_source },
        { "timeout_s", rv_judge_timeout },
        { "memory_mib", rv_judge_memory },
        { "packages", rv_judge_packages },
        { "env", rv_judge_env },
        { "network", rv_judge_network },
        { "idempotency_key", rv_judge_key },
        { "stdin", rv_judge_stdin },
};

static int find(const char *const names[], size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(names[i], name) == 0)
                        return (int)i;
        return -EINVAL;
}

const char *rv_language_name(enum rv_language language)
{
        return languages[language];
}

int rv_language_parse(const char *name)
{
        return find(languages, RV_N_ELEMENTS(languages), name);
}

const char *rv_network_mode_name(enum rv_network_mode mode)
{
        return modes[mode];
}

int rv_network_mode_parse(const char *name)
{
        return find(modes, RV_N_ELEMENTS(modes), name);
}

void rv_request_free(struct rv_request *q)
{
        if (!q)
                return;
        for (size_t i = 0; i < q->n_packages; i++)
                rv_package_fini(&q->packages[i]);
        for (size_t i = 0; i < q->n_env; i++) {
                free(q->env[i].name);
                free(q->env[i].value);
        }
        for (size_t i = 0; i < q->n_domains; i++)
                free(q->domains[i]);
        free(q->packages);
        free(q->env);
        free(q->domains);
        free(q->domain_positions);
        free(q->source);
        free(q->idempotency_key);
        free(q->stdin_data);
        free(q);
}

static size_t field_index(const char *name, size_t n)
{
        size_t i = 0;

        while (i < RV_N_ELEMENTS(fields) && (strlen(fields[i].name) != n || memcmp(fields[i].name, name, n) != 0))
                i++;
        return i;
}

static int judge_unknown(struct rv_judge *j, const json_t *value)
{
        _cleanup_(rv_freep) const char **names = NULL;
        int r = rv_judge_names(value, &names);

        for (size_t i = 0; r == 0 && names[i]; i++) {
                _cleanup_(rv_buf_fini) struct rv_buf pointer = { 0 };
                char quote[RV_FAULT_QUOTE_SIZE];

                if (field_index(names[i], strlen(names[i])) < RV_N_ELEMENTS(fields))
                        continue;
                rv_pointer_append(&pointer, names[i], strlen(names[i]));
                r = rv_buf_error(&pointer);
                if (r == 0)
                        rv_problem_add(j->problem, pointer.size ? pointer.data : "", RV_FAULT_UNKNOWN,
                                       "a request has no member %s; \"reeve schema request\" shows all", rv_fault_quote(names[i], strlen(names[i]), quote));
        }
        return r < 0 ? rv_trace(r) : 0;
}

static int judge(const json_t *value, struct rv_problem *problem, struct rv_request *request)
{
        struct rv_judge j = { .problem = problem, .request = request, .language = -1 };
        int r = 0;

        if (!json_is_object(value)) {
                rv_problem_add(problem, "", RV_FAULT_TYPE, "a request is one JSON object: {\"language\": ..., \"source\": ...}");
                return rv_problem_error(problem);
        }
        if (rv_json_is_deeper(value, RV_BOUND_MAX(depth))) {
                rv_problem_add(problem, "", RV_FAULT_LENGTH, "the document is nested deeper than %d levels", RV_BOUND_MAX(depth));
                return rv_problem_error(problem);
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(fields) && r == 0; i++)
                r = fields[i].judge(&j, json_object_get(value, fields[i].name));
        if (r == 0)
                r = judge_unknown(&j, value);
        if (r == 0 && !request->stdin_data) {
                request->stdin_data = calloc(1, 1);
                r = request->stdin_data ? 0 : rv_raise(-ENOMEM);
        }
        return r < 0 ? rv_trace(r) : rv_problem_error(problem);
}

/* The place of a fault's member in the table of fields; members unknown to it come last. */
static size_t fault_rank(const struct rv_problem_fault *fault)
{
        const char *name = fault->pointer + (fault->pointer[0] == '/');

        return field_index(name, strcspn(name, "/"));
}

static int compare_faults(const struct rv_problem_fault *a, const struct rv_problem_fault *b)
{
        size_t rank_a = fault_rank(a), rank_b = fault_rank(b);

        if (rank_a != rank_b)
                return rank_a < rank_b ? -1 : 1;
        return rank_a < RV_N_ELEMENTS(fields) ? 0 : strcmp(a->pointer, b->pointer);
}

/*
 * Duplicates are found before anything else is judged; here they join the other faults of their field. By
 * insertion, as it must be stable, and there are RV_PROBLEM_FAULTS_MAX at most.
 */
static void sort_faults(struct rv_problem *problem)
{
        struct rv_problem_fault *faults = problem->faults;

        for (size_t i = 1; i < problem->n_faults; i++) {
                struct rv_problem_fault fault = faults[i];
                size_t at = i;

                for (; at > 0 && compare_faults(&faults[at - 1], &fault) > 0; at--)
                        faults[at] = faults[at - 1];
                faults[at] = fault;
        }
}

static struct rv_problem *new_problem(void)
{
        return rv_problem_new(422, RV_PROBLEM_INVALID_TYPE, "The request is outside its bounds; nothing was run");
}

/* Judge @value, or where it is NULL only hand out the faults that reading the text gave. */
static int finish(const json_t *value, struct rv_problem **problem, struct rv_request **ret,
                  struct rv_problem **ret_problem)
{
        _cleanup_(rv_request_freep) struct rv_request *request = calloc(1, sizeof(*request));
        int r;

        if (!request)
                return rv_raise(-ENOMEM);
        r = value ? judge(value, *problem, request) : rv_problem_error(*problem);
        if (r < 0)
                return rv_trace(r);
        if ((*problem)->n_faults) {
                sort_faults(*problem);
                *ret_problem = rv_take(problem);
                return RV_REQUEST_E_INVALID;
        }
        *ret = rv_take(&request);
        return 0;
}

int rv_request_from_json(const json_t *value, struct rv_request **ret, struct rv_problem **ret_problem)
{
        _cleanup_(rv_problem_freep) struct rv_problem *problem = new_problem();
        int r;

        if (!problem)
                return rv_raise(-ENOMEM);
        r = finish(value ? value : json_null(), &problem, ret, ret_problem);
        return r < 0 ? rv_trace(r) : r;
}

int rv_request_parse(const char *json, size_t n, struct rv_request **ret, struct rv_problem **ret_problem)
{
        _cleanup_(rv_problem_freep) struct rv_problem *problem = new_problem();
        _cleanup_(rv_json_unrefp) json_t *value = NULL;
        int r;

        if (!problem)
                return rv_raise(-ENOMEM);
        r = rv_document_read(json, n, problem, &value);
        if (r < 0)
                return rv_trace(r);
        r = finish(value, &problem, ret, ret_problem);
        return r < 0 ? rv_trace(r) : r;
}

static json_t *canonical_network(const struct rv_request *q)
{
        json_t *o = json_pack("{s:s}", "mode", modes[q->network_mode]), *names;
        int r = 0;

        if (q->network_mode != RV_NETWORK_DOMAINS)
                return o;
        names = json_array();
        for (size_t i = 0; i < q->n_domains && r == 0; i++)
                r = json_array_append_new(names, json_string(q->domains[i]));
        if (r == 0)
                r = json_object_set(o, "domains", names);
        json_decref(names);
        if (r < 0) {
                json_decref(o);
                return NULL;
        }
        return o;
}

json_t *rv_request_canonical(const struct rv_request *q, bool with_key)
{
        json_t *packages = json_array(), *env = json_object(), *o;
        int r = 0;

        for (size_t i = 0; i < q->n_packages && r == 0; i++)
                r = json_array_append_new(packages, json_string(q->packages[i].requested));
        for (size_t i = 0; i < q->n_env && r == 0; i++)
                r = json_object_set_new(env, q->env[i].name, json_string(q->env[i].value));
        if (r < 0) {
                json_decref(packages);
                json_decref(env);
                return NULL;
        }
        o = json_pack("{s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "language", languages[q->language], "source",
                      json_stringn(q->source, q->source_bytes), "timeout_s", (json_int_t)q->timeout_s, "memory_mib",
                      (json_int_t)q->memory_mib, "packages", packages, "env", env, "network", canonical_network(q),
                      "stdin", json_stringn(q->stdin_data, q->stdin_bytes));
        if (with_key && q->idempotency_key && json_object_set_new(o, "idempotency_key", json_string(q->idempotency_key)) < 0) {
                json_decref(o);
                return NULL;
        }
        return o;
}
