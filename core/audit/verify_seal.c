#include "audit/verify_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- The second way through ---- */

static int compare_sizes(const void *a, const void *b)
{
        const struct rv_verify_expect *x = a, *y = b;

        return x->size < y->size ? -1 : x->size > y->size;
}

/* The record that the second way through has taken last. */
static struct rv_verify_place trail_place(const struct rv_verify *v)
{
        return (struct rv_verify_place){ rv_log_segment_first(v->trail.segment), v->trail.offset,
                v->tree.size ? v->tree.size - 1 : 0 };
}

static int check_expects(struct rv_verify *v)
{
        while (v->next_expect < v->n_expects && v->expects[v->next_expect].size == v->tree.size) {
                const struct rv_verify_expect *expect = &v->expects[v->next_expect++];
                struct rv_verify_place place = trail_place(v);
                char found[RV_SHA256_HEX_SIZE], wanted[RV_SHA256_HEX_SIZE];
                rv_merkle_hash root;
                int r;

                rv_merkle_root(&v->tree, root);
                if (memcmp(root, expect->root, sizeof(root)) == 0) {
                        v->vouched = v->tree.size;
                        continue;
                }
                rv_hex(root, sizeof(root), found);
                rv_hex(expect->root, sizeof(expect->root), wanted);
                r = rv__verify_fault(v, RV_VERIFY_EXPECT, &place, "the first %" PRIu64 " records have the root %s, %s was expected: what differs is this record or one from record %" PRIu64 " on",
                        v->tree.size, found, wanted, RV_MIN(v->vouched, place.seq));
                if (r != 0)
                        return r;
        }
        return 0;
}

/* When the first record behind the last checkpoint was written. */
static void note_time(struct rv_verify *v, const char *line, size_t n)
{
        struct rv_record_form form;

        if (!rv_record_form(line, n, &form))
                v->out->unsealed_time_us = form.time_us;
}

/* Brings the tree to @size records, which the walk has seen. */
static int advance(struct rv_verify *v, uint64_t size)
{
        rv_merkle_hash leaf;
        const char *line;
        size_t n;
        int r;

        while (v->tree.size < size) {
                r = rv_lines_next(&v->trail, &line, &n, v->err);
                if (r < 0)
                        return rv_trace(r);
                if (r == 0)
                        return rv_error_set(v->err, rv_raise(-EIO), "%s: record %" PRIu64 " is not there any more: the log was cut short while it was read",
                                v->in->path, v->tree.size);
                if (v->tree.size == v->out->last.size)
                        note_time(v, line, n);
                rv_merkle_leaf(line, n, leaf);
                rv_merkle_push(&v->tree, leaf);
                if (v->next_expect < v->n_expects && v->expects[v->next_expect].size == v->tree.size) {
                        r = check_expects(v);
                        if (r != 0)
                                return rv_trace(r);
                }
        }
        return 0;
}

int rv__verify_seal_begin(struct rv_verify *v)
{
        rv_lines_begin(&v->trail, v->in->audit_fd, v->in->path);
        if (!v->in->n_expects)
                return 0;
        v->expects = calloc(v->in->n_expects, sizeof(*v->expects));
        if (!v->expects)
                return rv_error_set(v->err, rv_raise(-ENOMEM), "out of memory");
        memcpy(v->expects, v->in->expects, v->in->n_expects * sizeof(*v->expects));
        v->n_expects = v->in->n_expects;
        qsort(v->expects, v->n_expects, sizeof(*v->expects), compare_sizes);
        return rv_trace(check_expects(v));
}

void rv__verify_seal_fini(struct rv_verify *v)
{
        rv_lines_close(&v->trail);
        free(v->expects);
        free(v->past);
}

/* ---- Keys ---- */

static const struct rv_checkpoint_key *key_in_force(const struct rv_verify *v)
{
        return v->n_past ? &v->past[v->n_past - 1] : NULL;
}

static bool is_same_key(const struct rv_checkpoint_key *a, const struct rv_checkpoint_key *b)
{
        return memcmp(a->public_key, b->public_key, sizeof(a->public_key)) == 0 && strcmp(a->log_id, b->log_id) == 0;
}

static int put_in_force(struct rv_verify *v, const struct rv_checkpoint_key *key)
{
        const struct rv_checkpoint_key copy = *key;        /* it may be one of those that are moved */

        if (v->n_past == v->past_capacity) {
                size_t wanted = v->past_capacity ? v->past_capacity * 2 : 8;
                struct rv_checkpoint_key *past = reallocarray(v->past, wanted, sizeof(*past));

                if (!past)
                        return rv_error_set(v->err, rv_raise(-ENOMEM), "out of memory");
                v->past = past;
                v->past_capacity = wanted;
        }
        v->past[v->n_past++] = copy;
        return 0;
}

static int tell_signature(struct rv_verify *v, int r, const char *whose)
{
        if (r == RV_CHECKPOINT_E_UNSIGNED)
                return rv__verify_fault(v, RV_VERIFY_KEY, &v->here, "the checkpoint is not signed by %s: it was made with a foreign key", whose);
        if (r == RV_CHECKPOINT_E_BAD)
                return rv__verify_fault(v, RV_VERIFY_KEY, &v->here, "the checkpoint's signature by %s is wrong", whose);
        return r < 0 ? rv_error_set(v->err, r, "cannot verify a signature: %s", strerror(-r)) : 0;
}

