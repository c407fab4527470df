#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "audit/proof.h"

#include "test_audit_merkle_vectors.h"

#define SIZE_TRIED 70

static rv_merkle_hash leaves[SIZE_TRIED];

static int make_leaves(void **state)
{
        (void)state;
        for (size_t i = 0; i < SIZE_TRIED; i++) {
                uint8_t bytes[2] = { (uint8_t)i, 7 };

                rv_merkle_leaf(bytes, sizeof(bytes), leaves[i]);
        }
        return 0;
}

/* ---- RFC 6962, section 2.1, as it stands there ---- */

static size_t k_of(size_t n)
{
        size_t k = 1;

        while (2 * k < n)
                k *= 2;
        return k;
}

static void mth(rv_merkle_hash *d, size_t n, rv_merkle_hash ret)
{
        rv_merkle_hash left, right;

        if (n == 1) {
                memcpy(ret, d[0], sizeof(rv_merkle_hash));
                return;
        }
        mth(d, k_of(n), left);
        mth(d + k_of(n), n - k_of(n), right);
        rv_merkle_node(left, right, ret);
}

static void put(struct rv_proof *p, rv_merkle_hash *d, size_t n)
{
        mth(d, n, p->path[p->n++]);
}

static void naive_path(size_t m, rv_merkle_hash *d, size_t n, struct rv_proof *p)
{
        if (n == 1)
                return;
        if (m < k_of(n)) {
                naive_path(m, d, k_of(n), p);
                put(p, d + k_of(n), n - k_of(n));
        } else {
                naive_path(m - k_of(n), d + k_of(n), n - k_of(n), p);
                put(p, d, k_of(n));
        }
}

static void naive_subproof(size_t m, rv_merkle_hash *d, size_t n, bool b, struct rv_proof *p)
{
        if (m == n) {
                if (!b)
                        put(p, d, n);
        } else if (m <= k_of(n)) {
                naive_subproof(m, d, k_of(n), b, p);
                put(p, d + k_of(n), n - k_of(n));
        } else {
                naive_subproof(m - k_of(n), d + k_of(n), n - k_of(n), false, p);
                put(p, d, k_of(n));
        }
}

/* ---- */

static struct rv_proof make(bool is_consistency, rv_merkle_hash *d, size_t from, size_t size, size_t n_there)
{
        struct rv_proof_maker maker;
        struct rv_proof proof;

        assert_int_equal(is_consistency ? rv_proof_begin_consistency(&maker, from, size)
                                        : rv_proof_begin_inclusion(&maker, from, size),
                0);
        for (size_t i = 0; i < n_there; i++) {
                assert_int_equal(rv_proof_finish(&maker, &proof), i < size ? -EINVAL : 0);
                rv_proof_push(&maker, d[i]);
        }
        assert_int_equal(rv_proof_finish(&maker, &proof), 0);
        return proof;
}

static void check_same(const struct rv_proof *a, const struct rv_proof *b)
{
        assert_int_equal(a->n, b->n);
        assert_memory_equal(a->path, b->path, a->n * sizeof(rv_merkle_hash));
}

/* Nothing but the proof itself is taken. */
static void check_nothing_else(const struct rv_proof *proof, const rv_merkle_hash a, const rv_merkle_hash root)
{
        int (*check)(const struct rv_proof *, const rv_merkle_hash,
                const rv_merkle_hash) = proof->is_consistency ? rv_proof_check_consistency : rv_proof_check_inclusion;
        rv_merkle_hash other;
        struct rv_proof p;

        assert_int_equal(check(proof, a, root), 0);
        memcpy(other, root, sizeof(other));
        other[31] ^= 1;
        assert_int_equal(check(proof, a, other), RV_PROOF_E_WRONG);
        memcpy(other, a, sizeof(other));
        other[0] ^= 0x80;
        assert_int_equal(check(proof, other, root), RV_PROOF_E_WRONG);
        for (unsigned i = 0; i < proof->n; i++) {
                p = *proof;
                p.path[i][i % 32] ^= 4;
                assert_int_equal(check(&p, a, root), RV_PROOF_E_WRONG);
        }
        p = *proof;
        p.n++;
        assert_int_equal(check(&p, a, root), RV_PROOF_E_WRONG);
        p.n = RV_PROOF_HASHES_MAX + 1;
        assert_int_equal(check(&p, a, root), RV_PROOF_E_WRONG);
        if (proof->n) {
                p.n = proof->n - 1;
                assert_int_equal(check(&p, a, root), RV_PROOF_E_WRONG);
        }
        p = *proof;
        p.is_consistency = !p.is_consistency;
        assert_int_equal(check(&p, a, root), RV_PROOF_E_WRONG);
}

