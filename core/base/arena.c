#include "base/arena.h"

#include <string.h>

#define CHUNK_BYTES ((size_t)8192)
#define ALIGNMENT _Alignof(max_align_t)

struct rv_arena_chunk {
        struct rv_arena_chunk *next;
        size_t used, capacity;
        _Alignas(max_align_t) char data[];
};

void rv_arena_fini(struct rv_arena *a)
{
        while (a->chunks) {
                struct rv_arena_chunk *c = a->chunks;

                a->chunks = c->next;
                free(c);
        }
}

void *rv_arena_alloc(struct rv_arena *a, size_t n)
{
        struct rv_arena_chunk *c = a->chunks;
        void *p;

        if (n > SIZE_MAX / 2)
                return NULL;
        n = (RV_MAX(n, (size_t)1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (!c || n > c->capacity - c->used) {
                size_t capacity = RV_MAX(n, CHUNK_BYTES);

                c = calloc(1, sizeof(*c) + capacity);
                if (!c)
                        return NULL;
                c->capacity = capacity;
                c->next = a->chunks;
                a->chunks = c;
        }
        p = c->data + c->used;
        c->used += n;
        return p;
}

void *rv_arena_array(struct rv_arena *a, size_t n, size_t size)
{
        if (size && n > SIZE_MAX / 2 / size)
                return NULL;
        return rv_arena_alloc(a, n * size);
}

char *rv_arena_strndup(struct rv_arena *a, const char *s, size_t n)
{
        char *p = n < SIZE_MAX / 2 ? rv_arena_alloc(a, n + 1) : NULL;

        if (p && n)
                memcpy(p, s, n);
        return p;
}

char *rv_arena_strdup(struct rv_arena *a, const char *s)
{
        return rv_arena_strndup(a, s, strlen(s));
}
