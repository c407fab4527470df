#include "base/json_pull.h"

#include "base/utf8.h"

#include <string.h>

void rv_pull_init(struct rv_pull *p, const char *text, size_t n)
{
        *p = (struct rv_pull){ .p = text, .end = text + n };
}

static bool fail(struct rv_pull *p)
{
        p->is_failed = true;
        p->p = p->end;
        return false;
}

static void skip_space(struct rv_pull *p)
{
        while (p->p < p->end && (*p->p == ' ' || *p->p == '\n' || *p->p == '\r' || *p->p == '\t'))
                p->p++;
}

static char peek(struct rv_pull *p)
{
        skip_space(p);
        return p->p < p->end ? *p->p : 0;
}

char rv_pull_kind(struct rv_pull *p)
{
        char c = peek(p);

        if ((c >= '0' && c <= '9') || c == '-')
                return '0';
        if (c && strchr("{[\"tfn", c))
                return c;
        fail(p);
        return 0;
}

bool rv_pull_enter(struct rv_pull *p, char kind)
{
        char c = rv_pull_kind(p);

        if (c != kind) {
                rv_pull_skip(p);
                return false;
        }
        if (p->depth == RV_PULL_DEPTH_MAX)
                return fail(p);
        p->p++;
        p->depth++;
        p->is_first = true;
        return true;
}

/* Before a member or an element: past the comma, if there is one more. */
static bool next(struct rv_pull *p, char close)
{
        bool is_first = p->is_first;
        char c = peek(p);

        p->is_first = false;
        if (c == close) {
                p->p++;
                p->depth--;
                return false;
        }
        if (is_first)
                return c ? true : fail(p);
        if (c != ',')
                return fail(p);
        p->p++;
        return true;
}

bool rv_pull_element(struct rv_pull *p)
{
        return next(p, ']') && rv_pull_kind(p);
}

/* The byte behind a text's end, or NULL; @p->p is at its first quote. */
static const char *string_end(const struct rv_pull *p)
{
        for (const char *c = p->p + 1; c < p->end; c++) {
                if (*c == '"')
                        return c + 1;
                if ((uint8_t)*c < 0x20 || (*c == '\\' && ++c == p->end))
                        return NULL;
        }
        return NULL;
}

static int hex4(const char *c, const char *end)
{
        int value = 0;

        if (end - c < 4)
                return -1;
        for (int i = 0; i < 4; i++) {
                const char *digits = "0123456789abcdef", *at = strchr(digits, c[i] >= 'A' && c[i] <= 'F' ? c[i] | 0x20 : c[i]);

                if (!at || !*at)
                        return -1;
                value = value * 16 + (int)(at - digits);
        }
        return value;
}

