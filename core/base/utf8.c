#include "base/utf8.h"

#include <string.h>

enum rv_utf8_event rv_utf8_feed(struct rv_utf8 *u, uint8_t byte)
{
        if (u->need > u->have) {
                if (byte < u->low || byte > u->high) {
                        *u = (struct rv_utf8){ 0 };
                        return RV_UTF8_INVALID_BEFORE;
                }
                u->code_point = u->code_point << 6 | (byte & 0x3f);
                u->low = 0x80;
                u->high = 0xbf;
                return ++u->have == u->need ? RV_UTF8_CHARACTER : RV_UTF8_MORE;
        }
        *u = (struct rv_utf8){ .low = 0x80, .high = 0xbf };
        if (byte < 0x80) {
                u->code_point = byte;
                return RV_UTF8_CHARACTER;
        }
        /* Unicode 15, table 3-7: only the second byte's range depends on the first. */
        if (byte >= 0xc2 && byte <= 0xdf) {
                u->need = 1;
                u->code_point = byte & 0x1f;
        } else if (byte >= 0xe0 && byte <= 0xef) {
                u->need = 2;
                u->code_point = byte & 0x0f;
                u->low = byte == 0xe0 ? 0xa0 : 0x80;
                u->high = byte == 0xed ? 0x9f : 0xbf;
        } else if (byte >= 0xf0 && byte <= 0xf4) {
                u->need = 3;
                u->code_point = byte & 0x07;
                u->low = byte == 0xf0 ? 0x90 : 0x80;
                u->high = byte == 0xf4 ? 0x8f : 0xbf;
        } else {
                return RV_UTF8_INVALID;
        }
        return RV_UTF8_MORE;
}

bool rv_utf8_check(const char *text, size_t n, size_t *ret_characters)
{
        struct rv_utf8 u = { 0 };
        size_t characters = 0;

        for (size_t i = 0; i < n; i++) {
                switch (rv_utf8_feed(&u, (uint8_t)text[i])) {
                case RV_UTF8_CHARACTER:
                        characters++;
                        break;
                case RV_UTF8_MORE:
                        break;
                default:
                        return false;
                }
        }
        if (rv_utf8_is_partial(&u))
                return false;
        if (ret_characters)
                *ret_characters = characters;
        return true;
}

size_t rv_utf8_encode(uint32_t c, char ret[4])
{
        if (c < 0x80) {
                ret[0] = (char)c;
                return 1;
        }
        if (c < 0x800) {
                ret[0] = (char)(0xc0 | c >> 6);
                ret[1] = (char)(0x80 | (c & 0x3f));
                return 2;
        }
        if (c < 0x10000) {
                ret[0] = (char)(0xe0 | c >> 12);
                ret[1] = (char)(0x80 | (c >> 6 & 0x3f));
                ret[2] = (char)(0x80 | (c & 0x3f));
                return 3;
        }
        ret[0] = (char)(0xf0 | c >> 18);
        ret[1] = (char)(0x80 | (c >> 12 & 0x3f));
        ret[2] = (char)(0x80 | (c >> 6 & 0x3f));
        ret[3] = (char)(0x80 | (c & 0x3f));
        return 4;
}
