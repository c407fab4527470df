/*
 * metadata.h - what a registry itself says of packages: their versions, files, times, as it is read by reeve
 *
 * The tools that resolve report few facts and cannot be trusted with any, so reeve asks the registry itself, by the
 * helper `reeve-fetch`, many packages at once. An answer is a *page*, a JSON object; its form where there is one is that
 * of index_python.h and index_npm.h. Where there is none, `status` says why, told from what happened and nothing else:
 *
 *     ok           the page is there
 *     missing      404, 410: the registry has no such package
 *     unreachable  no such host, no connection, no answer in time, or it broke off
 *     error        5xx, 429
 *     refused      401, 403, 407; or the address is one that may not be reached
 *     invalid      another status, another type, not parseable: a page for signing in, say
 *     tls          the server is not who it should be
 *
 *     {"name","language","status","text","http_status"}: `text` is the end of a sentence about it, "" if ok; http_status 0: none
 *
 * Pages that are ok are kept in a directory, each in a file of its own, and are used again until they are too old.
 *
 * Blocks; any thread, one at a time for a source. Pages are the caller's.
 */
#pragma once

#include "base/fetch.h"
#include "package/registry.h"

#define RV_METADATA_PAGE_MS 20000u       /* the longest that one page may take */

struct rv_metadata_source {
        const struct rv_registry *registry;      /* complete */
        const struct rv_config *config;          /* egress.resolve; may be NULL */
        int helper_fd;                           /* of rv_fetch_find() */
        int cache_dir_fd;                        /* a directory of nothing else; negative: nothing is kept */
        const _Atomic bool *stop;                /* may be NULL */
        uint64_t deadline_us;                    /* on rv_boot_us()'s clock */
        uint64_t cache_ttl_ms;                   /* how old a kept page may be; 0: none is used */
};

/**
 * rv_metadata_get() - the pages of many packages
 * @names:     canonical
 * @ret_pages: an object of pages by name; untouched on failure
 *
 * A page that pip's index lacks is looked for in its further ones, in their order.
 *
 * Context:   blocks until the deadline at most
 * Ownership: a new reference
 * Return:    0: there is a page for each, whatever its status; -EINVAL a name is none, or the registry has no index;
 *            -ECANCELED; -ENOMEM; -errno: the helper failed
 */
int rv_metadata_get(const struct rv_metadata_source *src, const char *const *names, size_t n, json_t **ret_pages,
        struct rv_error *err);

#define RV_METADATA_E_HOST 1

/**
 * rv_metadata_request() - a request to the registry, or to the host of one of its files
 * @page:  that names @url, or NULL: only hosts of the registry will do
 * @arena: of the texts in @q; it has to outlive it
 * @q:     gets url, ca, proxy, resolve, is_public_only and the timeout, and the registry's credentials behind its headers,
 *         where they are for that address; the rest is left alone. rv_metadata_request_wipe() before the arena goes
 *
 * The host and port have to be the registry's, or those of a file on @page. What is only learned from a page has to be
 * public, and https unless the index itself is not.
 *
 * Context:   any
 * Ownership: borrows the source
 * Return:    0; RV_METADATA_E_HOST the registry has no such host: nothing is changed; -EINVAL it is no address; -ENOMEM
 */
int rv_metadata_request(const struct rv_metadata_source *src, const json_t *page, const char *url,
        struct rv_arena *arena, struct rv_fetch_request *q);

#define RV_METADATA_REDIRECTS_MAX 3u

/**
 * rv_metadata_fetch() - rv_fetch_many() for files of the registry: a redirect to another of its hosts is followed
 * @items: of rv_metadata_request()
 *
 * To any other host it is RV_FETCH_REDIRECT_REFUSED, with a message that names the host.
 *
 * Context:   blocks until the deadline at most
 * Ownership: borrows; the answers are the caller's, all empty on failure
 * Return:    as there
 */
int rv_metadata_fetch(const struct rv_metadata_source *src, struct rv_fetch_item *items, size_t n, int dir_fd,
        struct rv_error *err);

/** rv_metadata_request_wipe() - no credentials stay in memory. Context: the request is done. Ownership: borrows. Return: none */
void rv_metadata_request_wipe(struct rv_fetch_request *q);

/** rv_metadata_version() - a page's entry of a version in whatever spelling. Context: any. Ownership: borrowed from @page. Return: it, or NULL */
json_t *rv_metadata_version(const json_t *page, const char *version);

/** rv_metadata_file() - a Python page's entry of a file. Context: any. Ownership: borrowed from @page. Return: it, or NULL */
json_t *rv_metadata_file(const json_t *page, const char *version, const char *file);

/**
 * rv_metadata_unfit() - the versions of which a file is not what is demanded of it
 * @tag:          a Python runtime's (wheel_tags.h): only wheels count that it could take; NULL: every file does
 * @cutoff_s:     Unix seconds: nothing that was published after it, or of which the registry does not say when; negative: any
 * @needs_hash:   nothing of which the registry tells no SHA-256; of Python alone
 * @ret_versions: a list of texts, in the order of versions
 *
 * One file that counts is enough, as whoever installs the version chooses the file.
 *
 * Context:   any
 * Ownership: a new reference
 * Return:    0 or -ENOMEM
 */
int rv_metadata_unfit(const json_t *page, const char *tag, int64_t cutoff_s, bool needs_hash, json_t **ret_versions);

/**
 * rv_metadata_versions() - the versions of a page in their order
 * @ret:   pointers into @page, the lowest first; *@ret_n of them
 *
 * Context:   any
 * Ownership: the array is the caller's (free)
 * Return:    0 or -ENOMEM
 */
int rv_metadata_versions(const json_t *page, const char ***ret, size_t *ret_n);
