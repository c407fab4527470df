/*
 * spawner.h - the one process of reeve with privilege
 *
 * Single-threaded, started before anything is read from a caller. It reads the configuration itself, takes
 * `struct rv_spawn_request` from the loop, builds each run's isolation, and reports. It parses nothing that
 * a caller or a program wrote. When the loop's end of the channel closes it kills every run, removes what is
 * left and ends.
 *
 *   launch() -> HELD -> ENDED -> REMOVED, or FAILED in place of HELD or ENDED, then REMOVED too
 *
 * HELD of a run with network carries its sockets; before it the gate was started, if none runs (gate.h).
 */
#pragma once

#include "cgroup.h"
#include "gate.h"
#include "image.h"
#include "layer.h"
#include "netns.h"
#include "runtime.h"
#include "sign.h"
#include "spawn_msg.h"
#include "uid.h"

#define SPAWNER_CHANNEL_FD 3

struct run {
        struct run *next;
        uint64_t id;
        pid_t pid;
        int pidfd, sync_fd, box_fd;
        struct rv_cgroup cgroup;
        struct rv_uid_pair uids;
        const struct rv_runtime *runtime;
        struct rv_netns net;         /* of a run with network: its sockets, until HELD has handed them on */
        enum rv_plan_network network;
        bool has_layers;             /* it can be given a package layer */
        bool is_verified;            /* it is in its cgroups */
        bool is_held;                /* HELD was reported */
        bool is_assigned;            /* it is the loop's run `id`; before, nothing is reported of it */
        bool has_failed;             /* FAILED was reported, or would be: nothing more is, but it is cleaned up */
        bool was_stopped, is_memory_stop;
        uint32_t timeout_s;
        uint64_t end_us;             /* CLOCK_MONOTONIC: when it is ended though the loop says nothing; 0: not yet known */
        uint64_t oom_until_us;       /* a kill for memory was announced: look at the counter until then; 0: no */
};

struct spawner {
        struct rv_config *config;
        struct rv_cgroup_place place;
        bool has_place;
        struct rv_error place_error; /* why not */
        struct signer signer;
        struct gate gate;
        struct rv_runtime *runtimes; /* by the configuration's index; config NULL until first used */
        struct image_namespace images;
        int epoll_fd, channel_fd;
        struct run *runs;
        struct layer_job *layer_jobs;
        struct rv_layers layers;     /* the store; opened at its first use */
        bool has_layers;
        int unpack_fd;               /* the helper that builds layers, or -errno */
        struct run *spare;           /* one of runs, made ahead while the loop is still reading, not assigned */
        unsigned n_made;             /* names cgroups */
        bool has_swept;
        bool is_closing;
        uint64_t give_up_us;         /* closing: when runs that do not die are left to a later sweep */
};

/** spawner_launch() - begin a run: FAILED is reported if that goes wrong. Context: spawner. Ownership: takes the @fds. Return: none */
void spawner_launch(struct spawner *s, const struct rv_spawn_request *request, const int fds[RV_SPAWN_FD_MAX_]);

/** spawner_sweep() - once: remove what dead instances left. Context: spawner, when nobody waits for it. Ownership: none. Return: none */
void spawner_sweep(struct spawner *s);
/** spawner_explain() - print for doctor, a line each "state TAB probe TAB text", what this host gives. Context: instead of serving. Ownership: none. Return: exit status */
int spawner_explain(struct spawner *s);
/** spawner_explain_runtimes() - print a line for each runtime (runtime_ask() of tools/reeve reads it). Context: instead of serving. Ownership: none. Return: exit status */
int spawner_explain_runtimes(struct spawner *s);
/** spawner_prepare() - make a spare for the first tenant's runtime. Context: spawner. Ownership: none. Return: none; what fails is tried again, and reported, by spawner_launch() */
void spawner_prepare(struct spawner *s);

/** spawner_open_runtime() - the @i-th runtime of the configuration, worked out at its first use; an image is mounted then. Context: spawner. Ownership: the spawner's. Return: it, or NULL with @err */
struct rv_runtime *spawner_open_runtime(struct spawner *s, size_t i, struct rv_error *err);
/** spawner_report() - send one event about a run, with the descriptors that belong to it. Context: spawner. Ownership: borrows. Return: none */
void spawner_report(struct spawner *s, uint64_t id, const struct rv_spawn_event *event, const int *fds, size_t n_fds);

/** spawner_fail() - report FAILED. Context: spawner. Ownership: borrows. Return: none */
void spawner_fail(
        struct spawner *s, uint64_t id, enum rv_backend_fault fault, int e, const char *step, const char *text);

/** spawner_removed() - report REMOVED; @e is 0, or -errno if a cgroup stays. Context: spawner. Ownership: none. Return: none */
void spawner_removed(struct spawner *s, uint64_t id, int e);

/** run_report_held() - report HELD of an assigned run, once all that it takes is there. Context: spawner, when something came. Ownership: borrows. Return: none */
void run_report_held(struct spawner *s, struct run *run);
/** spawner_network_capability() - what a plan with this mode needs a host to be able to. Context: any. Ownership: static. Return: the capability's name */
const char *spawner_network_capability(enum rv_plan_network network);
/** run_on_sync() - a message of the child is there, or its end closed. Context: spawner. Ownership: borrows. Return: none */
void run_on_sync(struct spawner *s, struct run *run);
/** run_on_oom() - the run met its memory limit, or it is time to look again. Context: spawner. Ownership: borrows. Return: none */
void run_on_oom(struct spawner *s, struct run *run);
/** run_on_end() - PID 1 is dead, and with it all of the run: report, remove, free. Context: spawner. Ownership: takes @run. Return: none */
void run_on_end(struct spawner *s, struct run *run);
/** run_kill() - kill every process of the run. Context: spawner. Ownership: borrows. Return: none */
void run_kill(struct run *run);
