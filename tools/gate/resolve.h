/*
 * resolve.h - the addresses of names, asked of the host's own DNS servers
 *
 * c-ares asks; the names are those that judging let through, and nothing else is ever asked: no search domains, no
 * hosts file. A run's answers are kept for as long as they say, KEPT_MS_MAX at most, so that a program that opens a
 * thousand connections to a name asks for it once; those of one run are never seen by another. Connections that ask for
 * the same name at once share one question, and a run has RESOLVE_ASKED_MAX questions under way, the others wait.
 * What was asked stays judged address by address at every dialling (dial.c). A query lives in its connection. One
 * thread.
 */
#pragma once

#include "egress/address.h"
#include "link.h"

struct gate;
struct run;

#define RESOLVE_ASKED_MAX 32
#define RESOLVE_ADDRESSES_MAX 64      /* of one name; a name with more is taken for one without */
#define RESOLVE_E_LATER 1

struct query {
        struct link link;
        void (*done)(struct query *query, const struct rv_address *addresses, size_t n);
};

/** resolve_open() - read the host's resolver configuration. Context: start of the process, before it is confined. Ownership: resolve_fini(). Return: 0 or -errno */
int resolve_open(struct gate *gate);
/** resolve_init() - join the loop. Context: the loop is there. Ownership: none. Return: 0 or -errno */
int resolve_init(struct gate *gate);
/** resolve_fini() - Context: no run is left; the loop runs once more. Ownership: takes what resolve_open() made. Return: none */
void resolve_fini(struct gate *gate);

/** query_init() - Context: any. Ownership: none. Return: none */
void query_init(struct query *query);
/**
 * resolve_start() - ask for a name's addresses
 * @done: called later, never before this returns; with @n of 0 if there are none. Not after resolve_cancel()
 *
 * Context:   the loop
 * Ownership: *@ret_addresses are good until the next callback
 * Return:    0: they are known, @ret_n of them (0: there are none); RESOLVE_E_LATER; -ENOMEM
 */
int resolve_start(struct run *run, const char *name, struct query *query,
        void (*done)(struct query *query, const struct rv_address *addresses, size_t n),
        const struct rv_address **ret_addresses, size_t *ret_n);
/** resolve_on_time() - who waits for an answer that is there is told. Context: a turn. Ownership: none. Return: none */
void resolve_on_time(struct run *run);
/** resolve_cancel() - nobody waits for it any more. Context: any. Ownership: none. Return: none */
void resolve_cancel(struct query *query);
/** resolve_close() - the run ends. Context: the loop, when its connections are ended. Ownership: takes the run's answers. Return: none */
void resolve_close(struct run *run);
