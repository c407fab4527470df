/*
 * policy_grammar.h - policies made at random by a grammar
 *
 * A grammar is a random sequence and a buffer that is written to; the same seed gives the same text. What it makes is
 * mostly well-formed, so that it comes past the compiler and the checks of `policy { … }` to what they guard. It lives
 * on its caller's stack. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grammar_part { GRAMMAR_POLICY, GRAMMAR_SECTION, GRAMMAR_RULE, GRAMMAR_MATCH, GRAMMAR_STATEMENT,
                    GRAMMAR_EXPRESSION, _GRAMMAR_PART_MAX };

/* Writes a part of a policy to @out, at most @max bytes without a NUL. Returns its size; a text that does not fit is cut. */
size_t grammar_make(enum grammar_part part, uint64_t seed, char *out, size_t max);
