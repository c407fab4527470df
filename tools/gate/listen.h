/*
 * listen.h - accepting a run's connections: so many a second, so many at once
 *
 * A run that is past `connections_per_s` waits in the kernel's queue, and so does one past `connections`; who has
 * waited there LISTEN_WAIT_MS is refused, so that a program sees why nothing moves. One thread.
 */
#pragma once

#include "run.h"

#define LISTEN_WAIT_MS 2000

/** listen_ready() - the watch's callback. Context: the loop. Ownership: none. Return: none */
void listen_ready(struct watch *watch, uint32_t events);
/** listen_on_time() - go on, if it can. Context: the run's timer. Ownership: none. Return: none */
void listen_on_time(struct run *run, uint64_t now_ms);
/** listen_close() - take what is connected already, as far as the limits allow, and nothing more. Context: the loop. Ownership: takes the listener. Return: none */
void listen_close(struct run *run);
