/*
 * index.h - what the log says of runs and of idempotency keys, found without reading the log
 *
 * STATE/index.sqlite (with -wal and -shm beside it) is an index over the log and never the journal: all of it can be
 * read from the log again, and is, whenever it is missing, was made by another version or for another log, does not
 * fit the log or itself, or may have been torn by a crash of the machine (it is never synced). Tables:
 *
 *     runs     one row a decision: who, when, where in the log it stands, and the same of its outcome
 *     keys     one row for each key that is taken: by which decision, since when it is done
 *     cursor   how far the log has been read: the place, the SHA-256 of the line before it, and sums over `keys`
 *
 * A key is taken by a decision that allows, and free again if its outcome says `started: no`. Nothing that the index
 * says is believed as it is: the records that it points at are read and compared, and that a key is free is believed
 * only if the sum over its part of the table is that of the cursor. What does not hold makes it *broken*: it is
 * removed and made anew, once a call.
 *
 *   rv_index_open -> (rv_index_find | rv_index_find_locked)* -> rv_index_close
 *
 * Many processes may use it at once. As long as one has it open it holds a shared flock() on STATE/index.lock, which
 * whoever removes it takes exclusively, so an index is kept open for moments only. The lock of the log may be held
 * while the index is used, never the other way round. Thread: that of the log.
 */
#pragma once

#include "audit/log.h"
#include "base/hash.h"

#define RV_INDEX_E_AGAIN 1

enum rv_index_state {
        RV_INDEX_FREE,          /* nobody has the key */
        RV_INDEX_OPEN,          /* a decision without an outcome so far */
        RV_INDEX_DONE,          /* a run that was, or may have been, started */
};

/* By whom a key is taken. All but `state` is set for OPEN and DONE, the second half for DONE. */
struct rv_index_key {
        enum rv_index_state state;
        char fingerprint[RV_SHA256_HEX_SIZE];     /* its HMAC */
        char decision_id[RV_LOG_ID_SIZE], run_id[RV_LOG_ID_SIZE];
        uint64_t decided_us;

        uint64_t ended_us;                        /* time of the outcome's record */
        char outcome_sha256[RV_SHA256_HEX_SIZE];
        char status[32], code[48];
};

struct rv_index;

/** rv_index_open() - prepare to use the index of a log's state directory; touches no file. Context: any. Ownership: *@ret is the caller's (rv_index_close); borrows @log meanwhile. Return: 0 or -ENOMEM */
int rv_index_open(struct rv_log *log, struct rv_index **ret);
/** rv_index_close() - let it go. Context: may block. Ownership: takes @index, may be NULL. Return: none */
void rv_index_close(struct rv_index *index);

/**
 * rv_index_find() - who has this key, by the log as it is now
 * @key: its HMAC, hex
 * @ret: untouched on failure
 *
 * Reads what was written to the log since; the whole of it, some 200,000 records a second, if the index has to be
 * made.
 *
 * Context:   may block; the log's lock must not be held
 * Ownership: borrows
 * Return:    0; -EBADMSG it was broken again right after it was made; -ETIMEDOUT another process keeps it; -errno
 */
int rv_index_find(
        struct rv_index *index, const char key[RV_SHA256_HEX_SIZE], struct rv_index_key *ret, struct rv_error *err);

/**
 * rv_index_find_locked() - the same under the log's lock, where it must not take long
 *
 * Context:   may block for as long as a few thousand records take
 * Ownership: borrows
 * Return:    0; RV_INDEX_E_AGAIN it is broken, too far behind or in use: unlock the log, call rv_index_find(), try
 *            again; -errno
 */
int rv_index_find_locked(struct rv_index *index, const char key[RV_SHA256_HEX_SIZE], struct rv_index_key *ret,
        struct rv_error *err);

/** rv_index_n_made() - how often this object has made the index, for tests and debugging. Context: any. Ownership: none. Return: the number */
unsigned rv_index_n_made(const struct rv_index *index);
