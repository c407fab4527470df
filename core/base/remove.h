/*
 * remove.h - removing a tree that somebody else made
 *
 * Everything is reached by descriptors, links are never followed, and a tree of any depth takes a bounded number of
 * descriptors and no more stack. Any thread.
 */
#pragma once

#include "base/rv.h"

/**
 * rv_remove_tree_at() - remove what has this name: a file, a link, or a directory with all that is in it
 * @dir_fd: directory; @name: one name, without slashes
 *
 * Another that removes the same at the same time does no harm.
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    0, also if it is not there; -errno: some of it may be left
 */
int rv_remove_tree_at(int dir_fd, const char *name);
