/*
 * layers_tree.h - a tree that another user filled, taken over
 *
 * The one walk of layers.h over what is not trusted. One thread; the tree is nobody else's any more.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>

enum rv_layers_kind {
        RV_LAYERS_BUILT,              /* tree/, and in it files, directories, links */
        RV_LAYERS_COMPILED,           /* directories, and *.pyc in those named __pycache__ */
};

/**
 * rv__layers_own() - look at every entry, and make it the effective user's
 * @dir_fd:   staged directory
 * @manifest: the one file that has to be in it besides
 *
 * Context:   see rv_layers_publish()
 * Ownership: borrows
 * Return:    0; -EBADMSG it is not of @kind; -errno
 */
int rv__layers_own(int dir_fd, enum rv_layers_kind kind, const char *manifest, struct rv_error *err);

/** rv__layers_merge() - move each __pycache__ of one tree to the same place of another, if there is that place and none in it. Context: see rv_layers_add_compiled(). Ownership: borrows. Return: 0 or -errno */
int rv__layers_merge(int from_fd, int to_fd);
