/*
 * span.h - a part of a text that is somebody else's, and what it may say
 *
 * Plain memory, valid as long as the text. Any thread.
 */
#pragma once

#include "base/rv.h"

/* `text` NULL: there is none. */
struct rv_span {
        const char *text;
        size_t n;
};

/** rv_span_is() - is it this text? Context: any. Ownership: borrows. Return: as named */
bool rv_span_is(struct rv_span s, const char *text);
/** rv_span_string() - what stands between the quotes of a string that needs no escapes. Context: any. Ownership: points into @s. Return: the part; without text if @s is no such string */
struct rv_span rv_span_string(struct rv_span s);
/** rv_span_integer() - a number that is not negative. Context: any. Ownership: none. Return: the number; -EINVAL if @s is none */
int64_t rv_span_integer(struct rv_span s);
