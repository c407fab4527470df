#include "egress/synth.h"

#include "base/arena.h"

#include <string.h>

#define RANGE_FIRST 0xc6120000u   /* 198.18.0.0 */
#define RANGE_MASK 0xfffe0000u
#define SLOTS_MIN 64              /* a run that asks for a few names should not pay for thousands when it starts */

struct slot {
        const char *name;
        uint64_t hash;
};

struct rv_synth {
        uint64_t seed;
        size_t n_names, n_names_max, n_slots;
        struct slot *slots;                       /* n_slots; the name in slot i has address RANGE_FIRST + 1 + i */
        uint16_t *buckets;                        /* 2 * n_slots: 1 + slot, 0: empty; the next one where one is taken */
        struct rv_arena arena;
};

/* FNV-1a from a secret start, and a last mixing since the bucket is its low bits. */
static uint64_t hash_of(const struct rv_synth *synth, const char *name)
{
        uint64_t h = 0xcbf29ce484222325u ^ synth->seed;

        for (; *name; name++)
                h = (h ^ (uint8_t)*name) * 0x100000001b3u;
        h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
        return h ^ (h >> 32);
}

static void put(struct rv_synth *synth, size_t slot)
{
        size_t bucket = synth->slots[slot].hash % (2 * synth->n_slots);

        while (synth->buckets[bucket])
                bucket = (bucket + 1) % (2 * synth->n_slots);
        synth->buckets[bucket] = (uint16_t)(slot + 1);
}

static int make_room(struct rv_synth *synth)
{
        size_t n = synth->n_slots ? 2 * synth->n_slots : SLOTS_MIN;
        struct slot *slots = realloc(synth->slots, n * sizeof(*slots));
        uint16_t *buckets;

        if (!slots)
                return rv_raise(-ENOMEM);
        synth->slots = slots;
        buckets = calloc(2 * n, sizeof(*buckets));
        if (!buckets)
                return rv_raise(-ENOMEM);
        free(synth->buckets);
        synth->buckets = buckets;
        synth->n_slots = n;
        for (size_t i = 0; i < synth->n_names; i++)
                put(synth, i);
        return 0;
}

int rv_synth_new(uint64_t seed, struct rv_synth **ret)
{
        struct rv_synth *synth = calloc(1, sizeof(*synth));
        int r;

        if (!synth)
                return rv_raise(-ENOMEM);
        synth->seed = seed;
        synth->n_names_max = RV_SYNTH_NAMES_MAX;
        r = make_room(synth);
        if (r < 0) {
                rv_synth_free(synth);
                return rv_trace(r);
        }
        *ret = synth;
        return 0;
}

void rv_synth_limit(struct rv_synth *synth, size_t n_names)
{
        synth->n_names_max = RV_MIN(n_names, (size_t)RV_SYNTH_NAMES_MAX);
}

void rv_synth_free(struct rv_synth *synth)
{
        if (!synth)
                return;
        rv_arena_fini(&synth->arena);
        free(synth->slots);
        free(synth->buckets);
        free(synth);
}

static void address_of(size_t slot, struct rv_address *ret)
{
        uint32_t address = RANGE_FIRST + 1 + (uint32_t)slot;

        *ret = (struct rv_address){ .bytes = { (uint8_t)(address >> 24), (uint8_t)(address >> 16),
                                               (uint8_t)(address >> 8), (uint8_t)address } };
}

static uint32_t number_of(const struct rv_address *a)
{
        return (uint32_t)a->bytes[0] << 24 | (uint32_t)a->bytes[1] << 16 | (uint32_t)a->bytes[2] << 8 | a->bytes[3];
}

int rv_synth_get(struct rv_synth *synth, const char *name, struct rv_address *ret)
{
        uint64_t hash = hash_of(synth, name);
        size_t bucket = hash % (2 * synth->n_slots);
        char *copy;
        int r;

        for (; synth->buckets[bucket]; bucket = (bucket + 1) % (2 * synth->n_slots)) {
                size_t slot = synth->buckets[bucket] - 1u;

                if (synth->slots[slot].hash != hash || strcmp(synth->slots[slot].name, name) != 0)
                        continue;
                address_of(slot, ret);
                return 0;
        }
        if (synth->n_names >= synth->n_names_max)
                return RV_SYNTH_E_FULL;
        r = synth->n_names == synth->n_slots ? make_room(synth) : 0;
        if (r < 0)
                return rv_trace(r);
        copy = rv_arena_strdup(&synth->arena, name);
        if (!copy)
                return rv_raise(-ENOMEM);
        synth->slots[synth->n_names] = (struct slot){ .name = copy, .hash = hash };
        put(synth, synth->n_names);
        address_of(synth->n_names++, ret);
        return 0;
}

bool rv_synth_holds(const struct rv_address *address)
{
        return !address->is_v6 && (number_of(address) & RANGE_MASK) == RANGE_FIRST;
}

const char *rv_synth_find(const struct rv_synth *synth, const struct rv_address *address)
{
        uint32_t slot;

        if (!rv_synth_holds(address))
                return NULL;
        slot = number_of(address) - RANGE_FIRST - 1;   /* 198.18.0.0 itself wraps round, past every slot */
        return slot < synth->n_names ? synth->slots[slot].name : NULL;
}

size_t rv_synth_count(const struct rv_synth *synth)
{
        return synth->n_names;
}
