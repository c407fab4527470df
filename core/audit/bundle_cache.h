/*
 * bundle_cache.h - bundles by their digest, from a directory in which each has its own (policy/bundle.h)
 *
 * A log names the bundle of each decision; in a stretch of it there are few. The last used ones stay loaded, at most
 * RV_BUNDLE_CACHE_MAX; one that is not there, or that is not what its name says, is remembered too. Zeroed but for
 * `dir_fd` is empty. One thread.
 */
#pragma once

#include "policy/bundle.h"

#define RV_BUNDLE_CACHE_MAX 8

struct rv_bundle_cache {
        int dir_fd;                              /* borrowed; -EBADF: nothing but the default bundle is to be had */
        uint64_t clock;
        struct {
                char digest[65];
                struct rv_bundle *bundle;        /* NULL: cannot be had */
                uint64_t used;
        } entries[RV_BUNDLE_CACHE_MAX];
};

/**
 * rv_bundle_cache_get() - the bundle of that digest
 * @digest: @n bytes, not trusted
 * @ret:    NULL if it is not there, cannot be loaded, or has another digest
 *
 * Context:   may block
 * Ownership: *@ret is the cache's, until the next call
 * Return:    0; -ENOMEM
 */
int rv_bundle_cache_get(struct rv_bundle_cache *c, const char *digest, size_t n, const struct rv_bundle **ret);
/** rv_bundle_cache_fini() - release. Context: any. Ownership: takes the bundles. Return: none */
void rv_bundle_cache_fini(struct rv_bundle_cache *c);
