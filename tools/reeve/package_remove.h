/*
 * package_remove.h - removing layers with the privilege that a command gives up
 *
 * Layers belong to the user who starts reeve, everything else of the store to the loop's user. As root a command forks
 * before it becomes the loop's user: the child removes what it is told to, one digest after another, and reads nothing
 * else. An ordinary user owns both, and removes by itself. One thread.
 *
 *   package_remover_new() [-> privilege is given up] -> package_remover_remove()* -> package_remover_free()
 */
#pragma once

#include "base/error.h"

struct package_remover;

/**
 * package_remover_new() - open the layers of a state directory
 * @is_apart: in a process of its own
 *
 * Context:   one thread, before privilege is given up
 * Ownership: *@ret is the caller's
 * Return:    0; -errno
 */
int package_remover_new(const char *state_dir, bool is_apart, struct package_remover **ret, struct rv_error *err);
/** package_remover_free() - release, and end the child. Context: as new. Ownership: takes @r; NULL is allowed. Return: none */
void package_remover_free(struct package_remover *r);

/** package_remover_remove() - remove a layer; @ctx is the remover. Context: as new. Ownership: borrows. Return: 0; -errno */
int package_remover_remove(void *ctx, const char *digest, struct rv_error *err);
