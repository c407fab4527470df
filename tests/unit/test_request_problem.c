/* What a request becomes, and what a problem looks like. */
#include "base/json.h"
#include "request/request.h"
#include "test_request_table.h"

static struct rv_request *parse_good(const char *json)
{
        struct rv_request *request = NULL;
        struct rv_problem *problem = NULL;

        if (rv_request_parse(json, strlen(json), &request, &problem))
                fail_msg("%s: %s %s", json, problem->faults[0].pointer, problem->faults[0].message);
        return request;
}

static struct rv_problem *parse_bad(const char *json, size_t n)
{
        struct rv_request *request = (void *)0x1;
        struct rv_problem *problem = NULL;

        assert_int_equal(rv_request_parse(json, n, &request, &problem), RV_REQUEST_E_INVALID);
        assert_ptr_equal(request, (void *)0x1);
        return problem;
}

static void defaults_are_filled_in(void **state)
{
        _cleanup_(rv_request_freep) struct rv_request *q = parse_good("{\"language\":\"javascript\",\"source\":\"\\u20ac1\"}");

        assert_int_equal(q->language, RV_LANGUAGE_JAVASCRIPT);
        assert_string_equal(q->source, "\342\202\2541");
        assert_int_equal(q->source_bytes, 4);
        assert_int_equal(q->source_characters, 2);
        assert_int_equal(q->timeout_s, 30);
        assert_int_equal(q->memory_mib, 512);
        assert_int_equal(q->n_packages + q->n_env + q->n_domains + q->stdin_bytes, 0);
        assert_int_equal(q->network_mode, RV_NETWORK_NONE);
        assert_null(q->idempotency_key);
        assert_string_equal(q->stdin_data, "");
}

static void everything_is_in_canonical_order(void **state)
{
        _cleanup_(rv_request_freep) struct rv_request *q = parse_good(
                "{\"language\":\"python\",\"source\":\"1\",\"timeout_s\":300,\"memory_mib\":2048,"
                "\"packages\":[\"Zope.interface>=5\",\" six >=1 \",\"six<2\",\"attrs==1\",\"six<2\"],"
                "\"env\":{\"b\":\"2\",\"A\":\"1\"},\"idempotency_key\":\"k\",\"stdin\":\"a\\u0000b\","
                "\"network\":{\"mode\":\"domains\",\"domains\":[\"b.example\",\"A.Example.\",\"a.example\"]}}");

        assert_int_equal(q->timeout_s, 300);
        assert_int_equal(q->memory_mib, 2048);
        assert_int_equal(q->n_packages, 4);
        assert_string_equal(q->packages[0].name, "attrs");
        assert_true(q->packages[0].is_pinned);
        assert_string_equal(q->packages[1].requested, "six >=1");
        assert_string_equal(q->packages[1].constraint, ">=1");
        assert_string_equal(q->packages[2].requested, "six<2");
        assert_string_equal(q->packages[3].name, "zope-interface");
        assert_int_equal(q->n_env, 2);
        assert_string_equal(q->env[0].name, "A");
        assert_string_equal(q->env[1].value, "2");
        assert_int_equal(q->network_mode, RV_NETWORK_DOMAINS);
        assert_int_equal(q->n_domains, 2);
        assert_string_equal(q->domains[0], "a.example");
        assert_string_equal(q->domains[1], "b.example");
        assert_string_equal(q->idempotency_key, "k");
        assert_int_equal(q->stdin_bytes, 3);
        assert_memory_equal(q->stdin_data, "a\0b", 4);
}

/* The canonical bytes of a request. */
static char *canonical(const char *json, bool with_key)
{
        _cleanup_(rv_request_freep) struct rv_request *q = parse_good(json);
        _cleanup_(rv_json_unrefp) json_t *value = rv_request_canonical(q, with_key);
        struct rv_buf out = { 0 };

        assert_non_null(value);
        assert_int_equal(rv_json_canonical(value, &out), 0);
        return rv_buf_take(&out, NULL);
}

