/*
 * document.h - the text of a request, read strictly
 *
 * jansson says neither where a duplicate key stands nor tells a huge integer from a broken text, and it
 * takes no NUL in a member's name. So a scanner goes over the text first: RFC 8259 to the letter, without
 * recursion, bounded in size, depth and number of values (bounds.h). Only what it passed is given to jansson.
 * Any thread; nothing outlives the call but what it returns.
 */
#pragma once

#include "request/problem.h"

#include <jansson.h>

#define RV_DOCUMENT_E_INVALID 1   /* no value to go on with; the problem lists why */

/**
 * rv_document_read() - one JSON object out of a text
 * @text:    need not end in NUL
 * @problem: added to. A text that is not one JSON object, or is past a bound, gives one fault at "". Each
 *           duplicate member gives a fault at its pointer; the value read has the last of them
 * @ret:     a new reference; set only on 0
 *
 * Numbers: an integer of more than 18 digits is read as ±(10^18-1), which is outside the range of every
 * member; a number with a fraction or an exponent is read as some real number, which no member takes.
 *
 * Context:   any thread; time and memory linear in @n but for sorting members' names
 * Ownership: borrows @text
 * Return:    0 (faults may have been added); RV_DOCUMENT_E_INVALID; -ENOMEM
 */
int rv_document_read(const char *text, size_t n, struct rv_problem *problem, json_t **ret);
