/*
 * layer_manifest.h - what the manifest of a layer says of its files: reeve.manifest/1
 *
 *     { "schema": "reeve.manifest/1",
 *       "entries": [ { "path", "type": "file" | "link" | "directory", "mode", "size", "sha256" (file) | "target" (link) } ] }
 *
 * Paths lead from tree/, and stand in bytewise order. The text is not trusted. Plain memory; any thread.
 */
#pragma once

#include "base/hash.h"
#include "base/json.h"

#define RV_MANIFEST_SCHEMA "reeve.manifest/1"
#define RV_MANIFEST_BYTES_MAX ((size_t)512 << 20)
#define RV_MANIFEST_PATH_MAX 2047

enum rv_manifest_type { RV_MANIFEST_FILE, RV_MANIFEST_LINK, RV_MANIFEST_DIRECTORY };

struct rv_manifest_entry {
        const char *path, *target;       /* the manifest's; target: of a link */
        const char *sha256;              /* of a file, hex */
        enum rv_manifest_type type;
        uint32_t mode;
        uint64_t size;                   /* of a file; of a link its target's length */
        bool is_seen;                    /* whoever compares may set it */
};

struct rv_manifest {
        json_t *document;                /* has the texts */
        struct rv_manifest_entry *entries;
        size_t n;
};

/**
 * rv_manifest_read() - a manifest from its text
 * @ret: untouched on failure
 *
 * Context:   any
 * Ownership: release with rv_manifest_fini()
 * Return:    0; -EINVAL it is none: @err says where and why; -ENOMEM
 */
int rv_manifest_read(const char *text, size_t n, struct rv_manifest *ret, struct rv_error *err);
/** rv_manifest_fini() - release. Context: any. Ownership: takes the content. Return: none */
void rv_manifest_fini(struct rv_manifest *m);
/** rv_manifest_find() - the entry of a path. Context: any. Ownership: borrowed from @m. Return: it, or NULL */
struct rv_manifest_entry *rv_manifest_find(const struct rv_manifest *m, const char *path);
