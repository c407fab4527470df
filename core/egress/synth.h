/*
 * synth.h - the addresses that stand for names inside one run
 *
 * DNS answers an allowed name with an address of 198.18.0.0/15, which belongs to nobody; a connection to it therefore
 * carries the name. The n-th name that a run asks for has 198.18.0.0 + n, and keeps it: an address is never given out
 * a second time in a run, so that a connection can never go to another name than the one its client looked up. Both
 * ways cost the same however many names there are. A map lives with its run: new, look up, free; it is bounded by
 * RV_SYNTH_NAMES_MAX names, about 1 MiB. One thread at a time.
 */
#pragma once

#include "egress/address.h"

#define RV_SYNTH_NAMES_MAX 4096
#define RV_SYNTH_E_FULL 1

struct rv_synth;

/**
 * rv_synth_new() - an empty map
 * @seed: random, unknown to the program, so that it cannot choose names that are slow to look up
 *
 * Context:   any
 * Ownership: *@ret is the caller's (rv_synth_free)
 * Return:    0 or -ENOMEM
 */
int rv_synth_new(uint64_t seed, struct rv_synth **ret);
/** rv_synth_limit() - have it give out @n_names addresses at most. Context: any. Ownership: none. Return: none */
void rv_synth_limit(struct rv_synth *synth, size_t n_names);
/** rv_synth_free() - release a map or NULL. Context: any. Ownership: takes it. Return: none */
void rv_synth_free(struct rv_synth *synth);
RV_DEFINE_CLEANUP(struct rv_synth, rv_synth_free)

/**
 * rv_synth_get() - the address of a name, a new one if it has none
 * @name: canonical
 *
 * Context:   any
 * Ownership: copies
 * Return:    0; RV_SYNTH_E_FULL: the run has asked for too many; -ENOMEM
 */
int rv_synth_get(struct rv_synth *synth, const char *name, struct rv_address *ret);

/** rv_synth_find() - the name that an address stands for. Context: any. Ownership: the map's, stays as long. Return: the name, or NULL: it was not given out */
const char *rv_synth_find(const struct rv_synth *synth, const struct rv_address *address);
/** rv_synth_holds() - is it in the range at all? Context: any. Ownership: borrows. Return: as named */
bool rv_synth_holds(const struct rv_address *address);
/** rv_synth_count() - Context: any. Ownership: none. Return: names that have an address */
size_t rv_synth_count(const struct rv_synth *synth);
