#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "test_audit_merkle_vectors.h"

static void roots_are_the_published_ones(void **state)
{
        struct rv_merkle tree = { 0 };
        rv_merkle_hash hash;
        char hex[RV_SHA256_HEX_SIZE];

        (void)state;
        rv_merkle_root(&tree, hash);
        rv_hex(hash, sizeof(hash), hex);
        assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        for (size_t i = 0; i < RV_N_ELEMENTS(merkle_steps); i++) {
                merkle_leaf_at(i, hash);
                rv_merkle_push(&tree, hash);
                rv_merkle_root(&tree, hash);
                rv_hex(hash, sizeof(hash), hex);
                assert_string_equal(hex, merkle_steps[i].root);
        }
}

static void every_growth_gives_the_larger_tree(void **state)
{
        (void)state;
        for (size_t start = 0; start < 40; start++)
                for (size_t end = start; end < 80; end++) {
                        struct rv_merkle small = { 0 }, whole = { 0 };
                        struct rv_merkle_growth growth;
                        rv_merkle_hash a, b;

                        rv_merkle_growth_begin(&growth, start);
                        for (size_t i = 0; i < end; i++) {
                                merkle_leaf_at(i * i, a);
                                rv_merkle_push(&whole, a);
                                if (i < start)
                                        rv_merkle_push(&small, a);
                                else
                                        rv_merkle_growth_push(&growth, a);
                        }
                        assert_int_equal(rv_merkle_grow(&small, &growth), 0);
                        rv_merkle_root(&small, a);
                        rv_merkle_root(&whole, b);
                        assert_memory_equal(a, b, sizeof(a));
                        assert_true(growth.n_parts <= 14);
                }
}

static void a_growth_of_another_tree_is_refused(void **state)
{
        struct rv_merkle tree = { 0 };
        struct rv_merkle_growth growth;
        rv_merkle_hash leaf;

        (void)state;
        merkle_leaf_at(1, leaf);
        for (int i = 0; i < 5; i++)
                rv_merkle_push(&tree, leaf);
        rv_merkle_growth_begin(&growth, 6);
        rv_merkle_growth_push(&growth, leaf);
        assert_int_equal(rv_merkle_grow(&tree, &growth), -EINVAL);
        rv_merkle_growth_begin(&growth, 5);
        rv_merkle_growth_push(&growth, leaf);
        growth.size = 2;
        assert_int_equal(rv_merkle_grow(&tree, &growth), -EINVAL);
        growth.size = 2;
        growth.parts[0].level = 1;
        assert_int_equal(rv_merkle_grow(&tree, &growth), -EINVAL);
        growth.parts[0].level = 64;
        assert_int_equal(rv_merkle_grow(&tree, &growth), -EINVAL);
        growth.parts[0].level = 0;
        growth.n_parts = RV_MERKLE_GROWTH_MAX + 1;
        assert_int_equal(rv_merkle_grow(&tree, &growth), -EINVAL);
        assert_int_equal(tree.size, 5);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(roots_are_the_published_ones),
                cmocka_unit_test(every_growth_gives_the_larger_tree),
                cmocka_unit_test(a_growth_of_another_tree_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
