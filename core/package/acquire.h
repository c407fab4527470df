/*
 * acquire.h - from a closure, which a package manager printed, to a lock with its artifacts at hand
 *
 * What the package manager says is a proposal: the registry's own pages are read, each artifact is fetched into a
 * directory, hashed, and taken apart for reading by the helper reeve-unpack. The lock holds what was found there. What
 * the pages, the closure and the bytes say of one thing has to agree.
 *
 *   rv_acquire()         a closure (closure.h) -> a lock (lock.h); the artifact of package N lies in the file named by
 *                        rv_acquire_file(N)
 *   rv_acquire_locked()  the artifacts of a lock that is there already
 *   rv_acquire_given()   those of a lock that somebody gave, and what is true of them
 *
 * Blocks; any thread, one at a time for an input.
 */
#pragma once

#include "package/diagnose.h"
#include "package/metadata.h"
#include "package/prefetch.h"

#define RV_ACQUIRE_E_FAILED RV_PACKAGE_E_FAILED

struct rv_acquire {
        struct rv_metadata_source source;
        enum rv_language language;
        int unpack_fd;                   /* of the helper */
        int dir_fd;                      /* gets the artifacts; empty before, but for those of `prefetched` */
        struct rv_prefetched *prefetched;        /* what is there already; may be NULL */
        int built_fd;                    /* of wheels that were built here, SHA256.whl each; negative: there are none */
        const json_t *built;             /* those of this run: [{"name","version","file","sha256","yanked","published_at"?}], or NULL */
};

#define RV_ACQUIRE_FILE_SIZE 16
/** rv_acquire_file() - the name of the file that holds the artifact of a lock's package number @index. Context: any. Ownership: the caller's memory. Return: none */
void rv_acquire_file(size_t index, char ret[RV_ACQUIRE_FILE_SIZE]);

/**
 * rv_acquire() - make a lock
 * @closure:     of rv_closure_read(), 0
 * @ret_lock:    set on 0
 * @ret_failure: set on RV_ACQUIRE_E_FAILED
 *
 * Context:   blocks until the source's deadline at most
 * Ownership: a new reference
 * Return:    0; RV_ACQUIRE_E_FAILED a package cannot be had, or must not be; -ECANCELED; -ENOMEM; -errno a helper failed
 */
int rv_acquire(const struct rv_acquire *in, const json_t *closure, json_t **ret_lock,
        struct rv_package_failure *ret_failure, struct rv_error *err);

/**
 * rv_acquire_given() - of a lock that somebody gave, the artifacts, and all that policy judges by
 * @given:    exactly these artifacts; what it says of their license, age and so on is nobody's word, and not looked at
 * @ret_lock: the same with what the artifacts and the registry's pages say; set on 0
 *
 * Context, Ownership, Return: as rv_acquire()
 */
int rv_acquire_given(const struct rv_acquire *in, const json_t *given, json_t **ret_lock,
        struct rv_package_failure *ret_failure, struct rv_error *err);

/** rv_acquire_take_facts() - the same from a lock of the same digest, that was made here. Context: any. Ownership: a new reference. Return: 0 or -ENOMEM */
int rv_acquire_take_facts(const json_t *given, const json_t *known, json_t **ret_lock);

/** rv_acquire_fault() - a fault as reeve-unpack tells it (unpack.h), of @package (of a closure or lock; NULL: the fault names it). Context: any. Ownership: copies. Return: RV_ACQUIRE_E_FAILED */
int rv_acquire_fault(const json_t *fault, const json_t *package, struct rv_package_failure *ret);

/** rv_acquire_locked() - the artifacts of @lock, which have to be exactly those. Context, Ownership, Return: as rv_acquire() */
int rv_acquire_locked(
        const struct rv_acquire *in, const json_t *lock, struct rv_package_failure *ret_failure, struct rv_error *err);
