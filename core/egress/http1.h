/*
 * http1.h - the requests of an HTTP/1 connection, one by one (RFC 9110, 9112)
 *
 * A client's bytes are fed as they come; the parser says where each request's head ends and which host it is for, so
 * that every request is judged before a byte of it goes out, and follows the body to where the next head begins. It
 * takes only what every server reads in the same way and refuses the rest, since a server that saw a request end
 * elsewhere would take bytes of a body for a request that nobody judged: lines end in CRLF, nothing is folded, there
 * is exactly one Host, and an absolute target names the same; the length is told once, by Content-Length or by
 * `Transfer-Encoding: chunked` and no other coding. Refused too is what makes the connection something else, or leaves
 * its course to answers that are not read here: CONNECT, Upgrade (WebSocket and h2c included: after it no Host can be
 * checked), HTTP/2's preface, Expect (whether a body follows depends on the answer; a client told 417 sends again
 * without it).
 *
 * What cannot be checked: which host a server really serves for a Host that is right (domain fronting), by fields of
 * its own such as X-Forwarded-Host, or by a part of its own behind it that reads requests otherwise. It stays with the
 * server whose name was judged.
 *
 * An object lives on its connection: zero-initialised is ready, feed, read, fini. One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "egress/names.h"

#define RV_HTTP1_HEAD_MAX 65536       /* bytes of a request line and its fields */
#define RV_HTTP1_FIELDS_MAX 256
#define RV_HTTP1_METHOD_MAX 32
#define RV_HTTP1_BLANK_MAX 4          /* empty lines before a request */
#define RV_HTTP1_EXTENSION_MAX 1024   /* bytes of a chunk's extensions */
#define RV_HTTP1_TRAILER_MAX 8192     /* bytes, lines' ends not counted */
#define RV_HTTP1_TRAILERS_MAX 64

enum rv_http1_event {
        RV_HTTP1_MORE,      /* all bytes were taken and none may go out yet: `head` holds them */
        RV_HTTP1_HEAD,      /* a head is complete. If its host may be reached, all of `head` goes out */
        RV_HTTP1_BODY,      /* what was taken is body (chunks with their sizes) and goes out as it is */
        RV_HTTP1_REFUSED,   /* see `denial`: nothing of this piece goes out, and the connection ends. Final */
};

struct rv_http1 {
        enum rv_denial denial;           /* REFUSED */
        struct rv_buf head;              /* of the latest request, without empty lines before it */

        /* Of the latest head, valid until the next begins. The texts are inside `head`. */
        const char *method, *target, *host_text;
        size_t n_method, n_target, n_host_text;
        struct rv_hostname host;         /* to be judged; may be of any kind */
        unsigned minor;                  /* of the version, 0 or 1 */
        bool is_chunked;
        uint64_t n_content;              /* as Content-Length says */
        uint64_t n_requests;             /* heads so far */

        /* Private. */
        unsigned state;
        bool is_after_cr;
        unsigned n_blank, n_digits;
        size_t n_line, n_lines;
        uint64_t n_left;                 /* of the content or the chunk */
        struct rv_buf line;              /* of a trailer */
};

/**
 * rv_http1_feed() - the next @n bytes
 * @ret_taken: how many were taken; those that were not are fed again after the event was dealt with. Always set
 *
 * Context:   any
 * Ownership: borrows @data
 * Return:    an enum rv_http1_event, or -ENOMEM. RV_HTTP1_MORE for @n of 0
 */
int rv_http1_feed(struct rv_http1 *p, const void *data, size_t n, size_t *ret_taken);

/** rv_http1_is_between() - is no request begun that is not ended? A client may leave then. Context: any. Ownership: none. Return: as named */
bool rv_http1_is_between(const struct rv_http1 *p);
/** rv_http1_status() - what a refused client is told: 417 for HTTP_EXPECT, which it can do without, 502 for UNRESOLVED, which is no refusal, else 403. Context: any. Ownership: none. Return: the status */
unsigned rv_http1_status(enum rv_denial denial);
/** rv_http1_fini() - release it; zeroed afterwards. Context: any. Ownership: takes what it holds. Return: none */
void rv_http1_fini(struct rv_http1 *p);
