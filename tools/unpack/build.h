/*
 * build.h - the job `build`: a layer's tree out of the artifacts of a lock
 *
 * The same job gives the same tree, byte for byte: packages are unpacked in the order of the job, nothing depends on
 * the clock, the user or the order of a directory. Each artifact is first copied to where nobody else can write, and
 * what is hashed and unpacked is the copy. One thread.
 */
#pragma once

#include "tree.h"

#include "base/error.h"

#include <jansson.h>

struct build {
        struct tree tree;
        const json_t *job;
        const char **owners;             /* of the packages, by number; the last is reeve itself */
        uint32_t own;                    /* its number */
};

/** build_check() - has the job the shape that it should have? Context: any. Ownership: borrows. Return: 0; -EINVAL with a message */
int build_check(const json_t *job, struct rv_error *err);

/** build() - make tree/ and manifest.json in the staging directory. Context: blocks. Ownership: borrows; closes @fds; *@ret is a new reference. Return: 0, also with a fault in the result; -errno with a message */
int build(const json_t *job, const int *fds, json_t **ret, struct rv_error *err);

/** venv_begin() - what a virtual environment has besides its packages. Context: blocks. Ownership: borrows. Return: 0; UNPACK_E_FAULT; -errno */
int venv_begin(struct build *b, struct fault *f);
/** venv_add() - one wheel. Context: blocks. Ownership: borrows. Return: as venv_begin() */
int venv_add(struct build *b, const json_t *package, uint32_t owner, int fd, struct fault *f);

/** modules_add() - one npm package, at each of its places. Context: blocks. Ownership: borrows. Return: as venv_begin() */
int modules_add(struct build *b, const json_t *package, uint32_t owner, int fd, struct fault *f);
/** modules_place() - a place of the lock as a path in the tree; NULL: it is none. Context: any. Ownership: points into @at. Return: the path */
const char *modules_place(const char *at);
