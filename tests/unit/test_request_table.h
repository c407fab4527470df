/*
 * test_request_table.h - rows of (text, what comes of it), for the parsers of core/request
 *
 * A row's name is its text. `expected` is the canonical form, or "!code" for a fault. Failures are counted and
 * printed one a line, so that one run shows them all. Everything is copied into a buffer of its exact size
 * first: under AddressSanitizer a parser that reads past the end is found.
 */
#pragma once

#include "request/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct row {
        const char *text, *expected;
};

/* Writes what came of text[0..n) to @ret: the canonical form or "!code"; @ret_message is "" or the message. */
typedef void (*row_parse_fn)(const char *text, size_t n, char *ret, size_t size, const char **ret_message);

static inline char *exact_copy(const char *text, size_t n)
{
        char *copy = malloc(n ? n : 1);

        assert_non_null(copy);
        memcpy(copy, text, n);
        return copy;
}

static inline void check_rows(const struct row *rows, size_t n, row_parse_fn parse)
{
        size_t n_failed = 0;

        for (size_t i = 0; i < n; i++) {
                const char *message = "";
                char got[1024], *text = exact_copy(rows[i].text, strlen(rows[i].text));

                parse(text, strlen(rows[i].text), got, sizeof(got), &message);
                free(text);
                if (strcmp(got, rows[i].expected) != 0) {
                        n_failed++;
                        print_error("\"%s\": %s wanted, got %s (%s)\n", rows[i].text, rows[i].expected, got, message);
                }
        }
        assert_int_equal(n_failed, 0);
}

/* A table that says it has so many cases has them, and no two are the same text. */
static inline void check_rows_differ(const struct row *rows, size_t n, size_t minimum)
{
        assert_true(n >= minimum);
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < i; k++)
                        if (strcmp(rows[i].text, rows[k].text) == 0)
                                fail_msg("\"%s\" stands twice in the table", rows[i].text);
}
