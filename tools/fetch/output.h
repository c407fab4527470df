/*
 * output.h - answers on their way to standard output
 *
 * A queue: answers are written in the order in which they are put, as far as the reader takes them. Zero-initialised
 * is empty. One thread.
 */
#pragma once

#include "transfer.h"

struct output_answer;

struct output {
        struct output_answer *first, **end;
        size_t held_bytes;               /* of bodies not written yet */
        unsigned n_held;                 /* answers not written yet */
};

/** output_init() - empty. Context: any. Ownership: the caller's memory. Return: none */
void output_init(struct output *o);
/** output_error() - put an answer that says why there is none. Context: any. Ownership: copies. Return: 0 or -ENOMEM */
int output_error(struct output *o, const char *id, enum rv_fetch_code code, const char *message);
/** output_transfer() - put a transfer's result. Context: any. Ownership: takes its body. Return: 0 or -ENOMEM */
int output_transfer(struct output *o, struct transfer *t);
/** output_write() - write what the reader takes now. Context: does not block on a pipe. Ownership: none. Return: 0; -errno, -EPIPE where nobody reads any more */
int output_write(struct output *o);
/** output_fini() - release. Context: any. Ownership: takes the content. Return: none */
void output_fini(struct output *o);
