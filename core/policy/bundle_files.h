/*
 * bundle_files.h - the inside of a bundle, for the evaluator and the checks of this folder
 *
 * Files are sorted bytewise by path. The bytes and the datasets' values live as long as the bundle and are
 * read-only from any thread: a dataset's reference count is never touched after loading.
 */
#pragma once

#include "base/hash.h"
#include "policy/bundle.h"

#include <jansson.h>

struct rv_bundle_file {
        const char *path;
        const char *text;   /* ends in NUL, which `size` does not count */
        size_t size;
        json_t *data;       /* of data/….json, else NULL */
};

struct rv_bundle {
        char digest[RV_SHA256_HEX_SIZE];
        char name[RV_BUNDLE_NAME_MAX + 1], version[RV_BUNDLE_NAME_MAX + 1], description[RV_BUNDLE_DESCRIPTION_MAX + 1];
        const struct rv_bundle_file *files;
        size_t n_files;
        struct rv_bundle_file *owned;   /* `files`, unless they are compiled in */
};

/* What the generator makes of policies/default. */
extern const struct rv_bundle rv_bundle_default;

/** rv_bundle_find() - a file by its path. Context: any. Ownership: borrowed from @b. Return: the file or NULL */
const struct rv_bundle_file *rv_bundle_find(const struct rv_bundle *b, const char *path);

/** rv_bundle_is_test() - is it one of the tests, which policy cannot `use`? Context: any. Ownership: borrows. Return: as named */
bool rv_bundle_is_test(const struct rv_bundle_file *f);

/** rv_bundle_compute_digest() - by the rule in bundle.h. Context: any. Ownership: borrows. Return: none */
void rv_bundle_compute_digest(const struct rv_bundle_file *files, size_t n_files, char ret_hex[RV_SHA256_HEX_SIZE]);

/**
 * rv_bundle_read_yaml() - take name, version and description out of bundle.yaml
 * @path: for the message
 *
 * Context:   any
 * Ownership: borrows; fills @b
 * Return:    0; -EINVAL with "PATH:LINE: …" in @err; -ENOMEM
 */
int rv_bundle_read_yaml(struct rv_bundle *b, const char *path, const char *text, size_t n, struct rv_error *err);
