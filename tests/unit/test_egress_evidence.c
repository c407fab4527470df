/*
 * What a run reached and was refused, as its outcome lists it.
 */
#include "egress/evidence.h"

#include "base/json.h"
#include "test_privilege.h"

static json_t *written(const struct rv_evidence *evidence)
{
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        struct rv_error err = { 0 };
        json_t *value = NULL;

        assert_int_equal(rv_evidence_write(evidence, &out), 0);
        assert_int_equal(rv_json_read(out.data, out.size, 4, &value, &err), 0);
        return value;
}

static void assert_written(const struct rv_evidence *evidence, const char *want)
{
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };

        assert_int_equal(rv_evidence_write(evidence, &out), 0);
        assert_string_equal(out.data, want);
}

static void nothing(void **state)
{
        _cleanup_(rv_evidence_freep) struct rv_evidence *e = NULL;

        assert_int_equal(rv_evidence_new(&e), 0);
        assert_written(e, "{\"contacts\":[],\"denials\":[],\"more_contacts\":0,\"more_denials\":0}");
}

static void one_entry_for_each_key(void **state)
{
        _cleanup_(rv_evidence_freep) struct rv_evidence *e = NULL;
        const struct rv_evidence_key a = { "a.test", "192.0.2.1", 443, "tls" };
        struct rv_contact *first, *again;

        assert_int_equal(rv_evidence_new(&e), 0);
        first = rv_evidence_contact(e, &a);
        first->connections++;
        first->bytes_in = 7;
        again = rv_evidence_contact(e, &(struct rv_evidence_key){ "a.test", "192.0.2.1", 443, "tls" });
        assert_ptr_equal(first, again);
        again->connections++;
        again->bytes_out = 5;
        assert_written(e, "{\"contacts\":[{\"name\":\"a.test\",\"address\":\"192.0.2.1\",\"port\":443,\"protocol\":\"tls\",\"connections\":2,"
                          "\"bytes_out\":5,\"bytes_in\":7}],\"denials\":[],\"more_contacts\":0,\"more_denials\":0}");
}

static void every_member_of_the_key_counts(void **state)
{
        static const struct {
                const char *name;
                struct rv_evidence_key key;
                enum rv_denial denial;
        } rows[] = {
                { "first", { "a.test", "", 0, "dns" }, RV_DENIAL_NAME },
                { "name", { "b.test", "", 0, "dns" }, RV_DENIAL_NAME },
                { "address", { "a.test", "192.0.2.1", 0, "dns" }, RV_DENIAL_NAME },
                { "port", { "a.test", "", 1, "dns" }, RV_DENIAL_NAME },
                { "protocol", { "a.test", "", 0, "tcp" }, RV_DENIAL_NAME },
                { "rule", { "a.test", "", 0, "dns" }, RV_DENIAL_SINGLE_LABEL },
        };
        _cleanup_(rv_evidence_freep) struct rv_evidence *e = NULL;
        _cleanup_(rv_json_unrefp) json_t *value = NULL;
        json_t *denials;

        assert_int_equal(rv_evidence_new(&e), 0);
        for (int round = 0; round < 3; round++)
                for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                        rv_evidence_deny(e, &rows[i].key, rows[i].denial);
        value = written(e);
        denials = json_object_get(value, "denials");
        assert_int_equal(json_array_size(denials), RV_N_ELEMENTS(rows));
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const json_t *d = json_array_get(denials, i);

                if (strcmp(rv_json_get_string(d, "name", ""), rows[i].key.name) != 0 ||
                    strcmp(rv_json_get_string(d, "rule", ""), rv_denial_word(rows[i].denial)) != 0 ||
                    json_integer_value(json_object_get(d, "port")) != rows[i].key.port || json_integer_value(json_object_get(d, "count")) != 3)
                        fail_msg("%s", rows[i].name);
        }
}

static void the_rest_is_counted(void **state)
{
        _cleanup_(rv_evidence_freep) struct rv_evidence *e = NULL;
        _cleanup_(rv_json_unrefp) json_t *value = NULL;
        struct rv_evidence_key key = { "n", "", 0, "tcp" };

        assert_int_equal(rv_evidence_new(&e), 0);
        for (unsigned i = 0; i < RV_EVIDENCE_MAX + 10; i++) {
                key.port = (uint16_t)i;
                rv_evidence_deny(e, &key, RV_DENIAL_NAME);
                assert_int_equal(rv_evidence_contact(e, &key) == NULL, i >= RV_EVIDENCE_MAX);
        }
        key.port = 0;
        assert_non_null(rv_evidence_contact(e, &key));        /* one that is listed is found all the same */
        rv_evidence_deny(e, &key, RV_DENIAL_NAME);
        value = written(e);
        assert_int_equal(json_array_size(json_object_get(value, "contacts")), RV_EVIDENCE_MAX);
        assert_int_equal(json_array_size(json_object_get(value, "denials")), RV_EVIDENCE_MAX);
        assert_int_equal(json_integer_value(json_object_get(value, "more_contacts")), 10);
        assert_int_equal(json_integer_value(json_object_get(value, "more_denials")), 10);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(json_object_get(value, "denials"), 0), "count")), 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing),
                cmocka_unit_test(one_entry_for_each_key),
                cmocka_unit_test(every_member_of_the_key_counts),
                cmocka_unit_test(the_rest_is_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
