/*
 * metadata_cache.h - pages that are kept: one file each in a directory of nothing else
 *
 * A file's name is the SHA-256 of the registry and the package; it holds a line with the SHA-256 of what follows, and
 * the page. It is written whole or not at all, its age is that of the file, and what cannot be read, is too old, from
 * the future, or not what was written counts as absent. The oldest go when there are too many.
 *
 * Any thread, any number of processes.
 */
#pragma once

#include "package/metadata.h"

#define RV_METADATA_CACHE_FILES_MAX 4000u
#define RV_METADATA_CACHE_BYTES_MAX ((uint64_t)256 << 20)

/** rv_metadata_cache_get() - a page that is young enough. Context: reads a file. Ownership: a new reference. Return: it, or NULL */
json_t *rv_metadata_cache_get(const struct rv_metadata_source *src, const char *name);
/** rv_metadata_cache_put() - keep a page; if that fails it is not kept. Context: writes a file. Ownership: borrows. Return: none */
void rv_metadata_cache_put(const struct rv_metadata_source *src, const char *name, const json_t *page);
/**
 * rv_metadata_cache_prune() - remove the oldest files past a number or a size
 *
 * Context:   reads a directory
 * Ownership: borrows @dir_fd
 * Return:    how many were removed
 */
size_t rv_metadata_cache_prune(int dir_fd, size_t max_files, uint64_t max_bytes);
