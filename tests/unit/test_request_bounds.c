/* One table of bounds: the schema, the documents and the judging of requests say the same figures. */
#include "base/json.h"
#include "request/request.h"
#include "test_request_table.h"

/* Where in the schema a bound stands, and under which keywords. */
static const struct {
        enum rv_bound_id id;
        const char *path, *minimum, *maximum;
} places[] = {
        { RV_BOUND_ID_source, "properties/source", "minLength", "maxLength" },
        { RV_BOUND_ID_timeout_s, "properties/timeout_s", "minimum", "maximum" },
        { RV_BOUND_ID_memory_mib, "properties/memory_mib", "minimum", "maximum" },
        { RV_BOUND_ID_packages, "properties/packages", "minItems", "maxItems" },
        { RV_BOUND_ID_package, "properties/packages/items", "minLength", "maxLength" },
        { RV_BOUND_ID_env, "properties/env", "minProperties", "maxProperties" },
        { RV_BOUND_ID_domains, "properties/network/oneOf/1/properties/domains", "minItems", "maxItems" },
        { RV_BOUND_ID_domain, "properties/network/oneOf/1/properties/domains/items", "minLength", "maxLength" },
        { RV_BOUND_ID_idempotency_key, "properties/idempotency_key", "minLength", "maxLength" },
        { RV_BOUND_ID_input, "properties/stdin", "minLength", "maxLength" },
};

static const json_t *find(const json_t *value, const char *path)
{
        char part[64];

        while (*path) {
                size_t n = strcspn(path, "/");

                snprintf(part, sizeof(part), "%.*s", (int)n, path);
                value = json_is_array(value) ? json_array_get(value, (size_t)atoi(part)) : json_object_get(value, part);
                path += n + (path[n] == '/');
        }
        return value;
}

static void schema_has_the_tables_figures(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *schema = rv_bounds_schema();

        assert_non_null(schema);
        for (size_t i = 0; i < RV_N_ELEMENTS(places); i++) {
                const struct rv_bound *b = &rv_bounds[places[i].id];
                const json_t *at = find(schema, places[i].path);
                const json_t *minimum = json_object_get(at, places[i].minimum);
                const json_t *maximum = json_object_get(at, places[i].maximum);

                if (!json_is_integer(minimum) || json_integer_value(minimum) != b->minimum ||
                    !json_is_integer(maximum) || json_integer_value(maximum) != b->maximum)
                        fail_msg("%s: the schema and the table differ", b->name);
                if (b->otherwise >= 0)
                        assert_int_equal(json_integer_value(json_object_get(at, "default")), b->otherwise);
        }
}

/* Every row that bounds a member of the request is in the schema, and the schema has no other member. */
static void schema_and_table_have_the_same_members(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *schema = rv_bounds_schema();
        const json_t *properties = find(schema, "properties");
        size_t n_members = 0;

        for (int i = 0; i < _RV_BOUND_ID_MAX; i++) {
                const char *name = rv_bounds[i].name;

                if (strpbrk(name, " .[("))
                        continue;
                n_members++;
                if (!json_object_get(properties, name))
                        fail_msg("%s is not in the schema", name);
                if ((rv_bounds[i].otherwise == RV_BOUND_REQUIRED) !=
                    (strcmp(name, "language") == 0 || strcmp(name, "source") == 0))
                        fail_msg("%s: the schema requires language and source", name);
        }
        assert_int_equal(json_object_size(properties), n_members);
        assert_false(json_is_true(json_object_get(schema, "additionalProperties")));
        assert_int_equal(json_array_size(json_object_get(schema, "required")), 2);
}

/* A request at each of the table's figures is taken, one past it is not: the judging has no figure of its own. */
static int judge(const char *member, json_t *value, const char *pointer)
{
        _cleanup_(rv_request_freep) struct rv_request *request = NULL;
        _cleanup_(rv_problem_freep) struct rv_problem *problem = NULL;
        json_t *o = json_pack("{s:s, s:s, s:o}", "language", "python", "source", "1", member, value);
        int r = rv_request_from_json(o, &request, &problem);

        json_decref(o);
        if (r > 0)
                assert_string_equal(problem->faults[0].pointer, pointer);
        return r;
}

static json_t *string_of(int64_t n, const char *end)
{
        size_t n_end = strlen(end);
        char *text = malloc((size_t)n + n_end + 1);
        json_t *value;

        memset(text, 'a', (size_t)n);
        memcpy(text + (size_t)n - n_end, end, n_end + 1);
        value = json_stringn(text, (size_t)n);
        free(text);
        return value;
}

static json_t *value_of(enum rv_bound_id id, int64_t n)
{
        json_t *value;

        switch (rv_bounds[id].type) {
        case RV_BOUND_INTEGER:
                return json_integer(n);
        case RV_BOUND_STRING:
                return string_of(n, "");
        case RV_BOUND_LIST:
                value = json_array();
                for (int64_t i = 0; i < n; i++)
                        json_array_append_new(value, json_string("a>=0"));
                return value;
        default:
                value = json_object();
                for (int64_t i = 0; i < n; i++) {
                        char name[24];

                        snprintf(name, sizeof(name), "E%lld", (long long)i);
                        json_object_set_new(value, name, json_string(""));
                }
                return value;
        }
}

