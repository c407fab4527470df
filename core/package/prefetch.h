/*
 * prefetch.h - what a package manager will probably choose, fetched while it is still choosing
 *
 * A package manager takes most of the time that finding packages takes, and what is fetched after it is mostly what anybody
 * would guess: of each package that is asked for the newest version that was asked for, and of what that needs the newest.
 * So the pages and the wheels of those are fetched meanwhile. It is a guess and no more: the closure says what is
 * installed, and what was fetched for it is judged as anything else; what was not needed is thrown away. Python's only.
 *
 * Blocks, until it is told to stop or there is nothing left to guess; any thread.
 */
#pragma once

#include "package/metadata.h"
#include "request/package.h"

#define RV_PREFETCH_FILES_MAX 64u
#define RV_PREFETCH_FILE_SIZE 16

struct rv_prefetched {
        struct {
                char *url;
                char file[RV_PREFETCH_FILE_SIZE];        /* in the directory; "" once it was taken */
                json_t *asked, *found;                   /* of reeve-unpack, and what it said; NULL: it was not, or there is a fault */
        } files[RV_PREFETCH_FILES_MAX];
        size_t n_files;
        json_t *pages;                   /* those that were read, by name; NULL: none */
};

/**
 * rv_prefetch() - guess and fetch
 * @source:    its `stop` ends this, and costs what is under way
 * @unpack_fd: of the helper that reads wheels
 * @dir_fd:    gets the wheels
 * @tag:       of the runtime, as far as it is known (wheel_tags.h)
 * @ret:       what is there; rv_prefetched_fini()
 *
 * Context:   blocks
 * Ownership: the content of @ret is the caller's
 * Return:    none
 */
void rv_prefetch(const struct rv_metadata_source *source, int unpack_fd, int dir_fd, const struct rv_package *packages,
        size_t n_packages, const char *tag, struct rv_prefetched *ret);

/** rv_prefetched_take() - the file of an address becomes @name, if it is there. Context: any. Ownership: borrows. Return: was it? */
bool rv_prefetched_take(struct rv_prefetched *p, int dir_fd, const char *url, const char *name);
/**
 * rv_prefetched_scan() - what was found in a file when it was looked at
 * @asked: an entry of a scan's job (unpack.h), but for `file`
 *
 * Context:   any
 * Ownership: borrowed from @p
 * Return:    the entry of the scan's result, of another `file`; NULL: it was not looked at, not as that, or had a fault
 */
const json_t *rv_prefetched_scan(const struct rv_prefetched *p, const char *url, const json_t *asked);
/** rv_prefetched_fini() - forget; files that were not taken stay in the directory. Context: any. Ownership: takes the content. Return: none */
void rv_prefetched_fini(struct rv_prefetched *p);
