/*
 * packages_list.h - what is in the store of packages, and what of it can go
 *
 *   rv_store_list() -> look at it -> rv_store_list_fini()
 *   rv_store_prune()
 *
 * A layer goes when it was not used for so long, or, the least recently used first, while all of them are larger than
 * they may be; never while somebody uses it. Held locks do not go with their layers: a lock that is still good builds
 * the layer again, byte for byte. They go when nobody asked for them for so long. Any thread.
 */
#pragma once

#include "store/packages.h"

struct rv_store_layer {
        char digest[RV_SHA256_HEX_SIZE];
        char language[16], runtime[129];  /* of its lock; "" if that cannot be read */
        size_t n_packages;
        uint64_t last_use_us;            /* microseconds since 1970 */
        uint64_t bytes;                  /* on the disk */
        bool is_in_use, is_compiled;
};

struct rv_store_held {
        char key[RV_SHA256_HEX_SIZE];
        uint64_t last_use_us, bytes;
};

struct rv_store_list {
        struct rv_store_layer *layers;   /* the least recently used first */
        size_t n_layers;
        struct rv_store_held *locks;     /* likewise */
        size_t n_locks;
        uint64_t layers_bytes;
};

/**
 * rv_store_list() - look through layers/ and locks/
 * @ret: untouched on failure
 *
 * Context:   any thread; walks through every layer to add up its size
 * Ownership: borrows; release with rv_store_list_fini()
 * Return:    0; -ENOMEM; -EPERM layers/ is another's; -errno
 */
int rv_store_list(struct rv_store *store, struct rv_store_list *ret, struct rv_error *err);
/** rv_store_list_fini() - release. Context: any. Ownership: takes the content. Return: none */
void rv_store_list_fini(struct rv_store_list *list);

/* Locks go after that time without use, if no other is given. */
#define RV_STORE_LOCK_IDLE_US (UINT64_C(90) * 86400 * 1000000)

struct rv_store_prune {
        uint64_t now_us;
        uint64_t older_us;               /* without use for so long; 0: age is no reason, but for locks */
        uint64_t max_bytes;              /* of all layers; UINT64_MAX: size is no reason */
        bool is_dry;                     /* only tell */
        int (*remove)(void *ctx, const char *digest, struct rv_error *err);   /* a layer, which nobody uses; may need privilege */
        void (*tell)(void *ctx, const struct rv_store_layer *layer, const char *why);   /* one that goes; may be NULL */
        void *ctx;
};

struct rv_store_pruned {
        size_t n_layers, n_locks, n_in_use;   /* n_in_use: would have gone */
        uint64_t bytes, left_bytes;      /* of layers */
};

/**
 * rv_store_prune() - let go what is old or too much
 *
 * Context:   any thread; blocks for as long as the disk takes
 * Ownership: borrows
 * Return:    0; as rv_store_list() and @p->remove. What was removed before a failure is in @ret
 */
int rv_store_prune(
        struct rv_store *store, const struct rv_store_prune *p, struct rv_store_pruned *ret, struct rv_error *err);
