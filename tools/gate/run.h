/*
 * run.h - one run in the gate: its rules, its sockets, its connections
 *
 *     run_add -> (served) -> run_drain: nothing new, and what the program had written goes out -> run_remove: all is
 *     closed at once, the evidence is what is left
 *
 * Everything of a run hangs on it; a connection or a query is released after the callback that ended it (run_reap),
 * so that callers need not know which of their calls ends what. The run's memory is released when libuv has let go of
 * its handles.
 *
 * Whatever one callback does for a run is bounded, since the other runs wait meanwhile: so many events, so many pieces
 * of what is due (run_take_turn), then it is their turn. A piece dials, accepts or ends one connection. One thread.
 */
#pragma once

#include "bucket.h"
#include "egress/evidence.h"
#include "egress/gate_rules.h"
#include "egress/synth.h"
#include "gate.h"
#include "watch.h"

struct run {
        struct gate *gate;
        struct link link;
        uint64_t id;
        struct rv_gate_rules *rules;
        struct rv_synth *synth;
        struct rv_evidence *evidence;
        uint64_t bytes;                                    /* moved so far, both ways */

        int epoll_fd;
        uv_poll_t poll;
        uv_timer_t timer;
        uv_idle_t idle;                                    /* started while more is due than a turn has pieces */
        uint64_t wake_ms;                                  /* when the timer fires; 0: not started */
        uint64_t drain_ms;                                 /* when it ends at the latest; 0: it is served */
        unsigned pieces_left;                              /* of this turn */
        unsigned n_handles;                                /* of libuv, not closed yet */

        struct watch listener, dns_udp4, dns_udp6, dns_tcp;
        struct bucket connection_bucket, dns_bucket;
        struct link waiting;                               /* listen.c: for a connection to end */
        unsigned n_waiting;
        struct link conns, dead_conns;                     /* conn.h */
        unsigned n_conns;                                  /* that `limits.connections` is about */
        unsigned n_refused;                                /* for that limit; each is told, and ends */
        struct link dns_streams, dead_dns_streams;         /* dns.c */
        unsigned n_dns_streams;
        struct link answers;                               /* resolve.c */
        unsigned n_answers, n_asked;
};

/**
 * run_add() - serve a run
 * @sockets: RV_GATE_FDS_MAX - 1 at most, in any order
 *
 * Context:   the loop
 * Ownership: takes @rules and the @sockets, also on failure; *@ret is the gate's (run_remove)
 * Return:    0; -EINVAL with the reason in @err; -errno
 */
int run_add(struct gate *gate, uint64_t id, struct rv_gate_rules *rules, const int *sockets, size_t n_sockets,
        struct rv_error *err);
/** run_find() - Context: the loop. Ownership: the gate's. Return: the run of this number, or NULL */
struct run *run_find(struct gate *gate, uint64_t id);
/**
 * run_drain() - the program is gone: what it had written still goes out
 * @ms: for no longer than this
 *
 * Its sockets are closed. What it had connected and was not accepted yet is, as far as the limits allow; a connection
 * whose destination is being looked up or dialled goes on. What comes from servers is dropped.
 *
 * Context:   the loop; the run is served
 * Ownership: none; control_report() is called when run_is_over(), unless it is that now
 * Return:    none
 */
void run_drain(struct run *run, uint64_t ms);
/** run_is_over() - it drains, and nothing is left that could go out. Context: the loop. Ownership: none. Return: as named */
bool run_is_over(const struct run *run);
/**
 * run_remove() - end all of a run at once
 * @report: gets the evidence as JSON; NULL if nobody wants it
 *
 * Context:   the loop
 * Ownership: takes @run
 * Return:    0 or -ENOMEM: the run is gone all the same
 */
int run_remove(struct run *run, struct rv_buf *report);
/** run_wake_at() - have the run's timer fire then, or before. Context: the loop. Ownership: none. Return: none */
void run_wake_at(struct run *run, uint64_t ms);
/** run_go_on() - what is due has another turn, once the other runs had theirs. Context: the loop. Ownership: none. Return: none */
void run_go_on(struct run *run);
/** run_take_turn() - may one more piece of what is due be done now? If not, run_go_on(). Context: a turn (run.c). Ownership: none. Return: as named */
bool run_take_turn(struct run *run);
/** run_reap() - release what has ended. Context: the loop, at the end of a callback. Ownership: takes what has ended. Return: none */
void run_reap(struct run *run);
