/*
 * layer.h - package layers, as the privileged side handles them: shown to runs, built by a helper, put in place
 *
 * The store's layers belong to the spawner's user (backends/common/layers.h). What builds one is the helper reeve-unpack,
 * the only program that takes archives apart: it runs under a user id of its own, in a cgroup of its own, and writes into
 * one staging directory. When it is gone the spawner makes the tree its own and renames it to its place. Nothing that is
 * in an archive is read here.
 *
 *   layer_begin -> (the helper) -> layer_on_end -> (a child, which waits for the disk) -> layer_on_end, which reports
 *
 * Single thread.
 */
#pragma once

#include "cgroup.h"
#include "layers.h"
#include "spawn_msg.h"
#include "uid.h"

#include "base/error.h"

#include <sys/types.h>

struct spawner;

/* One helper at work. */
struct layer_job {
        struct layer_job *next;
        uint64_t id;                 /* the loop's */
        uint32_t kind;               /* RV_SPAWN_REQUEST_BUILD or _COMPILED */
        pid_t pid;
        int pidfd;
        struct rv_cgroup cgroup;
        struct rv_uid_pair uids;
        char run_id[RV_RUN_ID_SIZE], digest[RV_LAYER_DIGEST_SIZE];
        struct rv_layers_stage stage;
        int lock_fd;
        struct rv_error *placed;     /* the helper is gone, and a child puts in place what it made: how that goes; else NULL */
};

/**
 * layers_show() - the layers' directory for a run's child that is about to be cloned
 * @ret_path: set if the child is to open it itself: an ordinary user's
 * @ret_fd:   else a mount of it, for one child
 *
 * Context:   spawner
 * Ownership: both are the caller's
 * Return:    false: there are no layers
 */
bool layers_show(const struct spawner *s, char **ret_path, int *ret_fd);

/** layer_begin() - build, or add what was compiled. RV_SPAWN_LAYER is reported when it is done, or cannot be. Context: spawner. Ownership: takes the @fds. Return: none */
void layer_begin(struct spawner *s, const struct rv_spawn_request *q, const int fds[RV_SPAWN_LAYER_FD_MAX_]);
/** layer_stop() - end the helper of job @id, if there is one. Context: spawner. Ownership: none. Return: none */
void layer_stop(struct spawner *s, uint64_t id);
/** layer_stop_all() - the loop is gone. Context: spawner. Ownership: none. Return: none */
void layer_stop_all(struct spawner *s);
/** layer_on_end() - is @what a job's pidfd? Then its helper has ended: put in place what it made, report, free. Context: spawner. Ownership: takes the job. Return: was it? */
bool layer_on_end(struct spawner *s, const void *what);
