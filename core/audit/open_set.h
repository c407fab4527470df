/*
 * open_set.h - the decisions of a log that have no outcome so far, by their id
 *
 * Filled and emptied while a log is read through: a decision goes in, its outcome takes it out, so what is held
 * is bounded by what is open at a time, not by the log. Zero-initialised is empty. One thread at a time.
 */
#pragma once

#include "audit/log_private.h"

#define RV_DECISION_ID_BYTES 16

/* Where a record stands. */
struct rv_open_place {
        char segment[RV_LOG_SEGMENT_NAME_SIZE];
        uint64_t offset;
        size_t n;
};

/* A decision has one record for each stage judged. */
struct rv_open_decision {
        uint8_t id[RV_DECISION_ID_BYTES];
        bool is_used;
        struct rv_open_place first, last;         /* of its records; the same place where there is one */
};

struct rv_open_set {
        struct rv_open_decision *slots;
        size_t n_slots, n_used;                   /* n_slots is 0 or a power of two */
};

/** rv_open_set_fini() - release; it is empty again. Context: any. Ownership: takes the content. Return: none */
void rv_open_set_fini(struct rv_open_set *set);
/** rv_open_set_put() - add a decision with its record at @place, or note its newer record. Context: any. Ownership: copies. Return: 0 or -ENOMEM */
int rv_open_set_put(struct rv_open_set *set, const uint8_t id[RV_DECISION_ID_BYTES], const struct rv_open_place *place);
/** rv_open_set_remove() - its outcome is there; harmless if it is not held. Context: any. Ownership: borrows. Return: none */
void rv_open_set_remove(struct rv_open_set *set, const uint8_t id[RV_DECISION_ID_BYTES]);
/** rv_open_set_sort() - put all that is held, in the log's order of the newest records, at the beginning of `slots`; then only fini may follow. Context: any. Ownership: none. Return: how many */
size_t rv_open_set_sort(struct rv_open_set *set);
