#include "audit/open_set.h"

#include <string.h>

#define FIRST_SLOTS 64

void rv_open_set_fini(struct rv_open_set *set)
{
        free(set->slots);
        *set = (struct rv_open_set){ 0 };
}

/* Ids are random, so any part of one spreads well. */
static size_t home_of(const struct rv_open_set *set, const uint8_t *id)
{
        uint64_t h;

        memcpy(&h, id, sizeof(h));
        return (size_t)h & (set->n_slots - 1);
}

/* The slot of @id, or the free one where it would be. */
static struct rv_open_decision *find(const struct rv_open_set *set, const uint8_t *id)
{
        size_t i = home_of(set, id);

        while (set->slots[i].is_used && memcmp(set->slots[i].id, id, RV_DECISION_ID_BYTES) != 0)
                i = (i + 1) & (set->n_slots - 1);
        return &set->slots[i];
}

static int grow(struct rv_open_set *set)
{
        struct rv_open_set bigger = { .n_slots = set->n_slots ? set->n_slots * 2 : FIRST_SLOTS, .n_used = set->n_used };

        bigger.slots = calloc(bigger.n_slots, sizeof(*bigger.slots));
        if (!bigger.slots)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < set->n_slots; i++)
                if (set->slots[i].is_used)
                        *find(&bigger, set->slots[i].id) = set->slots[i];
        free(set->slots);
        *set = bigger;
        return 0;
}

int rv_open_set_put(struct rv_open_set *set, const uint8_t id[RV_DECISION_ID_BYTES], const struct rv_open_place *place)
{
        struct rv_open_decision *slot;
        int r;

        if (set->n_used * 2 >= set->n_slots) {
                r = grow(set);
                if (r < 0)
                        return rv_trace(r);
        }
        slot = find(set, id);
        if (!slot->is_used) {
                *slot = (struct rv_open_decision){ .is_used = true, .first = *place };
                memcpy(slot->id, id, RV_DECISION_ID_BYTES);
                set->n_used++;
        }
        slot->last = *place;
        return 0;
}

void rv_open_set_remove(struct rv_open_set *set, const uint8_t id[RV_DECISION_ID_BYTES])
{
        struct rv_open_decision *slot;
        size_t hole, i;

        if (!set->n_used)
                return;
        slot = find(set, id);
        if (!slot->is_used)
                return;
        slot->is_used = false;
        set->n_used--;
        /* Whoever was put further on because this slot was taken moves up, or find() would miss it. */
        hole = (size_t)(slot - set->slots);
        for (i = (hole + 1) & (set->n_slots - 1); set->slots[i].is_used; i = (i + 1) & (set->n_slots - 1)) {
                size_t home = home_of(set, set->slots[i].id);

                if (((i - home) & (set->n_slots - 1)) < ((i - hole) & (set->n_slots - 1)))
                        continue;
                set->slots[hole] = set->slots[i];
                set->slots[i].is_used = false;
                hole = i;
        }
}

static int compare(const void *pa, const void *pb)
{
        const struct rv_open_decision *a = pa, *b = pb;
        int r = strcmp(a->last.segment, b->last.segment);

        return r ? r : a->last.offset < b->last.offset ? -1 : a->last.offset > b->last.offset;
}

size_t rv_open_set_sort(struct rv_open_set *set)
{
        size_t n = 0;

        for (size_t i = 0; i < set->n_slots; i++)
                if (set->slots[i].is_used)
                        set->slots[n++] = set->slots[i];
        if (n)
                qsort(set->slots, n, sizeof(*set->slots), compare);
        return n;
}
