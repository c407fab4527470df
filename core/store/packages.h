/*
 * packages.h - STATE/packages: locks that are held, and who builds and who uses which layer
 *
 *     locks/KEY.json     a lock and when it was resolved; its modification time is its last use
 *     artifacts/RUN/     what one process downloads
 *     built/SHA256.whl   a wheel that was built from source; it stays while a lock names it
 *     cache/             what registries said; whoever keeps something there judges its age
 *     used/DIGEST        locked (flock(2), shared) by whoever uses the layer; its modification time is the last use
 *     claims/DIGEST      locked (exclusive) by whoever builds the layer
 *     layers/, staging/  the spawner's (backends/common/layers.h): read here, never written
 *
 * A digest and a key are 64 digits of lower-case hexadecimal.
 *
 *   rv_store_open() -> all the others, from any thread -> rv_store_close()
 *
 * Any number of processes share a store. What they hold is held by locks on open files, which end with a process however
 * it ends. Files are made whole under another name and renamed, so that a reader sees all of one or none.
 */
#pragma once

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

#include <stdatomic.h>
#include <sys/types.h>

#define RV_STORE_E_ABSENT 1
#define RV_STORE_E_TAKEN 2

struct rv_store;

/**
 * rv_store_open() - open the store, or make it
 * @state_fd:  STATE
 * @state_dir: its path, for messages
 * @owner:     the user whose layers are taken: the spawner's
 *
 * Context:   without privilege; may block on a slow disk
 * Ownership: borrows; *@ret is the caller's
 * Return:    0; -errno
 */
int rv_store_open(int state_fd, const char *state_dir, uid_t owner, struct rv_store **ret, struct rv_error *err);
/** rv_store_close() - let go, and remove what this process downloaded; NULL is allowed. Context: nobody uses it any more. Ownership: takes @store. Return: none */
void rv_store_close(struct rv_store *store);
RV_DEFINE_CLEANUP(struct rv_store, rv_store_close)

/** rv_store_cache_fd() - the directory cache/. Context: any. Ownership: borrowed from @store. Return: the descriptor */
int rv_store_cache_fd(const struct rv_store *store);

/**
 * rv_store_sweep() - remove what dead processes left: artifacts, claims, notes of use of layers that are gone
 *
 * Context:   any thread; may block
 * Ownership: borrows
 * Return:    how many it removed
 */
unsigned rv_store_sweep(struct rv_store *store);

/* ---- Locks ---- */

/**
 * rv_store_lock_find() - the lock that is held for a key
 * @ret:         a new reference; untouched unless 0 is returned
 * @ret_us:      when it was resolved, microseconds since 1970
 *
 * That it was used is noted. What cannot be read, or is no lock, is as if it were not there: then @err says why, for a
 * warning.
 *
 * Context:   any thread; reads one file
 * Ownership: borrows
 * Return:    0; RV_STORE_E_ABSENT; -EINVAL @key is none; -ENOMEM
 */
int rv_store_lock_find(struct rv_store *store, const char *key, json_t **ret, uint64_t *ret_us, struct rv_error *err);

/**
 * rv_store_lock_keep() - hold a lock for a key, in place of one that is held
 * @lock: whole, see rv_lock_check()
 *
 * Context:   any thread; may block until it is on the disk
 * Ownership: borrows
 * Return:    0; -EINVAL @key or @lock is none; -ENOMEM; -errno
 */
int rv_store_lock_keep(
        struct rv_store *store, const char *key, const json_t *lock, uint64_t resolved_us, struct rv_error *err);

/** rv_store_lock_drop() - hold a lock no longer, as nothing can be built of it. Context: any thread. Ownership: borrows. Return: none */
void rv_store_lock_drop(struct rv_store *store, const char *key);

/* ---- Layers ---- */

/** rv_store_layer_is_there() - is there a layer of that name, and of the right user? Context: any thread. Ownership: borrows. Return: as named */
bool rv_store_layer_is_there(const struct rv_store *store, const char *digest);

