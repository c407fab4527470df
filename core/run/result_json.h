/*
 * result_json.h - a program's JSON, checked and written anew without building a tree of it
 *
 * A mebibyte of `[{},{},…` would be a hundred mebibytes of values, so the text is read once and written
 * compactly as it is understood: no spaces, strings as rv_json_stream writes them, numbers as they were
 * spelt (their exact value is kept). Any thread; nothing is kept between calls.
 */
#pragma once

#include "base/buf.h"

#define RV_RESULT_JSON_E_REFUSED 1

/**
 * rv_result_json_compact() - check one JSON text (RFC 8259) of any kind and write it compactly
 * @text:      followed by a NUL that @n does not count
 * @max_depth: deepest nesting (an array or object counts one)
 * @out:       added to; after a refusal what was added is cut off again
 * @ret_note:  on a refusal: why, in one line that holds nothing of the text itself
 *
 * Refused: ill-formed UTF-8, a byte order mark, anything that is not JSON (NaN and Infinity are not), more
 * than one value, numbers that are not finite as a double, integers beyond ±2^53, a name that stands twice
 * in an object, lone surrogates. NUL, as \u0000, is a character like any other.
 *
 * Context:   any; recurses at most @max_depth deep
 * Ownership: borrows
 * Return:    0; RV_RESULT_JSON_E_REFUSED; -ENOMEM
 */
int rv_result_json_compact(const char *text, size_t n, unsigned max_depth, struct rv_buf *out, char *ret_note,
        size_t note_size);
