/*
 * test_audit_merkle_vectors.h - the leaves of the test vectors that go with RFC 6962's reference implementation
 *
 * With the roots of the trees of the first n. Constant; any thread.
 */
#pragma once

#include "audit/merkle.h"

static const struct {
        const char *bytes;
        size_t n;
        const char *root;
} merkle_steps[] = {
        { "", 0, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d" },
        { "\x00", 1, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125" },
        { "\x10", 1, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77" },
        { "\x20\x21", 2, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7" },
        { "\x30\x31", 2, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4" },
        { "\x40\x41\x42\x43", 4, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef" },
        { "\x50\x51\x52\x53\x54\x55\x56\x57", 8, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c" },
        { "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328" },
};

static inline void merkle_leaf_at(size_t i, rv_merkle_hash ret)
{
        rv_merkle_leaf(merkle_steps[i % RV_N_ELEMENTS(merkle_steps)].bytes,
                merkle_steps[i % RV_N_ELEMENTS(merkle_steps)].n, ret);
}
