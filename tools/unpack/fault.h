/*
 * fault.h - why an artifact is not taken: a cause of the contract's list and one line of text for a person
 *
 * A function that looks at what came from outside returns UNPACK_E_FAULT once it has filled one in; the first fault
 * ends the work on that artifact. Memory of the caller, nothing to release, one thread.
 */
#pragma once

#include "base/rv.h"

#define UNPACK_E_FAULT 1

#define UNPACK_UNSAFE "unsafe_archive"
#define UNPACK_MISNAMED "name_mismatch"
#define UNPACK_MISHASHED "hash_mismatch"
#define UNPACK_FAILED "build_failed"

#define FAULT_TEXT_SIZE 768
#define FAULT_QUOTE_SIZE 260

struct fault {
        const char *cause;               /* static */
        char text[FAULT_TEXT_SIZE];      /* printable ASCII */
        char package[256];               /* of a build: whose it is; else "" */
};

/** fault_set() - fill it in, bytes that cannot be shown as "?". Context: any. Ownership: @cause is static. Return: UNPACK_E_FAULT */
int fault_set(struct fault *f, const char *cause, const char *fmt, ...) RV_PRINTF(3, 4);

/** fault_quote() - a text from outside between quotes, in printable ASCII: other bytes, quotes and backslashes as \DDD, cut to fit. Context: any. Ownership: the caller's memory. Return: @ret */
const char *fault_quote(const char *text, size_t n, char ret[FAULT_QUOTE_SIZE]);
