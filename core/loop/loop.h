/*
 * loop.h - the event loop of one process, and its timers and watches as a backend's host services
 *
 * One loop a thread; everything on it is called on that thread. rv_loop_init() fills the timer and watch
 * members of `host` (reeve/backend.h); the others are added by their owners before a backend is configured.
 *
 *   init -> run (until stop, or nothing is left to wait for) -> fini
 */
#pragma once

#include "base/rv.h"

#include <reeve/backend.h>
#include <uv.h>

struct rv_loop {
        uv_loop_t uv;
        struct rv_host host;       /* host.ctx is the loop itself */
        void *spawn_client;        /* for the owner of host.spawn_*: not the loop's */
};

/** rv_loop_init() - make a loop. Context: its thread. Ownership: release with rv_loop_fini(). Return: 0 or -errno */
int rv_loop_init(struct rv_loop *loop);
/** rv_loop_run() - serve until rv_loop_stop() or nothing is left to wait for. Context: its thread. Ownership: none. Return: none */
void rv_loop_run(struct rv_loop *loop);
/** rv_loop_stop() - have rv_loop_run() return after the current callback. Context: its thread. Ownership: none. Return: none */
void rv_loop_stop(struct rv_loop *loop);
/**
 * rv_loop_work() - have something done that blocks, on a thread of its own, and be told
 * @fn:   called there; touches nothing of the loop's
 * @done: called on the loop's thread when @fn has returned
 *
 * Context:   its thread
 * Ownership: borrows @arg until @done
 * Return:    0 or -ENOMEM
 */
int rv_loop_work(struct rv_loop *loop, void (*fn)(void *arg), void (*done)(void *arg), void *arg);
/** rv_loop_fini() - close what is left and release. Context: its thread, not inside run. Ownership: takes the content. Return: none */
void rv_loop_fini(struct rv_loop *loop);
