/*
 * utf8.h - UTF-8 as Unicode 15 (table 3-7) defines well-formed, one decoder for all uses
 *
 * The decoder is incremental: a character split over two reads is never broken, and each maximal subpart
 * of an ill-formed sequence (Unicode 15, section 3.9, "substitution of maximal subparts") is reported once.
 * It is plain memory without resources; any thread, one at a time.
 */
#pragma once

#include "base/rv.h"

struct rv_utf8 {
        uint8_t need, have, low, high;   /* continuation bytes awaited and seen; bounds of the next one */
        uint32_t code_point;
};

enum rv_utf8_event {
        RV_UTF8_MORE,            /* the byte was taken; no character is complete */
        RV_UTF8_CHARACTER,       /* the byte was taken and completes `code_point` */
        RV_UTF8_INVALID,         /* an ill-formed subpart ended WITH this byte (taken) */
        RV_UTF8_INVALID_BEFORE,  /* an ill-formed subpart ended BEFORE this byte (not taken: feed it again) */
};

/** rv_utf8_feed() - one byte. Context: any. Ownership: none. Return: what it ended (see the enum) */
enum rv_utf8_event rv_utf8_feed(struct rv_utf8 *u, uint8_t byte);

/** rv_utf8_is_partial() - is a character begun? At end of input that is one ill-formed subpart. Context: any. Ownership: none. Return: as named */
static inline bool rv_utf8_is_partial(const struct rv_utf8 *u)
{
        return u->need > u->have;
}

/**
 * rv_utf8_check() - is a text well-formed, and how many code points has it
 * @ret_characters: may be NULL; set only if well-formed
 *
 * Context:   any
 * Ownership: borrows
 * Return:    well-formed or not
 */
bool rv_utf8_check(const char *text, size_t n, size_t *ret_characters);

/** rv_utf8_encode() - write @code_point (a scalar value). Context: any. Ownership: none. Return: bytes written, 1 to 4 */
size_t rv_utf8_encode(uint32_t code_point, char ret[4]);
