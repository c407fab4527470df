/*
 * source.h - wheels that are built here: the source archive, what a build answers
 *
 * Where policy lets a package be built (`allow_source_build`) and the registry has no wheel of it that would do, its
 * source archive is fetched, and a driver (drivers.h) builds a wheel of it in a sandbox without network.
 *
 *     rv_package_diagnose() -> rv_source_fetch() -> (ask) rv_source_read_requires() -> (build) rv_source_read_wheel()
 *                           -> rv_source_check_wheel()
 *
 * A source is {"name","version","file","url","yanked","page"} with "sha256", "published_at" and "size_bytes" where the registry
 * tells them; "page" is the registry's page of the package. What a driver answers is a stranger's. What fetches and what
 * checks blocks, the others are plain functions; any thread.
 */
#pragma once

#include "package/acquire.h"
#include "package/index_file.h"

#define RV_SOURCE_BYTES_MAX ((size_t)48 << 20)        /* of an archive, and of a wheel that is built of it */
#define RV_SOURCE_REQUIRES_MAX 50u                    /* what one build needs, as a request's packages */
#define RV_SOURCE_HEAD_MAX ((size_t)64 << 10)         /* bytes of an answer's first line */

#define RV_SOURCE_E_OTHER 2

/**
 * rv_source_fetch() - the bytes of a source archive, as the registry names them by their hash
 * @ret: empty before
 *
 * Context:   blocks until the source's deadline at most
 * Ownership: the caller's memory
 * Return:    0; RV_ACQUIRE_E_FAILED; -ENOMEM; -errno the helper failed
 */
int rv_source_fetch(const struct rv_acquire *in, const json_t *source, struct rv_buf *ret,
        struct rv_package_failure *ret_failure, struct rv_error *err);

/**
 * rv_source_read_requires() - what a build says that it needs, put to what was known before
 * @text:  @n bytes as the driver printed them: its first line
 * @into:  package strings, sorted, each once; changed on 0
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; RV_SOURCE_E_OTHER it is no such answer; RV_ACQUIRE_E_FAILED it needs what cannot be asked for; -ENOMEM
 */
int rv_source_read_requires(const char *text, size_t n, const json_t *source, json_t *into,
        struct rv_package_failure *ret_failure);

struct rv_source_wheel {
        char file[RV_INDEX_NAME_MAX + 1];
        const char *data;            /* points into the answer */
        size_t bytes;
};

/**
 * rv_source_read_wheel() - the wheel that a build printed
 * @tag: of the runtime, "cp311-linux_x86_64"
 *
 * Its name has to be the package's and the version the source's, and the runtime has to be able to take it.
 *
 * Context:   any
 * Ownership: @ret points into @text
 * Return:    0; RV_ACQUIRE_E_FAILED
 */
int rv_source_read_wheel(const char *text, size_t n, const json_t *source, const char *tag, struct rv_source_wheel *ret,
        struct rv_package_failure *ret_failure);

/**
 * rv_source_check_wheel() - is the wheel what its name says, and harmless, as everything that is installed has to be?
 *
 * Before a package manager sees it, which would tell less of it.
 *
 * Context:   blocks until the source's deadline at most
 * Ownership: borrows; leaves nothing in the directory of artifacts
 * Return:    0; RV_ACQUIRE_E_FAILED; -ENOMEM; -errno the helper failed
 */
int rv_source_check_wheel(const struct rv_acquire *in, const json_t *source, const struct rv_source_wheel *wheel,
        struct rv_package_failure *ret_failure, struct rv_error *err);
