/*
 * error.h - what an edge (command line, HTTP, policy author) is told about an error
 *
 * A `struct rv_error` lives with the caller, usually on its stack, is untouched on success and needs no
 * release. The first error set stays: rv_error_set() on one that is set does nothing. Any thread.
 */
#pragma once

#include "base/rv.h"

#define RV_ERROR_MESSAGE_MAX 1024

struct rv_error {
        int code;                             /* -errno, or the positive condition of the function */
        char message[RV_ERROR_MESSAGE_MAX];   /* what, why, what to do; one line */
};

/**
 * rv_error_set() - record an error for the edge and return its code
 * @err:  where, or NULL to drop the text
 * @code: what to return, non-zero
 * @fmt:  one line without a newline; longer than the buffer is cut
 *
 * Context:   any thread
 * Ownership: borrows all
 * Return:    @code, so that `return rv_error_set(err, -EINVAL, "…")` reads well
 */
int rv_error_set(struct rv_error *err, int code, const char *fmt, ...) RV_PRINTF(3, 4);

/**
 * rv_error_prefix() - put the wider circumstance before a message that is set
 * @err: may be NULL or unset: nothing happens
 * @fmt: what was being done; ": " is added
 *
 * Context:   any thread
 * Ownership: borrows all
 * Return:    err->code, or 0
 */
int rv_error_prefix(struct rv_error *err, const char *fmt, ...) RV_PRINTF(2, 3);
