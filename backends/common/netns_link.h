/*
 * netns_link.h - the links and routes of a run's network namespace
 *
 * There is one link, `lo`, for good; what differs is whether destinations beyond 127.0.0.0/8 and ::1 exist. All
 * functions act on the network namespace of the caller and are for a process between clone and exec: no memory
 * is allocated, nothing waits.
 */
#pragma once

#include "base/rv.h"

/*
 * The congestion control of all TCP in the namespace: of what the program dials by the route, of what the gate accepts
 * by the listener. A host's own default may pace what it sends (bbr), which between two processes of one machine is
 * waiting for timers: a stream then had 0.3 of its speed. What the gate dials is the host's, and keeps the host's.
 */
#define RV_NETNS_CONTROL "reno"      /* every kernel has it, and anybody may choose it */

/** rv_netns_loopback_up() - bring up `lo`, also if it is. Context: needs CAP_NET_ADMIN there. Ownership: none. Return: 0 or -errno */
int rv_netns_loopback_up(void);

/**
 * rv_netns_route_all() - make every destination, of IPv4 and IPv6, an address of this namespace
 * @ret_has_ipv6: false if this kernel, or `lo`, has no IPv6: then nothing of it can be reached
 *
 * Multicast and broadcast stay unreachable, as without network: nobody could answer, and nothing would say so. `lo` gets an
 * address of each family besides 127.0.0.1 and ::1, without which clients may look up none (AI_ADDRCONFIG).
 *
 * Context:   `lo` is up; needs CAP_NET_ADMIN there; to do it twice is to do it once
 * Ownership: none
 * Return:    0 or -errno
 */
int rv_netns_route_all(bool *ret_has_ipv6);
