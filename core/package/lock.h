/*
 * lock.h - exactly which artifacts a request's packages come to: reeve.lock/1
 *
 *     { "schema": "reeve.lock/1", "language": "python" | "javascript",
 *       "runtime": { "tag": "cp311-linux_x86_64", "version": "3.11", "interpreter": "/usr/bin/python3" },
 *       "packages": [ { "name", "version", "file", "hash": "sha256:…", "url", "kind": "wheel" | "npm" | "built",
 *                       "size_bytes", "license", "direct", "requested", "extras", "yanked", "install_script",
 *                       "registry_hash", "path",
 *                       "published_at"            where it is known
 *                       "integrity", "at"         of javascript } ] }
 *
 * Packages stand sorted by name, version and file, bytewise. `path` leads from a requested package to this one, both
 * included; `url` is empty of what was built, and of nothing else; `requested` is what was asked for a direct one, else empty; `at` lists the places of a node_modules tree
 * that the package fills. What takes part in what is installed gives the lock its digest, which names the layer; the
 * rest (where it was fetched, when it was published) does not.
 *
 * A lock is a json_t. One that was read from anywhere is nobody's word: rv_lock_check() says whether it keeps to all of
 * the above and to the bounds, and everything else here wants one that does. Plain functions; one thread at a time for a
 * value.
 */
#pragma once

#include "base/hash.h"
#include "base/json.h"

#define RV_LOCK_SCHEMA "reeve.lock/1"
#define RV_LOCK_BYTES_MAX ((size_t)16 << 20)      /* of a lock's text */
#define RV_LOCK_DEPTH_MAX 8
#define RV_LOCK_PACKAGES_MAX 2000
#define RV_LOCK_URL_MAX 4096                      /* bytes, here and below */
#define RV_LOCK_TEXT_MAX 1024                     /* of a license, a runtime's tag or interpreter */
#define RV_LOCK_REQUESTED_MAX 16384
#define RV_LOCK_PATH_MAX 256                      /* names of a path */
#define RV_LOCK_EXTRAS_MAX 64
#define RV_LOCK_PLACE_MAX 1024                    /* bytes of one place of `at` */
#define RV_LOCK_PLACES_MAX 2000                   /* in all of a lock */

/**
 * rv_lock_check() - is a value a lock, whole and within the bounds?
 * @err: where (a JSON pointer), what, and what to do
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    0; -EINVAL; -ENOMEM
 */
int rv_lock_check(const json_t *lock, struct rv_error *err);

/**
 * rv_lock_read() - a lock from its text, in whatever layout
 * @text: @n bytes, not trusted
 * @ret:  untouched on failure
 *
 * Context:   any thread
 * Ownership: a new reference
 * Return:    0; -EINVAL it is no JSON, or no lock; -EFBIG; -ELOOP; -ENOMEM
 */
int rv_lock_read(const char *text, size_t n, json_t **ret, struct rv_error *err);

/** rv_lock_write() - the lock in canonical form and a newline. Context: any. Ownership: copies to @out. Return: 0 or -ENOMEM */
int rv_lock_write(const json_t *lock, struct rv_buf *out);

/** rv_lock_digest() - SHA-256, as hex, of what is installed: language, runtime, and each package's name, version, hash, file and places. Context: any. Ownership: borrows. Return: 0 or -ENOMEM */
int rv_lock_digest(const json_t *lock, char ret_hex[RV_SHA256_HEX_SIZE]);

/** rv_lock_public() - the packages as outcomes list them: without url, integrity, at and file. Context: any. Ownership: a new reference, or NULL: out of memory. Return: the list */
json_t *rv_lock_public(const json_t *lock);