/* No key is in force as no checkpoint so far was signed by the one that is known. */
static int begin_key(struct rv_verify *v, const struct rv_checkpoint *c)
{
        const struct rv_checkpoint_key *known = v->in->n_keys ? &v->in->keys[0] : NULL;
        int r = known ? rv_checkpoint_verify(c, known) : RV_CHECKPOINT_E_UNSIGNED;

        if (r == RV_CHECKPOINT_E_UNSIGNED) {
                if (v->n_unknown++ == 0)
                        v->first_unknown = v->here;
                return 0;
        }
        if (r != 0)
                return tell_signature(v, r, "the key");
        if (v->n_unknown && !(c->has_next_key && is_same_key(&c->next_key, known))) {
                r = rv__verify_fault(v, RV_VERIFY_KEY, &v->first_unknown, "the checkpoint is not signed by the key that signs later ones, and none says that the key was changed");
                if (r != 0)
                        return r;
        }
        v->out->n_earlier = v->n_unknown;
        return rv_trace(put_in_force(v, known));
}

/* Of several keys given: that behind the one in force. */
static const struct rv_checkpoint_key *next_given(const struct rv_verify *v)
{
        return v->given_at + 1 < v->in->n_keys ? &v->in->keys[v->given_at + 1] : NULL;
}

static int change_key(struct rv_verify *v, const struct rv_checkpoint *c)
{
        int r = rv_checkpoint_verify(c, &c->next_key);

        if (r != 0)
                return tell_signature(v, r, "the next key that it names");
        if (v->in->n_keys > 1 && (!next_given(v) || !is_same_key(next_given(v), &c->next_key)))
                return rv__verify_fault(v, RV_VERIFY_KEY, &v->here, "the checkpoint hands over to a key that is not the next of those given");
        v->given_at++;
        v->out->n_rotations++;
        return rv_trace(put_in_force(v, &c->next_key));
}

/* Where a key was lost, the next one given takes over without a word of it. */
static int check_key_in_force(struct rv_verify *v, const struct rv_checkpoint *c)
{
        int r = rv_checkpoint_verify(c, key_in_force(v));

        if (r != RV_CHECKPOINT_E_UNSIGNED || !next_given(v) || rv_checkpoint_verify(c, next_given(v)) != 0)
                return tell_signature(v, r, "the key in force");
        r = put_in_force(v, next_given(v));
        v->given_at++;
        v->out->n_replaced++;
        return rv_trace(r);
}

static int check_key(struct rv_verify *v, const struct rv_checkpoint *c)
{
        const struct rv_checkpoint_key *key = key_in_force(v);
        int r;

        r = key ? check_key_in_force(v, c) : begin_key(v, c);
        key = key_in_force(v);
        if (r != 0 || !key || !c->has_next_key || is_same_key(&c->next_key, key))
                return rv_trace(r);
        return rv_trace(change_key(v, c));
}

/* ---- Checkpoints ---- */

/* What the record says. NULL, or what is wrong with it. */
static const char *read_checkpoint(const char *line, size_t n, struct rv_checkpoint *ret)
{
        _cleanup_(rv_json_unrefp) json_t *record = rv_log_parse(line, n);
        const json_t *size = json_object_get(record, "size"), *note = json_object_get(record, "note"),
                     *said_root = json_object_get(record, "root");
        char root[RV_SHA256_HEX_SIZE];

        if (!json_is_integer(size) || json_integer_value(size) < 0 || !json_is_string(note) ||
                json_string_length(said_root) != RV_SHA256_HEX_SIZE - 1)
                return "the checkpoint lacks its size, root or note";
        if (rv_checkpoint_read(json_string_value(note), json_string_length(note), ret) < 0)
                return "the checkpoint's note is none";
        if (strcmp(ret->log_id, rv_json_get_string(record, "log_id", "")) != 0)
                return "the checkpoint's note is one of another log";
        rv_hex(ret->root, sizeof(ret->root), root);
        if (ret->size != (uint64_t)json_integer_value(size) ||
                memcmp(root, json_string_value(said_root), sizeof(root)) != 0)
                return "the checkpoint's size and root are not those of its note";
        return NULL;
}

/* Has the tree of that size the checkpoint's root? */
static int has_root(struct rv_verify *v, const struct rv_checkpoint *c, bool *ret)
{
        rv_merkle_hash root;
        int r = advance(v, c->size);

        if (r != 0)
                return rv_trace(r);
        rv_merkle_root(&v->tree, root);
        *ret = memcmp(root, c->root, sizeof(root)) == 0;
        return 0;
}

