/*
 * The facts: what of a request policy can see, in which order, and that each name of the table is there.
 */
#include "test_policy_util.h"

#include "policy/fact_names.h"

#define EVERYTHING                                                                                                                         \
        "{\"language\":\"python\",\"source\":\"print('\\u00e9')\",\"timeout_s\":7,\"memory_mib\":256,"                                      \
        "\"packages\":[\"zope==1.0\",\"Requests[Socks,b]>=2\"],\"env\":{\"ZED\":\"secret-value\",\"A\":\"x\"},"                              \
        "\"network\":{\"mode\":\"domains\",\"domains\":[\"z.example\",\"A.example.\"]},\"idempotency_key\":\"secret-key\",\"stdin\":\"secret-input\"}"

static void whole_value(void **state)
{
        static const char wanted[] =
                "{\"backend\":{\"all_pinned\":false,\"mode\":\"domains\",\"package_count\":2},"
                "\"idempotency\":{\"key_given\":true,\"mode\":\"domains\"},"
                "\"network\":[{\"domain\":\"a.example\",\"mode\":\"domains\"},{\"domain\":\"z.example\",\"mode\":\"domains\"}],"
                "\"packages\":[{\"direct\":true,\"extras\":[\"b\",\"socks\"],\"language\":\"python\",\"name\":\"requests\",\"pinned\":false,"
                "\"requested\":\"Requests[Socks,b]>=2\",\"stage\":\"requested\"},"
                "{\"direct\":true,\"extras\":[],\"language\":\"python\",\"name\":\"zope\",\"pinned\":true,\"requested\":\"zope==1.0\",\"stage\":\"requested\"}],";
        static const char rest[] =
                "\"request\":{\"env_names\":[\"A\",\"ZED\"],\"key_given\":true,\"language\":\"python\",\"memory_mib\":256,\"network_mode\":\"domains\","
                "\"now\":1750000000,\"package_count\":2,\"principal\":\"alice\",\"source_characters\":10,"
                "\"source_sha256\":\"8d3b63b4f1d8f7fee5dd84aecb6a8bf6bf7e4b2ba9ef41a4e4d3d1c7d2a44b0c\",\"tenant\":{\"labels\":{\"team\":\"blue\"},\"name\":\"local\"},"
                "\"timeout_s\":7},\"stage\":\"requested\"}";
        _cleanup_(rv_buf_fini) struct rv_buf bytes = { 0 };
        json_t *facts = facts_for(EVERYTHING);
        char sha256[65], *digest, copy[sizeof(rest)];

        assert_int_equal(rv_json_canonical(facts, &bytes), 0);
        assert_int_equal(strncmp(bytes.data, wanted, sizeof(wanted) - 1), 0);
        rv_sha256_hex("print('\xc3\xa9')", 11, sha256);
        strcpy(copy, rest);
        digest = strstr(copy, "8d3b63");
        memcpy(digest, sha256, 64);
        assert_string_equal(strstr(bytes.data, "\"request\":{"), copy);
        json_decref(facts);
}

static void no_secret_is_in_them(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf bytes = { 0 };
        json_t *facts = facts_for(EVERYTHING);

        assert_int_equal(rv_json_canonical(facts, &bytes), 0);
        assert_null(strstr(bytes.data, "secret"));
        assert_null(strstr(bytes.data, "print"));
        json_decref(facts);
}

static void check_names(const json_t *object, enum rv_fact_set set)
{
        const struct rv_fact_table *t = &rv_fact_tables[set];
        size_t n = 0;

        for (size_t i = 0; i < t->n_facts; i++) {
                const json_t *value = json_object_get(object, t->facts[i].name);
                bool is_right = true;

                if (t->facts[i].is_resolved_only) {
                        assert_null(value);
                        continue;
                }
                n++;
                if (!value)
                        fail_msg("%s: no '%s'", t->title, t->facts[i].name);
                switch (t->facts[i].type) {
                case RV_FACT_STRING: is_right = json_is_string(value); break;
                case RV_FACT_INTEGER: is_right = json_is_integer(value); break;
                case RV_FACT_BOOLEAN: is_right = json_is_boolean(value); break;
                case RV_FACT_LIST: is_right = json_is_array(value); break;
                case RV_FACT_MAP:
                case RV_FACT_TENANT:
                        is_right = json_is_object(value);
                        break;
                }
                if (!is_right)
                        fail_msg("%s: '%s' is of another type", t->title, t->facts[i].name);
        }
        if (json_object_size(object) != n)
                fail_msg("%s: there are facts that the table does not name", t->title);
}

