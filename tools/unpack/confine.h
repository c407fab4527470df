/*
 * confine.h - what the helper gives up: first what it never needs, then, before it reads an artifact, the rest
 *
 * There is no way back. One thread.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

/**
 * confine_process() - no privilege, no other descriptors, no core, bounded memory, time and files; where the kernel has
 * Landlock nothing can be opened but below what was handed over
 * @uid:   as root, whom to become
 * @n_fds: descriptors that it was started with: below 3 and 5 it may read, below 4 also write
 *
 * Context:   start of the process
 * Ownership: closes what it does not know
 * Return:    0; -errno: it must not go on
 */
int confine_process(uid_t uid, unsigned n_fds, struct rv_error *err);

/** confine_calls() - no network, no program, no process; without @can_write no file either. Context: before the first byte of an artifact is read. Ownership: none. Return: 0; -errno: it must not go on */
int confine_calls(bool can_write, struct rv_error *err);
