/*
 * jsonscan.h - the shape of a JSON text: is it one, how is it nested, which members has it
 *
 * Private to document.c, which see. A scan is zeroed, given a text, run once with rv_jsonscan_run() and
 * released with rv_jsonscan_fini(). One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "request/problem.h"

struct rv_jsonscan_container {
        uint32_t parent;    /* index of the enclosing container; itself for the first */
        uint32_t place;     /* in the parent: an array's index, or the index in `members` */
        bool is_object;
};

struct rv_jsonscan_member {
        uint32_t container;
        uint32_t name_bytes;
        size_t name_at;     /* in `names` */
        bool has_nul;
};

struct rv_jsonscan {
        char *text;         /* numbers in it are rewritten (document.h) */
        size_t n, at;
        size_t max_depth, max_values;

        struct rv_jsonscan_container *containers;
        struct rv_jsonscan_member *members;
        size_t n_containers, n_members, n_values, containers_capacity, members_capacity;
        struct rv_buf names;

        uint32_t container; /* the innermost open one */
        uint32_t place;     /* of the value to come, in it */
        size_t depth;
        struct rv_fault fault;
};

/**
 * rv_jsonscan_run() - scan the whole text
 *
 * Context:   any thread
 * Ownership: borrows `text`, which it changes
 * Return:    0; 1 with `fault` set, its message without a position, `at` where it was met; -ENOMEM
 */
int rv_jsonscan_run(struct rv_jsonscan *s);
/** rv_jsonscan_fini() - release all but `text`. Context: any. Ownership: takes what the scan made. Return: none */
void rv_jsonscan_fini(struct rv_jsonscan *s);
/** rv_jsonscan_pointer() - the JSON pointer of a member. Context: any. Ownership: adds to @out. Return: 0 or -ENOMEM */
int rv_jsonscan_pointer(const struct rv_jsonscan *s, const struct rv_jsonscan_member *member, struct rv_buf *out);
