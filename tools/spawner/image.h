/*
 * image.h - runtimes that are images of a file system: judged, identified, mounted
 *
 * An image is a file that only root can change: what a kernel mounts, it believes. Its digest is the SHA-256 of the
 * file. Reading 200 MB for each run would cost more than the run, so a digest that was made is kept in
 * /run/reeve/images with the file's identity (device, inode, size, times of change), in a file of root's; it is made
 * anew after a boot, and for a file that was changed less than two seconds ago it is not kept.
 *
 * A spawner mounts the images that its runs use, read-only, nosuid, nodev, in a mount namespace of its own, made for
 * the first of them: the host sees none of it, and nothing is left of it when the spawner is gone, however that came.
 *
 *   image_digest()                      whoever has privilege, to know what will run
 *   image_mount() -> (runtime_open())   the spawner, once for each image
 *
 * The caller's one thread.
 */
#pragma once

#include "base/config.h"
#include "base/tree_digest.h"

#define IMAGE_PLACE_SIZE 64

/**
 * image_digest() - what the image of a runtime is, and whether it may be used
 * @rt: with an image
 *
 * Context:   with privilege; reads the whole file the first time
 * Ownership: borrows @rt
 * Return:    0; -EPERM the caller is not root, or others can write to the file; -EBADMSG it has not the digest that the
 *            configuration names; -EINVAL it is no image; -errno; with @err
 */
int image_digest(const struct rv_config_runtime *rt, char ret[RV_TREE_DIGEST_SIZE], struct rv_error *err);

struct image_namespace {
        bool is_made;
        unsigned n_mounted;
        uint64_t warmed[2];              /* by is_python: of which runtimes, by their number, the interpreter was read ahead */
};

/**
 * image_mount() - mount the image of a runtime
 * @ns:        zeroed at first
 * @ret_place: the directory that is its root, in this process and its children
 *
 * Context:   the spawner, as root, single-threaded
 * Ownership: the mount is the process's, for ever
 * Return:    0; as image_digest(); -ENODEV this kernel has no such file system; -errno; with @err
 */
int image_mount(const struct rv_config_runtime *rt, struct image_namespace *ns, char ret_place[IMAGE_PLACE_SIZE],
        struct rv_error *err);

/** image_warm() - have a mounted image's interpreter in memory, charged to this process and not to a run. Context: the spawner; may take tens of milliseconds. Ownership: borrows. Return: none */
void image_warm(const struct rv_config_runtime *rt, bool is_python);