static void canonical_forgets_spelling_only(void **state)
{
        static const struct {
                const char *name, *a, *b;
                bool is_same;
        } cases[] = {
                { "a default written out", "{\"language\":\"python\",\"source\":\"1\"}",
                  "{\"stdin\":\"\",\"network\":{\"mode\":\"none\"},\"env\":{},\"packages\":[],\"memory_mib\":512,"
                  "\"timeout_s\":30,\"source\":\"1\",\"language\":\"python\"}", true },
                { "the key", "{\"language\":\"python\",\"source\":\"1\",\"idempotency_key\":\"a\"}",
                  "{\"language\":\"python\",\"source\":\"1\"}", true },
                { "order of packages", "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"a>=1\",\"b>=1\"]}",
                  "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"b>=1\",\"a>=1\"]}", true },
                { "spelling of a domain",
                  "{\"language\":\"python\",\"source\":\"1\",\"network\":{\"mode\":\"domains\",\"domains\":[\"A.example.\"]}}",
                  "{\"language\":\"python\",\"source\":\"1\",\"network\":{\"domains\":[\"a.example\"],\"mode\":\"domains\"}}", true },
                { "another source", "{\"language\":\"python\",\"source\":\"1\"}", "{\"language\":\"python\",\"source\":\"2\"}", false },
                { "another language", "{\"language\":\"python\",\"source\":\"1\"}", "{\"language\":\"javascript\",\"source\":\"1\"}", false },
                { "another timeout", "{\"language\":\"python\",\"source\":\"1\"}",
                  "{\"language\":\"python\",\"source\":\"1\",\"timeout_s\":31}", false },
                { "another memory", "{\"language\":\"python\",\"source\":\"1\"}",
                  "{\"language\":\"python\",\"source\":\"1\",\"memory_mib\":513}", false },
                { "another mode", "{\"language\":\"python\",\"source\":\"1\"}",
                  "{\"language\":\"python\",\"source\":\"1\",\"network\":{\"mode\":\"any\"}}", false },
                { "another variable", "{\"language\":\"python\",\"source\":\"1\",\"env\":{\"A\":\"\"}}",
                  "{\"language\":\"python\",\"source\":\"1\",\"env\":{\"B\":\"\"}}", false },
                { "NUL in stdin", "{\"language\":\"python\",\"source\":\"1\",\"stdin\":\"a\"}",
                  "{\"language\":\"python\",\"source\":\"1\",\"stdin\":\"a\\u0000\"}", false },
                { "another package", "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"a>=1\"]}",
                  "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"a>=2\"]}", false },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                _cleanup_(rv_freep) char *a = canonical(cases[i].a, false), *b = canonical(cases[i].b, false);

                if ((strcmp(a, b) == 0) != cases[i].is_same)
                        fail_msg("%s: %s and %s", cases[i].name, a, b);
        }
}

static void canonical_can_have_the_key(void **state)
{
        _cleanup_(rv_freep) char *with = canonical("{\"language\":\"python\",\"source\":\"1\",\"idempotency_key\":\"a b\"}", true);

        assert_string_equal(with, "{\"env\":{},\"idempotency_key\":\"a b\",\"language\":\"python\",\"memory_mib\":512,"
                                  "\"network\":{\"mode\":\"none\"},\"packages\":[],\"source\":\"1\",\"stdin\":\"\",\"timeout_s\":30}");
}

/* What a canonical request says, read as a request, is the same request. */
static void canonical_is_a_request(void **state)
{
        static const char json[] = "{\"language\":\"javascript\",\"source\":\"1\",\"packages\":[\"@a/b@^1 || 2\"],\"env\":{\"A\":\"1\"},"
                                   "\"network\":{\"mode\":\"domains\",\"domains\":[\"B.example\"]},\"stdin\":\"\\u0000\"}";
        _cleanup_(rv_freep) char *once = canonical(json, true), *twice = canonical(once, true);

        assert_string_equal(once, twice);
}

