/*
 * proof.h - proofs of the Merkle tree in RFC 6962's own form (sections 2.1.1 and 2.1.2; RFC 9162, 2.1.3 and 2.1.4)
 *
 * An inclusion proof shows that a leaf stands at a place of a tree, a consistency proof that one tree is the
 * beginning of another. Both are a list of subtrees' hashes, and the subtrees are told by the sizes alone:
 *
 *   rv_proof_begin_…() -> rv_proof_push() for each leaf from the first on -> rv_proof_finish()
 *
 * so that a proof is made in one pass over the log and needs room for its own hashes only. Plain memory, no
 * resources. Any thread, one at a time for an object.
 */
#pragma once

#include "audit/merkle.h"

#define RV_PROOF_HASHES_MAX 64                     /* the longest proof of a tree of fewer than 2^63 leaves */

struct rv_proof {
        bool is_consistency;
        uint64_t from;                             /* inclusion: the leaf's number, from 0; consistency: the smaller size */
        uint64_t size;                             /* of the tree */
        unsigned n;
        rv_merkle_hash path[RV_PROOF_HASHES_MAX];  /* in RFC 6962's order */
};

struct rv_proof_maker {
        struct rv_proof proof;
        struct {
                uint64_t start, end;               /* leaves of the subtree */
                unsigned at;                       /* its place in the proof */
        } parts[RV_PROOF_HASHES_MAX];              /* in the order of the leaves */
        unsigned next;                             /* the part that is being read, or comes next */
        uint64_t n_pushed;
        struct rv_merkle tree;                     /* of that part */
};

/** rv_proof_begin_inclusion() - of leaf @seq in the tree of the first @size leaves. Context: any. Ownership: the caller's memory. Return: 0; -EINVAL: @seq is not below @size, or @size is too large */
int rv_proof_begin_inclusion(struct rv_proof_maker *maker, uint64_t seq, uint64_t size);
/** rv_proof_begin_consistency() - of the trees of the first @from and the first @size leaves. Context: any. Ownership: the caller's memory. Return: 0; -EINVAL: not 0 < @from <= @size, or @size is too large */
int rv_proof_begin_consistency(struct rv_proof_maker *maker, uint64_t from, uint64_t size);
/** rv_proof_push() - the next leaf's hash; those behind the tree are passed over. Context: any. Ownership: copies. Return: none */
void rv_proof_push(struct rv_proof_maker *maker, const rv_merkle_hash leaf);
/** rv_proof_finish() - the proof. Context: any. Ownership: copies. Return: 0; -EINVAL: there were fewer leaves than the tree has */
int rv_proof_finish(const struct rv_proof_maker *maker, struct rv_proof *ret);

/**
 * rv_proof_check_inclusion() - does the path lead from the leaf to the root?
 * @proof: not trusted
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; RV_PROOF_E_WRONG
 */
int rv_proof_check_inclusion(const struct rv_proof *proof, const rv_merkle_hash leaf, const rv_merkle_hash root);

/**
 * rv_proof_check_consistency() - does the tree of @root begin with that of @from_root?
 * @proof: not trusted
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; RV_PROOF_E_WRONG
 */
int rv_proof_check_consistency(const struct rv_proof *proof, const rv_merkle_hash from_root, const rv_merkle_hash root);
enum {
        RV_PROOF_E_WRONG = 1,
};
