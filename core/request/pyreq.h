/*
 * pyreq.h - a Python requirement: PEP 508 `name[extras] specifier` with PEP 440 version specifiers
 *
 * The grammar is that of the PyPA specifications "Dependency specifiers" (also with the form `name (>=1)` and
 * one comma behind the last clause) and "Version specifiers". Refused on purpose: environment markers, direct
 * references (`name @ URL`), paths, options. Stricter than the common implementation in one thing: a
 * separator at the end of a version (`1.0a.`) is no part of one. No recursion; time linear in the text.
 */
#pragma once

#include "request/package.h"

#define RV_PYREQ_E_INVALID 1

/**
 * rv_pyreq_parse() - one requirement
 * @text:  need not end in NUL; its length is the caller's to bound
 * @ret:   filled on 0 (rv_package_fini releases it), untouched otherwise. The name and the extras are canonical
 *         as PEP 503 and PEP 685 say; the constraint is the clauses as written, without spaces, joined by ","
 * @fault: set on RV_PYREQ_E_INVALID; may be NULL. A requirement without a version constraint is `missing`,
 *         a kind that reeve does not take `unsupported`, anything else `pattern`
 *
 * Context:   any thread
 * Ownership: borrows @text
 * Return:    0; RV_PYREQ_E_INVALID; -ENOMEM
 */
int rv_pyreq_parse(const char *text, size_t n, struct rv_package *ret, struct rv_fault *fault);
