/*
 * spawn_msg.h - the messages between the loop, the spawner and init
 *
 * Two channels, both SOCK_SEQPACKET pairs, fixed-size messages, native byte order (one machine):
 *   loop <-> spawner   `struct rv_spawn_request` one way, `struct rv_spawn_report` the other; beside them what the
 *                      signer is asked and answers (audit/sign_msg.h), of other sizes and with kinds from 16 on
 *   loop <-> init      one byte RV_INIT_GO one way, `struct rv_init_report` the other; init's end is handed to
 *                      it by the spawner, which never reads it
 *
 * What a request can carry is the boundary of trust: names that the spawner looks up in the configuration it
 * read itself, and numbers that it checks against the configured maxima. Never a host path, a user id, a
 * mount flag, an environment. A message of another size ends the connection; a field out of range is FAILED.
 */
#pragma once

#include <reeve/backend.h>

#define RV_SPAWN_NAME_SIZE 64

enum rv_spawn_request_kind {
        RV_SPAWN_REQUEST_START = 1,
        RV_SPAWN_REQUEST_STOP,
        RV_SPAWN_REQUEST_BUILD,         /* a package layer: `layer` is its digest; with the descriptors of enum rv_spawn_layer_fd */
        RV_SPAWN_REQUEST_COMPILED,      /* add to layer `layer` what was compiled of it; with the same */
};

/* The descriptors of a BUILD and a COMPILED, in this order, by SCM_RIGHTS: they become the helper's. */
enum rv_spawn_layer_fd {
        RV_SPAWN_LAYER_FD_JOB,          /* its standard input */
        RV_SPAWN_LAYER_FD_RESULT,       /* its standard output */
        RV_SPAWN_LAYER_FD_ARTIFACTS,    /* the directory that it reads */
        RV_SPAWN_LAYER_FD_LOCK,         /* not the helper's: what becomes the layer's lock.json, unread */
        RV_SPAWN_LAYER_FD_MAX_
};

/* The descriptors of a START, in this order, by SCM_RIGHTS. */
enum rv_spawn_fd {
        RV_SPAWN_FD_CONTROL,
        RV_SPAWN_FD_PAYLOAD,
        RV_SPAWN_FD_STDIN,
        RV_SPAWN_FD_STDOUT,
        RV_SPAWN_FD_STDERR,
        RV_SPAWN_FD_MAX_
};

struct rv_spawn_request {
        uint32_t kind;
        uint32_t language;                       /* enum rv_plan_language */
        uint32_t network;                        /* enum rv_plan_network */
        uint32_t memory_mib, pids, cpus_milli;
        uint64_t id;                             /* the loop's name for the run on this channel */
        char run_id[RV_RUN_ID_SIZE];
        char runtime[RV_SPAWN_NAME_SIZE];
        char tenant[RV_SPAWN_NAME_SIZE];
        char layer[RV_LAYER_DIGEST_SIZE];        /* "" for none */
        uint32_t timeout_s;                      /* the loop ends the run; should it be stopped, the spawner does, later */
        uint32_t is_resolver;
};

/* Beside the kinds of rv_spawn_event_kind: what is about no run. Of the gate with `id` 0. */
enum rv_spawn_gate_kind {
        RV_SPAWN_GATE = 64,     /* the gate was started, for the run that is asked for next: its channel comes along */
        RV_SPAWN_GATE_LOST,     /* it cannot be started, or it ended; `fault_text` says why */
        RV_SPAWN_LAYER,         /* with the `id` of a BUILD or COMPILED: it is done, or fault_errno and fault_text say why not */
};

/* The event's descriptors, result_fd or those of `network`, and a gate's channel travel by SCM_RIGHTS, in their order. */
struct rv_spawn_report {
        uint64_t id;
        struct rv_spawn_event event;
};
#define RV_SPAWN_REPORT_FDS_MAX RV_NETWORK_SOCKETS_MAX

#define RV_INIT_GO 'g'

enum rv_init_report_kind {
        RV_INIT_STARTED = 1,    /* the interpreter was executed */
        RV_INIT_EXITED,         /* the program was reaped */
        RV_INIT_EXEC_FAILED,    /* the interpreter could not be executed, or the payload was not well-formed */
};

struct rv_init_report {
        uint32_t kind;
        int32_t wait_status;                     /* with EXITED */
        int32_t fault_errno;                     /* with EXEC_FAILED */
        uint32_t reserved;
        uint64_t start_us, end_us;               /* CLOCK_BOOTTIME: executed (all but EXEC_FAILED), reaped (EXITED) */
};
