/*
 * netns.h - the inside of a networked run: every destination is here, and the gate answers for it
 *
 * A run's network namespace has no link but `lo`. With network access every address is an address of `lo`, so that
 * whatever the program dials arrives in the namespace itself; an nftables rule brings each TCP connection, whatever
 * its port, to one listener, and DNS queries to any server arrive at port 53. These sockets are made in the
 * namespace by the process that becomes the run's PID 1, handed out by SCM_RIGHTS, and served by the gate, which
 * lives outside and dials for itself. Nothing is made on the host. The rules only bring connections to the
 * listener: without them, or without the sockets, a run reaches nothing.
 *
 *     rv_netns_open_best() in the child      the run's sockets -> rv_send_with_fds() -> the gate
 *     rv_netns_drop_capabilities()           what has made them cannot change them
 *     rv_netns_destination(), in the gate    where a connection wanted to go
 *     rv_netns_probe(), for people           which mode works on this host, and what is missing
 *
 * All of it ends with the last process of the run and the last of these sockets. In a run without network nothing
 * here is executed but rv_netns_loopback_up(). Single thread.
 */
#pragma once

#include "base/error.h"

#include <netinet/in.h>

/*
 * Where the listener is: no program has business with this port of another machine (browsers and fetch refuse it),
 * and below 1024 a program can bind nothing, so that it neither takes the port nor misses it.
 */
#define RV_NETNS_PORT 1
#define RV_NETNS_DNS_PORT 53

/*
 * /etc/resolv.conf of every run: its root is built before its mode is known, and without network nothing listens
 * there, which the kernel says at once. Measured with glibc 2.36 and c-ares 1.34 against a local server:
 *   no-aaaa      getaddrinfo sends one query a name in place of two; the gate's answer to AAAA is empty anyway
 *   timeout:1    a datagram that is lost, in a burst of hundreds, costs one second, not five
 *   attempts:5   a gate that needs longer than a second is waited for: a late answer is taken, for five seconds
 * `single-request` would only put the second query behind the first. Who knows an option not ignores it.
 */
#define RV_NETNS_RESOLV_CONF "nameserver 127.0.0.1\noptions timeout:1 attempts:5 no-aaaa\n"

/* How TCP is brought to the listener, best first. */
enum rv_netns_mode {
        RV_NETNS_NONE = 0,       /* not at all: networked runs are refused */
        RV_NETNS_TPROXY = 1,     /* nftables' transparent proxying: no connection tracking */
        RV_NETNS_REDIRECT,       /* NAT to the listener, with an entry of the kernel's for each connection */
        RV_NETNS_MODE_MAX_,
};

/* The sockets, in the order in which they are handed out; without IPv6 the last is left out. */
enum rv_netns_socket {
        RV_NETNS_SOCKET_TCP,         /* listens for every connection: rv_netns_destination() */
        RV_NETNS_SOCKET_DNS_TCP,     /* listens */
        RV_NETNS_SOCKET_DNS_UDP4,    /* bound; tells IP_PKTINFO, whose ipi_addr an answer's ipi_spec_dst has to be */
        RV_NETNS_SOCKET_DNS_UDP6,    /* bound, IPv6 only; tells IPV6_PKTINFO, which an answer carries back as it came */
        RV_NETNS_SOCKET_MAX_,
};

struct rv_netns {
        int fds[RV_NETNS_SOCKET_MAX_];       /* the first n_fds; non-blocking */
        size_t n_fds;
        enum rv_netns_mode mode;             /* how TCP gets there, for rv_netns_destination() */
        bool has_ipv6;                       /* else the listeners are IPv4's and IPv6 is unreachable */
};

/** rv_netns_mode_name() - the mode in a word, for messages. Context: any. Ownership: static. Return: "none", "tproxy" or "redirect" */
const char *rv_netns_mode_name(enum rv_netns_mode mode);

/**
 * rv_netns_open() - set up the network namespace of the caller and make its sockets
 * @mode:     RV_NETNS_TPROXY or RV_NETNS_REDIRECT; that one or none
 * @ret_step: with an error, the step that failed; static text
 *
 * The rules are read back; a difference is an error.
 *
 * Context:   in a namespace that was not set up, with CAP_NET_ADMIN and CAP_NET_BIND_SERVICE in the user namespace
 *            that it belongs to; between clone and exec; does not wait
 * Ownership: the caller closes the sockets: rv_netns_close(). On error none is open
 * Return:    0; -EADDRINUSE or -EEXIST it was set up before; -EBADE the rules are others than asked for; -EPERM; -errno
 */
int rv_netns_open(enum rv_netns_mode mode, struct rv_netns *ret, const char **ret_step);

/**
 * rv_netns_open_best() - rv_netns_open() in the best mode that this kernel has, told in ret->mode
 * @first: RV_NETNS_TPROXY; a later one stands for a kernel without the earlier
 *
 * Each mode holds a run as the others do; they differ in what a connection costs. With this a run needs no probe.
 *
 * Context:   as rv_netns_open()
 * Ownership: as rv_netns_open()
 * Return:    0; -errno of the last mode: rv_netns_probe() tells more
 */
int rv_netns_open_best(enum rv_netns_mode first, struct rv_netns *ret, const char **ret_step);

/** rv_netns_close() - close the sockets. Context: any. Ownership: takes the content. Return: none */
void rv_netns_close(struct rv_netns *net);

/**
 * rv_netns_drop_capabilities() - give up for good what rv_netns_open() needed, and CAP_NET_RAW
 *
 * Context:   the thread that opened; its other capabilities stay
 * Ownership: none
 * Return:    0 or -errno
 */
int rv_netns_drop_capabilities(void);

union rv_netns_address {
        struct sockaddr any;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
};

#define RV_NETNS_E_OWN_PORT 1

/**
 * rv_netns_destination() - where the client of a connection that RV_NETNS_SOCKET_TCP accepted wanted to go
 * @fd:  the accepted socket. Its peer's address says nothing
 * @ret: an IPv4 address in IPv6's clothing is told as IPv4; written on 0 and on RV_NETNS_E_OWN_PORT
 *
 * Context:   any process, without privilege
 * Ownership: borrows
 * Return:    0; RV_NETNS_E_OWN_PORT the program dialled the listener's own port, of whatever address: refuse it;
 *            -errno
 */
int rv_netns_destination(int fd, enum rv_netns_mode mode, union rv_netns_address *ret);

struct rv_netns_support {
        enum rv_netns_mode mode;             /* the best that works */
        bool has_ipv6;
        char reason[512];                    /* what is missing of the best, or of all, and what to do; "" for nothing */
};

/**
 * rv_netns_probe() - set up a namespace that is thrown away, connect in it, and tell which mode works
 * @first: the mode to begin with, RV_NETNS_TPROXY; a later one stands for a host without the earlier
 *
 * Tries it as a run would have it: in a user and a network namespace of its own, by the same calls.
 *
 * Context:   a process with one thread, as it forks; blocks some milliseconds, at most RV_NETNS_PROBE_MS for each mode
 * Ownership: none
 * Return:    none; with mode RV_NETNS_NONE the reason names what is missing
 */
void rv_netns_probe(enum rv_netns_mode first, struct rv_netns_support *ret);
#define RV_NETNS_PROBE_MS 5000

/** rv_netns_need() - what of a host a step of rv_netns_open() stands or falls with. Context: any. Ownership: static. Return: the text, or NULL: it is nothing of the host's */
const char *rv_netns_need(const char *step);
