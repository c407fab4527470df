#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rv_buf_fini(struct rv_buf *b)
{
        free(b->data);
        *b = (struct rv_buf){ 0 };
}

int rv_buf_reserve(struct rv_buf *b, size_t n)
{
        size_t capacity;
        char *data;

        if (b->is_failed)
                return -ENOMEM;
        if (n < b->capacity - b->size && b->data)
                return 0;
        if (n >= SIZE_MAX / 2 - b->size)
                goto fail;
        capacity = RV_MAX(b->size + n + 1, b->capacity + b->capacity / 2);
        capacity = RV_MAX(capacity, (size_t)64);
        data = realloc(b->data, capacity);
        if (!data)
                goto fail;
        data[b->size] = 0;
        b->data = data;
        b->capacity = capacity;
        return 0;
fail:
        b->is_failed = true;
        return rv_raise(-ENOMEM);
}

int rv_buf_append(struct rv_buf *b, const void *data, size_t n)
{
        int r = rv_buf_reserve(b, n);

        if (r < 0)
                return r;
        if (n)
                memcpy(b->data + b->size, data, n);
        b->size += n;
        b->data[b->size] = 0;
        return 0;
}

int rv_buf_puts(struct rv_buf *b, const char *s)
{
        return rv_buf_append(b, s, strlen(s));
}

int rv_buf_putc(struct rv_buf *b, char c)
{
        return rv_buf_append(b, &c, 1);
}

int rv_buf_printf(struct rv_buf *b, const char *fmt, ...)
{
        va_list ap;
        int n, r;

        va_start(ap, fmt);
        n = vsnprintf(NULL, 0, fmt, ap);
        va_end(ap);
        if (n < 0) {
                b->is_failed = true;
                return rv_raise(-ENOMEM);
        }
        r = rv_buf_reserve(b, (size_t)n);
        if (r < 0)
                return r;
        va_start(ap, fmt);
        vsnprintf(b->data + b->size, (size_t)n + 1, fmt, ap);
        va_end(ap);
        b->size += (size_t)n;
        return 0;
}

char *rv_buf_take(struct rv_buf *b, size_t *ret_size)
{
        char *data;

        if (b->is_failed || rv_buf_reserve(b, 0) < 0) {
                rv_buf_fini(b);
                return NULL;
        }
        data = b->data;
        if (ret_size)
                *ret_size = b->size;
        *b = (struct rv_buf){ 0 };
        return data;
}
