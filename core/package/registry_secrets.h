/*
 * registry_secrets.h - the credentials of a registry, as they are kept: apart from all that a run may see
 *
 * Texts on the heap that are wiped before they are released, below a pointer that only the files of
 * registry_credentials.h follow. They come from addresses that have them (an index's, a further one's, a scope's, one of
 * `files`) and from npm's lines `//host/path/:_authToken`, `:_auth`, `:username` and `:_password`. A later one for the same place is in
 * place of the earlier one. What is too long or has characters that no credential has is as if it were not there.
 *
 *   rv__secrets_keep_*() -> registry_credentials.h -> rv__secrets_free()
 *
 * One thread at a time.
 */
#pragma once

#include "base/rv.h"

#include <stdlib.h>

#define RV__SECRETS_MAX 64
#define RV__SECRET_BYTES_MAX ((size_t)4096)

enum rv__secret_kind {
        RV__SECRET_INDEX,
        RV__SECRET_EXTRA,
        RV__SECRET_OTHER,            /* a scope's, or one of `files` */
        RV__SECRET_NPM,
};

struct rv__secret {
        enum rv__secret_kind kind;
        char *where;                 /* a URL without credentials; npm's: "//host/path/" */
        char *url;                   /* the URL with them; npm's: NULL */
        char *token;                 /* for Bearer */
        char *basic;                 /* for Basic, in base64 */
        char *user, *password;       /* npm's, the latter in base64: together they are one for Basic */
};

struct rv__secrets {
        struct rv__secret items[RV__SECRETS_MAX];
        size_t n;
};

/**
 * rv__secrets_keep_url() - keep an address's credentials, if it has any
 * @all:   NULL at first
 * @url:   as it was written
 * @plain: the same without credentials
 *
 * Of an index there is one: a later one, with credentials or without, is in place of it.
 *
 * Context:   any
 * Ownership: copies
 * Return:    none; without memory, or past a bound, they are not kept
 */
void rv__secrets_keep_url(struct rv__secrets **all, enum rv__secret_kind kind, const char *url, const char *plain);

/** rv__secrets_keep_npm() - keep one of npm's lines, if it is one: @key begins with `//`. Context: any. Ownership: copies. Return: none, as above */
void rv__secrets_keep_npm(struct rv__secrets **all, const char *key, const char *value);

/** rv__secret_basic() - what it says for Basic: `basic`, or made of user and password. Context: any. Ownership: the caller's (rv__secret_drop). Return: the text; NULL: nothing */
char *rv__secret_basic(const struct rv__secret *s);

/** rv__secret_drop() - wipe and release a text; NULL is allowed. Context: any. Ownership: takes @text. Return: none */
void rv__secret_drop(char *text);

/** rv__secrets_free() - wipe and release; NULL is allowed. Context: any. Ownership: takes @all. Return: none */
void rv__secrets_free(struct rv__secrets *all);
