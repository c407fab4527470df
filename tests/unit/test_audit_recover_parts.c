/* What recovery is made of: the filter on a record's text, the set of open decisions. */
#include "audit/open_set.h"
#include "audit/record_scan.h"

#include "test_audit_common.h"

static void scan_rows(void **state)
{
        static const struct {
                const char *name, *line, *kind, *decision_id, *instance;   /* NULL: none */
        } rows[] = {
                { "in order", "{\"decision_id\":\"d\",\"instance\":\"i\",\"kind\":\"k\"}", "k", "d", "i" },
                { "kind ends it", "{\"decision_id\":\"d\",\"kind\":\"k\",\"instance\":\"i\"}", "k", "d", NULL },
                { "none", "{\"a\":1,\"b\":[1,2,{\"kind\":\"x\"}]}", NULL, NULL, NULL },
                { "further in", "{\"a\":{\"kind\":\"x\",\"instance\":\"y\"},\"kind\":\"k\"}", "k", NULL, NULL },
                { "in a list", "{\"a\":[\"kind\",{\"kind\":\"x\"},[\"]\"]],\"kind\":\"k\"}", "k", NULL, NULL },
                { "in a text", "{\"a\":\"\\\"kind\\\":\\\"x\\\",\",\"kind\":\"k\"}", "k", NULL, NULL },
                { "braces in a text", "{\"a\":\"}]{[\",\"kind\":\"k\"}", "k", NULL, NULL },
                { "backslashes", "{\"a\":\"\\\\\",\"b\":\"\\\\\\\"\",\"kind\":\"k\"}", "k", NULL, NULL },
                { "an escaped value", "{\"instance\":\"a\\\"b\",\"kind\":\"k\"}", "k", NULL, "a\\\"b" },
                { "no text", "{\"decision_id\":7,\"instance\":null,\"kind\":{}}", NULL, NULL, NULL },
                { "empty text", "{\"instance\":\"\",\"kind\":\"k\"}", "k", NULL, "" },
                { "an escaped name", "{\"k\\u0069nd\":\"x\",\"kind\":\"k\"}", "k", NULL, NULL },
                { "cut in a text", "{\"decision_id\":\"d\",\"kind\":\"k", NULL, "d", NULL },
                { "cut after a name", "{\"decision_id\":\"d\",\"kind\"", NULL, "d", NULL },
                { "cut in an object", "{\"decision_id\":\"d\",\"a\":{\"kind\":\"k\"", NULL, "d", NULL },
                { "a list", "[\"kind\",\"k\"]", NULL, NULL, NULL },
                { "nothing", "", NULL, NULL, NULL },
                { "a brace", "{", NULL, NULL, NULL },
                { "empty", "{}", NULL, NULL, NULL },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_record_head head;
                const struct {
                        const struct rv_record_text *have;
                        const char *want;
                } members[] = {
                        { &head.kind, rows[i].kind },
                        { &head.decision_id, rows[i].decision_id },
                        { &head.instance, rows[i].instance },
                };

                rv_record_scan(rows[i].line, strlen(rows[i].line), &head);
                for (size_t k = 0; k < RV_N_ELEMENTS(members); k++)
                        if (members[k].want ? !rv_record_text_is(members[k].have, members[k].want) :
                                              members[k].have->text != NULL)
                                fail_msg("%s: member %zu is %.*s", rows[i].name, k, (int)members[k].have->n, members[k].have->text ? members[k].have->text : "absent");
        }
}

/* Cut anywhere, changed anywhere: nothing outside the line is read (the sanitizers look). */
static void scan_any_bytes(void **state)
{
        static const char line[] = "{\"a\":[\"\\\"\",{\"kind\":\"\\\\\"}],\"decision_id\":\"d\",\"instance\":\"i\",\"kind\":\"k\"}";
        struct rv_record_head head;

        (void)state;
        for (size_t n = 0; n < sizeof(line); n++) {
                _cleanup_(rv_freep) char *copy = malloc(n ? n : 1);

                memcpy(copy, line, n);
                rv_record_scan(copy, n, &head);
                for (size_t i = 0; i < n; i++) {
                        static const char others[] = "\"\\{}[],:";
                        char own = copy[i];

                        for (const char *o = others; *o; o++) {
                                copy[i] = *o;
                                rv_record_scan(copy, n, &head);
                        }
                        copy[i] = own;
                }
        }
}

#define N_IDS 500

/* Against an array of flags, with ids that collide as often as can be. */
static void set_like_flags(void **state)
{
        struct rv_open_set set = { 0 };
        bool flags[N_IDS] = { false };
        unsigned seed = 1;
        size_t n = 0, n_have;

        (void)state;
        for (int i = 0; i < 200000; i++) {
                struct rv_open_place place = { .segment = "s" };
                uint8_t key[RV_DECISION_ID_BYTES] = { 0 };
                unsigned id;

                seed = seed * 1103515245u + 12345u;
                id = (seed >> 8) % N_IDS;
                key[0] = (uint8_t)(id % 7);
                key[1] = (uint8_t)(id / 256);
                key[8] = (uint8_t)id;
                place.offset = id;
                if ((seed >> 20) % 3) {
                        rv_open_set_remove(&set, key);
                        flags[id] = false;
                } else {
                        assert_int_equal(rv_open_set_put(&set, key, &place), 0);
                        flags[id] = true;
                }
        }
        for (size_t i = 0; i < N_IDS; i++)
                n += flags[i];
        assert_int_equal(set.n_used, n);
        n_have = rv_open_set_sort(&set);
        assert_int_equal(n_have, n);
        for (size_t i = 0; i < n_have; i++) {
                assert_true(flags[set.slots[i].last.offset]);
                assert_true(i == 0 || set.slots[i - 1].last.offset < set.slots[i].last.offset);
        }
        rv_open_set_fini(&set);
}

static void set_order(void **state)
{
        static const uint8_t a[RV_DECISION_ID_BYTES] = { 3 }, b[RV_DECISION_ID_BYTES] = { 2 };
        static const struct rv_open_place of_a = { "2", 1, 0 }, of_b = { "1", 9, 0 }, newer_of_a = { "0", 7, 0 };
        struct rv_open_set set = { 0 };

        (void)state;
        assert_int_equal(rv_open_set_sort(&set), 0);
        rv_open_set_remove(&set, a);
        assert_int_equal(rv_open_set_put(&set, a, &of_a), 0);
        assert_int_equal(rv_open_set_put(&set, b, &of_b), 0);
        assert_int_equal(rv_open_set_put(&set, a, &newer_of_a), 0);
        assert_int_equal(rv_open_set_sort(&set), 2);
        assert_int_equal(set.slots[0].last.offset, 7);
        assert_int_equal(set.slots[0].first.offset, 1);
        assert_int_equal(set.slots[1].last.offset, 9);
        assert_int_equal(set.slots[1].first.offset, 9);
        rv_open_set_fini(&set);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(scan_rows),
                cmocka_unit_test(scan_any_bytes),
                cmocka_unit_test(set_like_flags),
                cmocka_unit_test(set_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
