/*
 * runtime.h - what the commands of `reeve runtime` share
 *
 * A built runtime is DIR/NAME, a directory, or DIR/NAME.erofs, an image, and beside it DIR/NAME.runtime.json, which says
 * how it came to be and what its digest was. The command line's one thread.
 */
#pragma once

#include "base/buf.h"
#include "base/config.h"
#include "base/json.h"
#include "base/tree_digest.h"

#define RUNTIME_DESCRIPTION ".runtime.json"
#define RUNTIME_DESCRIPTION_BYTES_MAX (4u << 20)

int runtime_build(int argc, char **argv);
int runtime_list(int argc, char **argv);
int runtime_verify(int argc, char **argv);

/**
 * runtime_ask() - what each configured runtime is, and whether it can be used here
 * @ret: a list of {"name", "format", "state", "path", "digest", "python", "javascript", "text"}: format is `host`,
 *       `directory` or `image`; state `usable` or `unusable`, for the reason `text`; digest and versions may be null
 *
 * Context:   with the process's privilege, SIGCHLD at its default; starts a process that mounts images and runs each
 *            interpreter for its version
 * Ownership: a new reference
 * Return:    0; -errno with @err
 */
int runtime_ask(const char *config_path, json_t **ret, struct rv_error *err);

/** runtime_describe() - read the description beside a runtime; @path is of the directory or the image. Context: blocks on the disk. Ownership: a new reference. Return: 0; -ENOENT there is none; -EINVAL; -errno with @err */
int runtime_describe(const char *path, json_t **ret, struct rv_error *err);
/** runtime_description_path() - where that is: the path without `.erofs` or `.squashfs`, and RUNTIME_DESCRIPTION. Context: any. Ownership: the caller's memory. Return: none */
void runtime_description_path(const char *path, char *ret, size_t size);
