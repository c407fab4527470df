/*
 * tree.h - the Merkle tree over a log as far as it is signed, and what came since
 *
 * Two things are held: the tree's right edge at the size that was signed last (`base`), and the growth from there to
 * where the log has been read. That is what the signer wants to see (sign_msg.h).
 *
 * So that a start need not read the whole log, the base is kept in `audit/tree`, with the place in the log where it
 * ends. The file is a cache: it is believed only if the line before that place hashes to what it says, and no sync is
 * made for it. Without it the log is read from its first record on; if the oldest segments are not there any more,
 * that is an error.
 *
 *   rv_tree_open -> (rv_tree_read -> rv_tree_settle -> rv_tree_save)*
 *
 * Plain memory. Thread: that of the log.
 */
#pragma once

#include "audit/log_private.h"
#include "audit/merkle.h"

/* Behind the last record that was counted. */
struct rv_tree_place {
        char segment[RV_LOG_SEGMENT_NAME_SIZE];   /* where that record stands; "": there is none */
        uint64_t offset;
        size_t n;                                 /* of its line, without the newline */
        char sha256[RV_SHA256_HEX_SIZE];
};

struct rv_tree {
        struct rv_log *log;
        struct rv_merkle base;
        struct rv_tree_place base_place;
        struct rv_merkle_growth growth;
        struct rv_tree_place place;               /* behind base and growth */
        uint64_t n_others;                        /* of the growth's records: those that are no checkpoint */
};

/**
 * rv_tree_open() - take up the tree where it was kept last, or an empty one
 *
 * Context:   may block
 * Ownership: borrows @log for as long as the tree is used; nothing to release
 * Return:    none: what is wrong shows when the log is read
 */
void rv_tree_open(struct rv_log *log, struct rv_tree *ret);

/** rv_tree_size() - how many records base and growth cover. Context: any. Ownership: borrows. Return: the number */
static inline uint64_t rv_tree_size(const struct rv_tree *tree)
{
        return tree->base.size + tree->growth.size;
}

/**
 * rv_tree_read() - read on until the tree has @size records
 * @size: at most what the log has; less than the tree has changes nothing
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    0; -ESTALE the oldest segments are gone; -EBADMSG the log has fewer records than that, or they are not
 *            where the names of the segments say; -errno. After a failure the tree is as before
 */
int rv_tree_read(struct rv_tree *tree, uint64_t size, struct rv_error *err);

/** rv_tree_settle() - what was growth is base. Context: any. Ownership: borrows. Return: none */
void rv_tree_settle(struct rv_tree *tree);

/**
 * rv_tree_move() - have the base at @size, which may be before or behind where it is; the growth is then empty
 *
 * Context:   may block; going back reads the log from its first record on
 * Ownership: borrows
 * Return:    as rv_tree_read()
 */
int rv_tree_move(struct rv_tree *tree, uint64_t size, struct rv_error *err);

/** rv_tree_restart() - forget all: the log is read anew, from its first record on. Context: any. Ownership: borrows. Return: none */
void rv_tree_restart(struct rv_tree *tree);

/** rv_tree_save() - keep the base; a failure costs time at the next start and nothing else. Context: may block. Ownership: borrows. Return: none */
void rv_tree_save(const struct rv_tree *tree);
