#include "base/canonical.h"

#include "base/utf8.h"

#include <string.h>

#define NAME_ON_STACK 128
#define INTEGER_DIGITS 16                        /* of 2^53 - 1 */
#define INTEGER_MAX INT64_C(9007199254740991)

struct reader {
        const char *p, *end;
        struct rv_canonical_cache *cache;        /* or NULL */
};

/* What stands between quotes, as it lies. */
struct raw_text {
        const char *text;
        size_t n;
        bool has_escape, has_high;               /* high: bytes of characters beyond ASCII */
};

enum { PLAIN, QUOTE, ESCAPE, HIGH, CONTROL };

static const uint8_t classes[256] = {
        [0 ... 0x1f] = CONTROL, ['"'] = QUOTE, ['\\'] = ESCAPE, [0x80 ... 0xff] = HIGH,
};

/* Past the opening quote, up to and past the closing one. Escapes are looked at when they are decoded. */
static int scan_text(struct reader *r, struct raw_text *ret)
{
        const char *p = r->p;

        *ret = (struct raw_text){ .text = p };
        for (;;) {
                while (p < r->end && classes[(uint8_t)*p] == PLAIN)
                        p++;
                if (p == r->end || classes[(uint8_t)*p] == CONTROL)
                        return -EINVAL;
                if (*p == '"')
                        break;
                ret->has_escape |= *p == '\\';
                ret->has_high |= *p != '\\';
                p += 1 + (*p == '\\');
                if (p > r->end)
                        return -EINVAL;
        }
        ret->n = (size_t)(p - ret->text);
        r->p = p + 1;
        return ret->has_high && !rv_utf8_check(ret->text, ret->n, NULL) ? -EINVAL : 0;
}

/* The character of an escape that is the one the canonical form has for it; -1. @ret_n: bytes that it takes. */
static int escaped(const char *p, size_t n, size_t *ret_n)
{
        static const char short_names[] = "\"\\bfnrt", short_values[] = "\"\\\b\f\n\r\t";
        static const char hex[] = "0123456789abcdef";
        const char *at, *digit;
        int c;

        *ret_n = 2;
        at = n >= 2 && p[1] ? strchr(short_names, p[1]) : NULL;
        if (at)
                return short_values[at - short_names];
        if (n < 6 || memcmp(p, "\\u00", 4) != 0 || (p[4] != '0' && p[4] != '1') || !p[5])
                return -1;
        digit = strchr(hex, p[5]);
        if (!digit)
                return -1;
        c = (p[4] - '0') * 16 + (int)(digit - hex);
        *ret_n = 6;
        return c && strchr(short_values, c) ? -1 : c;
}

static int decode(const struct raw_text *raw, struct rv_buf *out)
{
        for (size_t i = 0; i < raw->n;) {
                const char *p = raw->text + i, *next = memchr(p, '\\', raw->n - i);
                size_t n = next ? (size_t)(next - p) : raw->n - i, n_escape;
                int c;

                rv_buf_append(out, p, n);
                i += n;
                if (!next)
                        break;
                c = escaped(next, raw->n - i, &n_escape);
                if (c < 0)
                        return -EINVAL;
                rv_buf_putc(out, (char)c);
                i += n_escape;
        }
        return rv_buf_error(out);
}

/* Two values that share a place push each other out: those that come again and again are few. */
static size_t place_of(const char *text, size_t n, unsigned bits)
{
        uint64_t hash = n, word;

        for (; n >= sizeof(word); text += sizeof(word), n -= sizeof(word)) {
                memcpy(&word, text, sizeof(word));
                hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
                hash ^= hash >> 32;
        }
        word = 0;
        memcpy(&word, text, n);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        return (size_t)(hash >> (64 - bits));
}

