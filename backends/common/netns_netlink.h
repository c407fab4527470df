/*
 * netns_netlink.h - requests to the kernel by netlink, without a library
 *
 * A request is bytes that were put together at build time or lie on the stack; the kernel answers each of its
 * messages with an acknowledgement before send() returns, so nothing here waits. Usable between clone and exec:
 * no memory is allocated. One thread a socket; the socket stays in the network namespace that it was made in.
 */
#pragma once

#include "base/rv.h"

#include <linux/netlink.h>

/** rv_netlink_open() - a socket of @protocol (NETLINK_ROUTE, NETLINK_NETFILTER). Context: any. Ownership: the caller closes. Return: a descriptor or -errno */
int rv_netlink_open(int protocol);

/**
 * rv_netlink_request() - send @n messages in one piece and take the answer to each
 * @messages: with sequence numbers 1 to @n in any order and NLM_F_ACK; those without NLM_F_ACK have number 0
 * @errors:   of the messages 1 to @n, each 0 or -errno; written on 0 only
 *
 * Context:   any; does not wait
 * Ownership: borrows
 * Return:    0 if each was answered, be it with an error; -EPROTO if not; -errno if the whole was refused
 */
int rv_netlink_request(int fd, const void *messages, size_t size, uint32_t n, int errors[]);
#define RV_NETLINK_MESSAGES_MAX 16

/**
 * rv_netlink_dump() - send one request with NLM_F_DUMP and take the list that answers it
 * @buf:      for the answers, one behind the other, without the end mark; aligned as a struct nlmsghdr
 * @ret_size: bytes written
 *
 * Context:   any; does not wait
 * Ownership: borrows
 * Return:    0; -ENOBUFS the list is longer than @size; -EINTR it changed meanwhile; -EPROTO no end; -errno as told
 */
int rv_netlink_dump(int fd, const void *request, size_t request_size, void *buf, size_t size, size_t *ret_size);