static void from_json_judges_by_the_same_rules(void **state)
{
        _cleanup_(rv_request_freep) struct rv_request *request = NULL;
        _cleanup_(rv_problem_freep) struct rv_problem *problem = NULL;
        json_t *good = json_pack("{s:s, s:s, s:i}", "language", "python", "source", "1", "timeout_s", 5);
        json_t *bad = json_pack("{s:s, s:o, s:o, s:{s:o}}", "language", "python", "source", json_stringn_nocheck("\377", 1),
                                "stdin", json_stringn_nocheck("\303", 1), "env", "A", json_stringn_nocheck("\200", 1));

        assert_int_equal(rv_request_from_json(good, &request, &problem), 0);
        assert_int_equal(request->timeout_s, 5);
        assert_int_equal(rv_request_from_json(bad, &request, &problem), RV_REQUEST_E_INVALID);
        assert_int_equal(problem->n_faults, 3);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(problem->faults[i].code, RV_FAULT_ENCODING);
        assert_string_equal(problem->faults[1].pointer, "/env/A");
        json_decref(good);
        json_decref(bad);
}

static void from_json_wants_an_object(void **state)
{
        json_t *list = json_array(), *deep = json_object(), *inner = json_integer(1);

        for (int i = 0; i < 40; i++)
                inner = json_pack("[o]", inner);
        json_object_set_new(deep, "x", inner);
        const json_t *const values[] = { NULL, json_null(), list, deep };
        const enum rv_fault_code codes[] = { RV_FAULT_TYPE, RV_FAULT_TYPE, RV_FAULT_TYPE, RV_FAULT_LENGTH };

        for (size_t i = 0; i < RV_N_ELEMENTS(values); i++) {
                _cleanup_(rv_problem_freep) struct rv_problem *problem = NULL;
                struct rv_request *request = NULL;

                assert_int_equal(rv_request_from_json(values[i], &request, &problem), RV_REQUEST_E_INVALID);
                assert_int_equal(problem->n_faults, 1);
                assert_string_equal(problem->faults[0].pointer, "");
                assert_int_equal(problem->faults[0].code, codes[i]);
        }
        json_decref(list);
        json_decref(deep);
}

static void problem_has_the_shape_of_the_contract(void **state)
{
        static const char json[] = "{\"language\":\"python\",\"source\":\"1\",\"timeout_s\":0}";
        _cleanup_(rv_problem_freep) struct rv_problem *problem = parse_bad(json, strlen(json));
        _cleanup_(rv_json_unrefp) json_t *value = rv_problem_to_json(problem);
        const json_t *error = json_array_get(json_object_get(value, "errors"), 0);

        assert_int_equal(json_object_size(value), 5);
        assert_string_equal(rv_json_get_string(value, "schema", ""), "reeve.problem/1");
        assert_string_equal(rv_json_get_string(value, "type", ""), "urn:reeve:problem:request-invalid");
        assert_true(strlen(rv_json_get_string(value, "title", "")) > 0);
        assert_int_equal(json_integer_value(json_object_get(value, "status")), 422);
        assert_int_equal(json_array_size(json_object_get(value, "errors")), 1);
        assert_int_equal(json_object_size(error), 3);
        assert_string_equal(rv_json_get_string(error, "pointer", ""), "/timeout_s");
        assert_string_equal(rv_json_get_string(error, "code", ""), "range");
        assert_non_null(strstr(rv_json_get_string(error, "message", ""), "1 to 300 s"));
}

static void problem_serves_other_kinds(void **state)
{
        _cleanup_(rv_problem_freep) struct rv_problem *problem = rv_problem_new(503, "urn:reeve:problem:log", "The log cannot be written");
        _cleanup_(rv_json_unrefp) json_t *value = NULL;

        rv_problem_detail(problem, "%s: no space", "audit/0.jsonl");
        value = rv_problem_to_json(problem);
        assert_int_equal(json_integer_value(json_object_get(value, "status")), 503);
        assert_string_equal(rv_json_get_string(value, "detail", ""), "audit/0.jsonl: no space");
        assert_int_equal(json_array_size(json_object_get(value, "errors")), 0);
        rv_problem_free(NULL);
}

