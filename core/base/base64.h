/*
 * base64.h - base64 with padding (RFC 4648, section 4)
 *
 * Plain functions on the caller's memory. Any thread.
 */
#pragma once

#include "base/rv.h"

#include <sys/types.h>

#define RV_BASE64_SIZE(n) ((((n) + 2) / 3) * 4 + 1)   /* of the text of n bytes, with the NUL */

/** rv_base64() - @n bytes as text with a NUL, RV_BASE64_SIZE(n) bytes. Context: any. Ownership: borrows. Return: none */
void rv_base64(const void *data, size_t n, char *ret);

/**
 * rv_base64_read() - the bytes of a text, strictly: no white space, padded, and as rv_base64() would write them
 * @max: most bytes
 * @ret: undefined on failure
 *
 * Context:   any
 * Ownership: borrows
 * Return:    how many bytes; -EINVAL; -EMSGSIZE more than @max
 */
ssize_t rv_base64_read(const char *text, size_t n, uint8_t *ret, size_t max);
