/*
 * json.h - JSON (RFC 8259) by jansson, read strictly and written canonically (RFC 8785)
 *
 * Values are jansson's own, with its reference counts; `_cleanup_(rv_json_unrefp)` drops one. One thread
 * at a time for a value and all it holds.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>

static inline void rv_json_unrefp(json_t **p)
{
        json_decref(*p);
}

/**
 * rv_json_read() - one JSON text of any kind
 * @text:    need not end in NUL
 * @n:       its size in bytes; bounding it is the caller's business
 * @depth:   deepest nesting allowed (an array or object counts one)
 * @ret:     a new reference; untouched on failure
 *
 * Duplicate keys, NUL in strings' escapes, ill-formed UTF-8 and trailing bytes are errors.
 *
 * Context:   any thread
 * Ownership: borrows @text
 * Return:    0; -EINVAL with the line and column in @err; -ELOOP too deep; -ENOMEM
 */
int rv_json_read(const char *text, size_t n, unsigned depth, json_t **ret, struct rv_error *err);

/** rv_json_is_deeper() - does @value nest deeper than @depth? Bounded by @depth itself. Context: any. Ownership: borrows. Return: as named */
bool rv_json_is_deeper(const json_t *value, unsigned depth);

/**
 * rv_json_canonical() - write a value in the JSON Canonicalization Scheme (RFC 8785)
 * @value: objects' members are written sorted by UTF-16 code units
 * @out:   added to; on failure what was added is cut off again
 *
 * Records hold integers within ±(2^53-1) only: a real number or a larger integer is refused, so that no
 * two readers can disagree about a digest.
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    0; -EDOM for a number that may not stand in a record; -ENOMEM
 */
int rv_json_canonical(const json_t *value, struct rv_buf *out);

/** rv_json_canonical_sha256() - digest of the canonical form, as hex. Context: any. Ownership: borrows. Return: as rv_json_canonical() */
int rv_json_canonical_sha256(const json_t *value, char ret_hex[65]);

/** rv_json_compare_names() - the order of members in the canonical form: by UTF-16 code units. Context: any. Ownership: borrows well-formed UTF-8. Return: below, equal to or above 0 */
int rv_json_compare_names(const char *a, size_t n_a, const char *b, size_t n_b);

/** rv_json_get_string() - member @key of @object, or @otherwise if it is absent or no string. Context: any. Ownership: borrowed from @object. Return: the text */
const char *rv_json_get_string(const json_t *object, const char *key, const char *otherwise);
