#include "base/pointer.h"

#include <string.h>

/* One part, up to the next slash, into @out. Past it, or NULL. */
static const char *read_part(const char *p, char *out)
{
        if (!*p || *p == '/')
                return NULL;
        for (; *p && *p != '/'; p++) {
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        return NULL;
                if (*p != '~')
                        *out++ = *p;
                else if (*++p == '0' || *p == '1')
                        *out++ = *p == '0' ? '~' : '/';
                else
                        return NULL;
        }
        *out = 0;
        return p;
}

int rv_pointer_read(const char *text, struct rv_pointer *ret)
{
        struct rv_pointer p = { .n = 0 };
        size_t at = 0;

        if (*text != '/' || strlen(text) >= sizeof(p.text))
                return rv_raise(-EINVAL);
        while (*text == '/') {
                const char *part = text + 1;

                if (p.n == RV_POINTER_PARTS_MAX)
                        return rv_raise(-EINVAL);
                p.starts[p.n] = (uint16_t)at;
                text = read_part(part, p.text + at);
                if (!text)
                        return rv_raise(-EINVAL);
                p.is_any[p.n++] = text - part == 1 && *part == '*';
                at += strlen(p.text + at) + 1;
        }
        *ret = p;
        return 0;
}

bool rv_pointer_matches(const struct rv_pointer *p, const char *const *parts, unsigned n)
{
        if (p->n != n)
                return false;
        for (unsigned i = 0; i < n; i++)
                if (!p->is_any[i] && strcmp(rv_pointer_part(p, i), parts[i]) != 0)
                        return false;
        return true;
}

bool rv_pointer_meets(const struct rv_pointer *a, const struct rv_pointer *b)
{
        for (unsigned i = 0; i < RV_MIN(a->n, b->n); i++)
                if (!a->is_any[i] && !b->is_any[i] && strcmp(rv_pointer_part(a, i), rv_pointer_part(b, i)) != 0)
                        return false;
        return true;
}
