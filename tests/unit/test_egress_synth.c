/* Synthetic addresses: one for a name, a name for one, never a second time, bounded. */
#include "egress/synth.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void one_each(void **state)
{
        _cleanup_(rv_synth_freep) struct rv_synth *s = NULL;
        struct rv_address a, b;
        char text[RV_ADDRESS_TEXT_SIZE], name[32];

        assert_int_equal(rv_synth_new(42, &s), 0);
        assert_int_equal(rv_synth_get(s, "example.com", &a), 0);
        assert_string_equal(rv_address_print(&a, text), "198.18.0.1");
        assert_int_equal(rv_synth_get(s, "a.example.com", &b), 0);
        assert_string_equal(rv_address_print(&b, text), "198.18.0.2");
        assert_int_equal(rv_synth_get(s, "example.com", &b), 0);
        assert_true(rv_address_is_equal(&a, &b));
        assert_int_equal(rv_synth_count(s), 2);
        memcpy(name, "b.example.com", 14);
        assert_int_equal(rv_synth_get(s, name, &b), 0);
        name[0] = 'x';
        assert_string_equal(rv_synth_find(s, &b), "b.example.com");   /* a copy of its own */
}

static void full_and_both_ways(void **state)
{
        static const uint64_t seeds[] = { 0, 1, UINT64_MAX };
        struct rv_address a, untouched = { .bytes = { 9 } };
        char name[64];

        for (size_t k = 0; k < RV_N_ELEMENTS(seeds); k++) {
                _cleanup_(rv_synth_freep) struct rv_synth *s = NULL;

                assert_int_equal(rv_synth_new(seeds[k], &s), 0);
                for (size_t turn = 0; turn < 2; turn++)
                        for (size_t i = 0; i < RV_SYNTH_NAMES_MAX; i++) {
                                size_t n = i + 1;

                                snprintf(name, sizeof(name), "n%zu.example.com", i);
                                assert_int_equal(rv_synth_get(s, name, &a), 0);
                                assert_true(a.bytes[0] == 198 && a.bytes[1] == 18 && a.bytes[2] == n >> 8 &&
                                        a.bytes[3] == (n & 255));
                                assert_string_equal(rv_synth_find(s, &a), name);
                        }
                assert_int_equal(rv_synth_get(s, "one.more", &untouched), RV_SYNTH_E_FULL);
                assert_int_equal(untouched.bytes[0], 9);
                assert_int_equal(rv_synth_get(s, "n0.example.com", &a), 0);
                assert_int_equal(rv_synth_count(s), RV_SYNTH_NAMES_MAX);
        }
}

static void not_given_out(void **state)
{
        static const struct {
                const char *address;
                bool is_held;
        } rows[] = {
                { "198.18.0.0", true }, { "198.18.0.2", true }, { "198.18.16.0", true }, { "198.18.16.1", true },
                { "198.19.255.255", true }, { "198.17.255.255", false }, { "198.20.0.0", false },
                { "198.20.0.1", false }, { "127.0.0.1", false }, { "c612:1::", false }, { "::", false },
        };
        _cleanup_(rv_synth_freep) struct rv_synth *s = NULL;
        struct rv_address a;

        assert_int_equal(rv_synth_new(7, &s), 0);
        assert_int_equal(rv_synth_get(s, "example.com", &a), 0);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                assert_int_equal(rv_address_parse(rows[i].address, strlen(rows[i].address), &a), 0);
                if (rv_synth_holds(&a) != rows[i].is_held || rv_synth_find(s, &a))
                        fail_msg("%s", rows[i].address);
        }
        rv_synth_free(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(one_each), cmocka_unit_test(full_and_both_ways), cmocka_unit_test(not_given_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
