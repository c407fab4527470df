/*
 * outcome_read.h - an outcome out of the bytes that were stored of it
 *
 * The inverse of rv_outcome_write(): what is read, written again, gives the same bytes, and bytes for which that does not
 * hold are refused. So a program's result stays as it was spelt and the digest on record is that of what is given again.
 *
 *   rv_outcome_read -> (the outcome is used) -> rv_outcome_kept_free
 *
 * One thread at a time.
 */
#pragma once

#include "run/outcome.h"

#define RV_OUTCOME_DEPTH_MAX 64          /* of what is not the program's result */

/* An outcome that owns what it is made of. */
struct rv_outcome_kept {
        struct rv_outcome outcome;       /* `is_replayed` as it was stored: the caller sets it */
        json_t *value;
        struct rv_capture out, err;
        struct rv_result result;
};

/**
 * rv_outcome_read() - read what rv_outcome_write() wrote
 * @text: @n bytes, not trusted
 * @ret:  untouched on failure
 *
 * Context:   any; time and memory linear in @n, which the caller bounds
 * Ownership: *@ret is the caller's (rv_outcome_kept_free); borrows @text
 * Return:    0; -EBADMSG they are no outcome as this reeve writes it; -ENOMEM
 */
int rv_outcome_read(const char *text, size_t n, struct rv_outcome_kept **ret);

/** rv_outcome_kept_free() - release. Context: any. Ownership: takes @kept, may be NULL. Return: none */
void rv_outcome_kept_free(struct rv_outcome_kept *kept);
RV_DEFINE_CLEANUP(struct rv_outcome_kept, rv_outcome_kept_free)
