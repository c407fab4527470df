#include "audit/redact_texts.h"

#include <string.h>

#define HELD_BYTES_MIN 4u

struct rv_redact_text {
        const char *text;
        size_t n;
        uint32_t next;          /* in the bucket, by index + 1 */
};

static uint8_t fold(char c)
{
        if (c >= 'A' && c <= 'Z')
                return (uint8_t)(c - 'A' + 'a');
        return c == '_' || c == '.' ? '-' : (uint8_t)c;
}

static bool is_same(const char *a, const char *b, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (fold(a[i]) != fold(b[i]))
                        return false;
        return true;
}

/* Of the first bytes, HELD_BYTES_MIN or fewer. */
static uint32_t key_of(const char *text, size_t n)
{
        uint32_t key = 0;

        for (size_t i = 0; i < RV_MIN(n, (size_t)HELD_BYTES_MIN); i++)
                key = key << 8 | fold(text[i]);
        key *= 2654435761u;
        return key ^ key >> 16;
}

int rv_redact_texts_add(struct rv_redact_texts *set, const char *text, size_t n)
{
        if (!n)
                return 0;
        if (set->n == set->capacity) {
                size_t capacity = set->capacity ? 2 * set->capacity : 16;
                void *more = reallocarray(set->items, capacity, sizeof(*set->items));

                if (!more || capacity > UINT32_MAX / 2) {
                        if (more)
                                set->items = more;
                        return rv_raise(-ENOMEM);
                }
                set->items = more;
                set->capacity = capacity;
        }
        set->items[set->n++] = (struct rv_redact_text){ .text = text, .n = n };
        return 0;
}

int rv_redact_texts_seal(struct rv_redact_texts *set)
{
        uint32_t n_buckets = 16;

        while (n_buckets < set->n)
                n_buckets *= 2;
        set->buckets = calloc(n_buckets, sizeof(*set->buckets));
        if (!set->buckets)
                return rv_raise(-ENOMEM);
        set->mask = n_buckets - 1;
        for (size_t i = 0; i < set->n; i++) {
                uint32_t *bucket = &set->buckets[key_of(set->items[i].text, set->items[i].n) & set->mask], at = *bucket;

                while (at &&
                        !(set->items[at - 1].n == set->items[i].n &&
                                is_same(set->items[at - 1].text, set->items[i].text, set->items[i].n)))
                        at = set->items[at - 1].next;
                if (at)         /* the same text again, as a tenant's name that stands in two places */
                        continue;
                set->items[i].next = *bucket;
                *bucket = (uint32_t)i + 1;
        }
        return 0;
}

/* One that stands at the beginning of @text, of all its @n bytes if @is_whole. */
static bool match_here(const struct rv_redact_texts *set, const char *text, size_t n, bool is_whole)
{
        for (uint32_t at = set->buckets[key_of(text, n) & set->mask]; at; at = set->items[at - 1].next) {
                const struct rv_redact_text *item = &set->items[at - 1];

                if ((is_whole ? item->n == n : item->n <= n && item->n >= HELD_BYTES_MIN) &&
                        is_same(item->text, text, item->n))
                        return true;
        }
        return false;
}

bool rv_redact_texts_match(const struct rv_redact_texts *set, const char *text, size_t n, bool is_whole)
{
        if (!set->n || !n)
                return false;
        if (match_here(set, text, n, true))
                return true;
        for (size_t i = 0; !is_whole && i + HELD_BYTES_MIN <= n; i++)
                if (match_here(set, text + i, n - i, false))
                        return true;
        return false;
}

void rv_redact_texts_fini(struct rv_redact_texts *set)
{
        free(set->items);
        free(set->buckets);
        *set = (struct rv_redact_texts){ 0 };
}
