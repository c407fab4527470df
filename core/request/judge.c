#include "request/judge.h"

#include "base/utf8.h"

#include <string.h>

static const char *type_name(json_type type)
{
        static const char *const names[] = {
                [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",    [JSON_STRING] = "a string",
                [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number with a fraction or an exponent",
                [JSON_TRUE] = "true", [JSON_FALSE] = "false", [JSON_NULL] = "null",
        };

        return names[type];
}

bool rv_judge_is_type(struct rv_judge *j, const char *pointer, const json_t *value, json_type type)
{
        if (json_typeof(value) == type)
                return true;
        rv_problem_add(j->problem, pointer, RV_FAULT_TYPE, "%s is wanted, not %s%s", type_name(type),
                       type_name(json_typeof(value)),
                       json_is_null(value) ? "; leave the member out for its default" :
                       type == JSON_INTEGER && json_is_real(value) ? ": write 30, not 30.0 or 3e1" : "");
        return false;
}

bool rv_judge_count(struct rv_judge *j, const char *pointer, size_t count, enum rv_bound_id id)
{
        char extent[64];

        if ((int64_t)count >= rv_bounds[id].minimum && (int64_t)count <= rv_bounds[id].maximum)
                return true;
        rv_problem_add(j->problem, pointer, RV_FAULT_LENGTH, "there are %zu %s; allowed: %s", count, rv_bounds[id].unit,
                       rv_bound_describe(id, extent));
        return false;
}

bool rv_judge_string(struct rv_judge *j, const char *pointer, const json_t *value, enum rv_bound_id id,
                     size_t *ret_characters)
{
        const struct rv_bound *b = &rv_bounds[id];
        char extent[64];
        size_t n;

        if (!rv_judge_is_type(j, pointer, value, JSON_STRING))
                return false;
        if (!rv_utf8_check(json_string_value(value), json_string_length(value), &n)) {
                rv_problem_add(j->problem, pointer, RV_FAULT_ENCODING, "this is not well-formed UTF-8");
                return false;
        }
        if ((int64_t)n < b->minimum || (int64_t)n > b->maximum) {
                rv_problem_add(j->problem, pointer, RV_FAULT_LENGTH, "this has %zu %s; allowed: %s", n, b->unit,
                               rv_bound_describe(id, extent));
                return false;
        }
        if (ret_characters)
                *ret_characters = n;
        return true;
}

int rv_judge_dup(const json_t *value, char **ret, size_t *ret_bytes)
{
        size_t n = json_string_length(value);
        char *copy = malloc(n + 1);

        if (!copy)
                return rv_raise(-ENOMEM);
        memcpy(copy, json_string_value(value), n);
        copy[n] = 0;
        free(*ret);
        *ret = copy;
        if (ret_bytes)
                *ret_bytes = n;
        return 0;
}

static int compare_strings(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

int rv_judge_names(const json_t *object, const char ***ret)
{
        const char **names = calloc(json_object_size(object) + 1, sizeof(*names)), *name;
        json_t *child;
        size_t n = 0;

        if (!names)
                return rv_raise(-ENOMEM);
        json_object_foreach((json_t *)object, name, child)
                names[n++] = name;
        qsort(names, n, sizeof(*names), compare_strings);
        *ret = names;
        return 0;
}

int rv_judge_language(struct rv_judge *j, const json_t *value)
{
        char quote[RV_FAULT_QUOTE_SIZE];
        const char *name;

        if (!value) {
                rv_problem_add(j->problem, "/language", RV_FAULT_MISSING, "the language must be given: python or javascript");
                return 0;
        }
        if (!rv_judge_is_type(j, "/language", value, JSON_STRING))
                return 0;
        name = json_string_value(value);
        if (strlen(name) == json_string_length(value))
                j->language = rv_language_parse(name);
        if (j->language < 0)
                rv_problem_add(j->problem, "/language", RV_FAULT_UNSUPPORTED, "%s is not run here: python and javascript are",
                               rv_fault_quote(name, json_string_length(value), quote));
        else
                j->request->language = (enum rv_language)j->language;
        return 0;
}

int rv_judge_source(struct rv_judge *j, const json_t *value)
{
        struct rv_request *q = j->request;

        if (!value) {
                rv_problem_add(j->problem, "/source", RV_FAULT_MISSING, "the program's source must be given");
                return 0;
        }
        if (!rv_judge_string(j, "/source", value, RV_BOUND_ID_source, &q->source_characters))
                return 0;
        if (memchr(json_string_value(value), 0, json_string_length(value))) {
                rv_problem_add(j->problem, "/source", RV_FAULT_PATTERN,
                               "the source holds NUL, which no program may: write it as an escape of the language");
                return 0;
        }
        return rv_judge_dup(value, &q->source, &q->source_bytes);
}

static uint32_t judge_integer(struct rv_judge *j, const char *pointer, const json_t *value, enum rv_bound_id id)
{
        const struct rv_bound *b = &rv_bounds[id];
        char extent[64];
        json_int_t n;

        if (!value || !rv_judge_is_type(j, pointer, value, JSON_INTEGER))
                return (uint32_t)b->otherwise;
        n = json_integer_value(value);
        if (n >= b->minimum && n <= b->maximum)
                return (uint32_t)n;
        rv_problem_add(j->problem, pointer, RV_FAULT_RANGE, "this is out of range; allowed: %s", rv_bound_describe(id, extent));
        return (uint32_t)b->otherwise;
}

int rv_judge_timeout(struct rv_judge *j, const json_t *value)
{
        j->request->timeout_s = judge_integer(j, "/timeout_s", value, RV_BOUND_ID_timeout_s);
        return 0;
}

int rv_judge_memory(struct rv_judge *j, const json_t *value)
{
        j->request->memory_mib = judge_integer(j, "/memory_mib", value, RV_BOUND_ID_memory_mib);
        return 0;
}

int rv_judge_key(struct rv_judge *j, const json_t *value)
{
        if (!value || !rv_judge_string(j, "/idempotency_key", value, RV_BOUND_ID_idempotency_key, NULL))
                return 0;
        for (size_t i = 0; i < json_string_length(value); i++) {
                char c = json_string_value(value)[i];

                if (c < 0x20 || c > 0x7e) {
                        rv_problem_add(j->problem, "/idempotency_key", RV_FAULT_PATTERN,
                                       "a key holds printable ASCII characters only; byte %zu is none", i);
                        return 0;
                }
        }
        return rv_judge_dup(value, &j->request->idempotency_key, NULL);
}

int rv_judge_stdin(struct rv_judge *j, const json_t *value)
{
        struct rv_request *q = j->request;

        if (!value || !rv_judge_string(j, "/stdin", value, RV_BOUND_ID_input, NULL))
                return 0;
        return rv_judge_dup(value, &q->stdin_data, &q->stdin_bytes);
}
