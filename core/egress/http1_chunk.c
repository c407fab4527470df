#include "egress/http1_private.h"

#define SIZE_DIGITS_MAX 15   /* of a chunk: no sum with one can overflow */

/* A field that would change what was judged with the head, if the server merged it into that. */
static bool is_forbidden(const struct rv__http1_field *field)
{
        static const char *const names[] = { "host", "content-length", "transfer-encoding", "trailer", "upgrade",
                                             "http2-settings", "connection", "expect" };

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++)
                if (rv__http1_is_named(field, names[i]))
                        return true;
        return false;
}

/* A line of the trailer has ended. The empty one ends the body. */
static enum rv_denial end_trailer_line(struct rv_http1 *p)
{
        struct rv__http1_field field;

        if (p->line.size == 0) {
                p->state = RV__HTTP1_START;
                return RV_DENIAL_NONE;
        }
        if (++p->n_lines > RV_HTTP1_TRAILERS_MAX)
                return RV_DENIAL_HTTP_TOO_LARGE;
        if (!rv__http1_split_field(p->line.data, p->line.size, &field))
                return RV_DENIAL_HTTP_MALFORMED;
        p->line.size = 0;
        return is_forbidden(&field) ? RV_DENIAL_HTTP_FRAMING : RV_DENIAL_NONE;
}

/* The size's line has ended. */
static void end_size_line(struct rv_http1 *p)
{
        p->state = p->n_left ? RV__HTTP1_CHUNK_DATA : RV__HTTP1_TRAILER;
        p->n_digits = 0;
        p->n_line = 0;
        p->n_lines = 0;
        p->line.size = 0;
}

static enum rv_denial feed_line_end(struct rv_http1 *p, uint8_t c)
{
        p->is_after_cr = false;
        if (c != '\n')
                return RV_DENIAL_HTTP_MALFORMED;
        switch (p->state) {
        case RV__HTTP1_TRAILER:
                return end_trailer_line(p);
        case RV__HTTP1_CHUNK_END:
                p->state = RV__HTTP1_CHUNK_SIZE;
                return RV_DENIAL_NONE;
        default:
                end_size_line(p);
                return RV_DENIAL_NONE;
        }
}

/* Of a size that is 0 when its line begins. */
static enum rv_denial feed_digit(struct rv_http1 *p, uint8_t c)
{
        bool is_decimal = c >= '0' && c <= '9', is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'f';

        if ((!is_decimal && !is_letter) || ++p->n_digits > SIZE_DIGITS_MAX)
                return RV_DENIAL_HTTP_FRAMING;
        p->n_left = p->n_left << 4 | (uint64_t)(is_decimal ? c - '0' : (c | 0x20) - 'a' + 10);
        return RV_DENIAL_NONE;
}

static int feed_trailer_byte(struct rv_http1 *p, uint8_t c)
{
        if (!rv__http1_is_text(c))
                return RV_DENIAL_HTTP_MALFORMED;
        if (++p->n_line > RV_HTTP1_TRAILER_MAX)
                return RV_DENIAL_HTTP_TOO_LARGE;
        return rv_trace(rv_buf_putc(&p->line, (char)c));
}

/* A byte of all that is not a chunk's data. */
static int feed_byte(struct rv_http1 *p, uint8_t c)
{
        if (p->is_after_cr)
                return (int)feed_line_end(p, c);
        if (c == '\r' && (p->state != RV__HTTP1_CHUNK_SIZE || p->n_digits > 0)) {
                p->is_after_cr = true;
                return RV_DENIAL_NONE;
        }
        switch (p->state) {
        case RV__HTTP1_CHUNK_SIZE:
                if (c != ';' || p->n_digits == 0)
                        return (int)feed_digit(p, c);
                p->state = RV__HTTP1_CHUNK_EXTENSION;
                return RV_DENIAL_NONE;
        case RV__HTTP1_CHUNK_EXTENSION:
                if (!rv__http1_is_text(c))
                        return RV_DENIAL_HTTP_MALFORMED;
                return ++p->n_line > RV_HTTP1_EXTENSION_MAX ? RV_DENIAL_HTTP_TOO_LARGE : RV_DENIAL_NONE;
        case RV__HTTP1_TRAILER:
                return rv_trace(feed_trailer_byte(p, c));
        default:
                return RV_DENIAL_HTTP_FRAMING;   /* a chunk's data goes on past its size */
        }
}

int rv__http1_feed_chunked(struct rv_http1 *p, const uint8_t *data, size_t n, size_t *ret_taken)
{
        size_t i = 0;
        int r = 0;

        while (i < n && r == 0 && p->state != RV__HTTP1_START) {
                size_t piece;

                if (p->state != RV__HTTP1_CHUNK_DATA) {
                        r = feed_byte(p, data[i++]);
                        continue;
                }
                piece = (size_t)RV_MIN((uint64_t)(n - i), p->n_left);
                i += piece;
                p->n_left -= piece;
                if (p->n_left == 0)
                        p->state = RV__HTTP1_CHUNK_END;
        }
        *ret_taken = i;
        return r < 0 ? rv_trace(r) : r;
}