static void syntax_faults_say_where(void **state)
{
        static const char json[] = "{\n  \"language\": \"python\",\n  \"source\": oops\n}";
        _cleanup_(rv_problem_freep) struct rv_problem *problem = parse_bad(json, strlen(json));

        assert_non_null(strstr(problem->faults[0].message, "line 3, byte 13"));
}

/* A list of faults is bounded and says so; a full one is no way round any check. */
static void faults_are_bounded(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf json = { 0 };
        _cleanup_(rv_problem_freep) struct rv_problem *problem = NULL;
        _cleanup_(rv_json_unrefp) json_t *value = NULL;
        const json_t *errors, *last;

        rv_buf_puts(&json, "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"bad\"],\"network\":{\"mode\":1},\"x\":{");
        for (int i = 0; i < 150; i++)
                rv_buf_printf(&json, "%s\"k%d\":1,\"k%d\":2", i ? "," : "", i, i);
        rv_buf_puts(&json, "}}");
        problem = parse_bad(json.data, json.size);
        assert_int_equal(problem->n_faults, RV_PROBLEM_FAULTS_MAX);
        assert_int_equal(problem->n_left_out, 53);
        value = rv_problem_to_json(problem);
        errors = json_object_get(value, "errors");
        assert_int_equal(json_array_size(errors), RV_PROBLEM_FAULTS_MAX + 1);
        last = json_array_get(errors, RV_PROBLEM_FAULTS_MAX);
        assert_string_equal(rv_json_get_string(last, "pointer", "x"), "");
        assert_non_null(strstr(rv_json_get_string(last, "message", ""), "53 more"));
}

static void counts_past_the_bound_are_said_once(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf json = { 0 };
        _cleanup_(rv_problem_freep) struct rv_problem *problem = NULL;

        rv_buf_puts(&json, "{\"language\":\"python\",\"source\":\"1\",\"env\":{");
        for (int i = 0; i < 51; i++)
                rv_buf_printf(&json, "%s\"E%d\":\"\"", i ? "," : "", i);
        rv_buf_puts(&json, "}}");
        problem = parse_bad(json.data, json.size);
        assert_int_equal(problem->n_faults, 1);
        assert_string_equal(problem->faults[0].pointer, "/env");
        assert_non_null(strstr(problem->faults[0].message, "51"));
        assert_non_null(strstr(problem->faults[0].message, "50"));
}

static void names_and_modes_go_both_ways(void **state)
{
        for (int i = RV_LANGUAGE_PYTHON; i <= RV_LANGUAGE_JAVASCRIPT; i++)
                assert_int_equal(rv_language_parse(rv_language_name((enum rv_language)i)), i);
        for (int i = RV_NETWORK_NONE; i <= RV_NETWORK_ANY; i++)
                assert_int_equal(rv_network_mode_parse(rv_network_mode_name((enum rv_network_mode)i)), i);
        assert_int_equal(rv_language_parse("ruby"), -EINVAL);
        assert_int_equal(rv_network_mode_parse("lan"), -EINVAL);
        assert_true(RV_NETWORK_NONE < RV_NETWORK_REGISTRIES && RV_NETWORK_REGISTRIES < RV_NETWORK_DOMAINS &&
                    RV_NETWORK_DOMAINS < RV_NETWORK_ANY);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(defaults_are_filled_in),
                cmocka_unit_test(everything_is_in_canonical_order),
                cmocka_unit_test(canonical_forgets_spelling_only),
                cmocka_unit_test(canonical_can_have_the_key),
                cmocka_unit_test(canonical_is_a_request),
                cmocka_unit_test(from_json_judges_by_the_same_rules),
                cmocka_unit_test(from_json_wants_an_object),
                cmocka_unit_test(problem_has_the_shape_of_the_contract),
                cmocka_unit_test(problem_serves_other_kinds),
                cmocka_unit_test(syntax_faults_say_where),
                cmocka_unit_test(faults_are_bounded),
                cmocka_unit_test(counts_past_the_bound_are_said_once),
                cmocka_unit_test(names_and_modes_go_both_ways),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
