/*
 * spawn_client.h - the loop's end of the channel to the spawner
 *
 *   spawner_fork (early, with privilege) -> rv_spawn_client_new -> start/stop* -> rv_spawn_client_close
 *
 * Loop thread. The spawner's death is told to every run as RV_SPAWN_LOST.
 */
#pragma once

#include "base/error.h"

#include <reeve/backend.h>
#include <sys/types.h>

struct rv_spawn_client;

/** rv_spawn_client_new() - serve a channel. Context: loop thread. Ownership: takes @take_fd and the child @pid; borrows @host until close. Return: 0 or -errno (then both are still the caller's) */
int rv_spawn_client_new(const struct rv_host *host, int take_fd, pid_t pid, struct rv_spawn_client **ret);

/* A gate was started, and @take_fd is its channel; or there is none any more (-1), for the reason @text. */
typedef void (*rv_spawn_gate_cb)(void *arg, int take_fd, const char *text);
/** rv_spawn_client_on_gate() - whom to tell of the gate; it is told before the run's HELD that it was started for. Context: loop thread. Ownership: borrows @arg until close. Return: none */
void rv_spawn_client_on_gate(struct rv_spawn_client *client, rv_spawn_gate_cb cb, void *arg);

/** rv_spawn_client_start() - host service spawn_start. Context: loop thread. Ownership: borrows. Return: 0 or -errno */
int rv_spawn_client_start(
        struct rv_spawn_client *client, const struct rv_spawn_spec *spec, rv_spawn_cb cb, void *arg, uint64_t *ret_id);
/* What the spawner is to do with a package layer. */
struct rv_spawn_layer {
        uint32_t kind;                       /* RV_SPAWN_REQUEST_BUILD or _COMPILED */
        const char *run_id, *digest;
        int job_fd, result_fd, artifacts_fd, lock_fd;   /* lent; of the helper, see enum rv_spawn_layer_fd */
};

/** rv_spawn_client_layer() - have it done; one event comes: RV_SPAWN_LAYER, or RV_SPAWN_LOST. rv_spawn_client_stop() ends it early. Context: loop thread. Ownership: borrows. Return: 0 or -errno */
int rv_spawn_client_layer(struct rv_spawn_client *client, const struct rv_spawn_layer *layer, rv_spawn_cb cb, void *arg,
        uint64_t *ret_id);
/** rv_spawn_client_stop() - host service spawn_stop. Context: loop thread. Ownership: none. Return: none */
void rv_spawn_client_stop(struct rv_spawn_client *client, uint64_t id);

/**
 * rv_spawn_client_ask() - a message that is not about a run, and its one answer
 * @answer_bytes: which tells it from a report; at most RV_SPAWN_ANSWER_MAX
 * @cb:           @answer is borrowed; NULL: the spawner is gone
 *
 * Context:   loop thread
 * Ownership: borrows; @arg until the call of @cb
 * Return:    0; -EBUSY an answer is awaited; -EPIPE the spawner is gone; -errno
 */
int rv_spawn_client_ask(struct rv_spawn_client *client, const void *message, size_t n, size_t answer_bytes,
        void (*cb)(void *arg, const void *answer), void *arg);
#define RV_SPAWN_ANSWER_MAX 4096

/** rv_spawn_client_hang_up() - nothing more is wanted of the spawner: it ends while other things are done. Context: loop thread, no run under way. Ownership: borrows; rv_spawn_client_close() follows. Return: none */
void rv_spawn_client_hang_up(struct rv_spawn_client *client);

/**
 * rv_spawn_client_close() - end the spawner and wait until it has removed all it made
 *
 * Context:   loop thread, no run under way; blocks for the spawner's clean-up
 * Ownership: takes @client, may be NULL
 * Return:    none
 */
void rv_spawn_client_close(struct rv_spawn_client *client);
