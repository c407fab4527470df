/*
 * classify.h - what a client speaks, from the first bytes that it sends
 *
 * A connection is looked at before it is dialled, because TLS and HTTP name a host of their own: up to 8 bytes, or
 * what has come in 200 ms. Two answers take longer. White space at the front may precede HTTP, as many servers skip
 * it; and what could be a request line is one as soon as a slash comes in it, and none if the line ends without (no
 * request line is without: the version has one). So a text protocol whose client speaks first, such as SSH, is not
 * taken for HTTP. Where it cannot be told in time the stricter reading is taken: slow bytes, or a long method, are no
 * way round. The parsers (clienthello.h, http1.h) have the last word on what they get.
 *
 * Whatever is none of these is OTHER: on ports 80 and 443 it is refused. Plain functions; any thread.
 */
#pragma once

#include "base/rv.h"

#define RV_CLASSIFY_MS 200
#define RV_CLASSIFY_BYTES_MAX 256   /* that are looked at: with so many there is always an answer */

enum rv_protocol {
        RV_PROTOCOL_MORE,      /* not clear yet; never if the time is over */
        RV_PROTOCOL_SILENT,    /* the client waits for the server to speak */
        RV_PROTOCOL_TLS,
        RV_PROTOCOL_SSLV2,     /* refused: it can name no server */
        RV_PROTOCOL_HTTP,
        RV_PROTOCOL_PRI,       /* HTTP/2 without TLS: refused */
        RV_PROTOCOL_OTHER,
};

/**
 * rv_protocol_classify() - what is it?
 * @data:    all that has come so far
 * @is_last: no more will be waited for: the time is over, or the client has closed its side
 *
 * Context:   any
 * Ownership: borrows
 * Return:    an answer other than MORE holds whatever comes next
 */
enum rv_protocol rv_protocol_classify(const void *data, size_t n, bool is_last);
