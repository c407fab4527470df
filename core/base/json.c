#include "base/json.h"

#include "base/hash.h"
#include "base/utf8.h"

#include <string.h>

#define MEMBERS_ON_STACK 16
#define INTEGER_MAX ((json_int_t)9007199254740991)   /* 2^53 - 1, RFC 7493 */

int rv_json_read(const char *text, size_t n, unsigned depth, json_t **ret, struct rv_error *err)
{
        const char *nul = n ? memchr(text, 0, n) : NULL;
        json_t *value;
        json_error_t e;

        /* jansson reads over a NUL that follows a number or a literal. */
        if (nul)
                return rv_error_set(err, rv_raise(-EINVAL), "a NUL byte at offset %zu", (size_t)(nul - text));
        value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
        if (!value) {
                if (json_error_code(&e) == json_error_out_of_memory)
                        return rv_error_set(err, rv_raise(-ENOMEM), "out of memory reading JSON");
                return rv_error_set(err, rv_raise(-EINVAL), "line %d, column %d: %s", e.line, e.column, e.text);
        }
        if (rv_json_is_deeper(value, depth)) {
                json_decref(value);
                return rv_error_set(err, rv_raise(-ELOOP), "nested deeper than %u", depth);
        }
        *ret = value;
        return 0;
}

bool rv_json_is_deeper(const json_t *value, unsigned depth)
{
        const char *key;
        json_t *child;
        size_t i;

        if (!json_is_object(value) && !json_is_array(value))
                return false;
        if (depth == 0)
                return true;
        if (json_is_array(value)) {
                json_array_foreach((json_t *)value, i, child)
                        if (rv_json_is_deeper(child, depth - 1))
                                return true;
        } else {
                json_object_foreach((json_t *)value, key, child)
                        if (rv_json_is_deeper(child, depth - 1))
                                return true;
        }
        return false;
}

static bool is_escaped(uint8_t c)
{
        return c < 0x20 || c == '"' || c == '\\';
}

/* RFC 8785, 3.2.2.2: the shortest escape of a character that needs one. */
static void write_escape(uint8_t c, struct rv_buf *out)
{
        switch (c) {
        case '"': rv_buf_append(out, "\\\"", 2); return;
        case '\\': rv_buf_append(out, "\\\\", 2); return;
        case '\b': rv_buf_append(out, "\\b", 2); return;
        case '\f': rv_buf_append(out, "\\f", 2); return;
        case '\n': rv_buf_append(out, "\\n", 2); return;
        case '\r': rv_buf_append(out, "\\r", 2); return;
        case '\t': rv_buf_append(out, "\\t", 2); return;
        default: rv_buf_printf(out, "\\u%04x", c);
        }
}

/* What needs escapes, up to the closing quote. */
static void write_escaped(const char *s, size_t n, struct rv_buf *out)
{
        for (size_t i = 0, start = 0; i <= n; i++) {
                if (i < n && !is_escaped((uint8_t)s[i]))
                        continue;
                rv_buf_append(out, s + start, i - start);
                if (i < n)
                        write_escape((uint8_t)s[i], out);
                start = i + 1;
        }
}

/* With @end behind the closing quote, if that is not 0. Most texts need no escape and have their room made once. */
static void write_string(const char *s, size_t n, char end, struct rv_buf *out)
{
        size_t i = 0;
        char *p;

        if (rv_buf_reserve(out, n + 3) < 0)
                return;
        p = out->data + out->size;
        *p++ = '"';
        for (; i < n && !is_escaped((uint8_t)s[i]); i++)
                p[i] = s[i];
        out->size += 1 + i;
        if (i < n)
                write_escaped(s + i, n - i, out);
        if (rv_buf_reserve(out, 2) < 0)
                return;
        p = out->data + out->size;
        *p++ = '"';
        if (end)
                *p++ = end;
        *p = 0;
        out->size = (size_t)(p - out->data);
}

static int write_integer(json_int_t value, struct rv_buf *out)
{
        char digits[24], *p = digits + sizeof(digits);
        uint64_t rest = (uint64_t)(value < 0 ? -value : value);

        if (value > INTEGER_MAX || value < -INTEGER_MAX)
                return rv_raise(-EDOM);
        do
                *--p = (char)('0' + rest % 10);
        while (rest /= 10);
        if (value < 0)
                *--p = '-';
        return rv_buf_append(out, p, (size_t)(digits + sizeof(digits) - p));
}

