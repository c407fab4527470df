/*
 * address.h - may a run's connection go to this IP address?
 *
 * Every address that a name resolves to, and every literal that a program dials, is judged here before a packet
 * leaves. Public is what IANA's special-purpose registries (RFC 6890) leave of global unicast space; everything else
 * is refused with the word for it, and so is the host's own, whichever it is. An IPv4 address in IPv6's clothes
 * (::ffff:a.b.c.d, which a socket of both families shows) becomes the IPv4 address when it is taken in, so that there
 * is one form of each; other forms that carry one (NAT64, 6to4, Teredo, ::a.b.c.d) are refused whatever they carry.
 * A network's own NAT64 prefix looks like any other public address and cannot be told from one: an operator who has
 * one names it in `egress.deny`.
 *
 * Plain values without resources; the lists are the caller's. Any thread.
 */
#pragma once

#include "egress/denial.h"

#include <sys/socket.h>

#define RV_ADDRESS_TEXT_SIZE 46   /* with the NUL, as INET6_ADDRSTRLEN */

struct rv_address {
        bool is_v6;
        uint8_t bytes[16];   /* network order; of IPv4 the first four, the rest 0 */
};

struct rv_network {
        struct rv_address address;
        unsigned bits;       /* at most 32 or 128 */
};

/* What the operator named, and may be private therefore. */
struct rv_exemption {
        struct rv_address address;
        uint16_t port;       /* 0: every port */
};

struct rv_address_rules {
        const struct rv_network *denied;       /* `egress.deny`: before all else */
        size_t n_denied;
        const struct rv_exemption *exempt;     /* before what follows */
        size_t n_exempt;
        const struct rv_address *own;          /* of the host, all interfaces */
        size_t n_own;
};

/**
 * rv_address_make() - an address from its bytes in network order; one that is IPv4 in IPv6's clothes becomes IPv4
 * @n_bytes: 4 or 16
 *
 * Context:   any
 * Ownership: copies
 * Return:    0; -EINVAL for another size, @ret is then untouched
 */
int rv_address_make(const void *bytes, size_t n_bytes, struct rv_address *ret);

/**
 * rv_address_from_sockaddr() - from what getsockname() or a resolver gave
 * @ret_port: in host order; may be NULL
 *
 * Context:   any
 * Ownership: copies
 * Return:    0; -EAFNOSUPPORT for another family; -EINVAL if it is too short
 */
int rv_address_from_sockaddr(const struct sockaddr *sa, size_t n_sa, struct rv_address *ret, uint16_t *ret_port);

/** rv_address_to_sockaddr() - to connect to it. Context: any. Ownership: copies. Return: the size of what @ret holds */
socklen_t rv_address_to_sockaddr(const struct rv_address *address, uint16_t port, struct sockaddr_storage *ret);

/**
 * rv_address_parse() - from its text in the one spelling of IPv4 (four decimal numbers without leading zeros), or any
 *                      of IPv6 without a zone
 *
 * Context:   any
 * Ownership: copies
 * Return:    0 or -EINVAL
 */
int rv_address_parse(const char *text, size_t n, struct rv_address *ret);

/** rv_address_print() - the text, RFC 5952 for IPv6. Context: any. Ownership: copies. Return: @ret */
const char *rv_address_print(const struct rv_address *address, char ret[RV_ADDRESS_TEXT_SIZE]);

/** rv_address_is_equal() - Context: any. Ownership: borrows. Return: as named */
bool rv_address_is_equal(const struct rv_address *a, const struct rv_address *b);

/**
 * rv_network_parse() - ADDRESS or ADDRESS/BITS; bits of the address past the network's are ignored
 *
 * Context:   any
 * Ownership: copies
 * Return:    0 or -EINVAL
 */
int rv_network_parse(const char *text, size_t n, struct rv_network *ret);

/** rv_network_holds() - is the address in it? Context: any. Ownership: borrows. Return: as named */
bool rv_network_holds(const struct rv_network *network, const struct rv_address *address);

/**
 * rv_address_judge() - may a connection go there?
 * @port: for exemptions that hold for one port
 *
 * The order: what `egress.deny` names; exemptions; the kind of address; the host's own.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    RV_DENIAL_NONE if it may
 */
enum rv_denial rv_address_judge(const struct rv_address_rules *rules, const struct rv_address *address, uint16_t port);
