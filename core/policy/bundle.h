/*
 * bundle.h - a policy bundle: its files in memory, named by a digest
 *
 * A bundle is a directory:
 *
 *     policy.lua          the entry; the only file that must be there
 *     lib/x.lua           modules, reached with `use "lib/x"`                at most 64 KiB each
 *     data/NAME.json      datasets, reached with `data "name"`               1 MiB each, depth 32
 *     tests/NAME_test.lua its tests; part of the digest, never run here      64 KiB each
 *     bundle.yaml         name, version, description                         16 KiB
 *
 * At most 256 files, 8 MiB in all, four directories deep, paths of 59 bytes (Lua's messages name those whole)
 * of letters, digits and `_ . - /`. Names that begin with a dot or end with `~`, and files of other kinds (a
 * README, an editor's settings), are no part of a bundle: they are neither read nor in its digest. A link that
 * would be a part is an error, since what it names could change under the digest.
 *
 * The digest is the SHA-256 of what `sha256sum` prints for the files in bytewise order of their paths: for each
 * one 64 hex digits, two blanks, the path below the directory, a newline.
 *
 * A bundle is loaded whole, before any Lua of it runs, and never changes afterwards: any number of threads may
 * evaluate it at once until one calls rv_bundle_free().
 */
#pragma once

#include "base/error.h"

#define RV_BUNDLE_LUA_SIZE_MAX (64 * 1024)
#define RV_BUNDLE_DATA_SIZE_MAX (1024 * 1024)
#define RV_BUNDLE_YAML_SIZE_MAX (16 * 1024)
#define RV_BUNDLE_SIZE_MAX (8 * 1024 * 1024)
#define RV_BUNDLE_FILES_MAX 256
#define RV_BUNDLE_ENTRIES_MAX 4096      /* directory entries looked at, of any kind */
#define RV_BUNDLE_DEPTH_MAX 4
#define RV_BUNDLE_PATH_MAX 59
#define RV_BUNDLE_DATA_DEPTH_MAX 32
#define RV_BUNDLE_NAME_MAX 100          /* bytes of the name and of the version in bundle.yaml */
#define RV_BUNDLE_DESCRIPTION_MAX 2000

struct rv_bundle;

/**
 * rv_bundle_load() - read a directory
 * @dir:  may itself be a link (an operator's `current`)
 * @ret:  untouched on failure
 * @err:  names the file, with its line where there is one ("bundle.yaml:3: …")
 *
 * Context:   blocks on the disk; runs no Lua
 * Ownership: the bundle goes to the caller: rv_bundle_free()
 * Return:    0; -ENOENT no such directory or no policy.lua; -EFBIG, -E2BIG a bound; -ELOOP a link; -EINVAL
 *            a name or a file's text; -ENOMEM; -errno
 */
int rv_bundle_load(const char *dir, struct rv_bundle **ret, struct rv_error *err);

/**
 * rv_bundle_error_place() - take apart the message of a bundle that could not be loaded
 * @ret_file: the file of the bundle that is at fault, or ""
 * @ret_line: its line, or 0
 *
 * Context:   any
 * Ownership: borrows
 * Return:    the message without the place, a part of @err
 */
const char *rv_bundle_error_place(const struct rv_error *err, char ret_file[RV_BUNDLE_PATH_MAX + 1], int *ret_line);

/** rv_bundle_builtin() - the default bundle, compiled in. Context: any; costs nothing but an allocation. Ownership: to the caller: rv_bundle_free(). Return: 0 or -ENOMEM */
int rv_bundle_builtin(struct rv_bundle **ret);

/** rv_bundle_free() - Context: any, when nobody evaluates it any more. Ownership: takes @b, may be NULL. Return: none */
void rv_bundle_free(struct rv_bundle *b);
RV_DEFINE_CLEANUP(struct rv_bundle, rv_bundle_free)

/** rv_bundle_digest() - 64 lower-case hex digits. Context: any. Ownership: borrowed from @b. Return: the text */
const char *rv_bundle_digest(const struct rv_bundle *b);
/** rv_bundle_name() - from bundle.yaml. Context: any. Ownership: borrowed from @b. Return: the text, "" without one */
const char *rv_bundle_name(const struct rv_bundle *b);
/** rv_bundle_version() - from bundle.yaml. Context: any. Ownership: borrowed from @b. Return: the text, "" without one */
const char *rv_bundle_version(const struct rv_bundle *b);
/** rv_bundle_description() - from bundle.yaml. Context: any. Ownership: borrowed from @b. Return: the text, "" without one */
const char *rv_bundle_description(const struct rv_bundle *b);

/**
 * rv_bundle_keep() - store a copy as @dir/<digest>, so that any record that names it can be evaluated again
 * @dir: made if it is not there (mode 0700); the copy loads with rv_bundle_load() to the same digest
 *
 * The copy is written beside its place, synced and renamed: another process sees all of it or nothing. When it
 * is there already, one stat is all that happens.
 *
 * Context:   blocks on the disk
 * Ownership: borrows
 * Return:    0; -errno
 */
int rv_bundle_keep(const struct rv_bundle *b, const char *dir);
