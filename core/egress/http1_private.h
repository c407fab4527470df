/*
 * http1_private.h - what the files of the HTTP/1 parser share; nobody else's
 *
 * http1.c follows the connection, http1_head.c judges a head that is whole, http1_chunk.c follows a chunked body.
 * Every function gives RV_DENIAL_NONE or why the request is refused. The thread rule is http1.h's.
 */
#pragma once

#include "egress/http1.h"

#include <string.h>

enum {
        RV__HTTP1_START,            /* before a request: empty lines */
        RV__HTTP1_IN_HEAD,
        RV__HTTP1_CONTENT,          /* n_left bytes */
        RV__HTTP1_CHUNK_SIZE,       /* the size's digits */
        RV__HTTP1_CHUNK_EXTENSION,  /* the rest of the size's line */
        RV__HTTP1_CHUNK_DATA,       /* n_left bytes */
        RV__HTTP1_CHUNK_END,        /* CRLF after the data */
        RV__HTTP1_TRAILER,
        RV__HTTP1_REFUSED,
};

struct rv__http1_field {
        const char *name, *value;   /* the value without white space round it */
        size_t n_name, n_value;
};

/** rv__http1_split_field() - a line without its CRLF. Context: any. Ownership: borrows; @ret points into @line. Return: well-formed or not */
bool rv__http1_split_field(const char *line, size_t n, struct rv__http1_field *ret);
/** rv__http1_is_named() - Context: any. Ownership: borrows. Return: has it this name, in whatever case? */
bool rv__http1_is_named(const struct rv__http1_field *field, const char *name);
/** rv__http1_read_head() - judge all of @p->head and set what @p tells of it. Context: any. Ownership: borrows. Return: why it is refused */
enum rv_denial rv__http1_read_head(struct rv_http1 *p);
/** rv__http1_is_text() - can the byte stand in a line? Context: any. Ownership: none. Return: as named */
static inline bool rv__http1_is_text(uint8_t c)
{
        return (c >= 0x20 && c != 0x7f) || c == '\t';
}

/**
 * rv__http1_feed_chunked() - bytes of a chunked body
 * @ret_taken: bytes up to the body's end, where the state becomes RV__HTTP1_START, or @n
 *
 * Context:   any
 * Ownership: borrows
 * Return:    an enum rv_denial, or -ENOMEM
 */
int rv__http1_feed_chunked(struct rv_http1 *p, const uint8_t *data, size_t n, size_t *ret_taken);
