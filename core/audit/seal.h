/*
 * seal.h - when a log is signed, and the record that says so
 *
 * Sealing is: read what the log has gained, show it to the signer (sign_msg.h), and append what it answers as a
 * record of kind `checkpoint`: {"size": N, "root": "hex", "note": "the C2SP note"}, N being at most the record's own
 * seq. Only records known to be durable are covered, so that what was signed cannot vanish in a crash, and no sync is
 * made for it. Sizes never go down along the log: under the log's lock it is seen whether another process has sealed
 * as much meanwhile, and then nothing is appended.
 *
 *   rv_seal_new -> rv_seal_prepare (the program runs) -> rv_seal_start (done) -> rv_seal_free
 *
 * Whoever calls never waits: the answer comes by a callback on the loop's thread, 2 s later at the latest. That a log
 * could not be sealed is warned of once and changes nothing else: the next reeve seals what is there.
 */
#pragma once

#include "audit/log.h"
#include "audit/sign_msg.h"

#include <reeve/backend.h>

#define RV_SEAL_RECORDS 1000            /* sealed at the latest after so many records, */
#define RV_SEAL_US (60ull * 1000000)    /* or so long after the first that is not sealed */

struct rv_seal;

/** rv_sign_cb - @answer is borrowed; NULL: the signer is gone */
typedef void (*rv_sign_cb)(void *arg, const struct rv_sign_answer *answer);
/** rv_sign_fn - send a request, whose answer comes by @cb. Return: 0 or -errno; -EBUSY: an answer is awaited */
typedef int (*rv_sign_fn)(void *ctx, const struct rv_sign_request *request, rv_sign_cb cb, void *arg);

enum rv_seal_mode {
        RV_SEAL_NEW,            /* if there is more than checkpoints that is not sealed */
        RV_SEAL_ALWAYS,         /* in any case: for a copy of the checkpoint */
        RV_SEAL_NEXT_KEY,       /* with a new key that takes over: `reeve audit rotate` */
};

/**
 * rv_seal_fn - a sealing is over
 * @r: 0 all that was durable is sealed; -errno: @err says what, why and what to do
 */
typedef void (*rv_seal_fn)(void *arg, int r, const struct rv_error *err);

/** rv_seal_new() - Context: loop thread. Ownership: borrows @log and @host; *@ret is the caller's (rv_seal_free). Return: 0 or -ENOMEM */
int rv_seal_new(struct rv_log *log, const struct rv_host *host, rv_sign_fn sign, void *sign_ctx, struct rv_seal **ret);
/** rv_seal_free() - release; what is under way is given up, and nobody may answer any more. Context: loop thread. Ownership: takes @seal, may be NULL. Return: none */
void rv_seal_free(struct rv_seal *seal);

/**
 * rv_seal_prepare() - do ahead what can be: nobody waits at the moment
 *
 * Reads the log as far as it is durable, has the signer load what it needs, and sees to it that a process that lives
 * for long seals at the times above.
 *
 * Context:   loop thread; may block on the disk
 * Ownership: borrows
 * Return:    none; what goes wrong shows at rv_seal_start()
 */
void rv_seal_prepare(struct rv_seal *seal);

/**
 * rv_seal_look() - records were written: seal if it is time
 *
 * Context:   loop thread; may block on the disk
 * Ownership: borrows
 * Return:    none
 */
void rv_seal_look(struct rv_seal *seal);

/**
 * rv_seal_start() - seal all that is durable
 * @done: called once, perhaps before this returns; not if the seal is freed before
 *
 * While another is under way this one follows it. A failure is warned of, but for the modes of commands.
 *
 * Context:   loop thread; may block on the disk
 * Ownership: borrows @arg until @done
 * Return:    none
 */
void rv_seal_start(struct rv_seal *seal, enum rv_seal_mode mode, rv_seal_fn done, void *arg);

/** rv_seal_checkpoint() - what was signed last by this object. Context: after @done with 0. Ownership: borrowed from @seal. Return: it, its size is 0 if nothing was */
const struct rv_checkpoint *rv_seal_checkpoint(const struct rv_seal *seal);