static json_t *make_text(struct reader *r, const struct raw_text *raw)
{
        struct rv_canonical_text *place;
        json_t *value;

        if (!r->cache || raw->n > RV_CANONICAL_TEXT_BYTES)
                return json_stringn_nocheck(raw->text, raw->n);
        place = &r->cache->texts[place_of(raw->text, raw->n, RV_CANONICAL_TEXTS_BITS)];
        if (place->value && place->n == raw->n && memcmp(place->text, raw->text, raw->n) == 0)
                return json_incref(place->value);
        value = json_stringn_nocheck(raw->text, raw->n);
        if (!value)
                return NULL;
        json_decref(place->value);
        place->value = json_incref(value);
        place->n = raw->n;
        memcpy(place->text, raw->text, raw->n);
        return value;
}

void rv_canonical_cache_fini(struct rv_canonical_cache *cache)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(cache->texts); i++)
                json_decref(cache->texts[i].value);
        for (size_t i = 0; i < RV_N_ELEMENTS(cache->objects); i++)
                json_decref(cache->objects[i].value);
        memset(cache, 0, sizeof(*cache));
}

static int read_text(struct reader *r, json_t **ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf decoded = { 0 };
        struct raw_text raw;
        int e;

        r->p++;
        e = scan_text(r, &raw);
        if (e == 0 && raw.has_escape)
                e = decode(&raw, &decoded);
        if (e < 0)
                return e;
        *ret = raw.has_escape ? json_stringn_nocheck(decoded.data, decoded.size) : make_text(r, &raw);
        return *ret ? 0 : -ENOMEM;
}

static int read_integer(struct reader *r, json_t **ret)
{
        const char *p = r->p, *digits;
        bool is_negative = *p == '-';
        int64_t value = 0;

        digits = p += is_negative;
        for (; p < r->end && *p >= '0' && *p <= '9' && p - digits < INTEGER_DIGITS; p++)
                value = value * 10 + (*p - '0');
        if (p == digits || value > INTEGER_MAX || (*digits == '0' && (p - digits > 1 || is_negative)))
                return -EINVAL;
        r->p = p;
        *ret = json_integer(is_negative ? -value : value);
        return *ret ? 0 : -ENOMEM;
}

static int read_word(struct reader *r, const char *word, json_t *value, json_t **ret)
{
        size_t n = strlen(word);

        if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
                return -EINVAL;
        r->p += n;
        *ret = value;            /* those of jansson's that are not counted */
        return 0;
}

static int read_value(struct reader *r, unsigned depth, json_t **ret);

static int read_array(struct reader *r, unsigned depth, json_t **ret)
{
        _cleanup_(rv_json_unrefp) json_t *array = json_array();
        json_t *item;
        int e;

        if (!array)
                return -ENOMEM;
        r->p++;
        if (r->p < r->end && *r->p == ']') {
                r->p++;
                *ret = rv_take(&array);
                return 0;
        }
        for (;;) {
                e = read_value(r, depth, &item);
                if (e < 0)
                        return e;
                if (json_array_append_new(array, item) < 0)
                        return -ENOMEM;
                if (r->p == r->end || (*r->p != ',' && *r->p != ']'))
                        return -EINVAL;
                if (*r->p++ == ']')
                        break;
        }
        *ret = rv_take(&array);
        return 0;
}

/* Is @a before @b? Names without escapes are compared as they lie. */
static int is_before(const struct raw_text *a, const struct raw_text *b)
{
        _cleanup_(rv_buf_fini) struct rv_buf x = { 0 }, y = { 0 };

        if (!a->has_escape && !b->has_escape)
                return rv_json_compare_names(a->text, a->n, b->text, b->n) < 0;
        if (decode(a, &x) < 0 || decode(b, &y) < 0)
                return 0;
        return rv_json_compare_names(x.data ? x.data : "", x.size, y.data ? y.data : "", y.size) < 0;
}

static int set_member(json_t *object, const struct raw_text *name, json_t *take_value)
{
        _cleanup_(rv_buf_fini) struct rv_buf decoded = { 0 };
        char plain[NAME_ON_STACK];
        const char *text = plain;
        int e = 0;

        if (name->n < sizeof(plain) && !name->has_escape) {
                memcpy(plain, name->text, name->n);
                plain[name->n] = 0;
        } else {
                e = decode(name, &decoded);
                text = decoded.data ? decoded.data : "";
                if (e == 0 && strlen(text) != decoded.size)
                        e = -EINVAL;     /* U+0000, which jansson cannot hold in a name */
        }
        if (e < 0) {
                json_decref(take_value);
                return e;
        }
        return json_object_set_new_nocheck(object, text, take_value) < 0 ? -ENOMEM : 0;
}

