/*
 * dns.h - a run's DNS: its sockets, answered from policy (egress/dns.h)
 *
 * A datagram is answered from the address that it was sent to, whichever that was. Over TCP a connection may ask one
 * question after another; DNS_STREAMS_MAX at once, each for DNS_STREAM_MS without a whole one. A run that asks more
 * often than `dns_per_s` waits. One thread.
 */
#pragma once

#include "run.h"

#define DNS_PORT 53
#define DNS_STREAMS_MAX 32
#define DNS_STREAM_MS 10000

/** dns_ready() - callback of the datagram sockets' watches. Context: the loop. Ownership: none. Return: none */
void dns_ready(struct watch *watch, uint32_t events);
/** dns_accept() - callback of the listener's watch. Context: the loop. Ownership: none. Return: none */
void dns_accept(struct watch *watch, uint32_t events);
/** dns_on_time() - Context: the run's timer. Ownership: none. Return: none */
void dns_on_time(struct run *run, uint64_t now_ms);
/** dns_reap() - release connections that ended. Context: run_reap(). Ownership: takes them. Return: none */
void dns_reap(struct run *run);
/** dns_close() - the run ends; again does nothing. Context: the loop. Ownership: takes the sockets and the connections. Return: none */
void dns_close(struct run *run);
