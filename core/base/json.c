#include "base/json.h"

#include "base/hash.h"
#include "base/utf8.h"

#include <string.h>

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

/* RFC 8785, 3.2.2.2: the shortest escapes, everything else as it is. */
static void write_string(const char *s, size_t n, struct rv_buf *out)
{
        size_t start = 0;

        rv_buf_putc(out, '"');
        for (size_t i = 0; i < n; i++) {
                uint8_t c = (uint8_t)s[i];
                const char *escape = NULL;

                switch (c) {
                case '"': escape = "\\\""; break;
                case '\\': escape = "\\\\"; break;
                case '\b': escape = "\\b"; break;
                case '\f': escape = "\\f"; break;
                case '\n': escape = "\\n"; break;
                case '\r': escape = "\\r"; break;
                case '\t': escape = "\\t"; break;
                default:
                        if (c >= 0x20)
                                continue;
                }
                rv_buf_append(out, s + start, i - start);
                start = i + 1;
                if (escape)
                        rv_buf_puts(out, escape);
                else
                        rv_buf_printf(out, "\\u%04x", c);
        }
        rv_buf_append(out, s + start, n - start);
        rv_buf_putc(out, '"');
}

/*
 * RFC 8785, 3.2.3 sorts by UTF-16 code units. That is the order of UTF-8's bytes but for the characters
 * of U+E000 to U+FFFF, which in UTF-16 come after those beyond U+FFFF (surrogates, 0xD800 to 0xDFFF).
 */
static int compare_keys(const void *pa, const void *pb)
{
        const uint8_t *a = *(const uint8_t *const *)pa, *b = *(const uint8_t *const *)pb;

        while (*a && *a == *b)
                a++, b++;
        if (*a >= 0xee && *b >= 0xee && (*a >= 0xf0) != (*b >= 0xf0))
                return *a >= 0xf0 ? -1 : 1;
        return *a < *b ? -1 : *a > *b;
}

static int write_value(const json_t *value, struct rv_buf *out);

static int write_object(const json_t *object, struct rv_buf *out)
{
        size_t n = json_object_size(object), i = 0;
        _cleanup_(rv_freep) const char **keys = NULL;
        const char *key;
        json_t *child;
        int r;

        keys = calloc(n ? n : 1, sizeof(*keys));
        if (!keys)
                return rv_raise(-ENOMEM);
        json_object_foreach((json_t *)object, key, child)
                keys[i++] = key;
        qsort(keys, n, sizeof(*keys), compare_keys);
        rv_buf_putc(out, '{');
        for (i = 0; i < n; i++) {
                if (i)
                        rv_buf_putc(out, ',');
                write_string(keys[i], strlen(keys[i]), out);
                rv_buf_putc(out, ':');
                r = write_value(json_object_get(object, keys[i]), out);
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
        json_int_t n;

        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return write_object(value, out);
        case JSON_ARRAY:
                return write_array(value, out);
        case JSON_STRING:
                write_string(json_string_value(value), json_string_length(value), out);
                return rv_buf_error(out);
        case JSON_INTEGER:
                n = json_integer_value(value);
                if (n > INTEGER_MAX || n < -INTEGER_MAX)
                        return rv_raise(-EDOM);
                return rv_buf_printf(out, "%" JSON_INTEGER_FORMAT, n);
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
