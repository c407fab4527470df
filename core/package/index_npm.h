/*
 * index_npm.h - one document of an npm registry (a "packument", full or abbreviated), normalised
 *
 *     {"name","language":"javascript","status":"ok","text":"","http_status":200,"latest"?:"1.2.3",
 *      "versions":{"1.2.3":{"published_at"?:N,"tarball","integrity","license"?,"install_script":bool,"deprecated"?:"…",
 *              "os"?:[…],"cpu"?:[…],"libc"?:[…]}}}
 *
 * Versions that are none (Semantic Versioning) or have no address for their archive are left out; `integrity` is "" if
 * the registry gives none; `license` is there only if it is stated as one text. What a document says is not trusted:
 * texts are bounded and without control characters, addresses are http or https.
 *
 * Plain functions on the caller's memory; any thread.
 */
#pragma once

#include "package/index_python.h"

/**
 * rv_index_npm_read() - read a document
 * @text: @n bytes, at most RV_INDEX_BYTES_MAX; its content type is not looked at, as npm does not either
 * @url:  the document's
 * @name: whose it has to be
 * @ret:  untouched on failure
 *
 * Context:   any thread
 * Ownership: a new reference
 * Return:    0; -EBADMSG it is no such document: @err says why; -ENOMEM
 */
int rv_index_npm_read(
        const char *text, size_t n, const char *url, const char *name, json_t **ret, struct rv_error *err);
