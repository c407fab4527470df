/*
 * json_pull.h - JSON (RFC 8259) that is too large, and of too little interest, to be held whole
 *
 * The caller walks the text: it enters objects and arrays, takes the few values it wants and passes over the rest, so
 * that memory follows what is taken and not what was sent. A fault is sticky: everything then answers no, loops end by
 * themselves, and rv_pull_end() tells.
 *
 *     rv_pull_init(&p, text, n);
 *     if (rv_pull_enter(&p, '{'))
 *             while (rv_pull_member(&p, &name))
 *                     strcmp(name.data, "files") == 0 ? take(&p) : rv_pull_skip(&p);
 *     if (!rv_pull_end(&p)) …
 *
 * Each member's and each element's value has to be entered, taken or passed over. Members that come twice are seen
 * twice. The text is not trusted. Nothing is owned but what the caller's buffers hold; one thread at a time.
 */
#pragma once

#include "base/buf.h"

#define RV_PULL_DEPTH_MAX 64u

struct rv_pull {
        const char *p, *end;      /* private, all of it */
        unsigned depth;
        bool is_first, is_failed;
};

/** rv_pull_init() - before the one value that @text is. Context: any. Ownership: borrows @text while it is walked. Return: none */
void rv_pull_init(struct rv_pull *p, const char *text, size_t n);
/** rv_pull_kind() - of the value to come: one of `{ [ " 0 t f n`, 0 standing for a number. Context: any. Ownership: none. Return: it; 0: none, or a fault */
char rv_pull_kind(struct rv_pull *p);
/** rv_pull_enter() - go into an object ('{') or an array ('['). Context: before a value. Ownership: none. Return: false if it is none: then it is passed over */
bool rv_pull_enter(struct rv_pull *p, char kind);
/** rv_pull_member() - the next member's name; the value is to come. Context: within an object. Ownership: in place of what @name held. Return: false at the object's end */
bool rv_pull_member(struct rv_pull *p, struct rv_buf *name);
/** rv_pull_element() - is there another element, to come? Context: within an array. Ownership: none. Return: false at the array's end */
bool rv_pull_element(struct rv_pull *p);

/**
 * rv_pull_string() - a text, its escapes undone
 * @out: in place of what it held; a NUL follows
 *
 * Context:   before a value
 * Ownership: copies
 * Return:    false if it is no text (then it is passed over); a text with U+0000 or a half of a surrogate is a fault
 */
bool rv_pull_string(struct rv_pull *p, struct rv_buf *out);
/** rv_pull_integer() - a number without fraction and exponent, of 64 bits. Context: before a value. Ownership: none. Return: false if it is none: then it is passed over */
bool rv_pull_integer(struct rv_pull *p, int64_t *ret);
/** rv_pull_bool() - true or false. Context: before a value. Ownership: none. Return: is it `true`? Anything else is passed over */
bool rv_pull_bool(struct rv_pull *p);
/** rv_pull_skip() - pass over a value, at most RV_PULL_DEPTH_MAX deep. Context: before a value. Ownership: none. Return: none */
void rv_pull_skip(struct rv_pull *p);
/** rv_pull_end() - was it well-formed so far, and is nothing left? Context: after the value. Ownership: none. Return: as named */
bool rv_pull_end(struct rv_pull *p);
