/*
 * verify.h - is a log what it was when it was written?
 *
 * Reads a directory of segments, wherever it lies: no lock is taken, nothing is written, and no secret is needed. A log
 * that is being written meanwhile can be verified: it is judged up to its end as it is found, an incomplete last line
 * of the newest segment is told and is no fault, and what looks wrong is looked at once more before it is called so.
 *
 * Checked are, in this order: for each line that it is a record in canonical form (record_form.h), of this log, with
 * the number that comes next, in the segment that has its number, and with the hash of the line before; for each
 * `checkpoint` that its note and its members agree, that it covers no more than stands before it and no less than the
 * last one, that it is signed by the key in force, and that the tree of the records that it covers has its root.
 * What is known from elsewhere (`expects`) has to be a beginning of the log. docs/audit.md tells the same in full.
 *
 * The keys: with one key, that key is in force from the beginning and hands over to another by a checkpoint with
 * `next-key`. If it is a later one, checkpoints before it cannot be judged by their signatures; they are vouched for
 * by the checkpoint that hands over to it, which it has signed too. With several, they have to be given in the order
 * in which they were in force, and a key that is not among them is a fault. Without any, a checkpoint is one.
 *
 * Memory is bounded: two buffers, the tree's edge, some fifty bytes a segment. One call, one thread; may block on the disk.
 */
#pragma once

#include "audit/checkpoint.h"
#include "audit/log_private.h"

#define RV_VERIFY_NAME_SIZE RV_SEGMENTS_ODD_NAME_SIZE   /* of a file's name, with the NUL */

enum rv_verify_what {
        RV_VERIFY_FORM,                            /* no record in canonical form; a line too long, or incomplete */
        RV_VERIFY_LOG_ID,                          /* of another log */
        RV_VERIFY_SEQ,                             /* another number than comes next */
        RV_VERIFY_PREV,                            /* changed: its hash is not what the record behind it says */
        RV_VERIFY_SEGMENT,                         /* a segment is missing, or one is there that should not be */
        RV_VERIFY_CHECKPOINT,                      /* a checkpoint that contradicts itself, or goes back */
        RV_VERIFY_KEY,                             /* a checkpoint, or what was given, is not signed by the right key */
        RV_VERIFY_ROOT,                            /* a checkpoint was signed for other records */
        RV_VERIFY_EXPECT,                          /* what is known from elsewhere is no beginning of the log */
        RV_VERIFY_UNSEALED,                        /* keys were given, and nothing is signed */
        RV_VERIFY_EMPTY,                           /* there is no record */
        _RV_VERIFY_WHAT_MAX,
};

/** rv_verify_what_name() - as a word: "form" "log_id" "seq" … Context: any. Ownership: constant. Return: the word */
const char *rv_verify_what_name(enum rv_verify_what what);

struct rv_verify_fault {
        enum rv_verify_what what;
        char segment[RV_VERIFY_NAME_SIZE];         /* "" where no file is to blame */
        uint64_t offset;                           /* of the line in it */
        uint64_t seq;                              /* the number that the bad record has or should have */
        char text[512];                            /* what is wrong, for a person */
};

/* What is known of the log from elsewhere. */
struct rv_verify_expect {
        uint64_t size;
        rv_merkle_hash root;
        bool is_note;                              /* it is signed: as `note` */
        struct rv_checkpoint note;
};

struct rv_verify_input {
        int audit_fd;                              /* the directory with the segments, open for reading */
        const char *path;                          /* its path, for messages */
        const struct rv_checkpoint_key *keys;
        size_t n_keys;
        bool is_vouched;                           /* the keys come from outside: a log without any checkpoint is a fault */
        const struct rv_verify_expect *expects;
        size_t n_expects;
        bool is_all;                               /* go on behind a fault, where that makes sense */
        void (*on_fault)(void *ctx, const struct rv_verify_fault *fault);   /* or NULL */
        void *ctx;
};

/* Complete if the log is good; else what was found before the first fault, or with is_all at the end. */
struct rv_verify_result {
        char log_id[RV_LOG_ID_SIZE];
        uint64_t n_records, n_segments, n_bytes;
        rv_merkle_hash root;                       /* of all records; only if the log is good */
        uint64_t n_checkpoints;
        struct rv_checkpoint last;                 /* the newest one; zeros without any */
        uint64_t last_seq, last_time_us;           /* of its record */
        uint64_t n_unsealed, unsealed_time_us;     /* records that no checkpoint covers, and when the first was written */
        uint64_t incomplete_bytes;                 /* behind the last newline */
        bool has_key;                              /* a checkpoint was signed by a key that is known: */
        struct rv_checkpoint_key key;              /* the one in force at the end */
        uint64_t n_rotations;                      /* how often another came into force */
        uint64_t n_replaced;                       /* and how often without a word of the one before, by the keys given */
        uint64_t n_earlier;                        /* checkpoints of an earlier, unknown key that a rotation vouches for */
        uint64_t n_faults;
        struct rv_verify_fault fault;              /* the first one */
};

/**
 * rv_verify_log() - verify a log
 * @ret: always written
 *
 * Context:   may block
 * Ownership: borrows; nothing to release
 * Return:    0 the log is good; RV_VERIFY_E_FAULT it is not: @ret->fault; -errno it cannot be read, with @err
 */
int rv_verify_log(const struct rv_verify_input *input, struct rv_verify_result *ret, struct rv_error *err);
enum {
        RV_VERIFY_E_FAULT = 1,
};
