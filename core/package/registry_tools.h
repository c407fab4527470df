/*
 * registry_tools.h - what a run's own pip or npm goes by, in network mode registries
 *
 * Variables that name the index and the certificates, without credentials, and a few that fit the tool to a run: no
 * questions, no look for newer versions, no copies kept in what is the run's memory, no long waits for what is refused.
 *
 *   rv_registry_tools_make -> (a plan borrows it) -> rv_registry_tools_fini
 *
 * Zero-initialised is empty. One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "package/registry.h"

#include <reeve/backend.h>

#define RV_REGISTRY_TOOLS_ENV_MAX 24

struct rv_registry_tools {
        struct rv_plan_env env[RV_REGISTRY_TOOLS_ENV_MAX];
        size_t n_env;
        struct rv_buf ca;            /* the certificates, where they lie outside of the run; else empty */
        struct rv_arena arena;       /* of the texts */
};

/**
 * rv_registry_tools_make() - of a complete registry
 * @root: of the run's runtime, "host" or a directory: whose certificates count where the registry has none of its own
 *
 * Context:   without privilege; reads the certificates' file
 * Ownership: the content of @ret is the caller's
 * Return:    0; -ENOMEM; -errno of the file, -EFBIG past RV_PLAN_CA_BYTES_MAX: @err names it; @ret is untouched then
 */
int rv_registry_tools_make(
        const struct rv_registry *r, const char *root, struct rv_registry_tools *ret, struct rv_error *err);
/** rv_registry_tools_fini() - wipe the texts, which a resolver's have credentials in, and release. Context: any. Ownership: takes the content. Return: none */
void rv_registry_tools_fini(struct rv_registry_tools *t);
