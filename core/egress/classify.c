#include "egress/classify.h"

#include <string.h>

enum { TLS_HANDSHAKE = 0x16, TLS_MAJOR = 3, SSLV2_LONG = 0x80, SSLV2_CLIENT_HELLO = 1 };

static bool is_space(uint8_t c)
{
        return c == ' ' || (c >= '\t' && c <= '\r');
}

/* What a method may be made of (RFC 9110, 5.6.2). */
static bool is_method(uint8_t c)
{
        uint8_t lower = c | 0x20;

        return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* A two-byte length with its high bit set, CLIENT-HELLO, version 2 or one of TLS (RFC 5246, E.2). */
static enum rv_protocol classify_sslv2(const uint8_t *p, size_t n)
{
        if (n > 2 && p[2] != SSLV2_CLIENT_HELLO)
                return RV_PROTOCOL_OTHER;
        if (n > 3 && p[3] != 0 && p[3] != TLS_MAJOR)
                return RV_PROTOCOL_OTHER;
        if (n > 4 && p[3] == 0 && p[4] != 2)
                return RV_PROTOCOL_OTHER;
        return n > 4 ? RV_PROTOCOL_SSLV2 : RV_PROTOCOL_MORE;
}

static enum rv_protocol classify_text(const uint8_t *p, size_t n)
{
        size_t i = 0;

        while (i < n && is_method(p[i]))
                i++;
        if (i == n)
                return RV_PROTOCOL_MORE;
        if (!is_space(p[i]))
                return RV_PROTOCOL_OTHER;
        if (i == 3 && memcmp(p, "PRI", 3) == 0 && p[i] != '\n' && p[i] != '\r')
                return RV_PROTOCOL_PRI;
        for (; i < n && p[i] != '\n'; i++)
                if (p[i] == '/')
                        return RV_PROTOCOL_HTTP;
        return i < n ? RV_PROTOCOL_OTHER : RV_PROTOCOL_MORE;
}

static enum rv_protocol classify(const uint8_t *p, size_t n)
{
        size_t n_spaces = 0;

        if (p[0] == TLS_HANDSHAKE)
                return n < 2 ? RV_PROTOCOL_MORE : p[1] == TLS_MAJOR ? RV_PROTOCOL_TLS : RV_PROTOCOL_OTHER;
        if (p[0] & SSLV2_LONG)
                return classify_sslv2(p, n);
        while (n_spaces < n && is_space(p[n_spaces]))
                n_spaces++;
        return n_spaces == n ? RV_PROTOCOL_MORE : classify_text(p + n_spaces, n - n_spaces);
}

enum rv_protocol rv_protocol_classify(const void *data, size_t n, bool is_last)
{
        const uint8_t *p = data;
        enum rv_protocol protocol;

        if (n == 0)
                return is_last ? RV_PROTOCOL_SILENT : RV_PROTOCOL_MORE;
        n = RV_MIN(n, (size_t)RV_CLASSIFY_BYTES_MAX);
        protocol = classify(p, n);
        if (protocol != RV_PROTOCOL_MORE || (!is_last && n < RV_CLASSIFY_BYTES_MAX))
                return protocol;
        if (p[0] == TLS_HANDSHAKE)
                return RV_PROTOCOL_TLS;
        return p[0] & SSLV2_LONG ? RV_PROTOCOL_SSLV2 : RV_PROTOCOL_HTTP;
}