/** rv_store_layer_lock() - the lock that a layer was made of. Context: any thread; may block on a slow disk. Ownership: a new reference. Return: 0; RV_STORE_E_ABSENT no such layer, or a damaged one; -ENOMEM */
int rv_store_layer_lock(const struct rv_store *store, const char *digest, json_t **ret);

/** rv_store_layer_is_compiled() - has it got its byte code? Context: any thread. Ownership: borrows. Return: as named */
bool rv_store_layer_is_compiled(const struct rv_store *store, const char *digest);

/**
 * rv_store_layer_use() - say that a layer is used, so that nobody removes it
 * @ret_fd: holds it there until it and its copies are closed, which the end of a process does too
 *
 * It may have gone before: rv_store_layer_is_there() is to be asked after this, not before.
 *
 * Context:   any thread; blocks while the layer is being removed
 * Ownership: *@ret_fd is the caller's
 * Return:    0; -EINVAL @digest is none; -errno
 */
int rv_store_layer_use(struct rv_store *store, const char *digest, int *ret_fd, struct rv_error *err);

/**
 * rv_store_claim() - be the one who builds a layer
 * @ret_fd: the claim, until it is closed, which the end of a process does too
 *
 * Somebody else may have built it before: whether it is there is to be asked again after this.
 *
 * Context:   any thread; does not wait
 * Ownership: *@ret_fd is the caller's, to give to rv_store_claim_end()
 * Return:    0; RV_STORE_E_TAKEN by another, in this process too; -EINVAL @digest is none; -errno
 */
int rv_store_claim(struct rv_store *store, const char *digest, int *ret_fd, struct rv_error *err);

/**
 * rv_store_claim_wait() - the same, waiting for another to end
 * @stop:        becomes true when nobody wants it any more; may be NULL
 * @deadline_us: CLOCK_MONOTONIC
 *
 * Context:   a thread that may block
 * Ownership: as rv_store_claim()
 * Return:    as rv_store_claim(); RV_STORE_E_TAKEN at the deadline; -ECANCELED
 */
int rv_store_claim_wait(struct rv_store *store, const char *digest, const _Atomic bool *stop, uint64_t deadline_us,
        int *ret_fd, struct rv_error *err);
/** rv_store_claim_end() - let go. Context: any thread. Ownership: takes @take_fd. Return: -EBADF, to store */
int rv_store_claim_end(struct rv_store *store, const char *digest, int take_fd);

/* ---- Artifacts ---- */

#define RV_STORE_ARTIFACT_SIZE 32

/**
 * rv_store_artifacts() - the directory that this process downloads to
 *
 * It is removed when the store is closed, or, if that does not come, by the next process that makes its own.
 *
 * Context:   any thread; makes it the first time
 * Ownership: *@ret_fd is borrowed from @store
 * Return:    0; -errno
 */
int rv_store_artifacts(struct rv_store *store, int *ret_fd, struct rv_error *err);
/** rv_store_artifact_name() - a name in that directory that was not given before. Context: any thread. Ownership: none. Return: none */
void rv_store_artifact_name(struct rv_store *store, char ret[RV_STORE_ARTIFACT_SIZE]);

/* ---- Wheels that were built ---- */

/** rv_store_built_fd() - the directory built/. Context: any. Ownership: borrowed from @store. Return: the descriptor */
int rv_store_built_fd(const struct rv_store *store);
/** rv_store_built_is_there() - is there one of that hash? Context: any thread. Ownership: borrows. Return: as named */
bool rv_store_built_is_there(const struct rv_store *store, const char *sha256);

/**
 * rv_store_built_keep() - keep a wheel; one that is there already is the same
 * @ret_sha256: its name, set on 0
 *
 * Context:   any thread; may block until it is on the disk
 * Ownership: copies
 * Return:    0 or -errno
 */
int rv_store_built_keep(
        struct rv_store *store, const void *data, size_t n, char ret_sha256[RV_SHA256_HEX_SIZE], struct rv_error *err);
