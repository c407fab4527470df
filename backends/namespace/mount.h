/*
 * mount.h - the root file system of a run
 *
 * Everything here runs in a single-threaded process between clone and exec.
 */
#pragma once

#include "sandbox.h"

/**
 * ns_mount_open() - take hold of what the runtime's view binds, before anything covers it
 *
 * Done while the child still is the user that the spawner was, so that a runtime may lie where only that user
 * can go.
 *
 * Context:   the child, before ns_mount_root()
 * Ownership: borrows @child
 * Return:    0 or -errno
 */
int ns_mount_open(struct ns_child *child, const char **ret_step);

/**
 * ns_mount_root() - build the run's root from the runtime's view and enter it
 * @ret_step: the step that failed, for a person
 *
 * Afterwards the working directory is RV_BOX, and nothing of the host but the view is reachable. The root
 * file system is still writable: ns_mount_seal() ends that.
 *
 * Context:   the child, with all capabilities in its user namespace
 * Ownership: borrows
 * Return:    0 or -errno
 */
int ns_mount_root(const struct ns_child *child, const char **ret_step);
/**
 * ns_mount_assign() - what depends on the run
 *
 * The cap of the writable file system, the JavaScript preload; in network mode registries the package manager, its
 * certificates, and a directory for what Python's installs.
 *
 * Context:   the child, after ns_mount_root(), when it is assigned
 * Ownership: borrows
 * Return:    0 or -errno
 */
int ns_mount_assign(const struct ns_child *child, const struct rv_payload *payload, const char **ret_step);
/** ns_mount_seal() - make the root's file system read-only. Context: the child. Ownership: none. Return: 0 or -errno */
int ns_mount_seal(const char **ret_step);
