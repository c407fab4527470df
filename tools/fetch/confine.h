/*
 * confine.h - what the helper gives up before it reads anything
 *
 * Called once, first of all. There is no way back. One thread.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

/**
 * confine() - no privilege, no other descriptors, no core, no new programs, bounded memory
 * @uid:   as root, whom to become
 * @n_fds: descriptors from this one on are closed
 *
 * Context:   start of the process
 * Ownership: none
 * Return:    0; -errno: it must not go on
 */
int confine(uid_t uid, unsigned n_fds, struct rv_error *err);
