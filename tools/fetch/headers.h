/*
 * headers.h - what a server says of its answer, as it is handed on: names in lower case, texts that are fit for JSON
 *
 * Plain functions on the caller's values. One thread.
 */
#pragma once

#include "base/json.h"

/**
 * headers_add() - take one header line
 * @line: @n bytes as they came, with the line's end or without; not trusted
 *
 * A line that is no header is passed over. Bytes that are no UTF-8 are taken for ISO 8859-1, control characters
 * become spaces, and what comes more than once is joined by ", ".
 *
 * Context:   any
 * Ownership: copies
 * Return:    0 or -ENOMEM
 */
int headers_add(json_t *headers, const char *line, size_t n);
