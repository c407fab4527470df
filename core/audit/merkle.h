/*
 * merkle.h - the Merkle tree over a log's records (RFC 6962, section 2.1; the same as RFC 9162's, with SHA-256)
 *
 * A leaf is a record's line without its newline. Of a tree that only grows, no more has to be kept than its right
 * edge: the roots of the perfect subtrees that it is made of, the largest first, one for each bit that is set in
 * its size. That is `struct rv_merkle`: plain memory, zero-initialised is the empty tree, 2 KiB whatever the size.
 *
 * A growth proof tells that one tree is the beginning of another: the subtrees that, appended to the right edge of
 * the smaller one, give the larger. It proves the same as RFC 6962's consistency proof and is checked by building
 * the larger tree. Proofs in RFC 6962's own form are made and checked by proof.h. Plain functions; any thread.
 */
#pragma once

#include "base/hash.h"

#define RV_MERKLE_LEVELS 63                        /* of subtrees: a tree has fewer than 2^63 leaves */
#define RV_MERKLE_GROWTH_MAX (2 * RV_MERKLE_LEVELS)   /* subtrees of a growth proof */

typedef uint8_t rv_merkle_hash[RV_SHA256_SIZE];

struct rv_merkle {
        uint64_t size;
        rv_merkle_hash edge[RV_MERKLE_LEVELS];     /* the first popcount(size) are in use */
};

/* A perfect subtree of 2^level leaves. */
struct rv_merkle_part {
        uint32_t level;
        rv_merkle_hash hash;
};

/* The leaves from `start` on to `start + size`, as few perfect subtrees as there can be. */
struct rv_merkle_growth {
        uint64_t start, size;
        unsigned n_parts;
        struct rv_merkle_part parts[RV_MERKLE_GROWTH_MAX];
};

/** rv_merkle_leaf() - the hash of a record: SHA-256(0x00 || line). Context: any. Ownership: borrows. Return: none */
void rv_merkle_leaf(const void *line, size_t n, rv_merkle_hash ret);
/** rv_merkle_node() - of two subtrees: SHA-256(0x01 || left || right); @ret may be one of them. Context: any. Ownership: borrows. Return: none */
void rv_merkle_node(const rv_merkle_hash left, const rv_merkle_hash right, rv_merkle_hash ret);

/** rv_merkle_push() - append a leaf's hash. Context: any. Ownership: copies. Return: none */
void rv_merkle_push(struct rv_merkle *tree, const rv_merkle_hash leaf);

/**
 * rv_merkle_push_part() - append a perfect subtree
 *
 * Context:   any
 * Ownership: copies
 * Return:    0; -EINVAL: it cannot stand there (the size is no multiple of its own), or the tree would be too large
 */
int rv_merkle_push_part(struct rv_merkle *tree, const struct rv_merkle_part *part);

/** rv_merkle_root() - the tree's hash; of the empty tree SHA-256 of nothing. Context: any. Ownership: borrows. Return: none */
void rv_merkle_root(const struct rv_merkle *tree, rv_merkle_hash ret);

/** rv_merkle_growth_begin() - what is to follow a tree of @start leaves: nothing so far. Context: any. Ownership: the caller's memory. Return: none */
void rv_merkle_growth_begin(struct rv_merkle_growth *growth, uint64_t start);
/** rv_merkle_growth_push() - and one leaf more. Context: any. Ownership: copies. Return: none */
void rv_merkle_growth_push(struct rv_merkle_growth *growth, const rv_merkle_hash leaf);

/**
 * rv_merkle_grow() - append all of a growth to the tree that it follows
 * @tree: changed only on success
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; -EINVAL: it does not follow, or is no growth of the size it claims
 */
int rv_merkle_grow(struct rv_merkle *tree, const struct rv_merkle_growth *growth);
