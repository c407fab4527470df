#include "run/terminal.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"   /* U+FFFD */

static bool is_plain(const struct rv_terminal *t, uint8_t byte)
{
        return (byte >= 0x20 && byte < 0x7f) || (!t->is_single_line && (byte == '\t' || byte == '\n'));
}

static void put_character(const struct rv_terminal *t, uint32_t c, struct rv_buf *out)
{
        char text[4];

        if (c < 0x80 && is_plain(t, (uint8_t)c))
                rv_buf_putc(out, (char)c);
        else if (c < 0x20 || c == 0x7f)
                rv_buf_printf(out, "^%c", (int)(c ^ 0x40));
        else if (c >= 0x80 && c <= 0x9f)
                rv_buf_printf(out, "<%02X>", (unsigned)c);
        else
                rv_buf_append(out, text, rv_utf8_encode(c, text));
}

int rv_terminal_feed(struct rv_terminal *t, const void *data, size_t n, struct rv_buf *out)
{
        const uint8_t *p = data;
        size_t i = 0;

        while (i < n) {
                size_t start = i;

                if (!rv_utf8_is_partial(&t->decoder)) {
                        while (i < n && is_plain(t, p[i]))
                                i++;
                        rv_buf_append(out, p + start, i - start);
                        if (i == n)
                                break;
                }
                switch (rv_utf8_feed(&t->decoder, p[i])) {
                case RV_UTF8_CHARACTER:
                        put_character(t, t->decoder.code_point, out);
                        break;
                case RV_UTF8_INVALID:
                        rv_buf_puts(out, REPLACEMENT);
                        break;
                case RV_UTF8_INVALID_BEFORE:
                        rv_buf_puts(out, REPLACEMENT);
                        continue;   /* the byte was not taken */
                case RV_UTF8_MORE:
                        break;
                }
                i++;
        }
        return rv_trace(rv_buf_error(out));
}

int rv_terminal_finish(struct rv_terminal *t, struct rv_buf *out)
{
        if (rv_utf8_is_partial(&t->decoder)) {
                rv_buf_puts(out, REPLACEMENT);
                t->decoder = (struct rv_utf8){ 0 };
        }
        return rv_trace(rv_buf_error(out));
}

int rv_terminal_put_line(const char *text, struct rv_buf *out)
{
        struct rv_terminal t = { .is_single_line = true };

        rv_terminal_feed(&t, text, strlen(text), out);
        return rv_terminal_finish(&t, out);
}
