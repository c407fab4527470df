/*
 * clienthello.h - which server a TLS client asks for, read from its first message (RFC 8446, 6066)
 *
 * The bytes of a client that begins like TLS are fed as they come, in whatever pieces, until the ClientHello is whole:
 * it may be split over records and segments, and is taken apart at RV_HELLO_BYTES_MAX bytes at most, the headers of its
 * records included. What was fed has to be kept by the caller: once the name is found to be allowed it goes to the
 * server byte for byte.
 *
 * Judged is what any server could act upon: one name of type host_name, in the ClientHello itself. Extensions and
 * versions that are unknown (GREASE) are passed over, and so is Encrypted ClientHello, whose inner name nobody but its
 * server can read: the outer one is judged, and DNS hands out no keys for it (dns.h). What cannot be seen: a second
 * ClientHello, after a HelloRetryRequest, that names another server; what a server makes of a name that is right
 * (domain fronting). Both stay with the server whose name was judged. Early data follows the ClientHello and is not
 * looked at.
 *
 * An object lives on its connection: zero-initialised is ready, feed, read, fini. One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "egress/names.h"

#define RV_HELLO_BYTES_MAX 65536

enum rv_hello_event {
        RV_HELLO_MORE,        /* it is not whole yet */
        RV_HELLO_NAMED,       /* `name` holds it: to be judged with rv_hostname_parse() in its bare form */
        RV_HELLO_NO_NAME,     /* a ClientHello without server_name: TLS_NO_NAME */
        RV_HELLO_REFUSED,     /* see `denial` */
        RV_HELLO_NOT_TLS,     /* the first bytes are no TLS record: nothing is said about what it is */
};

struct rv_hello {
        enum rv_hello_event event;   /* the last; all but MORE are final */
        enum rv_denial denial;       /* REFUSED: TLS_NAMES, TLS_MALFORMED or TLS_TOO_LARGE; NO_NAME: TLS_NO_NAME */
        const char *name;            /* NAMED: inside `message`; any bytes but never none, no NUL follows it */
        size_t n_name;
        struct rv_buf message;       /* the handshake message as far as it came */
        size_t n_fed;                /* bytes, those after the ClientHello not counted */
        uint8_t head[5];             /* of the record under way */
        size_t n_head, n_record;     /* bytes of `head` that came; of the record that are still to come */
};

/**
 * rv_hello_feed() - the next @n bytes
 *
 * Context:   any
 * Ownership: borrows @data
 * Return:    @h->event, or -ENOMEM. After a final event nothing more is read
 */
int rv_hello_feed(struct rv_hello *h, const void *data, size_t n);

/** rv_hello_fini() - release it; zeroed afterwards. Context: any. Ownership: takes what it holds. Return: none */
void rv_hello_fini(struct rv_hello *h);
