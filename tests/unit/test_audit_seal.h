/*
 * test_audit_seal.h - logs with checkpoints, for the tests that verify them
 *
 * A log is written by the log itself (test_audit_common.h) and sealed with keys made of one byte each. One thread.
 */
#pragma once

#include "audit/verify.h"

#include "test_audit_common.h"

static inline struct rv_checkpoint_key key_of(const char *log_id, uint8_t seed)
{
        uint8_t secret[RV_CHECKPOINT_KEY_BYTES] = { seed };
        struct rv_checkpoint_key key = { 0 };

        memcpy(key.log_id, log_id, RV_LOG_ID_SIZE);
        assert_int_equal(rv_checkpoint_public(secret, key.public_key), 0);
        return key;
}

/* A checkpoint of the first @size records, which lie in one segment. */
static inline void make_checkpoint(void **state, struct rv_log *log, uint64_t size, struct rv_checkpoint *ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        struct rv_merkle tree = { 0 };
        const char *p;

        read_segment(state, &b);
        p = b.data;
        while (tree.size < size) {
                const char *end = memchr(p, '\n', (size_t)(b.data + b.size - p));
                rv_merkle_hash leaf;

                assert_non_null(end);
                rv_merkle_leaf(p, (size_t)(end - p), leaf);
                rv_merkle_push(&tree, leaf);
                p = end + 1;
        }
        *ret = (struct rv_checkpoint){ .size = size };
        memcpy(ret->log_id, rv_log_id(log), RV_LOG_ID_SIZE);
        rv_merkle_root(&tree, ret->root);
}

static inline void append_checkpoint(struct rv_log *log, const struct rv_checkpoint *c)
{
        _cleanup_(rv_buf_fini) struct rv_buf note = { 0 };
        _cleanup_(rv_json_unrefp) json_t *body = NULL;
        struct rv_error err = { 0 };
        char root[RV_SHA256_HEX_SIZE];

        rv_hex(c->root, sizeof(c->root), root);
        assert_int_equal(rv_checkpoint_write(c, &note), 0);
        body = json_pack("{s:I, s:s, s:s%}", "size", (json_int_t)c->size, "root", root, "note", note.data, note.size);
        if (rv_log_append(log, "checkpoint", body, NULL, &err) != 0)
                fail_msg("%s", err.message);
}

/* Seals the first @size records; with another key than @seed for @next_seed the key is changed. */
static inline void seal(void **state, struct rv_log *log, uint64_t size, uint8_t seed, uint8_t next_seed)
{
        uint8_t secret[RV_CHECKPOINT_KEY_BYTES] = { seed };
        struct rv_checkpoint c;

        make_checkpoint(state, log, size, &c);
        if (next_seed != seed) {
                c.has_next_key = true;
                c.next_key = key_of(rv_log_id(log), next_seed);
        }
        assert_int_equal(rv_checkpoint_sign(&c, secret), 0);
        secret[0] = next_seed;
        if (next_seed != seed)
                assert_int_equal(rv_checkpoint_sign(&c, secret), 0);
        append_checkpoint(log, &c);
}
