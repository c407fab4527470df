/*
 * gate.h - the process: what all runs share
 *
 * One thread, one libuv loop. Each run has an epoll set of its own (watch.h), of which the loop sees one descriptor:
 * a run with five hundred busy sockets has as many turns as a run with one. Nothing here blocks.
 *
 *     main.c       start, end               control.c   ADD and REMOVE
 *     run.c        one run                  dns.c       its DNS
 *     listen.c     its connections          conn.c      one connection: first bytes, judging
 *     resolve.c    names to addresses       dial.c      to the destination
 *     relay.c      bytes both ways          deny.c      how a client is told
 *     own.c        addresses of the host    confine.c   what the process gives up
 */
#pragma once

#include "egress/address.h"
#include "link.h"

#include <ares.h>
#include <uv.h>

#define GATE_CHUNK_BYTES 65536u      /* read at once where bytes are looked at */

struct gate {
        uv_loop_t loop;
        struct link runs;
        unsigned n_runs;
        int spare_fd;                     /* given up to refuse a connection when there is no other */
        char chunk[GATE_CHUNK_BYTES];     /* for whoever reads, until it returns */

        /* resolve.c */
        ares_channel resolver;
        uv_timer_t resolver_timer;
        unsigned n_queries;

        /* own.c */
        struct rv_address *own;
        size_t n_own;
        int own_dump_fd;
        uv_poll_t own_poll;

        /* control.c */
        uv_poll_t control_poll;
        bool is_ending;
};

/** gate_now() - milliseconds, as of this turn of the loop. Context: any. Ownership: none. Return: it */
static inline uint64_t gate_now(const struct gate *gate)
{
        return uv_now(&gate->loop);
}