static int read_object(struct reader *r, unsigned depth, json_t **ret)
{
        _cleanup_(rv_json_unrefp) json_t *object = json_object();
        struct raw_text last = { 0 };
        json_t *value;
        int e;

        if (!object)
                return -ENOMEM;
        r->p++;
        while (r->p < r->end && *r->p == '"') {
                struct raw_text name;

                r->p++;
                e = scan_text(r, &name);
                if (e < 0 || (last.text && !is_before(&last, &name)) || r->p == r->end || *r->p++ != ':')
                        return -EINVAL;
                e = read_value(r, depth, &value);
                if (e == 0)
                        e = set_member(object, &name, value);
                if (e < 0)
                        return e;
                last = name;
                if (r->end - r->p < 2 || *r->p != ',' || r->p[1] != '"')
                        break;
                r->p++;
        }
        if (r->p == r->end || *r->p++ != '}')
                return -EINVAL;
        *ret = rv_take(&object);
        return 0;
}

/*
 * An object that was read before, as it lies again. The first brace that closes, which may be another's, only serves
 * to find its place; what is taken is all the bytes of an object that was read whole.
 */
static struct rv_canonical_small *small_place(struct reader *r)
{
        size_t most = RV_MIN((size_t)(r->end - r->p), (size_t)RV_CANONICAL_SMALL_BYTES);
        const char *brace = r->cache ? memchr(r->p, '}', most) : NULL;

        return brace ? &r->cache->objects[place_of(r->p, (size_t)(brace - r->p), RV_CANONICAL_SMALL_BITS)] : NULL;
}

static int read_small(struct reader *r, unsigned depth, json_t **ret)
{
        struct rv_canonical_small *place = small_place(r);
        const char *start = r->p;
        int e;

        /* Twice in one value they are two objects: policy can tell one from another. */
        if (place && place->value && place->depth <= depth && place->read != r->cache->n_reads &&
                (size_t)(r->end - r->p) >= place->n && memcmp(r->p, place->text, place->n) == 0) {
                r->p += place->n;
                place->read = r->cache->n_reads;
                *ret = json_incref(place->value);
                return 0;
        }
        e = read_object(r, depth, ret);
        if (e == 0 && place && r->p - start <= RV_CANONICAL_SMALL_BYTES) {
                json_decref(place->value);
                place->value = json_incref(*ret);
                place->depth = depth;
                place->read = r->cache->n_reads;
                place->n = (size_t)(r->p - start);
                memcpy(place->text, start, place->n);
        }
        return e;
}

static int read_value(struct reader *r, unsigned depth, json_t **ret)
{
        if (r->p == r->end)
                return -EINVAL;
        switch (*r->p) {
        case '{':
                return depth ? read_small(r, depth - 1, ret) : -ELOOP;
        case '[':
                return depth ? read_array(r, depth - 1, ret) : -ELOOP;
        case '"':
                return read_text(r, ret);
        case 't':
                return read_word(r, "true", json_true(), ret);
        case 'f':
                return read_word(r, "false", json_false(), ret);
        case 'n':
                return read_word(r, "null", json_null(), ret);
        default:
                return read_integer(r, ret);
        }
}

int rv_canonical_read(const char *text, size_t n, unsigned depth, json_t **ret)
{
        struct reader r = { .p = text, .end = text + n };
        json_t *value;
        int e = n ? read_value(&r, depth, &value) : -EINVAL;

        if (e == 0 && r.p != r.end) {
                json_decref(value);
                e = -EINVAL;
        }
        if (e < 0)
                return rv_raise(e);
        *ret = value;
        return 0;
}

/* ---- Members, one after another ---- */