/* The table is what rules are checked against: the value must have each of its names, and no other. */
static void names_are_those_of_the_table(void **state)
{
        json_t *facts = facts_for(EVERYTHING), *request = json_object_get(facts, "request");

        check_names(json_array_get(json_object_get(facts, "packages"), 0), RV_FACTS_PACKAGE);
        check_names(json_array_get(json_object_get(facts, "network"), 0), RV_FACTS_NETWORK);
        check_names(json_object_get(facts, "idempotency"), RV_FACTS_IDEMPOTENCY);
        check_names(json_object_get(facts, "backend"), RV_FACTS_BACKEND);
        check_names(request, RV_FACTS_REQUEST);
        check_names(json_object_get(request, "tenant"), RV_FACTS_TENANT);
        json_decref(facts);
}

/* The words that a rule may compare with are those that the request's names can be. */
static void words_are_those_of_requests(void **state)
{
        char words[100] = "";

        for (int i = 0; i <= RV_NETWORK_ANY; i++) {
                strcat(words, i ? " " : "");
                strcat(words, rv_network_mode_name((enum rv_network_mode)i));
        }
        assert_string_equal(rv_fact_find(RV_FACTS_NETWORK, "mode")->words, words);
        assert_string_equal(rv_fact_find(RV_FACTS_REQUEST, "network_mode")->words, words);
        assert_string_equal(rv_fact_find(RV_FACTS_REQUEST, "language")->words, "python javascript");
        assert_null(rv_fact_find(RV_FACTS_NETWORK, "name"));
}

static void plain_request(void **state)
{
        json_t *facts = facts_for(PLAIN_REQUEST), *network = json_object_get(facts, "network");

        assert_int_equal(json_array_size(network), 1);
        assert_string_equal(rv_json_get_string(json_array_get(network, 0), "domain", "?"), "");
        assert_string_equal(rv_json_get_string(json_array_get(network, 0), "mode", "?"), "none");
        assert_true(json_is_true(json_object_get(json_object_get(facts, "backend"), "all_pinned")));
        assert_int_equal(json_array_size(json_object_get(facts, "packages")), 0);
        json_decref(facts);
}

/* The order in which a caller writes packages, domains and names changes nothing that policy sees. */
static void order_of_the_request_does_not_matter(void **state)
{
        static const char *const requests[] = {
                "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"b==1\",\"a==1\",\"a>=1\"],\"env\":{\"B\":\"\",\"A\":\"\"}}",
                "{\"env\":{\"A\":\"\",\"B\":\"\"},\"packages\":[\"a>=1\",\"b==1\",\"a==1\"],\"source\":\"1\",\"language\":\"python\"}",
        };
        char digests[2][65];

        for (size_t i = 0; i < 2; i++) {
                json_t *facts = facts_for(requests[i]);

                json_object_del(facts, "pointers");
                assert_int_equal(rv_json_canonical_sha256(facts, digests[i]), 0);
                json_decref(facts);
        }
        assert_string_equal(digests[0], digests[1]);
}

static void what_is_refused(void **state)
{
        json_t *numbers = json_pack("{s:i}", "team", 1), *list = json_array(), *facts = (void *)0x1;
        struct rv_request request = { .source = (char *)"1", .source_bytes = 1 };
        const struct {
                struct rv_facts_tenant tenant;
                const char *principal;
        } table[] = {
                { { "local", numbers }, "" }, { { "local", list }, "" }, { { "\xff", NULL }, "" }, { { "local", NULL }, "\xff" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                assert_int_equal(rv_facts_build(&request, &table[i].tenant, table[i].principal, 0, &facts), -EINVAL);
                assert_ptr_equal(facts, (void *)0x1);
        }
        json_decref(numbers);
        json_decref(list);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(whole_value), cmocka_unit_test(no_secret_is_in_them),
                cmocka_unit_test(names_are_those_of_the_table),
                cmocka_unit_test(words_are_those_of_requests), cmocka_unit_test(plain_request),
                cmocka_unit_test(order_of_the_request_does_not_matter), cmocka_unit_test(what_is_refused),
        };

        return cmocka_run_group_tests_name("policy facts", tests, NULL, NULL);
}