static int check_root(struct rv_verify *v, const struct rv_checkpoint *c)
{
        bool is_right = false;
        int r;

        if (v->is_tree_off)
                return 0;
        r = has_root(v, c, &is_right);
        if (r != 0)
                return rv_trace(r);
        if (!is_right) {
                v->is_tree_off = true;
                return rv__verify_fault(v, RV_VERIFY_ROOT, &v->here, "the checkpoint was not made for the %" PRIu64 " records that it covers: one from record %" PRIu64 " on was changed, or the checkpoint",
                        c->size, v->vouched);
        }
        v->vouched = c->size;
        return 0;
}

int rv__verify_checkpoint(struct rv_verify *v, const char *line, size_t n, const struct rv_record_form *form)
{
        struct rv_checkpoint c;
        const char *why = read_checkpoint(line, n, &c);
        int r;

        if (why)
                return rv__verify_fault(v, RV_VERIFY_CHECKPOINT, &v->here, "%s", why);
        if (c.size > form->seq)
                return rv__verify_fault(v, RV_VERIFY_CHECKPOINT, &v->here, "the checkpoint covers %" PRIu64 " records, and %" PRIu64 " stand before it", c.size, form->seq);
        if (c.size < v->out->last.size)
                return rv__verify_fault(v, RV_VERIFY_CHECKPOINT, &v->here, "the checkpoint covers %" PRIu64 " records, fewer than the %" PRIu64 " of the one before it", c.size, v->out->last.size);
        r = check_key(v, &c);
        if (r == 0)
                r = check_root(v, &c);
        if (r != 0)
                return rv_trace(r);
        v->out->n_checkpoints++;
        v->out->last = c;
        v->out->last_seq = form->seq;
        v->out->last_time_us = form->time_us;
        return 0;
}

int rv__verify_clears(struct rv_verify *v, const char *line, size_t n)
{
        const struct rv_checkpoint_key *key = key_in_force(v);
        struct rv_checkpoint c;
        bool is_right = false;
        int r;

        if (read_checkpoint(line, n, &c) || c.size != v->here.seq || !key)
                return 0;
        /* Something was changed: what is expected would only say so once more, and of another record. */
        v->next_expect = v->n_expects;
        r = rv_checkpoint_verify(&c, key);
        if (r == 0)
                r = has_root(v, &c, &is_right);
        return r < 0 ? rv_trace(r) : r == 0 && is_right;
}

/* ---- The end ---- */

static int check_notes(struct rv_verify *v)
{
        for (size_t i = 0; i < v->n_expects; i++) {
                const struct rv_checkpoint *note = &v->expects[i].note;
                struct rv_verify_place place = { 0 };
                int r = RV_CHECKPOINT_E_UNSIGNED;

                if (!v->expects[i].is_note)
                        continue;
                for (size_t j = 0; r > 0 && j < v->n_past; j++)
                        r = rv_checkpoint_verify(note, &v->past[j]);
                for (size_t j = 0; r > 0 && j < v->in->n_keys; j++)
                        r = rv_checkpoint_verify(note, &v->in->keys[j]);
                if (r < 0)
                        return rv_error_set(v->err, r, "cannot verify a signature: %s", strerror(-r));
                if (r > 0)
                        r = rv__verify_fault(v, RV_VERIFY_KEY, &place, "the expected checkpoint of %" PRIu64 " records is not signed by any key that is known of this log", note->size);
                if (r != 0)
                        return r;
        }
        return 0;
}

static int check_end(struct rv_verify *v)
{
        struct rv_verify_place end = { v->segment, v->lines.next_offset, v->next_seq };

        if (v->next_expect < v->n_expects)
                return rv__verify_fault(v, RV_VERIFY_EXPECT, &end, "the log has %" PRIu64 " records, %" PRIu64 " were expected: its end is cut off",
                        v->next_seq, v->expects[v->n_expects - 1].size);
        return 0;
}

int rv__verify_seal_end(struct rv_verify *v)
{
        struct rv_verify_result *out = v->out;
        struct rv_verify_place beginning = { 0 }, end = { v->segment, v->lines.next_offset, v->next_seq };
        int r = 0;

        if (v->n_unknown && !v->n_past)
                r = rv__verify_fault(v, RV_VERIFY_KEY, &v->first_unknown, v->in->n_keys ? "the checkpoint is not signed by the key: it was made with a foreign one" : "the checkpoint is not signed by any key that is known");
        if (r == 0 && !v->is_tree_off)
                r = advance(v, v->next_seq);
        if (r == 0 && !v->is_tree_off)
                r = check_end(v);
        if (r == 0)
                r = check_notes(v);
        if (r == 0 && v->n_past && v->in->n_keys > 1 && next_given(v))
                r = rv__verify_fault(v, RV_VERIFY_KEY, &end, "the log ends before the last of the keys given comes into force: its end is cut off, or an earlier key went on");
        if (r == 0 && v->in->is_vouched && v->next_seq && !out->n_checkpoints)
                r = rv__verify_fault(v, RV_VERIFY_UNSEALED, &beginning, "there is no checkpoint: nothing of this log is signed");
        rv_merkle_root(&v->tree, out->root);
        out->n_unsealed = v->next_seq - out->last.size;
        out->has_key = v->n_past > 0;
        if (v->n_past)
                out->key = *key_in_force(v);
        return rv_trace(r);
}