/* Past all that the bracket at @p opens, or NULL. Which bracket closes which is not looked at. */
static const char *skip_brackets(const char *p, const char *end)
{
        struct reader r = { .end = end };
        struct raw_text text;
        unsigned depth = 0;

        for (; p < end; p++) {
                switch (*p) {
                case '"':
                        r.p = p + 1;
                        if (scan_text(&r, &text) < 0)
                                return NULL;
                        p = r.p - 1;
                        break;
                case '{':
                case '[':
                        depth++;
                        break;
                case '}':
                case ']':
                        if (--depth == 0)
                                return p + 1;
                        break;
                default:
                        break;
                }
        }
        return NULL;
}

/* Past the value at @p, or NULL. */
static const char *skip_value(const char *p, const char *end)
{
        struct reader r = { .p = p + 1, .end = end };
        struct raw_text text;

        if (p == end)
                return NULL;
        if (*p == '{' || *p == '[')
                return skip_brackets(p, end);
        if (*p == '"')
                return scan_text(&r, &text) < 0 ? NULL : r.p;
        while (p < end && *p != ',' && *p != '}' && *p != ']' && *p != '"' && *p != '{' && *p != '[')
                p++;
        return p;
}

void rv_canonical_open(struct rv_canonical_object *o, const char *text, size_t n)
{
        *o = (struct rv_canonical_object){ .p = text, .end = text + n };
}

int rv_canonical_next(struct rv_canonical_object *o, struct rv_span *ret_name)
{
        struct raw_text name, last = { o->last.text, o->last.n, o->has_escape, false };
        struct reader r = { .p = o->p, .end = o->end };

        if (o->is_at_value) {
                if (rv_canonical_skip(o, NULL) < 0)
                        return -EINVAL;
                r.p = o->p;
        }
        if (r.p == r.end)
                return -EINVAL;
        if (*r.p == '}' && (o->is_begun || r.end - r.p == 2))
                return r.end - r.p == 1 ? 0 : -EINVAL;
        if (*r.p++ != (o->is_begun ? ',' : '{'))
                return -EINVAL;
        if (r.end - r.p == 1 && *r.p == '}' && !o->is_begun)
                return 0;
        if (r.p == r.end || *r.p++ != '"' || scan_text(&r, &name) < 0 || r.p == r.end || *r.p++ != ':')
                return -EINVAL;
        if (o->is_begun && !is_before(&last, &name))
                return -EINVAL;
        o->p = r.p;
        o->is_begun = o->is_at_value = true;
        o->has_escape = name.has_escape;
        *ret_name = o->last = (struct rv_span){ name.text, name.n };
        return 1;
}

int rv_canonical_skip(struct rv_canonical_object *o, struct rv_span *ret)
{
        const char *end = o->is_at_value ? skip_value(o->p, o->end) : NULL;

        if (!end || end == o->p)
                return -EINVAL;
        if (ret)
                *ret = (struct rv_span){ o->p, (size_t)(end - o->p) };
        o->p = end;
        o->is_at_value = false;
        return 0;
}

int rv_canonical_take(struct rv_canonical_object *o, unsigned depth, struct rv_canonical_cache *cache, json_t **ret,
        struct rv_span *ret_span)
{
        struct reader r = { o->p, o->end, cache };
        int e;

        if (cache)
                cache->n_reads++;
        e = o->is_at_value ? read_value(&r, depth, ret) : -EINVAL;
        if (e < 0)
                return e;
        *ret_span = (struct rv_span){ o->p, (size_t)(r.p - o->p) };
        o->p = r.p;
        o->is_at_value = false;
        return 0;
}

bool rv_canonical_expect(struct rv_canonical_object *o, const char *text, size_t n)
{
        size_t n_left = (size_t)(o->end - o->p);

        /* As long as both are in canonical form, one value cannot begin with all of another: a bracket or quote ends it. */
        if (!o->is_at_value || n_left <= n || memcmp(o->p, text, n) != 0 || (o->p[n] != ',' && o->p[n] != '}'))
                return false;
        o->p += n;
        o->is_at_value = false;
        return true;
}