static void judging_uses_the_tables_figures(void **state)
{
        static const enum rv_bound_id ids[] = {
                RV_BOUND_ID_source, RV_BOUND_ID_timeout_s, RV_BOUND_ID_memory_mib, RV_BOUND_ID_packages,
                RV_BOUND_ID_env, RV_BOUND_ID_idempotency_key, RV_BOUND_ID_input,
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(ids); i++) {
                const struct rv_bound *b = &rv_bounds[ids[i]];
                char pointer[64];

                snprintf(pointer, sizeof(pointer), "/%s", b->name);
                if (judge(b->name, value_of(ids[i], b->minimum), pointer) ||
                    judge(b->name, value_of(ids[i], b->maximum), pointer))
                        fail_msg("%s: a value at its bound is refused", b->name);
                if (b->minimum > 0 && !judge(b->name, value_of(ids[i], b->minimum - 1), pointer))
                        fail_msg("%s: a value below its bound is taken", b->name);
                if (!judge(b->name, value_of(ids[i], b->maximum + 1), pointer))
                        fail_msg("%s: a value past its bound is taken", b->name);
        }
}

static void a_package_string_is_bounded(void **state)
{
        assert_int_equal(judge("packages", json_pack("[o]", string_of(RV_BOUND_MAX(package), ">=0")), ""), 0);
        assert_int_equal(judge("packages", json_pack("[o]", string_of(RV_BOUND_MAX(package) + 1, ">=0")), "/packages/0"), 1);
        assert_int_equal(judge("packages", json_pack("[o]", string_of(RV_BOUND_MIN(package), ">0")), ""), 0);
        assert_int_equal(judge("packages", json_pack("[o]", string_of(RV_BOUND_MIN(package) - 1, "")), "/packages/0"), 1);
}

static void the_contract(void **state)
{
        /* The figures themselves, once, so that a change of the table is a change of this test. */
        static const struct {
                enum rv_bound_id id;
                int64_t minimum, maximum, otherwise;
        } contract[] = {
                { RV_BOUND_ID_source, 1, 100000, RV_BOUND_REQUIRED },
                { RV_BOUND_ID_timeout_s, 1, 300, 30 },
                { RV_BOUND_ID_memory_mib, 128, 2048, 512 },
                { RV_BOUND_ID_packages, 0, 50, RV_BOUND_NONE },
                { RV_BOUND_ID_package, 3, 214, RV_BOUND_NO_DEFAULT },
                { RV_BOUND_ID_env, 0, 50, RV_BOUND_NONE },
                { RV_BOUND_ID_env_bytes, 0, 128 * 1024, RV_BOUND_NO_DEFAULT },
                { RV_BOUND_ID_domains, 1, 100, RV_BOUND_NO_DEFAULT },
                { RV_BOUND_ID_domain, 3, 253, RV_BOUND_NO_DEFAULT },
                { RV_BOUND_ID_idempotency_key, 1, 255, RV_BOUND_NONE },
                { RV_BOUND_ID_input, 0, 1000000, RV_BOUND_EMPTY },
                { RV_BOUND_ID_depth, 1, 32, RV_BOUND_NO_DEFAULT },
                { RV_BOUND_ID_output, 0, 1000000, RV_BOUND_NO_DEFAULT },
                { RV_BOUND_ID_errors, 0, 100000, RV_BOUND_NO_DEFAULT },
        };
        int64_t pairs, escapes;

        for (size_t i = 0; i < RV_N_ELEMENTS(contract); i++) {
                const struct rv_bound *b = &rv_bounds[contract[i].id];

                if (b->minimum != contract[i].minimum || b->maximum != contract[i].maximum ||
                    b->otherwise != contract[i].otherwise)
                        fail_msg("%s is not as the contract says", b->name);
        }
        assert_int_equal(RV_BOUND_MAX(domain), RV_DOMAIN_SIZE - 1);
        /* A request within all its bounds fits the document's, also with every character escaped as a pair. */
        pairs = RV_BOUND_MAX(source) + RV_BOUND_MAX(input) + (int64_t)RV_BOUND_MAX(package) * RV_BOUND_MAX(packages);
        escapes = RV_BOUND_MAX(env_bytes) + (int64_t)RV_BOUND_MAX(domain) * RV_BOUND_MAX(domains);
        assert_true(RV_BOUND_MAX(document) > 12 * pairs + 6 * escapes);
}

static void documents_name_every_row(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf markdown = { 0 }, help = { 0 };
        size_t n_lines = 0;

        assert_int_equal(rv_bounds_markdown(&markdown), 0);
        assert_int_equal(rv_bounds_help(&help), 0);
        for (int i = 0; i < _RV_BOUND_ID_MAX; i++) {
                char maximum[24];

                snprintf(maximum, sizeof(maximum), "%lld", (long long)rv_bounds[i].maximum);
                if (!strstr(markdown.data, rv_bounds[i].name) || !strstr(help.data, rv_bounds[i].name) ||
                    !strstr(markdown.data, maximum) || !strstr(help.data, maximum))
                        fail_msg("%s is missing", rv_bounds[i].name);
        }
        for (const char *p = markdown.data; *p; p++)
                n_lines += *p == '\n';
        assert_int_equal(n_lines, _RV_BOUND_ID_MAX + 2);
        assert_null(strchr(help.data, '`'));
        assert_non_null(strstr(help.data, "timeout_s          1 to 300 s (default 30): "));
        assert_non_null(strstr(markdown.data, "| `source` | 1 to 100000 characters | required | "));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(schema_has_the_tables_figures),
                cmocka_unit_test(schema_and_table_have_the_same_members),
                cmocka_unit_test(judging_uses_the_tables_figures),
                cmocka_unit_test(a_package_string_is_bounded),
                cmocka_unit_test(the_contract),
                cmocka_unit_test(documents_name_every_row),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
