/*
 * text.h - small things with C strings. Any thread; nothing owned.
 */
#pragma once

#include <stddef.h>
#include <string.h>

/** rv_text_copy() - copy @from into @to of @size bytes, cut to fit, always ended. Context: any. Ownership: copies. Return: none */
static inline void rv_text_copy(char *to, size_t size, const char *from)
{
        size_t n = strnlen(from, size - 1);

        memcpy(to, from, n);
        to[n] = 0;
}
