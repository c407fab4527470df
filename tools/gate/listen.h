/*
 * listen.h - accepting a run's connections: so many a second, so many at once
 *
 * A run that is past `connections_per_s` waits in the kernel's queue. Past `connections` a connection is accepted and
 * waits in line for one that ends; who has waited LISTEN_WAIT_MS is refused, so that a program sees why nothing moves.
 * What is refused does not count as open. A line of LISTEN_LINE_MAX, those who are being told included, is continued in
 * the kernel's queue. One thread.
 */
#pragma once

#include "run.h"

#define LISTEN_WAIT_MS 2000
#define LISTEN_LINE_MAX 1024

/** listen_ready() - the watch's callback. Context: the loop. Ownership: none. Return: none */
void listen_ready(struct watch *watch, uint32_t events);
/**
 * listen_on_time() - go on, if it can
 *
 * In a run that drains: take what is connected already, as far as the limits allow, and nothing more; who waits in line
 * goes on to, and is reset when the time for it is over.
 *
 * Context:   a turn
 * Ownership: takes the listener of a run that drains
 * Return:    none
 */
void listen_on_time(struct run *run, uint64_t now_ms);
/** listen_close() - nobody waits any more: a reset. Context: the loop. Ownership: takes the listener. Return: none */
void listen_close(struct run *run);
