/*
 * layer_verify.h - is a layer still what it was when it was made?
 *
 * Every file is read and hashed, and compared with the manifest, as are kinds, modes, links' targets and owners: nothing
 * more may be there and nothing less. Byte code is compared with the manifest that came with it; what of it is not there
 * is only slower. The lock in the layer has to have the digest that the layer is named by. Any thread.
 */
#pragma once

#include "store/packages.h"

#define RV_LAYER_E_DAMAGED 1
#define RV_LAYER_E_ABSENT 2

/* What was found: @path from the layer's directory; @fault in words. */
typedef void (*rv_layer_fault_fn)(void *ctx, const char *path, const char *fault);

struct rv_layer_count {
        uint64_t n_files, bytes, n_faults;
};

/**
 * rv_layer_verify() - look at all of a layer
 * @on_fault: for each fault; may be NULL
 * @ret:      what was looked at, also of a damaged layer
 *
 * Context:   any thread, without privilege; blocks for as long as reading takes
 * Ownership: borrows
 * Return:    0 good; RV_LAYER_E_DAMAGED; RV_LAYER_E_ABSENT; -EINVAL @digest is none; -ENOMEM; -errno
 */
int rv_layer_verify(struct rv_store *store, const char *digest, rv_layer_fault_fn on_fault, void *ctx,
        struct rv_layer_count *ret, struct rv_error *err);
