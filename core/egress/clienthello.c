#include "egress/clienthello.h"

#include <string.h>

#define RECORD_HEAD_SIZE 5
#define RECORD_MAX 16384          /* RFC 8446, 5.1: of plain text */
#define MESSAGE_HEAD_SIZE 4

enum { CONTENT_HANDSHAKE = 22, VERSION_MAJOR = 3, CLIENT_HELLO = 1, EXT_SERVER_NAME = 0, NAME_TYPE_HOST = 0 };

/* A piece of a message with what is still to be read of it. Reading past its end fails once and for all. */
struct reader {
        const uint8_t *data;
        size_t n;
        bool is_failed;
};

static const uint8_t *take(struct reader *r, size_t n)
{
        const uint8_t *p = r->data;

        if (r->is_failed || n > r->n) {
                r->is_failed = true;
                return NULL;
        }
        r->data += n;
        r->n -= n;
        return p;
}

static size_t take_number(struct reader *r, size_t n_bytes)
{
        const uint8_t *p = take(r, n_bytes);
        size_t value = 0;

        for (size_t i = 0; p && i < n_bytes; i++)
                value = value << 8 | p[i];
        return value;
}

/* A vector with its length before it, in @n_bytes bytes. */
static struct reader take_vector(struct reader *r, size_t n_bytes)
{
        size_t n = take_number(r, n_bytes);
        const uint8_t *p = take(r, n);

        return (struct reader){ .data = p, .n = p ? n : 0, .is_failed = !p };
}

static enum rv_hello_event refuse(struct rv_hello *h, enum rv_denial denial)
{
        h->denial = denial;
        return RV_HELLO_REFUSED;
}

/* RFC 6066: a list of names, none empty, no two of a type; the only type there is, is host_name. */
static enum rv_hello_event read_server_name(struct rv_hello *h, struct reader ext)
{
        struct reader list = take_vector(&ext, 2), name;
        size_t type;

        if (list.is_failed || ext.n > 0)
                return refuse(h, RV_DENIAL_TLS_MALFORMED);
        if (list.n == 0)
                return refuse(h, RV_DENIAL_TLS_NAMES);
        type = take_number(&list, 1);
        name = take_vector(&list, 2);
        if (name.is_failed)
                return refuse(h, RV_DENIAL_TLS_MALFORMED);
        if (list.n > 0 || type != NAME_TYPE_HOST || name.n == 0)
                return refuse(h, RV_DENIAL_TLS_NAMES);
        h->name = (const char *)name.data;
        h->n_name = name.n;
        return RV_HELLO_NAMED;
}

static enum rv_hello_event read_extensions(struct rv_hello *h, struct reader list)
{
        enum rv_hello_event event = RV_HELLO_NO_NAME;

        while (list.n > 0) {
                size_t type = take_number(&list, 2);
                struct reader ext = take_vector(&list, 2);

                if (ext.is_failed)
                        return refuse(h, RV_DENIAL_TLS_MALFORMED);
                if (type != EXT_SERVER_NAME)
                        continue;
                if (event != RV_HELLO_NO_NAME)
                        return refuse(h, RV_DENIAL_TLS_NAMES);
                event = read_server_name(h, ext);
                if (event == RV_HELLO_REFUSED)
                        return event;
        }
        if (event == RV_HELLO_NO_NAME)
                h->denial = RV_DENIAL_TLS_NO_NAME;
        return event;
}

/* The body of a whole ClientHello. */
static enum rv_hello_event read_hello(struct rv_hello *h)
{
        struct reader r = { .data = (const uint8_t *)h->message.data + MESSAGE_HEAD_SIZE,
                            .n = h->message.size - MESSAGE_HEAD_SIZE };
        size_t major = take_number(&r, 1);
        struct reader session, ciphers, compressions, extensions;

