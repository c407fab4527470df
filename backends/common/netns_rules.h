/*
 * netns_rules.h - the nftables rules that bring a run's TCP connections to the listener
 *
 * The rules are one batch of netlink messages, made by libnftnl and libmnl at build time (netns_rules_gen.c), so
 * that nothing of them is loaded or computed in a run. One batch is one transaction: all of it stands, or nothing.
 * In a fresh network namespace once; they end with it. For a process between clone and exec: nothing is allocated.
 *
 * In table inet reeve, in this order, whatever the mode: to 127.0.0.0/8 and to ::1 nothing is done, nor to TCP
 * port 53; all other TCP goes to RV_NETNS_PORT. UDP passes: what is bound to no port is refused by the kernel.
 */
#pragma once

#include "netns.h"

#define RV_NETNS_TABLE "reeve"
#define RV_NETNS_CHAIN "egress"

/* The objects that the transaction makes, in its order, to name one in a message. */
enum rv_netns_object {
        RV_NETNS_OBJECT_TABLE,
        RV_NETNS_OBJECT_CHAIN,
        RV_NETNS_OBJECT_RULES,       /* this and all that follow */
};

/**
 * rv_netns_rules_add() - make them in the network namespace of the caller
 * @ret_object: with an error that one object met, which; else untouched
 *
 * Context:   needs CAP_NET_ADMIN there
 * Ownership: none
 * Return:    0; -EEXIST there are some already; -ENOENT this kernel has no such table, chain or expression; -errno
 */
int rv_netns_rules_add(enum rv_netns_mode mode, uint32_t *ret_object);

/**
 * rv_netns_rules_check() - read the rules back: are they those, all of those, in that order, and no others in the chain?
 *
 * Context:   needs CAP_NET_ADMIN in the network namespace
 * Ownership: none
 * Return:    0; -EBADE they differ; -ENOENT there is no such chain; -errno
 */
int rv_netns_rules_check(enum rv_netns_mode mode);

/**
 * rv_netns_rules_compare() - do the messages @got, as the kernel lists rules, say what the batch @want asked for?
 *
 * What the kernel adds to a rule (its number, defaults) is no difference; one expression more, less or other is.
 *
 * Context:   any; the check without the kernel, for tests
 * Ownership: borrows
 * Return:    as named
 */
bool rv_netns_rules_compare(const void *want, size_t want_size, const void *got, size_t got_size);
