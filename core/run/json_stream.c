#include "run/json_stream.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"   /* U+FFFD */
#define C1_LEAD 0xc2                 /* U+0080 to U+009F are this byte and 0x80 to 0x9f */

void rv_json_stream_init(struct rv_json_stream *w, rv_sink_fn sink, void *ctx)
{
        w->sink = sink;
        w->ctx = ctx;
        w->error = 0;
        w->is_first = true;
        w->size = 0;
}

static void pass_on(struct rv_json_stream *w, const char *data, size_t n)
{
        if (w->error == 0 && n)
                w->error = w->sink(w->ctx, data, n);
}

int rv_json_stream_finish(struct rv_json_stream *w)
{
        pass_on(w, w->buffer, w->size);
        w->size = 0;
        return rv_trace(w->error);
}

void rv_json_stream_raw(struct rv_json_stream *w, const char *data, size_t n)
{
        if (n == 0)
                return;
        if (n > sizeof(w->buffer) - w->size) {
                pass_on(w, w->buffer, w->size);
                w->size = 0;
                if (n >= sizeof(w->buffer)) {
                        pass_on(w, data, n);
                        return;
                }
        }
        memcpy(w->buffer + w->size, data, n);
        w->size += n;
}

static void put(struct rv_json_stream *w, const char *text)
{
        rv_json_stream_raw(w, text, strlen(text));
}

void rv_json_stream_begin(struct rv_json_stream *w, char bracket)
{
        rv_json_stream_raw(w, &bracket, 1);
        w->is_first = true;
}

void rv_json_stream_end(struct rv_json_stream *w, char bracket)
{
        rv_json_stream_raw(w, &bracket, 1);
        w->is_first = false;
}

static void comma(struct rv_json_stream *w)
{
        if (!w->is_first)
                put(w, ",");
        w->is_first = false;
}

void rv_json_stream_key(struct rv_json_stream *w, const char *key)
{
        comma(w);
        put(w, "\"");
        put(w, key);
        put(w, "\":");
}

size_t rv_json_escape(uint32_t c, char ret[RV_JSON_ESCAPE_SIZE])
{
        static const char short_forms[0x20] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't' };
        static const char hex[] = "0123456789abcdef";
        char form = c < 0x20 ? short_forms[c] : c == '"' || c == '\\' ? (char)c : 0;

        ret[0] = '\\';
        if (form) {
                ret[1] = form;
                return 2;
        }
        if (c < 0x20 || (c >= 0x7f && c <= 0x9f)) {
                memcpy(ret + 1, "u00", 3);
                ret[4] = hex[c >> 4];
                ret[5] = hex[c & 15];
                return 6;
        }
        return rv_utf8_encode(c, ret);
}

size_t rv_json_plain_run(const char *text, size_t n)
{
        size_t i = 0;

        for (; i < n; i++) {
                uint8_t byte = (uint8_t)text[i];

                if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f)
                        break;
                if (byte == C1_LEAD && i + 1 < n && (uint8_t)text[i + 1] < 0xa0)
                        break;
        }
        return i;
}

void rv_json_stream_well_formed(struct rv_json_stream *w, const char *text, size_t n)
{
        char escape[RV_JSON_ESCAPE_SIZE];

        put(w, "\"");
        while (n) {
                size_t taken = rv_json_plain_run(text, n);
                uint8_t byte;

                rv_json_stream_raw(w, text, taken);
                text += taken;
                n -= taken;
                if (n == 0)
                        break;
                byte = (uint8_t)text[0];
                taken = byte == C1_LEAD ? 2 : 1;
                rv_json_stream_raw(w, escape, rv_json_escape(taken == 2 ? (uint8_t)text[1] : byte, escape));
                text += taken;
                n -= taken;
        }
        put(w, "\"");
}

static void put_repaired(struct rv_json_stream *w, const char *text, size_t n)
{
        struct rv_utf8 u = { 0 };
        char escape[RV_JSON_ESCAPE_SIZE];

        put(w, "\"");
        for (size_t i = 0; i < n;) {
                enum rv_utf8_event event = rv_utf8_feed(&u, (uint8_t)text[i]);

                if (event == RV_UTF8_CHARACTER)
                        rv_json_stream_raw(w, escape, rv_json_escape(u.code_point, escape));
                else if (event != RV_UTF8_MORE)
                        put(w, REPLACEMENT);
                if (event != RV_UTF8_INVALID_BEFORE)
                        i++;
        }
        if (rv_utf8_is_partial(&u))
                put(w, REPLACEMENT);
        put(w, "\"");
}

void rv_json_stream_text(struct rv_json_stream *w, const char *text, size_t n)
{
        if (rv_utf8_check(text, n, NULL))
                rv_json_stream_well_formed(w, text, n);
        else
                put_repaired(w, text, n);
}

void rv_json_stream_string(struct rv_json_stream *w, const char *text)
{
        if (text)
                rv_json_stream_text(w, text, strlen(text));
        else
                put(w, "null");
}

void rv_json_stream_integer(struct rv_json_stream *w, uint64_t value)
{
        char text[24];

        snprintf(text, sizeof(text), "%" PRIu64, value);
        put(w, text);
}

void rv_json_stream_ms(struct rv_json_stream *w, uint64_t us)
{
        char text[32];
        int n = snprintf(text, sizeof(text), "%" PRIu64 ".%03u", us / 1000, (unsigned)(us % 1000));

        while (text[n - 1] == '0')
                n--;
        if (text[n - 1] == '.')
                n--;
        rv_json_stream_raw(w, text, (size_t)n);
}

void rv_json_stream_bool(struct rv_json_stream *w, bool value)
{
        put(w, value ? "true" : "false");
}

/* The fewest digits that read back as the same number: 17 always do. */
static void put_real(struct rv_json_stream *w, const json_t *value)
{
        char text[64];
        size_t n = 0;

        for (size_t precision = 15; precision <= 17; precision++) {
                n = json_dumpb(value, text, sizeof(text) - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(precision));
                if (!rv_check(n > 0 && n < sizeof(text)))
                        return put(w, "null");
                text[n] = 0;
                if (strtod(text, NULL) == json_real_value(value))
                        break;
        }
        rv_json_stream_raw(w, text, n);
}

static void put_container(struct rv_json_stream *w, const json_t *value)
{
        bool is_object = json_is_object(value);
        const char *key;
        json_t *child;
        size_t i;

        rv_json_stream_begin(w, is_object ? '{' : '[');
        if (is_object) {
                json_object_foreach((json_t *)value, key, child) {
                        comma(w);
                        rv_json_stream_string(w, key);
                        put(w, ":");
                        rv_json_stream_value(w, child);
                }
        } else {
                json_array_foreach((json_t *)value, i, child) {
                        comma(w);
                        rv_json_stream_value(w, child);
                }
        }
        rv_json_stream_end(w, is_object ? '}' : ']');
}

void rv_json_stream_value(struct rv_json_stream *w, const json_t *value)
{
        char text[32];

        if (!value)
                return put(w, "null");
        switch (json_typeof(value)) {
        case JSON_OBJECT:
        case JSON_ARRAY: return put_container(w, value);
        case JSON_STRING: return rv_json_stream_text(w, json_string_value(value), json_string_length(value));
        case JSON_REAL: return put_real(w, value);
        case JSON_TRUE: return put(w, "true");
        case JSON_FALSE: return put(w, "false");
        case JSON_NULL: return put(w, "null");
        case JSON_INTEGER: break;
        }
        snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        put(w, text);
}
