#include "run/capture.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"   /* U+FFFD */

void rv_capture_init(struct rv_capture *c, size_t max_characters, uint64_t ceiling_bytes)
{
        *c = (struct rv_capture){ .max_characters = max_characters, .ceiling_bytes = ceiling_bytes };
}

/* Length of the run of ASCII at the front, at most @n: eight bytes at a time. */
static size_t ascii_run(const uint8_t *p, size_t n)
{
        size_t i = 0;
        uint64_t word;

        for (; i + sizeof(word) <= n; i += sizeof(word)) {
                memcpy(&word, p + i, sizeof(word));
                if (word & 0x8080808080808080u)
                        break;
        }
        while (i < n && p[i] < 0x80)
                i++;
        return i;
}

static void keep_replacement(struct rv_capture *c)
{
        rv_buf_puts(&c->text, REPLACEMENT);
        c->characters++;
        c->has_invalid_utf8 = true;
}

/*
 * Decodes up to the next ASCII character, the end of the data or the cap, and returns the bytes taken. Whole
 * characters are copied in one run; one that was begun in an earlier feed is written from the decoder, which
 * holds all of it, so bytes never have to be kept between feeds.
 */
static size_t feed_characters(struct rv_capture *c, const uint8_t *p, size_t n)
{
        bool is_carried = rv_utf8_is_partial(&c->decoder);
        size_t start = 0, whole = 0, i = 0;   /* p[start..whole) is decoded and not yet copied */
        char character[4];

        while (i < n && c->characters < c->max_characters && (p[i] >= 0x80 || rv_utf8_is_partial(&c->decoder))) {
                enum rv_utf8_event event = rv_utf8_feed(&c->decoder, p[i]);

                if (event != RV_UTF8_INVALID_BEFORE)
                        i++;
                if (event == RV_UTF8_MORE)
                        continue;
                if (event == RV_UTF8_CHARACTER) {
                        c->characters++;
                        whole = i;
                        if (!is_carried)
                                continue;
                        rv_buf_append(&c->text, character, rv_utf8_encode(c->decoder.code_point, character));
                } else {
                        rv_buf_append(&c->text, p + start, whole - start);
                        keep_replacement(c);
                }
                is_carried = false;
                start = whole = i;
        }
        rv_buf_append(&c->text, p + start, whole - start);
        return i;
}

int rv_capture_feed(struct rv_capture *c, const void *data, size_t n)
{
        const uint8_t *p = data;

        c->bytes += n;
        while (n && c->characters < c->max_characters) {
                size_t taken;

                if (*p < 0x80 && !rv_utf8_is_partial(&c->decoder)) {
                        taken = ascii_run(p, RV_MIN(n, c->max_characters - c->characters));
                        rv_buf_append(&c->text, p, taken);
                        c->characters += taken;
                } else {
                        taken = feed_characters(c, p, n);
                }
                p += taken;
                n -= taken;
        }
        if (n)
                c->is_truncated = true;
        if (rv_buf_error(&c->text) < 0)
                return rv_trace(rv_buf_error(&c->text));
        return c->bytes > c->ceiling_bytes ? RV_CAPTURE_E_CEILING : 0;
}

int rv_capture_finish(struct rv_capture *c)
{
        if (rv_utf8_is_partial(&c->decoder)) {
                keep_replacement(c);
                c->decoder = (struct rv_utf8){ 0 };
        }
        return rv_trace(rv_buf_error(&c->text));
}

void rv_capture_fini(struct rv_capture *c)
{
        rv_buf_fini(&c->text);
        *c = (struct rv_capture){ 0 };
}
