/*
 * npmrange.h - a JavaScript package as npm writes it: `name@range`, `@scope/name@range`
 *
 * Names follow the rules for new npm packages; ranges the grammar of node-semver (range.bnf), in its strict
 * reading, with the spaces and the "v" that it allows: `||`, hyphen ranges, `^`, `~`, x-ranges, comparators,
 * pre-releases, build metadata; besides `*` the tag `latest`. Refused on purpose: every other tag, URLs,
 * version control, paths, aliases, workspaces. Stricter than node-semver in what only its regular expressions
 * let through: a number behind an x (`1.x.3`), doubled prefixes (`==1`, `vv1`), a star glued to a version.
 * No recursion; time linear in the text.
 */
#pragma once

#include "request/package.h"

#define RV_NPMREQ_E_INVALID 1

/**
 * rv_npmreq_parse() - one package with its range
 * @text:  need not end in NUL; its length is the caller's to bound
 * @ret:   filled on 0 (rv_package_fini releases it), untouched otherwise. The constraint is the range as
 *         written with each run of spaces made one, or "latest"
 * @fault: set on RV_NPMREQ_E_INVALID; may be NULL. A name without a range is `missing`, a kind that reeve does
 *         not take `unsupported`, anything else `pattern`
 *
 * Context:   any thread
 * Ownership: borrows @text
 * Return:    0; RV_NPMREQ_E_INVALID; -ENOMEM
 */
int rv_npmreq_parse(const char *text, size_t n, struct rv_package *ret, struct rv_fault *fault);

/**
 * rv_npmrange_check() - is a text a range, and does it name one exact version?
 * @ret_is_pinned: set on 0; `X.Y.Z` or `=X.Y.Z` alone, with a pre-release or build or without; may be NULL
 * @ret_at:        set on RV_NPMREQ_E_INVALID: where in the text it stops being one
 * @fault:         set on RV_NPMREQ_E_INVALID; may be NULL
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    0 or RV_NPMREQ_E_INVALID
 */
int rv_npmrange_check(const char *text, size_t n, bool *ret_is_pinned, size_t *ret_at, struct rv_fault *fault);
