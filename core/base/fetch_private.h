/*
 * fetch_private.h - what the two halves of the fetch protocol's client share: one request, and many
 *
 * As fetch.h.
 */
#pragma once

#include "base/fetch.h"

#define RV__FETCH_HELPER "reeve-fetch"
#define RV__FETCH_COMPLAINT_BYTES_MAX ((size_t)1024)

/**
 * rv__fetch_write_line() - a request as the protocol has it, without the newline
 * @file: or NULL
 * @ret:  holds what the request does, credentials too; free()
 *
 * Context:   any
 * Ownership: *@ret is the caller's
 * Return:    0; -EINVAL a text is no UTF-8; -ENOMEM
 */
int rv__fetch_write_line(const struct rv_fetch_request *q, const char *id, const char *file, char **ret);

/** rv__fetch_fault() - say that the helper's answer cannot be used. Context: any. Ownership: borrows. Return: -EPROTO */
int rv__fetch_fault(struct rv_error *err, const char *what);
