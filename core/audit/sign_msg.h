/*
 * sign_msg.h - what the loop asks of the signer, and what that answers
 *
 * The signer is a part of the spawner and the only one that reads the signing key. It is not asked to sign a text: it
 * is shown that a log has grown, from what was signed last to what shall be signed now, and writes the checkpoint
 * itself. So a loop that was taken over cannot have two roots signed for one size, nor a smaller size than before.
 *
 * Messages of one size, native byte order (one machine), on the spawner's channel; one answer for each request. What
 * is in a request is not believed. A request's kind is above those of spawn_msg.h. Plain memory; any thread.
 */
#pragma once

#include "audit/checkpoint.h"

#define RV_SIGN_TEXT_SIZE 1024
#define RV_SIGN_PATH_SIZE 512
#define RV_SIGN_SIZE_MAX (UINT64_C(1) << 53)   /* of a log: above what a record's seq can be */

enum rv_sign_kind {
        RV_SIGN_QUERY = 16,     /* which key, and what was signed last? Loads what signing needs */
        RV_SIGN_CHECKPOINT,     /* sign the log as it is after `growth` */
        RV_SIGN_NEXT_KEY,       /* the same, and a new key takes over from there on; it does so only with SETTLE */
        RV_SIGN_SETTLE,         /* the checkpoint that names `next_key` is durable in the log: it is the key from now on */
        RV_SIGN_MAKE_KEY,       /* make a key where there is none */
        RV_SIGN_KIND_MAX_,
};

#define RV_SIGN_DESTROY 1u      /* with SETTLE: do not keep the old key */
#define RV_SIGN_LOOK_ONLY 2u    /* with QUERY: make nothing, no key either */

struct rv_sign_request {
        uint32_t kind, flags;
        char log_id[RV_LOG_ID_SIZE];
        uint8_t next_key[RV_CHECKPOINT_KEY_BYTES];
        struct rv_merkle edge;             /* of the tree that was signed last */
        struct rv_merkle_growth growth;    /* and all that came since */
};

enum rv_sign_code {
        RV_SIGN_OK = 1,
        RV_SIGN_STALE,          /* another size was signed last: `size` and `root` tell which */
        RV_SIGN_REFUSED,        /* it does not follow what was signed last */
        RV_SIGN_NO_KEY,         /* there is no key, and there never was one */
        RV_SIGN_THERE,          /* MAKE_KEY: there is one */
        RV_SIGN_UNUSABLE,       /* the key, or the signer's memory, cannot be used */
};

struct rv_sign_answer {
        uint32_t code;
        uint32_t is_beside_state;          /* the key lies below the state directory */
        uint64_t size;                     /* signed last, by this answer or before; 0: nothing */
        rv_merkle_hash root;
        uint32_t has_next_key;             /* a change of keys is under way */
        uint32_t n_signatures;             /* of CHECKPOINT and NEXT_KEY: by the key, and by the next one if there is one */
        uint8_t key[RV_CHECKPOINT_KEY_BYTES], next_key[RV_CHECKPOINT_KEY_BYTES];   /* public; all zeros: none */
        struct rv_checkpoint_signature signatures[2];
        char path[RV_SIGN_PATH_SIZE];      /* the key's, as far as it fits */
        char text[RV_SIGN_TEXT_SIZE];      /* with any code but OK and STALE: what, why, what to do */
};
