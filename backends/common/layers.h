/*
 * layers.h - the privileged half of the store of layers: what was built becomes the spawner's and is shown whole
 *
 * STATE/packages/layers and STATE/packages/staging belong to the spawner's user, who alone can write there; all the
 * rest of STATE/packages is the loop's user's. A layer is a directory named by its digest:
 *
 *   layers/DIGEST/tree/                    what runs see
 *   layers/DIGEST/lock.json                what it was built from
 *   layers/DIGEST/manifest.json            every file of tree/
 *   layers/DIGEST/manifest-compiled.json   of the byte code that came later, if it did
 *
 *   stage() -> somebody else's process fills it -> publish() | add_compiled() | unstage()
 *                                                  layer -> remove()
 *
 * A directory in staging/ is somebody's as long as its lock (flock(2)) is held: rv_layers_sweep() removes the others. A
 * layer appears and disappears by one rename, so nothing is ever half there, whenever a process or the machine dies.
 * Nothing that is in a tree is read: only names, kinds and owners are looked at. One thread at a time for a value; other
 * processes may do the same at the same time.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

#define RV_LAYERS_PATH_MAX 2047           /* bytes of a path from tree/ */
#define RV_LAYERS_DEPTH_MAX 100           /* directories within each other */
#define RV_LAYERS_ENTRIES_MAX 1000000
#define RV_LAYERS_LOCK_MAX ((size_t)16 << 20)
#define RV_LAYERS_NAME_SIZE 65            /* of a digest, or of what names a directory in staging/, with the NUL */

struct rv_layers {
        int layers_fd, staging_fd;
};

struct rv_layers_stage {
        int lock_fd;                      /* held by whoever staged, closed at the end; nobody else's */
        int dir_fd;                       /* the same directory, to give to the process that fills it */
};

/**
 * rv_layers_open() - open the store, or make it
 * @state_dir: `state_dir` of the configuration
 *
 * Both directories have to be the effective user's and writable by nobody else. STATE/packages is made if it is not
 * there, for the user whose STATE is.
 *
 * Context:   with the spawner's privilege; may block on a slow disk
 * Ownership: release with rv_layers_close()
 * Return:    0; -EPERM one of them is another's, a link, or writable by others; -errno
 */
int rv_layers_open(const char *state_dir, struct rv_layers *ret, struct rv_error *err);
/** rv_layers_close() - release. Context: any. Ownership: takes the content. Return: none */
void rv_layers_close(struct rv_layers *layers);

/**
 * rv_layers_stage() - an empty directory that one user can fill
 * @name:     letters, digits and hyphens, not as many as a digest has
 * @uid, @gid: whose it is
 *
 * Context:   with the spawner's privilege
 * Ownership: release with rv_layers_stage_close(), after publish(), add_compiled() or unstage()
 * Return:    0; -EEXIST there is one of that name; -EINVAL @name; -errno
 */
int rv_layers_stage(const struct rv_layers *layers, const char *name, uid_t uid, gid_t gid, struct rv_layers_stage *ret,
        struct rv_error *err);
/** rv_layers_stage_close() - let go; what is still in staging/ is removed by the next sweep. Context: any. Ownership: takes the content. Return: none */
void rv_layers_stage_close(struct rv_layers_stage *stage);
/** rv_layers_unstage() - remove a staged directory. Context: as rv_layers_publish(). Ownership: borrows. Return: 0 or -errno; what is left goes with the next sweep */
int rv_layers_unstage(const struct rv_layers *layers, const char *name);

/**
 * rv_layers_publish() - make a staged directory a layer
 * @name:    as staged; it holds tree/ and manifest.json and nothing else
 * @digest:  the layer's name, 64 digits of lower-case hexadecimal
 * @lock_fd: what becomes lock.json, read from its beginning; negative: none
 *
 * Files have to be regular with one name each, else directories or symbolic links; within the bounds above. All
 * becomes the effective user's, with modes 0755 and 0644 and no attributes or access lists, and is on the disk before it
 * is seen. If the layer is there already it stays as it is, and what was staged is removed.
 *
 * Context:   every process of the staging user is gone, which the caller makes sure of; with the spawner's privilege;
 *            blocks for as long as the disk takes
 * Ownership: borrows
 * Return:    0; -EBADMSG the tree is not of that kind: @err says where and why; -ENOENT; -errno. After a failure the
 *            layer is not there, and what was staged still is
 */
int rv_layers_publish(
        const struct rv_layers *layers, const char *name, const char *digest, int lock_fd, struct rv_error *err);

/**
 * rv_layers_add_compiled() - give a layer its byte code
 * @name: as staged; it holds __pycache__ directories of *.pyc files, at their places in tree/, with the directories above
 *        them, and manifest-compiled.json
 *
 * The manifest comes first, then each __pycache__ by one rename; one that is there already stays. So whatever byte code
 * is there at any time is in a manifest. A layer that has one is left alone. The staged rest is removed.
 *
 * Context:   as rv_layers_publish()
 * Ownership: borrows
 * Return:    as rv_layers_publish(); -ENOENT also if there is no such layer
 */
int rv_layers_add_compiled(const struct rv_layers *layers, const char *name, const char *digest, struct rv_error *err);

/**
 * rv_layers_remove() - a layer is not there any more
 *
 * Whether anybody uses it is the caller's to know.
 *
 * Context:   with the spawner's privilege; blocks for as long as the disk takes
 * Ownership: borrows
 * Return:    0, also if there is none; -EINVAL @digest is none; -errno
 */
int rv_layers_remove(const struct rv_layers *layers, const char *digest, struct rv_error *err);

/** rv_layers_sweep() - remove what dead processes left in staging/. Context: with the spawner's privilege; may block. Ownership: borrows. Return: how many it removed */
int rv_layers_sweep(const struct rv_layers *layers);
