/*
 * run.h - one request from its text to its answer: the pipeline
 *
 *     validate -> idempotency -> decide -> resolve -> decide -> prepare -> plan -> start -> run -> collect -> classify
 *              -> record -> answer -> teardown -> compile
 *
 * One state machine (pipeline.c), one file a phase. A phase does its part and names what comes next, or waits
 * for a backend, a timer or a caller to move the run on. Every path ends in exactly one answer, a problem or
 * an outcome, and leaves the records that the contract asks for.
 *
 *   rv_run_start -> (output)* -> answered -> released -> rv_run_free
 *
 * Loop thread only.
 */
#pragma once

#include "audit/log.h"
#include "base/config.h"
#include "egress/gate_client.h"
#include "package/registry.h"
#include "policy/bundle.h"
#include "request/problem.h"
#include "run/outcome.h"

#include <reeve/backend.h>

#define RV_CORE_BACKENDS_MAX 8

/* What is to be done with a package layer, by whoever has the privilege for it. */
enum rv_layer_action { RV_LAYER_BUILD, RV_LAYER_COMPILED };

struct rv_layer_task {
        enum rv_layer_action action;
        const char *run_id, *digest;
        int job_fd, result_fd, artifacts_fd, lock_fd;        /* lent; lock_fd negative: none */
};

struct rv_store;

/* What all runs of a process share. */
struct rv_core {
        const struct rv_config *config;
        struct rv_log *log;
        struct rv_host *host;
        struct rv_gate_client *gate;      /* what serves runs with network; or NULL: there is nothing */
        struct rv_registry *registries[2];   /* by enum rv_language; NULL: not looked for */
        /* Called for a run that was allowed: what stands in no configuration is asked for, blocking. Or NULL. */
        void (*complete_registry)(void *arg, struct rv_registry *registry);
        void *registry_arg;
        struct rv_store *store;           /* of packages; NULL: there is none, and runs with packages are refused */
        int fetch_fd, unpack_fd;          /* helpers; negative: not there */
        /* fn on a thread of its own, then done on the loop's. 0 or -errno. */
        int (*work)(void *work_arg, void (*fn)(void *arg), void (*done)(void *arg), void *arg);
        void *work_arg;
        /* One event comes by cb, unless this fails: RV_SPAWN_LOST, or any other with fault_errno and fault_text. 0 or -errno. */
        int (*layer)(void *layer_arg, const struct rv_layer_task *task,
                void (*cb)(void *arg, const struct rv_spawn_event *event), void *arg, uint64_t *ret_id);
        void (*layer_stop)(void *layer_arg, uint64_t id);
        void *layer_arg;
        const char *runtime_digest;       /* "sha256:…" of @runtime, where it is an image; else the configuration's counts */
        const struct rv_config_runtime *runtime;
        struct {
                const struct rv_backend *backend;
                void *state;
        } backends[RV_CORE_BACKENDS_MAX];
        size_t n_backends;
};

/** rv_core_add_backend() - offer a backend under its name. Context: loop thread. Ownership: borrows both. Return: 0; -ENOSPC; -errno of configure() */
int rv_core_add_backend(struct rv_core *core, const struct rv_backend *backend);
/** rv_core_fini() - end the backends. Context: loop thread, no run left. Ownership: takes the backends' states. Return: none */
void rv_core_fini(struct rv_core *core);
/** rv_core_fill_host() - the members of struct rv_host by which a backend tells of a run. Context: before a backend is configured. Ownership: none. Return: none */
void rv_core_fill_host(struct rv_host *host);

struct rv_run;

struct rv_run_input {
        const char *tenant;                    /* a name of the configuration */
        const struct rv_bundle *bundle;        /* NULL: it could not be loaded, */
        const char *bundle_error;              /* for this reason, and every run is denied */
        const struct rv_bundle *shadow;        /* judges too and decides nothing; NULL: none, */
        const char *shadow_error;              /* or it could not be loaded, for this reason ("" or NULL: none) */
        const char *backend;                   /* asked for on the command line, or NULL */
        const char *unavailable;               /* why nothing may run for now, or NULL */
        const json_t *lock;                    /* a lock (package/lock.h) to be used for the request's packages; or NULL */
        const char *principal, *request_id, *trace_id;   /* or NULL */
        const struct rv_run *build_for;        /* it builds a package for this run (build.h); or NULL */
        const void *stdin_data;                /* any bytes, in place of the request's; or NULL */
        size_t stdin_bytes;
        bool has_wait;                         /* for a run in flight with the same idempotency key: */
        uint32_t wait_s;                       /* so long at most, else for the request's timeout_s */
        const char *text;                      /* the request as JSON text, or */
        size_t text_bytes;
        const json_t *value;                   /* as a value */

        void *ctx;
        void (*output)(void *ctx, enum rv_stream stream, const void *data, size_t n);   /* live; or NULL */
        void (*progress)(void *ctx, const char *text);      /* what is done for it, for people, before it runs; or NULL */
        void (*started)(void *ctx, struct rv_run *run);     /* the program runs, and nobody waits for reeve; or NULL */
        void (*answered)(void *ctx, struct rv_run *run);    /* rv_run_problem() or rv_run_outcome() is there */
        void (*released)(void *ctx, struct rv_run *run);    /* nothing of it is left: it may be freed, here too */
};

/**
 * rv_run_start() - take a request
 * @input: all of it is borrowed until `released`
 *
 * Context:   loop thread; `answered` may be called before it returns
 * Ownership: *@ret_run is the caller's, to be freed after `released`
 * Return:    0 or -ENOMEM (then nothing was done)
 */
int rv_run_start(struct rv_core *core, const struct rv_run_input *input, struct rv_run **ret_run);

/** rv_run_stop() - end a run early: RV_STOP_CANCELLED or RV_STOP_SHUTDOWN. Context: loop thread; harmless when it is over. Ownership: borrows. Return: none */
void rv_run_stop(struct rv_run *run, enum rv_stop why);
/** rv_run_flow() - whoever gets the output live cannot take more for now (@is_flowing false), or can again: the program waits. Context: loop thread; harmless when it is over. Ownership: borrows. Return: none */
void rv_run_flow(struct rv_run *run, enum rv_stream stream, bool is_flowing);
/** rv_run_problem() - why the request was not taken, or NULL. Context: from `answered` on. Ownership: borrowed from @run. Return: the problem */
const struct rv_problem *rv_run_problem(const struct rv_run *run);
/** rv_run_outcome() - the outcome, or NULL if there is a problem. Context: from `answered` on. Ownership: borrowed from @run. Return: the outcome */
const struct rv_outcome *rv_run_outcome(const struct rv_run *run);
/** rv_run_lock() - the lock of the run's packages, or NULL: none was found. Context: from `answered` on. Ownership: borrowed from @run. Return: it */
const json_t *rv_run_lock(const struct rv_run *run);
/** rv_run_free() - release. Context: after `released`. Ownership: takes @run, may be NULL. Return: none */
void rv_run_free(struct rv_run *run);
