/*
 * gate_client.h - the loop's end of the channel to the gate
 *
 *   new -> (serve -> (add -> SERVED -> remove -> REPORT)* -> lose)* -> free
 *
 * The gate is a process that the spawner starts when the first run with network is asked for; its channel then comes
 * to rv_gate_client_serve(). Each run is added with what it may reach and with its sockets, and removed when its
 * processes are gone, which brings the evidence. Should the gate end, each run it had is told RV_GATE_EVENT_LOST; why
 * is known to the spawner, and is waited for shortly. Nothing here blocks. Loop thread.
 */
#pragma once

#include "base/error.h"
#include "egress/evidence_read.h"

#include <reeve/backend.h>

struct rv_gate_client;

enum rv_gate_event_kind {
        RV_GATE_EVENT_SERVED = 1,    /* whatever the run dials is answered from here on */
        RV_GATE_EVENT_REFUSED,       /* it is not served: `text`. The last one */
        RV_GATE_EVENT_LOST,          /* the gate is gone, or does not answer: `text`. The last one */
        RV_GATE_EVENT_REPORT,        /* it was removed: `evidence`. The last one */
};

struct rv_gate_event {
        enum rv_gate_event_kind kind;
        const char *text;
        struct rv_network_evidence *evidence;    /* its content may be taken: zero it then */
};

typedef void (*rv_gate_cb)(void *arg, const struct rv_gate_event *event);

/** rv_gate_client_new() - without a gate. Context: loop thread. Ownership: borrows @host until free. Return: 0 or -ENOMEM */
int rv_gate_client_new(const struct rv_host *host, struct rv_gate_client **ret);
/** rv_gate_client_hang_up() - nothing more is wanted of the gate: it ends while other things are done. Context: loop thread, no run is left; also from a callback. Ownership: borrows. Return: none */
void rv_gate_client_hang_up(struct rv_gate_client *client);
/** rv_gate_client_free() - hang up, and release. Context: loop thread, no run is left, outside of callbacks. Ownership: takes @client, may be NULL. Return: none */
void rv_gate_client_free(struct rv_gate_client *client);

/** rv_gate_client_serve() - a gate was started. Context: loop thread. Ownership: takes its channel. Return: none; a gate that cannot be served is as one that is gone */
void rv_gate_client_serve(struct rv_gate_client *client, int take_fd);
/** rv_gate_client_lose() - it is gone, or could not be started, for this reason. Context: loop thread. Ownership: borrows. Return: none */
void rv_gate_client_lose(struct rv_gate_client *client, const char *text);

/** rv_gate_client_lost_text() - why there is no gate any more. Context: loop thread. Ownership: borrowed until the next call. Return: the text; "" if there is one, or never was */
const char *rv_gate_client_lost_text(const struct rv_gate_client *client);

/**
 * rv_gate_client_add() - have a run served
 * @rules:  @n bytes of JSON (gate_rules.h)
 * @fds:    its sockets; lent
 * @ret_id: for rv_gate_client_remove()
 *
 * Context:   loop thread; @cb is never called from here
 * Ownership: borrows @arg until the last event
 * Return:    0, also if the gate has ended and why is not known so far: @cb is told; -EPIPE there is no gate; -EAGAIN it does not take messages; -errno
 */
int rv_gate_client_add(struct rv_gate_client *client, const char *rules, size_t n, const int *fds, size_t n_fds,
        rv_gate_cb cb, void *arg, uint64_t *ret_id);

/**
 * rv_gate_client_remove() - the run is over: nothing of it is served any more
 * @ms: how long the report is waited for; past that it is RV_GATE_EVENT_LOST
 *
 * For half of that, and no longer than RV_GATE_DRAIN_MS, what the program had written may still be on its way out.
 *
 * Context:   loop thread, no last event came; the last one may be told from here
 * Ownership: none
 * Return:    none
 */
void rv_gate_client_remove(struct rv_gate_client *client, uint64_t id, uint64_t ms);
/** rv_gate_client_forget() - the same for who does not want to be told anything any more. Context: loop thread; harmless after the last event. Ownership: gives @arg back. Return: none */
void rv_gate_client_forget(struct rv_gate_client *client, uint64_t id);
