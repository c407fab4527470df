/*
 * tree_digest.h - one digest for a directory and all that is in it
 *
 * SHA-256 over its entries, sorted by path bytewise, the directory itself being no entry. Each is
 *
 *     TYPE SP MODE SP VALUE SP PATH NUL
 *
 * TYPE is `f`, `d`, `l`, or `c b p s` for a device, a pipe, a socket; MODE the permission bits, four octal digits
 * (a link's are 0777); VALUE for a file the SHA-256 of its content in hex, for a link its target's bytes as SHA-256
 * in hex, for a device MAJOR:MINOR, else `-`; PATH relative, without `./`. Owner and times are no part of it: a copy
 * that a program cannot tell apart has the same. No links are followed. Any thread; nothing is kept.
 */
#pragma once

#include "base/error.h"

#define RV_TREE_DIGEST_SIZE 72       /* "sha256:", 64 digits, NUL */
#define RV_TREE_ENTRIES_MAX 1000000u

/**
 * rv_tree_digest() - of the directory at @dir_fd
 * @n_entries: how many there are, set on success; may be NULL
 *
 * Context:   blocks on the disk: all of it is read
 * Ownership: borrows @dir_fd
 * Return:    0; -E2BIG more than RV_TREE_ENTRIES_MAX entries; -ENOMEM; -errno: @err names the path
 */
int rv_tree_digest(int dir_fd, char ret[RV_TREE_DIGEST_SIZE], size_t *n_entries, struct rv_error *err);

/** rv_file_digest() - "sha256:HEX" of what is left to read of a file. Context: blocks on the disk. Ownership: borrows @fd. Return: 0 or -errno */
int rv_file_digest(int fd, char ret[RV_TREE_DIGEST_SIZE]);
