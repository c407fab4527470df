/*
 * netns_sockets.h - the sockets of a networked run, made in the network namespace of the caller
 *
 * A socket stays in the namespace it was made in, whoever holds it, and keeps that namespace alive. For a process
 * between clone and exec. Single thread.
 */
#pragma once

#include "netns.h"

/**
 * rv_netns_sockets_open() - fill in ret->fds and n_fds, as ret->has_ipv6 says
 * @ret_step: with an error, the step that failed; static text
 *
 * Context:   needs CAP_NET_BIND_SERVICE, and CAP_NET_ADMIN for RV_NETNS_TPROXY
 * Ownership: rv_netns_close(). On error none is open
 * Return:    0 or -errno
 */
int rv_netns_sockets_open(enum rv_netns_mode mode, struct rv_netns *ret, const char **ret_step);
