/*
 * problem.h - why a request was not taken: one object of kind reeve.problem/1 (RFC 9457, RFC 6901)
 *
 * A parser of one text reports by `struct rv_fault` (caller's memory, nothing to release). A whole request
 * is judged into a `struct rv_problem`, which lists every fault: rv_problem_new(), rv_problem_add() for
 * each, rv_problem_to_json(), rv_problem_free(). The list is bounded; what does not fit is counted and said.
 * An allocation that fails while adding is remembered and reported by rv_problem_error(), so that judging
 * code needs no check a line. One thread at a time.
 */
#pragma once

#include "base/rv.h"

#include <jansson.h>

#define RV_PROBLEM_INVALID_TYPE "urn:reeve:problem:request-invalid"
#define RV_PROBLEM_FAULTS_MAX 100
#define RV_PROBLEM_POINTER_MAX 1024   /* bytes; a longer pointer is cut to that of an enclosing value */

/* The codes of `errors[].code`. */
#define RV_FAULT_CODES(X)                                                        \
        X(MISSING, missing)           /* a member or a part must be given */     \
        X(TYPE, type)                 /* another JSON type is wanted */          \
        X(RANGE, range)               /* a number outside its bounds */          \
        X(LENGTH, length)             /* too few or too many of something */     \
        X(PATTERN, pattern)           /* a text of another form is wanted */     \
        X(DUPLICATE, duplicate)       /* given twice */                          \
        X(UNKNOWN, unknown)           /* no such member */                       \
        X(ENCODING, encoding)         /* not well-formed Unicode */              \
        X(SYNTAX, syntax)             /* not JSON */                             \
        X(UNSUPPORTED, unsupported)   /* understood, and not taken on purpose */ \
        X(CONFLICT, conflict)         /* does not go with another member */

enum rv_fault_code {
#define RV_FAULT_X(upper, lower) RV_FAULT_##upper,
        RV_FAULT_CODES(RV_FAULT_X)
#undef RV_FAULT_X
        _RV_FAULT_MAX
};

struct rv_fault {
        enum rv_fault_code code;
        char message[400];   /* what is wrong, why, what to do; ASCII but for what reeve itself says */
};

struct rv_problem_fault {
        char *pointer;   /* RFC 6901 */
        char *message;
        enum rv_fault_code code;
};

struct rv_problem {
        char type[96];        /* a URI reference */
        char title[160];      /* the kind of problem, the same for all of its type */
        char detail[1024];    /* this occurrence; written only if not empty */
        int status;           /* of HTTP (RFC 9110) */
        uint32_t retry_after_s;   /* when to ask again; 0: not told */
        struct rv_problem_fault *faults;
        size_t n_faults, n_left_out;
        bool is_failed;       /* an allocation failed */
};

/** rv_fault_code_name() - as written in `errors[].code`. Context: any. Ownership: static. Return: the name */
const char *rv_fault_code_name(enum rv_fault_code code);

/**
 * rv_fault_set() - describe a fault
 * @fault: may be NULL: only the return value is wanted
 * @fmt:   what, why and what to do, in one line; longer than the buffer is cut. Text that a caller sent goes
 *         in by rv_fault_quote() only
 *
 * Context:   any thread
 * Ownership: borrows all
 * Return:    1, the value by which the parsers here say "invalid", so that `return rv_fault_set(…)` reads well
 */
int rv_fault_set(struct rv_fault *fault, enum rv_fault_code code, const char *fmt, ...) RV_PRINTF(3, 4);

/* Room for rv_fault_quote(): quotes, 40 bytes as \DDD, an ellipsis of three dots. */
#define RV_FAULT_QUOTE_SIZE 168

/**
 * rv_fault_quote() - a text that a caller sent, fit for a message: in double quotes, printable ASCII, every
 *                    other byte as \DDD (decimal), at most 40 bytes of it
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    @ret
 */
const char *rv_fault_quote(const char *text, size_t n, char ret[RV_FAULT_QUOTE_SIZE]);

/**
 * rv_problem_new() - an empty problem
 * @status: HTTP status, such as 422 or 503
 * @type:   a URI reference, such as RV_PROBLEM_INVALID_TYPE
 * @title:  one line; longer than the buffer is cut, as is @type
 *
 * Context:   any thread
 * Ownership: to the caller (rv_problem_free)
 * Return:    the problem, or NULL when out of memory
 */
struct rv_problem *rv_problem_new(int status, const char *type, const char *title);
/** rv_problem_free() - release a problem or NULL. Context: any. Ownership: takes @problem. Return: none */
void rv_problem_free(struct rv_problem *problem);
RV_DEFINE_CLEANUP(struct rv_problem, rv_problem_free)

/**
 * rv_problem_detail() - say what is particular to this occurrence (RFC 9457, `detail`)
 * @fmt: a sentence; longer than the buffer is cut
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    none
 */
void rv_problem_detail(struct rv_problem *problem, const char *fmt, ...) RV_PRINTF(2, 3);

/**
 * rv_problem_add() - add one fault, or count it when RV_PROBLEM_FAULTS_MAX are there
 * @pointer: RFC 6901, made with rv_pointer_append(); "" is the document
 * @fmt:     as for rv_fault_set()
 *
 * Context:   any thread
 * Ownership: copies
 * Return:    none; see rv_problem_error()
 */
void rv_problem_add(struct rv_problem *problem, const char *pointer, enum rv_fault_code code, const char *fmt, ...)
        RV_PRINTF(4, 5);

/** rv_problem_error() - Context: any. Ownership: none. Return: 0, or -ENOMEM if a fault could not be added */
static inline int rv_problem_error(const struct rv_problem *problem)
{
        return problem->is_failed ? -ENOMEM : 0;
}

/**
 * rv_problem_to_json() - {"schema","type","title","status","errors":[{"pointer","code","message"}]}
 *
 * With `detail` and `retry_after_s` where they are set. Where faults were left out, a last error with pointer "" and code `length` says how many.
 *
 * Context:   any thread
 * Ownership: a new reference, to the caller
 * Return:    the value, or NULL when out of memory
 */
json_t *rv_problem_to_json(const struct rv_problem *problem);

struct rv_buf;
/**
 * rv_pointer_append() - add one reference token to a JSON pointer (RFC 6901: "~" is ~0, "/" is ~1)
 * @pointer: added to; a token that would take it past RV_PROBLEM_POINTER_MAX, or that is not
 *           well-formed UTF-8 without NUL, is left out, so that the pointer names the enclosing value
 *
 * Context:   any thread
 * Ownership: copies
 * Return:    0; 1 if it was left out; -ENOMEM (sticky in @pointer)
 */
int rv_pointer_append(struct rv_buf *pointer, const char *token, size_t n);
/** rv_pointer_append_index() - the same for an array's element. Context: any. Ownership: none. Return: as above */
int rv_pointer_append_index(struct rv_buf *pointer, size_t index);
