#include "base/span.h"

#include <string.h>

#define INTEGER_DIGITS 16                        /* of 2^53 - 1 */
#define INTEGER_MAX INT64_C(9007199254740991)

bool rv_span_is(struct rv_span s, const char *text)
{
        return s.text && strlen(text) == s.n && memcmp(s.text, text, s.n) == 0;
}

struct rv_span rv_span_string(struct rv_span s)
{
        if (!s.text || s.n < 2 || s.text[0] != '"' || s.text[s.n - 1] != '"' || memchr(s.text, '\\', s.n))
                return (struct rv_span){ 0 };
        return (struct rv_span){ s.text + 1, s.n - 2 };
}

int64_t rv_span_integer(struct rv_span s)
{
        int64_t value = 0;

        if (!s.text || !s.n || s.n > INTEGER_DIGITS)
                return -EINVAL;
        for (size_t i = 0; i < s.n; i++) {
                if (s.text[i] < '0' || s.text[i] > '9')
                        return -EINVAL;
                value = value * 10 + (s.text[i] - '0');
        }
        return value > INTEGER_MAX || (s.n > 1 && s.text[0] == '0') ? -EINVAL : value;
}