/* \uXXXX, or two of them for one character; @c is behind the "u". Returns what is behind, or NULL. */
static const char *take_unicode(const char *c, const char *end, struct rv_buf *out)
{
        int high = hex4(c, end), low;
        uint32_t code_point;
        char text[4];

        if (high <= 0 || (high >= 0xdc00 && high <= 0xdfff))
                return NULL;
        c += 4;
        code_point = (uint32_t)high;
        if (high >= 0xd800 && high <= 0xdbff) {
                low = end - c >= 6 && c[0] == '\\' && c[1] == 'u' ? hex4(c + 2, end) : -1;
                if (low < 0xdc00 || low > 0xdfff)
                        return NULL;
                code_point = 0x10000 + (((uint32_t)high - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
                c += 6;
        }
        rv_buf_append(out, text, rv_utf8_encode(code_point, text));
        return c;
}

/* c[0..end) is what stands between the quotes. */
static bool decode(const char *c, const char *end, struct rv_buf *out)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

        while (c < end) {
                const char *stop = memchr(c, '\\', (size_t)(end - c)), *known;

                rv_buf_append(out, c, (size_t)((stop ? stop : end) - c));
                if (!stop)
                        break;
                c = stop + 2;
                if (stop[1] == 'u') {
                        c = take_unicode(c, end, out);
                        if (!c)
                                return false;
                        continue;
                }
                known = strchr(from, stop[1]);
                if (!known || !*known)
                        return false;
                rv_buf_putc(out, to[known - from]);
        }
        return rv_buf_error(out) == 0 && rv_utf8_check(out->data ? out->data : "", out->size, NULL);
}

static bool take_string(struct rv_pull *p, struct rv_buf *out)
{
        const char *end = string_end(p);

        out->size = 0;
        rv_buf_puts(out, "");
        if (!end || !decode(p->p + 1, end - 1, out) || rv_buf_reserve(out, 1) < 0) {
                out->size = 0;       /* half a text is none */
                return fail(p);
        }
        out->data[out->size] = 0;
        p->p = end;
        return true;
}

bool rv_pull_member(struct rv_pull *p, struct rv_buf *name)
{
        if (!next(p, '}'))
                return false;
        if (peek(p) != '"')
                return fail(p);
        if (!take_string(p, name))
                return false;
        if (peek(p) != ':')
                return fail(p);
        p->p++;
        return rv_pull_kind(p) != 0;
}

bool rv_pull_string(struct rv_pull *p, struct rv_buf *out)
{
        if (rv_pull_kind(p) == '"')
                return take_string(p, out);
        rv_pull_skip(p);
        return false;
}

static bool skip_word(struct rv_pull *p, const char *word)
{
        size_t n = strlen(word);

        if ((size_t)(p->end - p->p) < n || memcmp(p->p, word, n) != 0)
                return fail(p);
        p->p += n;
        return true;
}

static bool skip_digits(struct rv_pull *p)
{
        const char *start = p->p;

        while (p->p < p->end && *p->p >= '0' && *p->p <= '9')
                p->p++;
        return p->p > start;
}

static bool skip_number(struct rv_pull *p, bool *ret_is_integer)
{
        const char *start;
        bool is_integer = true;

        if (p->p < p->end && *p->p == '-')
                p->p++;
        start = p->p;
        if (!skip_digits(p) || (*start == '0' && p->p > start + 1))
                return fail(p);
        if (p->p < p->end && *p->p == '.') {
                p->p++;
                is_integer = false;
                if (!skip_digits(p))
                        return fail(p);
        }
        if (p->p < p->end && (*p->p | 0x20) == 'e') {
                p->p++;
                is_integer = false;
                if (p->p < p->end && (*p->p == '+' || *p->p == '-'))
                        p->p++;
                if (!skip_digits(p))
                        return fail(p);
        }
        *ret_is_integer = is_integer;
        return true;
}

bool rv_pull_integer(struct rv_pull *p, int64_t *ret)
{
        const char *start;
        bool is_integer, is_negative;
        int64_t value = 0;

        if (rv_pull_kind(p) != '0') {
                rv_pull_skip(p);
                return false;
        }
        start = p->p;
        if (!skip_number(p, &is_integer) || !is_integer)
                return false;
        is_negative = *start == '-';
        for (const char *c = start + is_negative; c < p->p; c++)
                if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *c - '0', &value))
                        return false;
        *ret = is_negative ? -value : value;
        return true;
}

bool rv_pull_bool(struct rv_pull *p)
{
        bool is_true = rv_pull_kind(p) == 't';

        rv_pull_skip(p);
        return is_true && !p->is_failed;
}

/* A value that holds no others. */
static void skip_plain(struct rv_pull *p, char kind)
{
        const char *end;
        bool is_integer;

        if (kind == '"') {
                end = string_end(p);
                if (end)
                        p->p = end;
                else
                        fail(p);
        } else if (kind == '0') {
                skip_number(p, &is_integer);
        } else {
                skip_word(p, kind == 't' ? "true" : kind == 'f' ? "false" : "null");
        }
}

/* A member's name, passed over as it lies. */
static void skip_name(struct rv_pull *p)
{
        if (peek(p) != '"') {
                fail(p);
                return;
        }
        skip_plain(p, '"');
        if (peek(p) == ':')
                p->p++;
        else
                fail(p);
}

void rv_pull_skip(struct rv_pull *p)
{
        char closes[RV_PULL_DEPTH_MAX];
        unsigned base = p->depth, n = 0;

        do {
                char kind = rv_pull_kind(p);

                if (kind == '{' || kind == '[') {
                        if (!rv_pull_enter(p, kind))
                                break;
                        closes[n++] = kind == '{' ? '}' : ']';
                } else if (kind) {
                        skip_plain(p, kind);
                }
                /* Out of all that end here, and to the next value. */
                while (n && !p->is_failed && !next(p, closes[n - 1]))
                        if (!p->is_failed)
                                n--;
                if (n && !p->is_failed && closes[n - 1] == '}')
                        skip_name(p);
        } while (n && !p->is_failed);
        if (!p->is_failed)
                rv_check(p->depth == base);
        p->is_first = false;
}

bool rv_pull_end(struct rv_pull *p)
{
        return !p->is_failed && p->depth == 0 && peek(p) == 0 && p->p == p->end;
}