/*
 * RFC 8785, 3.2.3 sorts by UTF-16 code units. That is the order of UTF-8's bytes but for the characters
 * of U+E000 to U+FFFF, which in UTF-16 come after those beyond U+FFFF (surrogates, 0xD800 to 0xDFFF).
 */
int rv_json_compare_names(const char *a, size_t n_a, const char *b, size_t n_b)
{
        size_t n = RV_MIN(n_a, n_b), i = 0;
        uint8_t x, y;

        while (i < n && a[i] == b[i])
                i++;
        if (i == n)
                return n_a < n_b ? -1 : n_a > n_b;
        x = (uint8_t)a[i];
        y = (uint8_t)b[i];
        if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0))
                return x >= 0xf0 ? -1 : 1;
        return x < y ? -1 : 1;
}

struct member {
        const char *name;
        size_t n;
        const json_t *value;
};

static int compare_members(const void *pa, const void *pb)
{
        const struct member *a = pa, *b = pb;

        return rv_json_compare_names(a->name, a->n, b->name, b->n);
}

/* Most objects have a handful of members, and calling a function for each comparison costs more than it saves. */
static void sort_members(struct member *members, size_t n)
{
        if (n > MEMBERS_ON_STACK) {
                qsort(members, n, sizeof(*members), compare_members);
                return;
        }
        for (size_t i = 1; i < n; i++) {
                struct member m = members[i];
                size_t k = i;

                for (; k > 0 && compare_members(&m, &members[k - 1]) < 0; k--)
                        members[k] = members[k - 1];
                members[k] = m;
        }
}

static int write_value(const json_t *value, struct rv_buf *out);

static int write_object(const json_t *object, struct rv_buf *out)
{
        size_t n = json_object_size(object), i = 0;
        struct member few[MEMBERS_ON_STACK], *members = few;
        _cleanup_(rv_freep) struct member *many = NULL;
        const char *name;
        json_t *child;
        int r;

        if (n > MEMBERS_ON_STACK) {
                members = many = calloc(n, sizeof(*many));
                if (!many)
                        return rv_raise(-ENOMEM);
        }
        json_object_foreach((json_t *)object, name, child)
                members[i++] = (struct member){ name, strlen(name), child };
        sort_members(members, n);
        rv_buf_putc(out, '{');
        for (i = 0; i < n; i++) {
                if (i)
                        rv_buf_putc(out, ',');
                write_string(members[i].name, members[i].n, ':', out);
                r = write_value(members[i].value, out);
                if (r < 0)
                        return r;
        }
        return rv_buf_putc(out, '}');
}

static int write_array(const json_t *array, struct rv_buf *out)
{
        json_t *child;
        size_t i;
        int r;

        rv_buf_putc(out, '[');
        json_array_foreach((json_t *)array, i, child) {
                if (i)
                        rv_buf_putc(out, ',');
                r = write_value(child, out);
                if (r < 0)
                        return r;
        }
        return rv_buf_putc(out, ']');
}

static int write_value(const json_t *value, struct rv_buf *out)
{
        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return write_object(value, out);
        case JSON_ARRAY:
                return write_array(value, out);
        case JSON_STRING:
                write_string(json_string_value(value), json_string_length(value), 0, out);
                return rv_buf_error(out);
        case JSON_INTEGER:
                return write_integer(json_integer_value(value), out);
        case JSON_TRUE:
                return rv_buf_puts(out, "true");
        case JSON_FALSE:
                return rv_buf_puts(out, "false");
        case JSON_NULL:
                return rv_buf_puts(out, "null");
        case JSON_REAL:
                break;
        }
        return rv_raise(-EDOM);
}

int rv_json_canonical(const json_t *value, struct rv_buf *out)
{
        size_t start = out->size;
        int r = write_value(value, out);

        if (r == 0)
                r = rv_buf_error(out);
        if (r < 0 && out->data && !out->is_failed) {
                out->size = start;
                out->data[start] = 0;
        }
        return r;
}

int rv_json_canonical_sha256(const json_t *value, char ret_hex[65])
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        int r;

        r = rv_json_canonical(value, &b);
        if (r < 0)
                return rv_trace(r);
        rv_sha256_hex(b.data, b.size, ret_hex);
        return 0;
}

const char *rv_json_get_string(const json_t *object, const char *key, const char *otherwise)
{
        const char *s = json_string_value(json_object_get(object, key));

        return s ? s : otherwise;
}
