/*
 * proof_json.h - a proof as a file that can be checked without the log
 *
 * One JSON object, which docs/audit.md describes:
 *
 *   inclusion:   {"schema","log_id","seq","leaf","size","root","path","record","checkpoint"}
 *   consistency: {"schema","log_id","from","from_root","size","root","path","checkpoint"}
 *
 * `checkpoint` is a note, or null where none covers the tree; if the note is of a larger tree, `consistency` leads from
 * `root` to the note's root. Reading is strict; nothing of a file is believed. One thread at a time for an object.
 */
#pragma once

#include "audit/checkpoint.h"
#include "audit/proof.h"

#define RV_PROOF_JSON_BYTES_MAX ((size_t)16 << 20)   /* of a file: a record of 2 MiB with every byte escaped, and the rest */

struct rv_proof_file {
        char log_id[RV_LOG_ID_SIZE];
        struct rv_proof proof;
        rv_merkle_hash leaf, from_root, root;      /* inclusion: leaf; consistency: from_root */
        char *record;                              /* inclusion: the line, @n_record bytes */
        size_t n_record;
        bool has_checkpoint, has_consistency;      /* from `root` to the checkpoint's */
        struct rv_checkpoint checkpoint;
        struct rv_proof consistency;
};

/** rv_proof_file_fini() - release. Context: any. Ownership: takes the content; zeros are allowed. Return: none */
void rv_proof_file_fini(struct rv_proof_file *file);

/** rv_proof_file_to_json() - as a value. Context: any. Ownership: a new reference is the caller's. Return: the value, or NULL */
json_t *rv_proof_file_to_json(const struct rv_proof_file *file);

/**
 * rv_proof_file_read() - read a file's text
 * @text: @n bytes, not trusted
 * @ret:  untouched on failure
 *
 * Context:   any
 * Ownership: @ret is the caller's (rv_proof_file_fini)
 * Return:    0; -EINVAL it is no proof; -ENOMEM
 */
int rv_proof_file_read(const char *text, size_t n, struct rv_proof_file *ret, struct rv_error *err);

/**
 * rv_proof_file_check() - does it prove what it says?
 *
 * That the record, if there is one, is the leaf and says the same number and log; that the path leads to the root;
 * that the root is the checkpoint's, or begins its tree. Who has signed the checkpoint is left to the caller.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; RV_PROOF_E_WRONG with @err
 */
int rv_proof_file_check(const struct rv_proof_file *file, struct rv_error *err);
