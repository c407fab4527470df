/*
 * buf.h - a growing byte buffer
 *
 * Zero-initialised is empty. Allocation failure is sticky (`is_failed`): write on, check once at the end
 * with rv_buf_error(). What is in it is followed by a NUL that `size` does not count. One thread at a time.
 */
#pragma once

#include "base/rv.h"

struct rv_buf {
        char *data;
        size_t size, capacity;
        bool is_failed;
};

/** rv_buf_fini() - release the bytes; the buffer is empty again. Ownership: takes the bytes. Context: any. Return: none */
void rv_buf_fini(struct rv_buf *b);
/** rv_buf_reserve() - make room for @n more bytes. Context: any. Ownership: none. Return: 0 or -ENOMEM (sticky) */
int rv_buf_reserve(struct rv_buf *b, size_t n);
/** rv_buf_append() - add @n bytes. Context: any. Ownership: copies. Return: 0 or -ENOMEM (sticky) */
int rv_buf_append(struct rv_buf *b, const void *data, size_t n);
/** rv_buf_puts() - add a C string. Context: any. Ownership: copies. Return: 0 or -ENOMEM (sticky) */
int rv_buf_puts(struct rv_buf *b, const char *s);
/** rv_buf_putc() - add one byte. Context: any. Ownership: none. Return: 0 or -ENOMEM (sticky) */
int rv_buf_putc(struct rv_buf *b, char c);
/** rv_buf_printf() - add formatted text. Context: any. Ownership: copies. Return: 0 or -ENOMEM (sticky) */
int rv_buf_printf(struct rv_buf *b, const char *fmt, ...) RV_PRINTF(2, 3);
/** rv_buf_take() - the bytes, NUL-terminated, or NULL after a failure; the buffer is empty again. Context: any. Ownership: to the caller (free). Return: the bytes */
char *rv_buf_take(struct rv_buf *b, size_t *ret_size);
/** rv_buf_error() - Return: 0, or -ENOMEM if any write failed. Context: any. Ownership: none */
static inline int rv_buf_error(const struct rv_buf *b)
{
        return b->is_failed ? -ENOMEM : 0;
}
