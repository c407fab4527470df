/*
 * reconcile_table.h - what reconcile() remembers, by ids that are as good as random
 *
 * Open addressing over rows of one size that begin with their id; a row is not moved out again. Zero-initialised with
 * `row_size` and `n_id` set is empty. One thread.
 */
#pragma once

#include "base/rv.h"

struct reconcile_table {
        size_t row_size, n_id;          /* bytes of a row, and of the id that it begins with */
        uint8_t *rows;
        bool *is_used;
        size_t n_rows, n_used;          /* n_rows is 0 or a power of two */
};

/** reconcile_table_get() - the row of an id, made zeroed if there is none and @is_made. Context: any. Ownership: borrowed until the next call that makes one. Return: it; NULL: there is none, or out of memory */
void *reconcile_table_get(struct reconcile_table *t, const uint8_t *id, bool is_made);
/** reconcile_table_next() - one row after another, in no order; *@at begins with 0. Context: nothing is made meanwhile. Ownership: borrowed. Return: it, or NULL at the end */
void *reconcile_table_next(const struct reconcile_table *t, size_t *at);
/** reconcile_table_fini() - release. Context: any. Ownership: takes the content. Return: none */
void reconcile_table_fini(struct reconcile_table *t);
