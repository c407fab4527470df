/*
 * index_python.h - one page of a Python index (PEP 691 with PEP 700, or PEP 503), normalised
 *
 *     {"name","language":"python","status":"ok","text":"","http_status":200,
 *      "versions":{"1.2":{"published_at"?:N,"yanked":bool,
 *              "files":[{"file","url","sha256"?,"size_bytes"?,"requires_python"?,"published_at"?,"yanked"}]}}}
 *
 * Versions are in their normal form (PEP 440). Files that are neither wheel nor source archive of the project, or whose
 * version is none, are left out, as installers do. A version's time is that of its first file; it is yanked if all of
 * its files are. What a page says is not trusted: texts are bounded and without control characters, addresses are http
 * or https. A page is no index's page if it has another form: a sign-in page, say.
 *
 * Plain functions on the caller's memory; any thread.
 */
#pragma once

#include "base/json.h"

#define RV_INDEX_BYTES_MAX ((size_t)64 << 20)
#define RV_INDEX_FILES_MAX 200000u

/**
 * rv_index_python_read() - read a page
 * @text:         @n bytes, at most RV_INDEX_BYTES_MAX
 * @content_type: the answer's, or ""
 * @url:          the page's: what relative links start from
 * @name:         the project's canonical name
 * @ret:          untouched on failure
 *
 * Context:   any thread
 * Ownership: a new reference
 * Return:    0; -EBADMSG it is no page of an index: @err says why; -ENOMEM
 */
int rv_index_python_read(const char *text, size_t n, const char *content_type, const char *url, const char *name,
        json_t **ret, struct rv_error *err);
