#include "audit/merkle.h"

#include <string.h>

static unsigned n_edges(uint64_t size)
{
        return (unsigned)__builtin_popcountll(size);
}

void rv_merkle_leaf(const void *line, size_t n, rv_merkle_hash ret)
{
        struct rv_sha256 h;

        rv_sha256_init(&h);
        rv_sha256_update(&h, "\x00", 1);
        rv_sha256_update(&h, line, n);
        rv_sha256_final(&h, ret);
}

void rv_merkle_node(const rv_merkle_hash left, const rv_merkle_hash right, rv_merkle_hash ret)
{
        uint8_t pair[1 + 2 * RV_SHA256_SIZE] = { 0x01 };

        memcpy(pair + 1, left, RV_SHA256_SIZE);
        memcpy(pair + 1 + RV_SHA256_SIZE, right, RV_SHA256_SIZE);
        rv_sha256(pair, sizeof(pair), ret);
}

/* The edge's smallest subtree is joined with its like for as long as there is one, as a carry goes through a sum. */
static void push_at(struct rv_merkle *tree, unsigned level, const rv_merkle_hash hash)
{
        unsigned n = n_edges(tree->size);
        rv_merkle_hash sum;

        memcpy(sum, hash, sizeof(sum));
        for (uint64_t rest = tree->size >> level; rest & 1; rest >>= 1)
                rv_merkle_node(tree->edge[--n], sum, sum);
        memcpy(tree->edge[n], sum, sizeof(sum));
        tree->size += UINT64_C(1) << level;
}

void rv_merkle_push(struct rv_merkle *tree, const rv_merkle_hash leaf)
{
        push_at(tree, 0, leaf);
}

int rv_merkle_push_part(struct rv_merkle *tree, const struct rv_merkle_part *part)
{
        uint64_t size;

        if (part->level >= RV_MERKLE_LEVELS)
                return rv_raise(-EINVAL);
        size = UINT64_C(1) << part->level;
        if (tree->size & (size - 1) || tree->size + size > (UINT64_C(1) << RV_MERKLE_LEVELS) - 1)
                return rv_raise(-EINVAL);
        push_at(tree, part->level, part->hash);
        return 0;
}

void rv_merkle_root(const struct rv_merkle *tree, rv_merkle_hash ret)
{
        unsigned n = n_edges(tree->size);

        if (n == 0) {
                rv_sha256("", 0, ret);
                return;
        }
        memcpy(ret, tree->edge[n - 1], RV_SHA256_SIZE);
        while (--n)
                rv_merkle_node(tree->edge[n - 1], ret, ret);
}

void rv_merkle_growth_begin(struct rv_merkle_growth *growth, uint64_t start)
{
        *growth = (struct rv_merkle_growth){ .start = start };
}

/* Two neighbours of a level become one where their like stands in the whole tree: at a multiple of its size. */
void rv_merkle_growth_push(struct rv_merkle_growth *growth, const rv_merkle_hash leaf)
{
        struct rv_merkle_part *last = &growth->parts[growth->n_parts];
        uint64_t end = growth->start + growth->size + 1;

        last->level = 0;
        memcpy(last->hash, leaf, sizeof(last->hash));
        while (last > growth->parts && last[-1].level == last->level && !(end & ((UINT64_C(2) << last->level) - 1))) {
                rv_merkle_node(last[-1].hash, last->hash, last[-1].hash);
                last--;
                last->level++;
        }
        growth->n_parts = (unsigned)(last - growth->parts) + 1;
        growth->size++;
}

int rv_merkle_grow(struct rv_merkle *tree, const struct rv_merkle_growth *growth)
{
        struct rv_merkle grown = *tree;
        int r;

        if (growth->start != tree->size || growth->n_parts > RV_MERKLE_GROWTH_MAX)
                return rv_raise(-EINVAL);
        for (unsigned i = 0; i < growth->n_parts; i++) {
                r = rv_merkle_push_part(&grown, &growth->parts[i]);
                if (r < 0)
                        return rv_trace(r);
        }
        if (grown.size != tree->size + growth->size)
                return rv_raise(-EINVAL);
        *tree = grown;
        return 0;
}
