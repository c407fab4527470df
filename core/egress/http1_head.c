#include "egress/http1_private.h"

#include <strings.h>

#define CONTENT_DIGITS_MAX 18   /* of a Content-Length */

/* RFC 9110, 5.6.2: what methods and field names are made of. */
static bool is_token(const char *text, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char c = text[i], lower = (char)(c | 0x20);

                if (!(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'z') && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c)))
                        return false;
        }
        return n > 0;
}

static bool is_text(const char *text, size_t n, const char *wanted)
{
        return n == strlen(wanted) && strncasecmp(text, wanted, n) == 0;
}

bool rv__http1_is_named(const struct rv__http1_field *field, const char *name)
{
        return is_text(field->name, field->n_name, name);
}

bool rv__http1_split_field(const char *line, size_t n, struct rv__http1_field *ret)
{
        const char *colon = memchr(line, ':', n), *end = line + n;

        /* What is folded begins with a space, which no name does. */
        if (!colon || !is_token(line, (size_t)(colon - line)))
                return false;
        ret->name = line;
        ret->n_name = (size_t)(colon - line);
        ret->value = colon + 1;
        while (ret->value < end && (*ret->value == ' ' || *ret->value == '\t'))
                ret->value++;
        while (end > ret->value && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
        ret->n_value = (size_t)(end - ret->value);
        return true;
}

static enum rv_denial read_version(struct rv_http1 *p, const char *text, size_t n)
{
        if (n < 5 || memcmp(text, "HTTP/", 5) != 0)
                return RV_DENIAL_HTTP_MALFORMED;
        if (n != 8 || memcmp(text, "HTTP/1.", 7) != 0 || (text[7] != '0' && text[7] != '1'))
                return RV_DENIAL_HTTP_VERSION;
        p->minor = (unsigned)(text[7] - '0');
        return RV_DENIAL_NONE;
}

/* METHOD SP TARGET SP VERSION, one space each. */
static enum rv_denial read_request_line(struct rv_http1 *p, const char *line, size_t n)
{
        const char *space = memchr(line, ' ', n), *end = line + n, *second;

        if (!space || !is_token(line, (size_t)(space - line)))
                return RV_DENIAL_HTTP_MALFORMED;
        p->method = line;
        p->n_method = (size_t)(space - line);
        if (is_text(p->method, p->n_method, "PRI"))
                return RV_DENIAL_HTTP2;
        if (is_text(p->method, p->n_method, "CONNECT"))
                return RV_DENIAL_HTTP_CONNECT;
        p->target = space + 1;
        second = memchr(p->target, ' ', (size_t)(end - p->target));
        if (!second || second == p->target || p->n_method > RV_HTTP1_METHOD_MAX)
                return RV_DENIAL_HTTP_MALFORMED;
        p->n_target = (size_t)(second - p->target);
        if (memchr(p->target, '\t', p->n_target))
                return RV_DENIAL_HTTP_MALFORMED;
        return read_version(p, second + 1, (size_t)(end - second - 1));
}

/* What the fields say about the request's end and its course, counted. */
struct seen {
        unsigned n_host, n_length, n_coding;
        struct rv__http1_field length, coding;
};

static enum rv_denial read_field(struct rv_http1 *p, const char *line, size_t n, struct seen *seen)
{
        struct rv__http1_field field;

        if (!rv__http1_split_field(line, n, &field))
                return RV_DENIAL_HTTP_MALFORMED;
        if (rv__http1_is_named(&field, "upgrade") || rv__http1_is_named(&field, "http2-settings"))
                return RV_DENIAL_HTTP_UPGRADE;
        if (rv__http1_is_named(&field, "expect"))
                return RV_DENIAL_HTTP_EXPECT;
        if (rv__http1_is_named(&field, "host")) {
                seen->n_host++;
                p->host_text = field.value;
                p->n_host_text = field.n_value;
        } else if (rv__http1_is_named(&field, "content-length")) {
                seen->n_length++;
                seen->length = field;
        } else if (rv__http1_is_named(&field, "transfer-encoding")) {
                seen->n_coding++;
                seen->coding = field;
        }
        return RV_DENIAL_NONE;
}

/* An absolute target has to name the host that Host names: which of the two counts, servers do not agree upon. */
static enum rv_denial read_target(const struct rv_http1 *p)
{
        static const char scheme[] = "http://";
        const size_t n_scheme = sizeof(scheme) - 1;
        struct rv_hostname named;
        const char *authority;
        size_t n = 0;

        if (p->target[0] == '/')
                return RV_DENIAL_NONE;
        if (is_text(p->target, p->n_target, "*"))
                return p->n_method == 7 && memcmp(p->method, "OPTIONS", 7) == 0 ? RV_DENIAL_NONE : RV_DENIAL_HTTP_MALFORMED;
        if (p->n_target < n_scheme || strncasecmp(p->target, scheme, n_scheme) != 0)
                return RV_DENIAL_HTTP_MALFORMED;
        authority = p->target + n_scheme;
        while (n < p->n_target - n_scheme && !strchr("/?#", authority[n]))
                n++;
        rv_hostname_parse(authority, n, RV_HOSTNAME_AUTHORITY, &named);
        return rv_hostname_is_same(&named, &p->host, 80) ? RV_DENIAL_NONE : RV_DENIAL_HTTP_HOST;
}

static enum rv_denial read_length(struct rv_http1 *p, const struct seen *seen)
{
        if (seen->n_length + seen->n_coding > 1)
                return RV_DENIAL_HTTP_FRAMING;
        if (seen->n_coding) {
                p->is_chunked = true;
                return p->minor == 1 && is_text(seen->coding.value, seen->coding.n_value, "chunked")
                        ? RV_DENIAL_NONE
                        : RV_DENIAL_HTTP_FRAMING;
        }
        if (!seen->n_length)
                return RV_DENIAL_NONE;
        if (seen->length.n_value < 1 || seen->length.n_value > CONTENT_DIGITS_MAX)
                return RV_DENIAL_HTTP_FRAMING;
        for (size_t i = 0; i < seen->length.n_value; i++) {
                char c = seen->length.value[i];

                if (c < '0' || c > '9')
                        return RV_DENIAL_HTTP_FRAMING;
                p->n_content = p->n_content * 10 + (uint64_t)(c - '0');
        }
        return RV_DENIAL_NONE;
}

enum rv_denial rv__http1_read_head(struct rv_http1 *p)
{
        const char *line = p->head.data, *end = line + p->head.size, *cr = memchr(line, '\r', p->head.size);
        enum rv_denial denial = read_request_line(p, line, (size_t)(cr - line));
        struct seen seen = { 0 };
        size_t n_fields = 0;

        p->is_chunked = false;
        p->n_content = 0;
        /* Each line ends in CRLF, and so does the empty one at the end: feeding saw to it. */
        for (line = cr + 2; !denial && *line != '\r'; line = cr + 2) {
                cr = memchr(line, '\r', (size_t)(end - line));
                if (++n_fields > RV_HTTP1_FIELDS_MAX)
                        return RV_DENIAL_HTTP_TOO_LARGE;
                denial = read_field(p, line, (size_t)(cr - line), &seen);
        }
        if (!denial && seen.n_host != 1)
                denial = RV_DENIAL_HTTP_HOST;
        if (denial)
                return denial;
        rv_hostname_parse(p->host_text, p->n_host_text, RV_HOSTNAME_AUTHORITY, &p->host);
        denial = read_target(p);
        return denial ? denial : read_length(p, &seen);
}
