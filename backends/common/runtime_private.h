/*
 * runtime_private.h - what the files of runtime.h share
 *
 * See runtime.h for the concept, the lifetime and the thread rule.
 */
#pragma once

#include "runtime.h"

#define NODE_SHARE "/usr/share/nodejs"       /* where Debian has JavaScript packages */

/** rv__runtime_add() - an entry behind the others. Context: rv_runtime_open(). Ownership: copies. Return: 0 or -ENOMEM */
int rv__runtime_add(
        struct rv_runtime *rt, enum rv_view_when when, enum rv_view_kind kind, const char *path, const char *source);
/** rv__runtime_outside() - @path of the root as it is outside. Context: any. Ownership: the caller's memory. Return: false if it would be too long */
bool rv__runtime_outside(const struct rv_runtime *rt, const char *path, char ret[4096]);

/**
 * rv__runtime_add_tools() - the package managers, which lie in what is hidden, and where Python has a user's packages
 *
 * Context:   rv_runtime_open(), after everything that is always shown; may block on the disk
 * Ownership: copies
 * Return:    0 or -ENOMEM. A package manager that is not there has no entries
 */
int rv__runtime_add_tools(struct rv_runtime *rt);
