/*
 * pep440.h - one clause of a version specifier (PEP 440, "Version specifiers")
 *
 * Plain functions on a text; any thread, nothing owned.
 */
#pragma once

#include "request/problem.h"

#define RV_PEP440_E_INVALID 1

struct rv_pep440_clause {
        const char *operator;   /* static: "==", ">=" … */
        size_t version_at;      /* in the text */
        size_t version_bytes;
        size_t end;             /* just past the version */
        bool is_exact;          /* `==X` without `*`, or `===X` */
};

/**
 * rv_pep440_parse_clause() - read an operator and a version
 * @text:  spaces and tabs may stand between the two
 * @at:    where the operator is expected
 * @ret:   set on 0. What stands at @end is the caller's to judge
 * @fault: set on RV_PEP440_E_INVALID; may be NULL
 *
 * `.*` goes with == and != only, a local version likewise, ~= wants two release numbers or more. What
 * follows === is any string of the characters that PEP 508 allows in a version but `*`.
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    0 or RV_PEP440_E_INVALID
 */
int rv_pep440_parse_clause(const char *text, size_t n, size_t at, struct rv_pep440_clause *ret, struct rv_fault *fault);
