/*
 * acquire_private.h - what the files of acquire.h share
 *
 * As there.
 */
#pragma once

#include "package/acquire.h"

/* What became of one package of a closure or a lock. */
struct rv_artifact {
        struct rv_arena *arena;          /* of its texts */
        const char *url;                 /* where it was fetched */
        bool is_there, is_prefetched;    /* the file is; it was before the closure was */
        const char *sha256, *sha512;     /* of the file, as reeve-unpack read it */
        const char *license;
        const json_t *fault;             /* what is wrong with it, beside its hash; into the list of the scan */
        uint64_t size_bytes;
        int64_t published_at;
        bool has_published_at, is_yanked, has_install_script, has_registry_hash;
};

/** rv__acquire_artifacts() - one for each of a closure's or a lock's packages, of which nothing is known yet. Context: any. Ownership: the caller's (free), texts in @arena. Return: them, or NULL */
struct rv_artifact *rv__acquire_artifacts(const json_t *packages, struct rv_arena *arena);
/** rv__acquire_fail() - a failure. Context: any. Ownership: @code and @cause are static. Return: RV_ACQUIRE_E_FAILED */
int rv__acquire_fail(struct rv_package_failure *f, const char *code, const char *cause, bool is_retryable,
        const char *package, const char *fmt, ...) RV_PRINTF(6, 7);
/** rv__acquire_name_file() - how the registry, or npm, calls the artifact. Context: any. Ownership: a new reference. Return: the name, or NULL */
json_t *rv__acquire_name_file(const json_t *package, enum rv_language language);
/** rv__acquire_fetch() - fetch what is not there; @pages NULL: only what can be without them. Context: blocks. Ownership: borrows. Return: as rv_acquire() */
int rv__acquire_fetch(const struct rv_acquire *in, const json_t *packages, struct rv_artifact *artifacts,
        const json_t *pages, struct rv_package_failure *f, struct rv_error *err);
/** rv__acquire_explain() - what came in place of an artifact of at most @most bytes, told of the registry. Context: any. Ownership: borrows. Return: RV_ACQUIRE_E_FAILED */
int rv__acquire_explain(
        const struct rv_fetch_item *item, const json_t *package, size_t most, struct rv_package_failure *f);
/** rv__acquire_is_built() - is it no file of the registry? Context: any. Ownership: borrows. Return: as named */
bool rv__acquire_is_built(const json_t *package);
/** rv__acquire_find_built() - the entry of what was built that a closure's package is. Context: any. Ownership: borrowed from @in. Return: it, or NULL */
const json_t *rv__acquire_find_built(const struct rv_acquire *in, const json_t *package);
/** rv__acquire_take_built() - have the file that was built. Context: blocks on the disk. Ownership: borrows. Return: as rv_acquire() */
int rv__acquire_take_built(const struct rv_acquire *in, const json_t *package, size_t index, struct rv_artifact *a,
        struct rv_package_failure *f);
/** rv__acquire_scan() - have reeve-unpack read all of them; *@ret is its list. Context: blocks. Ownership: a new reference. Return: as rv_acquire() */
int rv__acquire_scan(const struct rv_acquire *in, const json_t *packages, struct rv_artifact *artifacts, json_t **ret,
        struct rv_package_failure *f, struct rv_error *err);
/** rv__acquire_compare() - closure, pages and bytes have to agree; the facts come from the latter two. Context: any. Ownership: borrows. Return: 0 or RV_ACQUIRE_E_FAILED */
int rv__acquire_compare(const struct rv_acquire *in, const json_t *packages, struct rv_artifact *artifacts,
        const json_t *pages, struct rv_package_failure *f);
/** rv__acquire_check_hashes() - are the artifacts those that a lock names, and fit to be installed? Context: any. Ownership: borrows. Return: 0 or RV_ACQUIRE_E_FAILED */
int rv__acquire_check_hashes(const json_t *packages, const struct rv_artifact *artifacts, struct rv_package_failure *f);
/** rv__acquire_paths() - the way from a requested package to each. Context: any. Ownership: a new reference. Return: 0 or -ENOMEM */
int rv__acquire_paths(const struct rv_acquire *in, const json_t *packages, const json_t *scanned, json_t **ret);