static void inclusion_is_as_the_rfc_defines(void **state)
{
        (void)state;
        for (size_t size = 1; size <= SIZE_TRIED; size++)
                for (size_t seq = 0; seq < size; seq++) {
                        struct rv_proof proof = make(false, leaves, seq, size, RV_MIN(size + 3, (size_t)SIZE_TRIED)),
                                        naive = { .n = 0 };
                        rv_merkle_hash root;

                        naive_path(seq, leaves, size, &naive);
                        check_same(&proof, &naive);
                        mth(leaves, size, root);
                        check_nothing_else(&proof, leaves[seq], root);
                }
}

static void consistency_is_as_the_rfc_defines(void **state)
{
        (void)state;
        for (size_t size = 1; size <= SIZE_TRIED; size++)
                for (size_t from = 1; from <= size; from++) {
                        struct rv_proof proof = make(true, leaves, from, size, RV_MIN(size + 3, (size_t)SIZE_TRIED)),
                                        naive = { .n = 0 };
                        rv_merkle_hash from_root, root;

                        naive_subproof(from, leaves, size, true, &naive);
                        check_same(&proof, &naive);
                        mth(leaves, size, root);
                        mth(leaves, from, from_root);
                        check_nothing_else(&proof, from_root, root);
                }
}

/* Those of the reference implementation's tests. */
static void the_published_proofs_are_made(void **state)
{
#define L0 "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
#define L1 "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
#define L2_3 "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
#define L4_7 "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"
#define L4 "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"
#define L4_5 "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"
#define L6_7 "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
#define L0_1 "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"
#define L0_3 "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"
        static const struct {
                bool is_consistency;
                size_t from, size, n;
                const char *path[3];
        } rows[] = {
                { false, 0, 1, 0, { NULL } },
                { false, 0, 8, 3, { L1, L2_3, L4_7 } },
                { false, 5, 8, 3, { L4, L6_7, L0_3 } },
                { false, 2, 3, 1, { L0_1 } },
                { false, 1, 5, 3, { L0, L2_3, L4 } },
                { true, 1, 1, 0, { NULL } },
                { true, 1, 8, 3, { L1, L2_3, L4_7 } },
                { true, 6, 8, 3, { L4_5, L6_7, L0_3 } },
                { true, 2, 5, 2, { L2_3, L4 } },
        };
        rv_merkle_hash d[8];

        (void)state;
        for (size_t i = 0; i < 8; i++)
                merkle_leaf_at(i, d[i]);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_proof proof = make(rows[i].is_consistency, d, rows[i].from, rows[i].size, 8);

                assert_int_equal(proof.n, rows[i].n);
                for (unsigned j = 0; j < proof.n; j++) {
                        char hex[RV_SHA256_HEX_SIZE];

                        rv_hex(proof.path[j], sizeof(proof.path[j]), hex);
                        assert_string_equal(hex, rows[i].path[j]);
                }
        }
}

static void what_no_tree_has_is_refused(void **state)
{
        struct rv_proof_maker maker;

        (void)state;
        assert_int_equal(rv_proof_begin_inclusion(&maker, 0, 0), -EINVAL);
        assert_int_equal(rv_proof_begin_inclusion(&maker, 5, 5), -EINVAL);
        assert_int_equal(rv_proof_begin_inclusion(&maker, 0, UINT64_C(1) << 63), -EINVAL);
        assert_int_equal(rv_proof_begin_consistency(&maker, 0, 5), -EINVAL);
        assert_int_equal(rv_proof_begin_consistency(&maker, 6, 5), -EINVAL);
        assert_int_equal(rv_proof_begin_consistency(&maker, 1, UINT64_C(1) << 63), -EINVAL);
        /* The longest there can be. */
        assert_int_equal(rv_proof_begin_inclusion(&maker, 0, (UINT64_C(1) << 63) - 1), 0);
        assert_int_equal(maker.proof.n, 63);
        assert_int_equal(rv_proof_begin_consistency(&maker, (UINT64_C(1) << 62) - 1, (UINT64_C(1) << 63) - 1), 0);
        assert_true(maker.proof.n <= RV_PROOF_HASHES_MAX);
        assert_int_equal(rv_proof_begin_consistency(&maker, (UINT64_C(1) << 63) - 2, (UINT64_C(1) << 63) - 1), 0);
        assert_true(maker.proof.n <= RV_PROOF_HASHES_MAX);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(inclusion_is_as_the_rfc_defines),
                cmocka_unit_test(consistency_is_as_the_rfc_defines),
                cmocka_unit_test(the_published_proofs_are_made),
                cmocka_unit_test(what_no_tree_has_is_refused),
        };

        return cmocka_run_group_tests(tests, make_leaves, NULL);
}
