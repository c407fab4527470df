/*
 * redact_texts.h - texts that must not stand anywhere, and whether one of them stands in another
 *
 * A text is found in one that is the same or, if it has 4 bytes or more, in one that holds it. Upper and lower case
 * of ASCII are the same, and so are `-`, `_` and `.`. To look through a text costs a time that goes with its length,
 * however many are looked for. Zero-initialised is the empty set. The texts are borrowed. One thread.
 */
#pragma once

#include "base/rv.h"

struct rv_redact_text;

struct rv_redact_texts {
        struct rv_redact_text *items;
        size_t n, capacity;
        uint32_t *buckets;               /* of items with the same beginning, by index + 1; made at the first search */
        uint32_t mask;
};

/** rv_redact_texts_add() - one more; empty ones are left out; not after a search. Context: any. Ownership: borrows @text for as long as the set lives. Return: 0 or -ENOMEM */
int rv_redact_texts_add(struct rv_redact_texts *set, const char *text, size_t n);
/** rv_redact_texts_seal() - make ready for searching. Context: any. Ownership: none. Return: 0 or -ENOMEM */
int rv_redact_texts_seal(struct rv_redact_texts *set);
/** rv_redact_texts_match() - is @text one of them? If not @is_whole: or does it hold one of 4 bytes or more? Context: any; sealed. Ownership: borrows. Return: as named */
bool rv_redact_texts_match(const struct rv_redact_texts *set, const char *text, size_t n, bool is_whole);
/** rv_redact_texts_fini() - release. Context: any. Ownership: takes the content. Return: none */
void rv_redact_texts_fini(struct rv_redact_texts *set);
