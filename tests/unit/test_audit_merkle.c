#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "audit/merkle.h"

/* The leaves of the test vectors that go with RFC 6962's reference implementation, and the roots of the first n. */
static const struct {
        const char *bytes;
        size_t n;
        const char *root;
} steps[] = {
        { "", 0, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d" },
        { "\x00", 1, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125" },
        { "\x10", 1, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77" },
        { "\x20\x21", 2, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7" },
        { "\x30\x31", 2, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4" },
        { "\x40\x41\x42\x43", 4, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef" },
        { "\x50\x51\x52\x53\x54\x55\x56\x57", 8, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c" },
        { "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328" },
};

static void leaf_at(size_t i, rv_merkle_hash ret)
{
        rv_merkle_leaf(steps[i % RV_N_ELEMENTS(steps)].bytes, steps[i % RV_N_ELEMENTS(steps)].n, ret);
}

static void roots_are_the_published_ones(void **state)
{
        struct rv_merkle tree = { 0 };
        rv_merkle_hash hash;
        char hex[RV_SHA256_HEX_SIZE];

        (void)state;
        rv_merkle_root(&tree, hash);
        rv_hex(hash, sizeof(hash), hex);
        assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        for (size_t i = 0; i < RV_N_ELEMENTS(steps); i++) {
                leaf_at(i, hash);
                rv_merkle_push(&tree, hash);
                rv_merkle_root(&tree, hash);
                rv_hex(hash, sizeof(hash), hex);
                assert_string_equal(hex, steps[i].root);
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
                                leaf_at(i * i, a);
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
        leaf_at(1, leaf);
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