        take(&r, 1 + 32);   /* the minor version and the random */
        session = take_vector(&r, 1);
        ciphers = take_vector(&r, 2);
        compressions = take_vector(&r, 1);
        if (r.is_failed || major != VERSION_MAJOR || session.n > 32 || ciphers.n < 2 || ciphers.n % 2 ||
                compressions.n < 1)
                return refuse(h, RV_DENIAL_TLS_MALFORMED);
        if (r.n == 0)   /* before TLS 1.2 there may be none */
                return read_extensions(h, (struct reader){ 0 });
        extensions = take_vector(&r, 2);
        if (extensions.is_failed || r.n > 0)
                return refuse(h, RV_DENIAL_TLS_MALFORMED);
        return read_extensions(h, extensions);
}

/* The whole message's size as its head says, 0 while that is not there. */
static size_t message_size(const struct rv_hello *h)
{
        const uint8_t *p = (const uint8_t *)h->message.data;

        if (h->message.size < MESSAGE_HEAD_SIZE)
                return 0;
        return MESSAGE_HEAD_SIZE + ((size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3]);
}

/* A record's head is there. Whoever begins with one that is no handshake's does not speak TLS. */
static enum rv_hello_event read_record_head(struct rv_hello *h)
{
        size_t size = (size_t)h->head[3] << 8 | h->head[4];

        if (size == 0 || size > RECORD_MAX)
                return refuse(h, RV_DENIAL_TLS_MALFORMED);
        h->n_record = size;
        return RV_HELLO_MORE;
}

static enum rv_hello_event feed_head(struct rv_hello *h, uint8_t byte)
{
        static const uint8_t wanted[] = { CONTENT_HANDSHAKE, VERSION_MAJOR };

        if (h->n_head < sizeof(wanted) && byte != wanted[h->n_head]) {
                if (h->message.size == 0)
                        return RV_HELLO_NOT_TLS;
                return refuse(h, RV_DENIAL_TLS_MALFORMED);
        }
        h->head[h->n_head++] = byte;
        return h->n_head == RECORD_HEAD_SIZE ? read_record_head(h) : RV_HELLO_MORE;
}

/* Bytes of a record's content, at most to its end. */
static enum rv_hello_event feed_content(struct rv_hello *h, const uint8_t *data, size_t n)
{
        size_t size;

        rv_buf_append(&h->message, data, n);
        h->n_record -= n;
        if (h->n_record == 0)
                h->n_head = 0;
        if (rv_buf_error(&h->message) < 0)
                return RV_HELLO_MORE;
        if ((uint8_t)h->message.data[0] != CLIENT_HELLO)
                return refuse(h, RV_DENIAL_TLS_MALFORMED);
        size = message_size(h);
        if (size > RV_HELLO_BYTES_MAX)
                return refuse(h, RV_DENIAL_TLS_TOO_LARGE);
        if (size == 0 || h->message.size < size)
                return RV_HELLO_MORE;
        /* Keys change after it, so a record that goes on is no client's. */
        if (h->n_record > 0)
                return refuse(h, RV_DENIAL_TLS_MALFORMED);
        return read_hello(h);
}

/* How much goes into the message at once: not past its head, its end or the record's. */
static size_t piece_of(const struct rv_hello *h, size_t n)
{
        size_t size = message_size(h), wanted = size ? size : MESSAGE_HEAD_SIZE;

        return RV_MIN(RV_MIN(n, h->n_record), wanted - h->message.size);
}

int rv_hello_feed(struct rv_hello *h, const void *data, size_t n)
{
        const uint8_t *p = data;

        while (n > 0 && h->event == RV_HELLO_MORE) {
                size_t piece = 1;

                if (h->n_fed >= RV_HELLO_BYTES_MAX) {
                        h->event = refuse(h, RV_DENIAL_TLS_TOO_LARGE);
                        break;
                }
                if (h->n_record == 0) {
                        h->event = feed_head(h, *p);
                } else {
                        piece = RV_MIN(piece_of(h, n), RV_HELLO_BYTES_MAX - h->n_fed);
                        h->event = feed_content(h, p, piece);
                        if (rv_buf_error(&h->message) < 0)
                                return rv_trace(-ENOMEM);
                }
                h->n_fed += piece;
                p += piece;
                n -= piece;
        }
        return (int)h->event;
}

void rv_hello_fini(struct rv_hello *h)
{
        rv_buf_fini(&h->message);
        *h = (struct rv_hello){ 0 };
}
