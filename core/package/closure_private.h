/*
 * closure_private.h - what the parts of the closure's reader share
 *
 * A `struct rv__closure` lives on the stack of rv_closure_read(); the readers of the languages fill its lists, or its
 * `end` before they return RV_CLOSURE_E_*. One thread.
 */
#pragma once

#include "package/closure.h"
#include "policy/version.h"

struct rv__closure {
        enum rv_language language;
        const struct rv_package *requested;
        size_t n_requested;
        const char *tag;                  /* of the runtime; checked */
        json_t *packages, *not_installed;
        json_t *end;                      /* why there is no list */
};

/** rv__closure_refuse() - a package must not be installed. Context: any. Ownership: copies. Return: RV_CLOSURE_E_REFUSED, or -ENOMEM */
int rv__closure_refuse(struct rv__closure *c, const char *cause, const char *package, const char *fmt, ...)
        RV_PRINTF(4, 5);

/** rv__closure_platform() - a package is for another platform. Context: any. Ownership: copies. Return: RV_CLOSURE_E_FAILED, or -ENOMEM */
int rv__closure_platform(struct rv__closure *c, const char *package, const char *text);

/** rv__closure_too_large() - there are @n packages. Context: any. Ownership: none. Return: RV_CLOSURE_E_TOO_LARGE, or -ENOMEM */
int rv__closure_too_large(struct rv__closure *c, size_t n);

/** rv__closure_text() - member @key, if it is a text of 1 to @max bytes without control characters. Context: any. Ownership: borrowed from @object. Return: the text or NULL */
const char *rv__closure_text(const json_t *object, const char *key, size_t max);

/**
 * rv__closure_asked() - note in an entry what of it was asked for: `direct`, `requested`, `extras`
 * @is_candidate: it lies where a package that was asked for is looked for
 *
 * Context:   any
 * Ownership: adds to @entry
 * Return:    0; RV_CLOSURE_E_REFUSED the version is not one that was asked for; -ENOMEM
 */
int rv__closure_asked(struct rv__closure *c, json_t *entry, bool is_candidate);

/** rv__closure_sort() - order a list of packages by name, version and file, bytewise. Context: any. Ownership: borrows. Return: 0; -ENOMEM */
int rv__closure_sort(json_t *packages);
/** rv__closure_sort_texts() - order a list of texts bytewise, each once. Context: any. Ownership: borrows. Return: 0; -ENOMEM */
int rv__closure_sort_texts(json_t *list);

/** rv__closure_has_all() - is every requested package in the list? Context: any. Ownership: borrows. Return: 0; RV_CLOSURE_E_REFUSED; -ENOMEM */
int rv__closure_has_all(struct rv__closure *c);

/** rv__python_satisfies() - is a version in a constraint as rv_pyreq_parse() gives it? Context: any. Ownership: borrows. Return: as named */
bool rv__python_satisfies(const char *constraint, const char *text, const struct rv_version *version);

/**
 * rv__npm_satisfies() - is a version in an npm range, as rv_npmreq_parse() gives it?
 *
 * Order alone decides about pre-releases, but that none is in the range below its own release's next (`^1` has no 2.0.0-a).
 *
 * Context:   any
 * Ownership: borrows
 * Return:    as named; of "latest" and of "" any is
 */
bool rv__npm_satisfies(const char *range, const struct rv_version *version);

/** rv__closure_python() - fill `packages` from a driver's list. Context: any. Ownership: borrows. Return: as rv_closure_read() */
int rv__closure_python(struct rv__closure *c, const json_t *list, struct rv_error *err);
/** rv__closure_npm() - fill `packages` and `not_installed` from a package-lock.json. Context: any. Ownership: borrows. Return: as rv_closure_read() */
int rv__closure_npm(struct rv__closure *c, const json_t *lock, struct rv_error *err);
