#include "egress/synth.h"

#include "base/arena.h"

#include <string.h>

#define RANGE_FIRST 0xc6120000u   /* 198.18.0.0 */
#define RANGE_MASK 0xfffe0000u
#define N_BUCKETS (2 * RV_SYNTH_NAMES_MAX)

struct rv_synth {
        uint64_t seed;
        size_t n_names, n_names_max;
        const char *names[RV_SYNTH_NAMES_MAX];    /* the one in slot i has address RANGE_FIRST + 1 + i */
        uint64_t hashes[RV_SYNTH_NAMES_MAX];
        uint16_t buckets[N_BUCKETS];              /* 1 + slot, 0: empty; the next bucket where one is taken */
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

int rv_synth_new(uint64_t seed, struct rv_synth **ret)
{
        struct rv_synth *synth = calloc(1, sizeof(*synth));

        if (!synth)
                return rv_raise(-ENOMEM);
        synth->seed = seed;
        synth->n_names_max = RV_SYNTH_NAMES_MAX;
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
        size_t bucket = hash % N_BUCKETS;
        char *copy;

        for (; synth->buckets[bucket]; bucket = (bucket + 1) % N_BUCKETS) {
                size_t slot = synth->buckets[bucket] - 1u;

                if (synth->hashes[slot] != hash || strcmp(synth->names[slot], name) != 0)
                        continue;
                address_of(slot, ret);
                return 0;
        }
        if (synth->n_names >= synth->n_names_max)
                return RV_SYNTH_E_FULL;
        copy = rv_arena_strdup(&synth->arena, name);
        if (!copy)
                return rv_raise(-ENOMEM);
        synth->names[synth->n_names] = copy;
        synth->hashes[synth->n_names] = hash;
        address_of(synth->n_names, ret);
        synth->buckets[bucket] = (uint16_t)++synth->n_names;
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
        return slot < synth->n_names ? synth->names[slot] : NULL;
}

size_t rv_synth_count(const struct rv_synth *synth)
{
        return synth->n_names;
}
