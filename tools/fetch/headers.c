#include "headers.h"

#include "base/utf8.h"

#include <string.h>

#define NAME_BYTES_MAX 256
#define TOKEN "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t read_name(const char *line, size_t n, char ret[NAME_BYTES_MAX])
{
        size_t i;

        for (i = 0; i < n && i < NAME_BYTES_MAX - 1 && line[i] && strchr(TOKEN, line[i]); i++)
                ret[i] = (char)(line[i] >= 'A' && line[i] <= 'Z' ? line[i] - 'A' + 'a' : line[i]);
        ret[i] = 0;
        return i < n && line[i] == ':' ? i : 0;
}

static int append_value(const char *value, size_t n, struct rv_buf *out)
{
        bool is_utf8 = rv_utf8_check(value, n, NULL);
        char utf8[4];

        for (size_t i = 0; i < n; i++) {
                uint8_t c = (uint8_t)value[i];

                if (c < 0x20 || c == 0x7f)
                        rv_buf_putc(out, ' ');
                else if (is_utf8 || c < 0x80)
                        rv_buf_putc(out, (char)c);
                else
                        rv_buf_append(out, utf8, rv_utf8_encode(c, utf8));
        }
        return rv_buf_error(out);
}

int headers_add(json_t *headers, const char *line, size_t n)
{
        _cleanup_(rv_buf_fini) struct rv_buf value = { 0 };
        char name[NAME_BYTES_MAX];
        size_t at = read_name(line, n, name);
        const json_t *before;

        if (!at)
                return 0;
        at++;
        while (at < n && is_blank(line[at]))
                at++;
        while (n > at && is_blank(line[n - 1]))
                n--;
        before = json_object_get(headers, name);
        if (before)
                rv_buf_printf(&value, "%s, ", json_string_value(before));
        if (append_value(line + at, n - at, &value) < 0 ||
            json_object_set_new(headers, name, json_stringn(value.data ? value.data : "", value.size)) < 0)
                return rv_raise(-ENOMEM);
        return 0;
}
