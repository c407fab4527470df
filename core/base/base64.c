#include "base/base64.h"

static const char digits[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void rv_base64(const void *data, size_t n, char *ret)
{
        const uint8_t *p = data;

        for (size_t i = 0; i < n; i += 3) {
                uint32_t group = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
                        (i + 2 < n ? p[i + 2] : 0);

                *ret++ = digits[group >> 18];
                *ret++ = digits[(group >> 12) & 63];
                *ret++ = i + 1 < n ? digits[(group >> 6) & 63] : '=';
                *ret++ = i + 2 < n ? digits[group & 63] : '=';
        }
        *ret = 0;
}

static int digit(char c)
{
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four digits, of which the last one or two may be padding. How many bytes they are; -EINVAL. */
static int read_group(const char *text, bool is_last, uint8_t ret[3])
{
        int n = is_last && text[3] == '=' ? text[2] == '=' ? 1 : 2 : 3;
        uint32_t group = 0;

        for (int i = 0; i < 4; i++) {
                int value = i > n ? 0 : digit(text[i]);

                if (value < 0)
                        return rv_raise(-EINVAL);
                group = group << 6 | (uint32_t)value;
        }
        /* Bits that no byte takes are zero, or one value would have several texts. */
        if (n < 3 && group & (n == 1 ? 0xffffu : 0xffu))
                return rv_raise(-EINVAL);
        ret[0] = (uint8_t)(group >> 16);
        ret[1] = (uint8_t)(group >> 8);
        ret[2] = (uint8_t)group;
        return n;
}

ssize_t rv_base64_read(const char *text, size_t n, uint8_t *ret, size_t max)
{
        size_t size = 0;

        if (n % 4 != 0)
                return rv_raise(-EINVAL);
        for (size_t i = 0; i < n; i += 4) {
                uint8_t bytes[3];
                int n_bytes = read_group(text + i, i + 4 == n, bytes);

                if (n_bytes < 0)
                        return rv_trace(n_bytes);
                if (size + (size_t)n_bytes > max)
                        return rv_raise(-EMSGSIZE);
                for (int k = 0; k < n_bytes; k++)
                        ret[size++] = bytes[k];
        }
        return (ssize_t)size;
}
