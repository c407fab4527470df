/*
 * cgroup.h - one run's control group: made, limited, read back, joined, counted, removed
 *
 * A *place* is found once per spawner: for each controller the directory below which runs get theirs
 * (design: in the configuration, in `reeve-<uid>` made by tools/dev/delegate, else below the process's own
 * cgroup). A *cgroup* is single-use: its limits never carry over to another run.
 *
 *   rv_cgroup_place_open -> (rv_cgroup_make -> join by the child -> read counters -> rv_cgroup_remove)* -> close
 *
 * Single thread. Nothing here writes `cgroup.procs`: on v1 that takes a lock on which every other run waits
 * 10 ms; the single-threaded child writes `0` to `tasks` itself, which takes none.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

enum rv_cgroup_controller { RV_CGROUP_MEMORY, RV_CGROUP_PIDS, RV_CGROUP_CPU, RV_CGROUP_CPUACCT, RV_CGROUP_MAX_ };

struct rv_cgroup_hierarchy {
        int dir_fd;                  /* where runs are made, or -EBADF: this controller is served by an earlier entry */
        char path[512];              /* the same for messages */
        char expect[256];            /* dir_fd's path as /proc/PID/cgroup shows it, without a trailing slash */
        unsigned id;                 /* of the hierarchy, as in /proc/PID/cgroup */
        bool is_own_directory;       /* `reeve-<instance>` was made at a hierarchy's root: removed at close */
        char own_name[64];
        int root_fd;                 /* where own_name stands */
};

struct rv_cgroup_place {
        struct rv_cgroup_hierarchy h[RV_CGROUP_MAX_];
        char instance[32];
        const char *reason;          /* which rule of the design chose it, for doctor */
};

struct rv_cgroup_limits {
        uint64_t memory_bytes;
        uint32_t pids;
        uint32_t cpus_milli;         /* 0: no quota */
};

struct rv_cgroup {
        char name[64];
        int dir_fd[RV_CGROUP_MAX_];      /* or -EBADF */
        int tasks_fd[RV_CGROUP_MAX_];    /* for the child to write "0" to, or -EBADF */
        int oom_event_fd;                /* readable when the run ran out of memory */
        uint64_t memory_limit_bytes;     /* read back */
};

struct rv_cgroup_counters {
        uint64_t peak_memory_bytes, cpu_us;
        uint32_t peak_processes, n_oom_kills;
        bool is_memory_limit_reached;
};

/**
 * rv_cgroup_place_open() - find (and where needed make) the directories below which runs are placed
 * @configured: `cgroup:` of the configuration, a path below each hierarchy's mount point, or NULL
 * @ret:        filled on success, untouched on failure
 *
 * Context:   may block
 * Ownership: release with rv_cgroup_place_close()
 * Return:    0; -ENOTSUP if a controller is not there, -EACCES, -EROFS… : @err says which and what to do
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
 * rv_cgroup_limit() - write a run's limits and read them back, before anything joins
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    0; -errno: @err names the file that did not take its value
 */
int rv_cgroup_limit(const struct rv_cgroup_place *place, struct rv_cgroup *cg, const struct rv_cgroup_limits *limits,
                    struct rv_error *err);

/** rv_cgroup_join() - put the calling single-threaded process in. Async-signal-safe. Context: between clone and exec. Ownership: borrows. Return: 0 or -errno */
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
