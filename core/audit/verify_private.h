/*
 * verify_private.h - what the files of the verification share
 *
 * verify.c walks through the lines; verify_seal.c judges checkpoints and what is known from elsewhere, for which it
 * goes through the log a second time, behind the walk: so the tree of any size that comes up can be had, in order,
 * without keeping a hash for each record. A check returns 0, RV_VERIFY_E_FAULT once the fault is told and the walk has
 * to end, or -errno. One thread.
 */
#pragma once

#include "audit/lines.h"
#include "audit/record_form.h"
#include "audit/verify.h"

/* Where a record stands. */
struct rv_verify_place {
        uint64_t segment, offset, seq;
};

struct rv_verify {
        const struct rv_verify_input *in;
        struct rv_verify_result *out;
        struct rv_error *err;
        bool is_tree_off;                          /* the records are not those that were signed: roots say no more */

        /* The walk (verify.c). */
        struct rv_lines lines;
        uint64_t segment;                          /* the number in the name of the one that is read */
        bool has_log_id;
        uint64_t next_seq;
        bool is_hash_known;                        /* of the line before: */
        char hash[RV_SHA256_HEX_SIZE];
        struct rv_verify_place before, here;
        bool is_doubted;                           /* `suspect` or the record behind it was changed */
        bool is_cleared;                           /* a signature says that it was not `suspect` */
        struct rv_verify_place suspect, witness;
        uint64_t looked_again_segment, looked_again_offset;   /* at that line already, the offset being one more */

        /* The second way through (verify_seal.c). */
        struct rv_lines trail;
        struct rv_merkle tree;
        struct rv_verify_expect *expects;          /* by size */
        size_t n_expects, next_expect;
        uint64_t vouched;                          /* the tree of that size was as a checkpoint or `expects` says */

        /* Keys. */
        struct rv_checkpoint_key *past;            /* that were in force, the last one being so */
        size_t n_past, past_capacity;
        size_t given_at;                           /* which of several keys given is in force */
        struct rv_verify_place first_unknown;      /* checkpoint that no known key has signed */
        uint64_t n_unknown;
};

/** rv__verify_fault() - tell a fault. Context: any. Ownership: borrows. Return: RV_VERIFY_E_FAULT; 0 to go on behind it */
int rv__verify_fault(struct rv_verify *v, enum rv_verify_what what, const struct rv_verify_place *place,
        const char *fmt, ...) RV_PRINTF(4, 5);

/** rv__verify_seal_begin() - take what is expected. Context: any. Ownership: release with rv__verify_seal_fini(), also after a failure. Return: as any check */
int rv__verify_seal_begin(struct rv_verify *v);
/** rv__verify_seal_fini() - release. Context: any. Ownership: takes the content. Return: none */
void rv__verify_seal_fini(struct rv_verify *v);
/** rv__verify_checkpoint() - judge a checkpoint's record, which stands at v->here. Context: may block. Ownership: borrows. Return: as any check */
int rv__verify_checkpoint(struct rv_verify *v, const char *line, size_t n, const struct rv_record_form *form);
/** rv__verify_clears() - does this checkpoint, a signed one, cover the records before it as they are? Context: may block. Ownership: borrows. Return: 1, 0, -errno */
int rv__verify_clears(struct rv_verify *v, const char *line, size_t n);
/** rv__verify_seal_end() - at the end of the log: what is still expected, the keys, the tail. Context: may block. Ownership: borrows. Return: as any check */
int rv__verify_seal_end(struct rv_verify *v);
