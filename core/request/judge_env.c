#include "base/buf.h"
#include "base/utf8.h"
#include "request/judge.h"

#include <string.h>

static bool is_letter(char c)
{
        return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

static bool is_env_name(const char *name)
{
        if (!is_letter(*name))
                return false;
        while (*++name)
                if (!is_letter(*name) && !(*name >= '0' && *name <= '9'))
                        return false;
        return true;
}

static void judge_env_name(struct rv_judge *j, const char *pointer, const char *name)
{
        char quote[RV_FAULT_QUOTE_SIZE];

        if (!is_env_name(name))
                rv_problem_add(j->problem, pointer, RV_FAULT_PATTERN,
                               "a variable's name is letters, digits and \"_\", not beginning with a digit: %s is not",
                               rv_fault_quote(name, strlen(name), quote));
        else if (strncmp(name, "REEVE_", 6) == 0)
                rv_problem_add(j->problem, pointer, RV_FAULT_PATTERN, "names that begin with REEVE_ are kept for reeve itself");
}

static int judge_env_pair(struct rv_judge *j, const char *pointer, const char *name, const json_t *value, size_t *total)
{
        struct rv_env_pair *pair;

        judge_env_name(j, pointer, name);
        if (!rv_judge_is_type(j, pointer, value, JSON_STRING))
                return 0;
        *total += strlen(name) + json_string_length(value) + 2;
        if (!rv_utf8_check(json_string_value(value), json_string_length(value), NULL)) {
                rv_problem_add(j->problem, pointer, RV_FAULT_ENCODING, "this is not well-formed UTF-8");
                return 0;
        }
        if (memchr(json_string_value(value), 0, json_string_length(value))) {
                rv_problem_add(j->problem, pointer, RV_FAULT_PATTERN, "the value of a variable cannot hold NUL");
                return 0;
        }
        pair = &j->request->env[j->request->n_env++];
        pair->name = strdup(name);
        if (!pair->name)
                return rv_raise(-ENOMEM);
        return rv_judge_dup(value, &pair->value, NULL);
}

static int compare_pairs(const void *a, const void *b)
{
        return strcmp(((const struct rv_env_pair *)a)->name, ((const struct rv_env_pair *)b)->name);
}

int rv_judge_env(struct rv_judge *j, const json_t *value)
{
        _cleanup_(rv_freep) const char **names = NULL;
        struct rv_request *q = j->request;
        char extent[64];
        size_t total = 0, n;
        int r;

        if (!value || !rv_judge_is_type(j, "/env", value, JSON_OBJECT))
                return 0;
        n = json_object_size(value);
        rv_judge_count(j, "/env", n, RV_BOUND_ID_env);
        q->env = calloc(n ? n : 1, sizeof(*q->env));
        if (!q->env)
                return rv_raise(-ENOMEM);
        r = rv_judge_names(value, &names);
        for (size_t i = 0; i < n && r == 0; i++) {
                _cleanup_(rv_buf_fini) struct rv_buf pointer = { 0 };

                rv_buf_puts(&pointer, "/env");
                rv_pointer_append(&pointer, names[i], strlen(names[i]));
                r = rv_buf_error(&pointer);
                if (r == 0)
                        r = judge_env_pair(j, pointer.data, names[i], json_object_get(value, names[i]), &total);
        }
        if (r < 0)
                return rv_trace(r);
        if (total > RV_BOUND_MAX(env_bytes))
                rv_problem_add(j->problem, "/env", RV_FAULT_LENGTH, "the environment has %zu bytes (%s); allowed: %s", total,
                               rv_bounds[RV_BOUND_ID_env_bytes].text, rv_bound_describe(RV_BOUND_ID_env_bytes, extent));
        qsort(q->env, q->n_env, sizeof(*q->env), compare_pairs);
        return 0;
}
