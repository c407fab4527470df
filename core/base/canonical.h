/*
 * canonical.h - reading what rv_json_canonical() wrote, and nothing else
 *
 * A text in canonical form (RFC 8785; integers within ±(2^53-1) only) has one spelling, so reading one strictly
 * tells more than that it is JSON: what is read is what would be written, byte for byte, and a digest of the bytes
 * as they lie is the digest of the value. It is also several times as fast as reading JSON at large.
 *
 * The bytes are not trusted. Plain functions on the caller's memory; any thread.
 */
#pragma once

#include "base/json.h"
#include "base/span.h"

/**
 * rv_canonical_read() - one value
 * @text:  @n bytes; need not end in NUL
 * @depth: deepest nesting allowed (an array or object counts one)
 * @ret:   a new reference; untouched on failure. A text may hold U+0000, a member's name may not
 *
 * Context:   any thread
 * Ownership: borrows @text
 * Return:    0; -EINVAL it is not in canonical form, or something follows; -ELOOP too deep; -ENOMEM
 */
int rv_canonical_read(const char *text, size_t n, unsigned depth, json_t **ret);

/*
 * Short texts and small objects as values, with their bytes: in a log most of them come again and again. What is read
 * with a cache shares them, so it must not be changed. Zeroed is empty; one thread.
 */
#define RV_CANONICAL_TEXTS_BITS 10
#define RV_CANONICAL_TEXT_BYTES 40
#define RV_CANONICAL_SMALL_BITS 9
#define RV_CANONICAL_SMALL_BYTES 224
struct rv_canonical_text {
        json_t *value;
        size_t n;
        char text[RV_CANONICAL_TEXT_BYTES];
};
struct rv_canonical_small {
        json_t *value;
        size_t n;
        unsigned depth;                          /* that was enough for it */
        uint64_t read;                           /* the last that had it */
        char text[RV_CANONICAL_SMALL_BYTES];
};
struct rv_canonical_cache {
        uint64_t n_reads;
        struct rv_canonical_text texts[1 << RV_CANONICAL_TEXTS_BITS];
        struct rv_canonical_small objects[1 << RV_CANONICAL_SMALL_BITS];
};

/** rv_canonical_cache_fini() - release; it is empty again. Context: any. Ownership: takes the references. Return: none */
void rv_canonical_cache_fini(struct rv_canonical_cache *cache);

/*
 * The members of an object, one after another, each read or passed over as the caller likes:
 *
 *   rv_canonical_open -> (rv_canonical_next -> take | skip | expect, or nothing: the value is passed over)*
 *
 * Names have to be in canonical order and the object the whole text. Of a value that is passed over only the strings
 * and brackets are looked at.
 */
struct rv_canonical_object {
        const char *p, *end;                     /* private, all of it */
        struct rv_span last;
        bool is_begun, is_at_value, has_escape;
};

/** rv_canonical_open() - before the first member of the object that @text is. Context: any. Ownership: borrows @text while the object is used. Return: none */
void rv_canonical_open(struct rv_canonical_object *o, const char *text, size_t n);
/** rv_canonical_next() - the next member's name, escapes as they lie. Context: any. Ownership: *@ret_name points into the text. Return: 1; 0 that was all; -EINVAL it is no such object */
int rv_canonical_next(struct rv_canonical_object *o, struct rv_span *ret_name);
/** rv_canonical_skip() - pass over the member's value. Context: after rv_canonical_next(). Ownership: *@ret, which may be NULL, points into the text. Return: 0; -EINVAL it is no value */
int rv_canonical_skip(struct rv_canonical_object *o, struct rv_span *ret);

/**
 * rv_canonical_take() - read the member's value
 * @cache:    may be NULL
 * @ret_span: the value as it lies
 *
 * Context:   after rv_canonical_next(); the thread of @cache
 * Ownership: a new reference
 * Return:    as rv_canonical_read()
 */
int rv_canonical_take(struct rv_canonical_object *o, unsigned depth, struct rv_canonical_cache *cache, json_t **ret,
        struct rv_span *ret_span);
/** rv_canonical_expect() - pass over the member's value if it is this object or array, in canonical form. Context: after rv_canonical_next(). Ownership: borrows. Return: was it? If not nothing changes */
bool rv_canonical_expect(struct rv_canonical_object *o, const char *text, size_t n);
