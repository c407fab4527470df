/*
 * watch.h - one descriptor in a run's epoll set
 *
 * The owner embeds it, tells what it waits for as often as that changes, and is called when it is there. Events are
 * taken from the kernel one by one (run.c), so that a watch may be closed and released in any callback: there is never
 * an event of it left over. Nothing waited for means not in the set, where a descriptor that has hung up would spin.
 * Lives with its owner: init, set, close. One thread.
 */
#pragma once

#include "base/rv.h"

#include <stdint.h>
#include <sys/epoll.h>

struct watch {
        int fd;
        int epoll_fd;            /* borrowed */
        uint32_t waits_for;
        void *owner;             /* the owner's, for what cannot be told from the watch's place */
        void (*ready)(struct watch *watch, uint32_t events);
};

/** watch_init() - waits for nothing yet. Context: the loop. Ownership: takes @fd. Return: none */
void watch_init(struct watch *watch, int epoll_fd, int fd, void (*ready)(struct watch *watch, uint32_t events));
/** watch_set() - wait for these events, level-triggered; 0 for none. Context: the loop. Ownership: none. Return: 0 or -errno */
int watch_set(struct watch *watch, uint32_t events);
/** watch_close() - close its descriptor, if it has one, which nobody else has. Context: the loop. Ownership: takes the descriptor. Return: none */
void watch_close(struct watch *watch);
/** watch_close_shared() - the same for one that another process may have too. Context: the loop. Ownership: takes the descriptor. Return: none */
void watch_close_shared(struct watch *watch);
/** watch_reset() - the same; the peer sees a reset. Context: the loop. Ownership: takes the descriptor. Return: none */
void watch_reset(struct watch *watch);
