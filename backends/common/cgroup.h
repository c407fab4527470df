/*
 * cgroup.h - one run's control group: made, limited, read back, joined, counted, removed
 *
 * A *place* is found once per spawner: the directory (on v1 one for each controller) below which runs get
 * theirs. A *cgroup* is single-use: its limits never carry over to another run.
 *
 *   rv_cgroup_place_open -> (make -> limit -> joined by the child -> verify -> count -> remove)* -> close
 *
 * Where a place may be, in this order (cgroup_place.c):
 *   1. `cgroup:` of the configuration
 *   2. a delegated unit that reeve runs in, after moving itself to a leaf below it
 *   3. on v2 with a systemd manager (system or user), a transient scope with Delegate=yes, asked for once
 *   4. in a container's private cgroup namespace, its root, after moving itself to a leaf, if it is alone in it
 *   5. on v1, controller by controller, `reeve-<uid>` below the process's own cgroup if it belongs to the caller
 *      (tools/dev/delegate makes it), else the own cgroup; at a hierarchy's root a directory of this instance's
 *
 * Single thread. On v1 nothing here writes `cgroup.procs` on the path of a run: that takes a lock on which every
 * other run waits 10 ms; the single-threaded child writes `0` to `tasks` itself, which takes none. On v2 the
 * child is cloned into its cgroup.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

enum rv_cgroup_controller { RV_CGROUP_MEMORY, RV_CGROUP_PIDS, RV_CGROUP_CPU, RV_CGROUP_CPUACCT, RV_CGROUP_MAX_ };

struct rv_cgroup_hierarchy {
        int dir_fd;                  /* where runs are made, or -EBADF: served by an earlier entry, or not there */
        char path[512];              /* the same for messages */
        char expect[256];            /* dir_fd's path as /proc/PID/cgroup shows it, without a trailing slash */
        unsigned id;                 /* of the hierarchy, as in /proc/PID/cgroup; 0 is v2 */
        char own_name[64];           /* a directory of this instance's that is removed at close; "" for none */
        int root_fd;                 /* where own_name stands */
};

struct rv_cgroup_place {
        unsigned version;            /* 1, or 2: then h[0] serves every controller */
        struct rv_cgroup_hierarchy h[RV_CGROUP_MAX_];
        char instance[40];           /* process id, start time and PID namespace of the spawner */
        const char *rule;            /* which of the rules above chose it, for doctor; static text */
};

struct rv_cgroup_limits {
        uint64_t memory_bytes;
        uint32_t pids;
        uint32_t cpus_milli;         /* 0: no quota */
};

struct rv_cgroup {
        unsigned version;
        char name[64];
        int dir_fd[RV_CGROUP_MAX_];      /* or -EBADF */
        int tasks_fd[RV_CGROUP_MAX_];    /* v1: for the child to write "0" to, or -EBADF */
        int oom_event_fd;                /* v1: readable when the run ran out of memory; v2 kills the whole group */
        uint64_t memory_limit_bytes;     /* read back */
};

struct rv_cgroup_counters {
        uint64_t peak_memory_bytes;
        uint64_t cpu_us;                 /* 0: no controller that counts it */
        uint32_t peak_processes, n_oom_kills;
        bool is_memory_limit_reached;
};

/**
 * rv_cgroup_place_open() - find (and where needed make) the directories below which runs are placed
 * @configured: `cgroup:` of the configuration, a path below each hierarchy's mount point, or NULL
 * @ret:        filled on success, untouched on failure
 *
 * May move the calling process to another cgroup (rules 2 to 4).
 *
 * Context:   may block
 * Ownership: release with rv_cgroup_place_close()
 * Return:    0; -ENOTSUP if a controller is not there, -EACCES, -EROFS…: @err says which, and what to do
 */
int rv_cgroup_place_open(const char *configured, struct rv_cgroup_place *ret, struct rv_error *err);
/** rv_cgroup_place_close() - remove what open made and close. Context: may block. Ownership: takes the content. Return: none */
void rv_cgroup_place_close(struct rv_cgroup_place *place);

/**
 * rv_cgroup_make() - make a run's cgroups, still without limits
 * @name: unique in the place; a file name
 *
 * Context:   may block
 * Ownership: release with rv_cgroup_remove()
 * Return:    0; -errno with nothing left: @err names the file that could not be made
 */
int rv_cgroup_make(const struct rv_cgroup_place *place, const char *name, struct rv_cgroup *ret, struct rv_error *err);

/**
 * rv_cgroup_limit() - write a run's limits and read them back
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    0; -errno: @err names the file that did not take its value
 */
int rv_cgroup_limit(const struct rv_cgroup_place *place, struct rv_cgroup *cg, const struct rv_cgroup_limits *limits,
                    struct rv_error *err);

/** rv_cgroup_clone_fd() - what clone3's CLONE_INTO_CGROUP takes, or negative: the child joins by itself. Context: any. Ownership: borrowed from @cg. Return: the descriptor */
int rv_cgroup_clone_fd(const struct rv_cgroup *cg);
/** rv_cgroup_join() - put the calling single-threaded process in; nothing to do on v2. Async-signal-safe. Context: between clone and exec. Ownership: borrows. Return: 0 or -errno */
int rv_cgroup_join(const struct rv_cgroup *cg);

/** rv_cgroup_verify() - is process @pid in all of them, by /proc/PID/cgroup? Context: may block. Ownership: borrows. Return: 0; -ESRCH it is not; -errno */
int rv_cgroup_verify(const struct rv_cgroup_place *place, const struct rv_cgroup *cg, pid_t pid, struct rv_error *err);

/** rv_cgroup_count() - read the counters; what cannot be read is 0. Context: may block. Ownership: borrows. Return: none */
void rv_cgroup_count(const struct rv_cgroup *cg, struct rv_cgroup_counters *ret);

/**
 * rv_cgroup_remove() - remove the directories and close
 *
 * A directory that is still busy is tried again for up to 50 ms.
 *
 * Context:   may block that long
 * Ownership: takes the content of @cg
 * Return:    0; -EBUSY or another -errno if a directory stays
 */
int rv_cgroup_remove(const struct rv_cgroup_place *place, struct rv_cgroup *cg);

/**
 * rv_cgroup_sweep() - remove what instances that are dead have left in the place
 * @told: called with the path of each directory that cannot be removed (a process in it does not die), or NULL
 *
 * Only names that an instance of reeve gave are looked at. What one in this PID namespace left is killed first; what
 * one in another left, whose process id says nothing here, is removed only if it is empty and its lock is free.
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    how many directories stay
 */
int rv_cgroup_sweep(const struct rv_cgroup_place *place, void (*told)(void *arg, const char *path), void *arg);
