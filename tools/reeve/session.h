/*
 * session.h - the process of `reeve run` (and of doctor's trial runs): its parts in the order they come up
 *
 *   prepare (with privilege: spawner, configuration, state directory, bundle)
 *   -> settle (without: log, loop, backends) -> runs -> close
 *
 * A command that only signs has session_prepare_signing() and session_settle_signing() in their place: the spawner
 * then makes no runs, and there is no bundle and no backend.
 *
 * As root the process gives its privilege up in settle: it becomes the user `reeve`, else the first uid of
 * `uid_range`. Whatever a command line names is opened before.
 */
#pragma once

#include "audit/seal.h"
#include "audit/sink.h"
#include "loop/loop.h"
#include "base/tree_digest.h"
#include "run/run.h"
#include "spawn_client.h"

#include <sys/types.h>

struct session {
        struct rv_config *config;
        struct rv_bundle *bundle;
        struct rv_error bundle_error;    /* why there is none */
        struct rv_bundle *shadow;        /* that judges too, if the tenant has one */
        struct rv_error shadow_error;    /* why there is none although it should be */
        const struct rv_config_tenant *tenant;
        int state_fd, spawner_fd;
        pid_t spawner_pid;
        uid_t uid;                       /* the loop's */
        bool is_root;                    /* it was started as root: the spawner is */
        bool has_loop;
        struct rv_loop loop;
        struct rv_core core;
        struct rv_seal *seal;
        bool is_sealed;                  /* after session_answered() */
        bool is_last;                    /* its run is released: what the signer signs next is the last that is wanted of the spawner */
        rv_sign_cb sign_cb;              /* of the question that the signer has not answered */
        void *sign_arg;
        struct rv_registry *registries[2];   /* by enum rv_language; NULL: not looked for */
        int fetch_fd;                    /* the helper that may be asked for an index's page, or negative */
        int unpack_fd;                   /* the helper that reads archives, or negative */
        bool wants_packages;             /* there may be runs with packages */
        struct rv_sink *sink;            /* NULL: the log has no second place */
        char runtime_digest[RV_TREE_DIGEST_SIZE];   /* of the tenant's runtime, if it is an image that may be used; else "" */
        struct rv_error behind;          /* set: the second place is too far behind, and nothing may run */
        bool has_complained;             /* of the second place: once is enough */
};

/**
 * session_prepare() - all that wants privilege
 * @config_path: from the command line, or NULL
 * @tenant:      a name, or NULL for `local`
 *
 * Context:   start of the process
 * Ownership: release with session_close(), also after a failure
 * Return:    0; -errno: @err says what, why and what to do
 */
int session_prepare(struct session *s, const char *config_path, const char *tenant, struct rv_error *err);
/** session_settle() - give up privilege, open the log, make the loop and the backends. Context: once after prepare. Ownership: as above. Return: 0; -errno with @err; what is wrong with the log is *ret_is_log */
int session_settle(struct session *s, bool *ret_is_log, struct rv_error *err);
/**
 * session_prepare_signing() - as session_prepare(), for a command that only signs
 * @key_file: absolute path of the key, in place of the configuration's; or NULL
 *
 * Context:   start of the process
 * Ownership: release with session_close(), also after a failure
 * Return:    0; -errno: @err says what, why and what to do
 */
int session_prepare_signing(struct session *s, const char *config_path, const char *key_file, struct rv_error *err);
/** session_settle_signing() - give up privilege, open the log, make the loop. Context: once after session_prepare_signing(). Ownership: as above. Return: 0; -errno with @err */
int session_settle_signing(struct session *s, struct rv_error *err);

/** session_ask() - ask the signer and wait for its answer, 3 s at most. Context: settled, the loop not running. Ownership: borrows. Return: 0; -EPIPE; -ETIMEDOUT */
int session_ask(struct session *s, const struct rv_sign_request *q, struct rv_sign_answer *ret);
/** session_answered() - the only run has its answer: begin to seal the log. Context: loop thread. Ownership: borrows. Return: none */
void session_answered(struct session *s);
/** session_released() - the only run is released: the loop stops once the log is sealed too. Context: loop thread. Ownership: borrows. Return: none */
void session_released(struct session *s);
/** session_seal() - seal the log and wait until that is done. Context: settled, the loop not running. Ownership: borrows. Return: 0; -errno with @err */
int session_seal(struct session *s, enum rv_seal_mode mode, struct rv_error *err);

/** session_find_registries() - where the packages of a language come from, for a run in network mode registries. Context: between prepare and settle. Ownership: @s's. Return: 0 or -ENOMEM */
int session_find_registries(struct session *s, enum rv_language language);
/** session_complete_registry() - what stands in no configuration; @arg is the session. Context: settled; blocks. Ownership: borrows. Return: none */
void session_complete_registry(void *arg, struct rv_registry *registry);

/** session_want_packages() - there will be a run with packages. Context: between prepare and settle. Ownership: @s's. Return: 0 */
int session_want_packages(struct session *s);
/** session_open_packages() - the store, and what else runs with packages need, if they are wanted. Context: session_settle(), without privilege. Ownership: @s's. Return: 0; -errno with @err */
int session_open_packages(struct session *s, struct rv_error *err);

/** session_close() - end everything, the spawner last. Context: no run left. Ownership: takes the content. Return: none */
void session_close(struct session *s);

/** session_identify_runtime() - the digest of the tenant's runtime, if it is an image. Context: session_prepare(). Ownership: @s's. Return: none; what is wrong with it the runs are told */
void session_identify_runtime(struct session *s);
/** session_sink_open() - the log's second place, if there is one. Context: session_prepare(). Ownership: @s's. Return: 0; -ENOMEM */
int session_sink_open(struct session *s, struct rv_error *err);
/** session_sink_gate() - is the second place so far behind that nothing may run? It is waited for, if the configuration says so; `behind` tells. Context: session_settle(), the log is open; blocks for phases.queue at most. Ownership: borrows. Return: none */
void session_sink_gate(struct session *s);
/** session_sink_send() - deliver what this process has left in the log, within audit.sink.timeout; a failure is said on standard error. Context: session_close(), the log is open. Ownership: borrows. Return: none */
void session_sink_send(struct session *s);
/** session_unavailable() - for struct rv_run_input. Context: after session_settle(). Ownership: borrowed from @s. Return: the text or NULL */
const char *session_unavailable(const struct session *s);
