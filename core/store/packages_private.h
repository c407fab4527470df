/*
 * packages_private.h - the inside of the store of packages, for the files that make it up
 *
 * Nothing of a store changes after it was opened but what `mutex` guards and the counter. Any thread.
 */
#pragma once

#include "store/packages.h"
#include "store/packages_list.h"

#include <pthread.h>

#define RV_STORE_DIGITS (RV_SHA256_HEX_SIZE - 1)
#define RV_STORE_HELD_MAX ((size_t)20 << 20)   /* bytes of a file in locks/ */

struct rv_store {
        int packages_fd, locks_fd, cache_fd, artifacts_fd, used_fd, claims_fd, built_fd;
        uid_t owner;                     /* of layers */
        char *path;                      /* STATE/packages, for messages */
        _Atomic unsigned n_names;
        pthread_mutex_t mutex;
        int run_fd;                      /* artifacts/RUN, locked; -EBADF: not made yet */
        char run[RV_STORE_ARTIFACT_SIZE];
};

/** rv__store_is_digest() - 64 digits of lower-case hexadecimal? Context: any. Ownership: borrows. Return: as named */
bool rv__store_is_digest(const char *text);

/** rv__store_layers() - open layers/, if it is a directory of the right user. Context: any. Ownership: the descriptor is the caller's. Return: it; -ENOENT; -EPERM it is another's, or can be written by others; -errno */
int rv__store_layers(const struct rv_store *store);

/**
 * rv__store_hold() - open a file, or make it, and lock it, such that it still has its name
 * @operation: of flock(2)
 *
 * Whoever removes such a file holds it exclusively meanwhile.
 *
 * Context:   any; blocks without LOCK_NB
 * Ownership: the descriptor is the caller's
 * Return:    it; -EAGAIN another holds it; -errno
 */
int rv__store_hold(int dir_fd, const char *name, int operation);

/** rv__store_prune_built() - remove wheels that none of the locks in @list names any more. Context: any thread. Ownership: borrows. Return: how many it removed */
unsigned rv__store_prune_built(const struct rv_store *store, const struct rv_store_list *list);
