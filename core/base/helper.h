/*
 * helper.h - where reeve's helper executables are: programs that only another program of reeve's starts
 *
 * In a build tree each has a folder of its own beside that of the caller; installed, they are in libexec/reeve beside
 * the caller's bin, or where they were meant to be. Any thread; nothing owned.
 */
#pragma once

#include "base/error.h"

/**
 * rv_helper_find() - open a helper: beside this program in a build tree or an installation, else where it was installed
 * @folder: of the build tree's tools: "fetch"
 * @name:   of the executable: "reeve-fetch"
 * @ret_fd: for execution (O_PATH); close-on-exec
 *
 * Context:   any; with whatever privilege its place needs
 * Ownership: the descriptor is the caller's
 * Return:    0; -errno
 */
int rv_helper_find(const char *folder, const char *name, int *ret_fd, struct rv_error *err);
