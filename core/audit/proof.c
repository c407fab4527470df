#include "audit/proof.h"

#include <string.h>

#define SIZE_MAX_LEAVES ((UINT64_C(1) << RV_MERKLE_LEVELS) - 1)

/* ---- Making ---- */

/* RFC 6962's k: the largest power of two below @n, which is 2 or more. */
static uint64_t split_of(uint64_t n)
{
        return UINT64_C(1) << (63 - __builtin_clzll(n - 1));
}

/*
 * RFC 6962 writes a proof as its hashes from the deepest subtree up. Going down instead gives them in reverse; that of
 * the place where the way ends comes first of all.
 */
struct way {
        struct {
                uint64_t start, end;
        } parts[RV_PROOF_HASHES_MAX];
        unsigned n;
};

static void add(struct way *way, uint64_t start, uint64_t end)
{
        way->parts[way->n].start = start;
        way->parts[way->n++].end = end;
}

/* The parts as they come while the leaves are read. */
static void take(struct rv_proof_maker *maker, const struct way *way)
{
        maker->proof.n = way->n;
        for (unsigned i = 0; i < way->n; i++) {
                unsigned j = i;

                for (; j > 0 && maker->parts[j - 1].start > way->parts[i].start; j--)
                        maker->parts[j] = maker->parts[j - 1];
                maker->parts[j].start = way->parts[i].start;
                maker->parts[j].end = way->parts[i].end;
                maker->parts[j].at = way->n - 1 - i;
        }
}

int rv_proof_begin_inclusion(struct rv_proof_maker *maker, uint64_t seq, uint64_t size)
{
        struct way way = { .n = 0 };
        uint64_t start = 0, end = size;

        if (seq >= size || size > SIZE_MAX_LEAVES)
                return rv_raise(-EINVAL);
        *maker = (struct rv_proof_maker){ .proof = { .from = seq, .size = size } };
        while (end - start > 1) {
                uint64_t middle = start + split_of(end - start);

                if (seq < middle) {
                        add(&way, middle, end);
                        end = middle;
                } else {
                        add(&way, start, middle);
                        start = middle;
                }
        }
        take(maker, &way);
        return 0;
}

int rv_proof_begin_consistency(struct rv_proof_maker *maker, uint64_t from, uint64_t size)
{
        struct way way = { .n = 0 };
        uint64_t start = 0, end = size;

        if (from == 0 || from > size || size > SIZE_MAX_LEAVES)
                return rv_raise(-EINVAL);
        *maker = (struct rv_proof_maker){ .proof = { .is_consistency = true, .from = from, .size = size } };
        while (end > from) {
                uint64_t middle = start + split_of(end - start);

                if (from <= middle) {
                        add(&way, middle, end);
                        end = middle;
                } else {
                        add(&way, start, middle);
                        start = middle;
                }
        }
        /* What the smaller tree ends with; if that is all of it, whoever checks has it. */
        if (start > 0)
                add(&way, start, end);
        take(maker, &way);
        return 0;
}

void rv_proof_push(struct rv_proof_maker *maker, const rv_merkle_hash leaf)
{
        uint64_t seq = maker->n_pushed++;

        if (maker->next == maker->proof.n || seq < maker->parts[maker->next].start)
                return;
        rv_merkle_push(&maker->tree, leaf);
        if (seq + 1 < maker->parts[maker->next].end)
                return;
        rv_merkle_root(&maker->tree, maker->proof.path[maker->parts[maker->next].at]);
        maker->tree.size = 0;
        maker->next++;
}

int rv_proof_finish(const struct rv_proof_maker *maker, struct rv_proof *ret)
{
        if (maker->n_pushed < maker->proof.size)
                return rv_raise(-EINVAL);
        *ret = maker->proof;
        return 0;
}

/* ---- Checking: RFC 9162, 2.1.3.2 and 2.1.4.2, step by step ---- */

static int compare(const rv_merkle_hash a, const rv_merkle_hash b)
{
        return memcmp(a, b, sizeof(rv_merkle_hash)) == 0 ? 0 : RV_PROOF_E_WRONG;
}

int rv_proof_check_inclusion(const struct rv_proof *proof, const rv_merkle_hash leaf, const rv_merkle_hash root)
{
        uint64_t fn = proof->from, sn = proof->size - 1;
        rv_merkle_hash r;

        if (proof->is_consistency || proof->from >= proof->size || proof->n > RV_PROOF_HASHES_MAX)
                return RV_PROOF_E_WRONG;
        memcpy(r, leaf, sizeof(r));
        for (unsigned i = 0; i < proof->n; i++) {
                if (sn == 0)
                        return RV_PROOF_E_WRONG;
                if (fn & 1 || fn == sn) {
                        rv_merkle_node(proof->path[i], r, r);
                        for (; !(fn & 1) && fn != 0; fn >>= 1)
                                sn >>= 1;
                } else {
                        rv_merkle_node(r, proof->path[i], r);
                }
                fn >>= 1;
                sn >>= 1;
        }
        return sn == 0 ? compare(r, root) : RV_PROOF_E_WRONG;
}

static int check_path(const struct rv_proof *proof, const rv_merkle_hash from_root, const rv_merkle_hash root)
{
        uint64_t fn = proof->from - 1, sn = proof->size - 1;
        bool is_from_in_path = proof->from & (proof->from - 1);
        unsigned i = is_from_in_path ? 1 : 0;
        rv_merkle_hash fr, sr;

        memcpy(fr, is_from_in_path ? proof->path[0] : from_root, sizeof(fr));
        memcpy(sr, fr, sizeof(sr));
        for (; fn & 1; fn >>= 1)
                sn >>= 1;
        for (; i < proof->n; i++) {
                if (sn == 0)
                        return RV_PROOF_E_WRONG;
                if (fn & 1 || fn == sn) {
                        rv_merkle_node(proof->path[i], fr, fr);
                        rv_merkle_node(proof->path[i], sr, sr);
                        for (; !(fn & 1) && fn != 0; fn >>= 1)
                                sn >>= 1;
                } else {
                        rv_merkle_node(sr, proof->path[i], sr);
                }
                fn >>= 1;
                sn >>= 1;
        }
        if (sn != 0 || compare(fr, from_root) != 0)
                return RV_PROOF_E_WRONG;
        return compare(sr, root);
}

int rv_proof_check_consistency(const struct rv_proof *proof, const rv_merkle_hash from_root, const rv_merkle_hash root)
{
        if (!proof->is_consistency || proof->from == 0 || proof->from > proof->size || proof->n > RV_PROOF_HASHES_MAX)
                return RV_PROOF_E_WRONG;
        if (proof->from == proof->size)
                return proof->n == 0 ? compare(from_root, root) : RV_PROOF_E_WRONG;
        return proof->n == 0 ? RV_PROOF_E_WRONG : check_path(proof, from_root, root);
}
