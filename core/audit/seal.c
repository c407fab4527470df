#include "audit/seal.h"

#include "audit/lines.h"
#include "audit/record_scan.h"
#include "audit/tree.h"
#include "base/clock.h"
#include "base/test_point.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEADLINE_MS 2000
#define LOCK_WAIT_US ((uint64_t)1000 * 1000)
#define TRIES 4                    /* other processes may seal between ours */
#define READ_MAX 100000            /* records that a run reads for a seal: more take a second */
#define SLACK_US 1000000

struct order {
        enum rv_seal_mode mode;
        rv_seal_fn done;
        void *arg;
};

struct rv_seal {
        struct rv_log *log;
        const struct rv_host *host;
        rv_sign_fn sign;
        void *sign_ctx;
        struct rv_tree tree;
        bool has_tree;
        bool is_awaiting;           /* an answer is due, */
        bool is_answer_ours;        /* and the seal under way waits for it */
        bool is_under_way, is_queued;
        struct order order, next;
        unsigned n_tries;
        bool has_restarted;
        bool has_warned;
        struct rv_host_timer *deadline, *clock;
        uint64_t n_sealed, sealed_us;
        struct rv_checkpoint checkpoint;
};

static void go(struct rv_seal *seal);
static void begin(struct rv_seal *seal);

/* ---- The end of one ---- */

static void stop_timer(struct rv_seal *seal, struct rv_host_timer **timer)
{
        if (*timer)
                seal->host->timer_stop(seal->host->ctx, *timer);
        *timer = NULL;
}

static void warn(struct rv_seal *seal, const struct rv_error *err)
{
        char text[RV_ERROR_MESSAGE_MAX + 64];

        if (seal->has_warned || seal->order.mode != RV_SEAL_NEW)
                return;
        seal->has_warned = true;
        snprintf(text, sizeof(text), "the audit log could not be sealed: %s", err->message);
        seal->host->log(seal->host->ctx, RV_LOG_WARNING, text);
}

static void finish(struct rv_seal *seal, int r, const struct rv_error *err)
{
        struct order order = seal->order;

        stop_timer(seal, &seal->deadline);
        if (r < 0)
                warn(seal, err);
        seal->is_under_way = seal->is_answer_ours = false;
        if (seal->is_queued) {
                seal->is_queued = false;
                seal->order = seal->next;
                begin(seal);
        }
        if (order.done)
                order.done(order.arg, r, err);        /* may free the seal */
}

static void fail(struct rv_seal *seal, int r, const char *text)
{
        struct rv_error err = { 0 };

        rv_error_set(&err, rv_raise(r), "%s", text);
        finish(seal, r, &err);
}

static void on_deadline(void *arg)
{
        struct rv_seal *seal = arg;

        fail(seal, -ETIMEDOUT, "the signer does not answer; the next reeve seals what is there");
}

/* ---- The record ---- */

/* Is there a checkpoint behind the records that @size covers that makes this one superfluous? 1, 0, -errno. */
static int find_later(struct rv_seal *seal, uint64_t size, bool is_equal_enough, struct rv_error *err)
{
        const struct rv_tree_place *p = &seal->tree.place;
        struct rv_lines reader;
        const char *line;
        bool is_found = false;
        size_t n;
        int r;

        r = rv_lines_begin_at(&reader, seal->log->audit_fd, seal->log->audit_path, p->segment,
                *p->segment ? p->offset + p->n + 1 : 0, err);
        while (r == 0 && !is_found && (r = rv_lines_next(&reader, &line, &n, err)) > 0) {
                _cleanup_(rv_json_unrefp) json_t *record = NULL;
                struct rv_record_head head;

                r = 0;
                rv_record_scan(line, n, &head);
                if (!rv_record_text_is(&head.kind, "checkpoint"))
                        continue;
                record = rv_log_parse(line, n);
                is_found = (uint64_t)json_integer_value(json_object_get(record, "size")) >= size + !is_equal_enough;
        }
        rv_lines_close(&reader);
        return r < 0 ? rv_trace(r) : is_found;
}

static int make_body(const struct rv_checkpoint *c, json_t **ret, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf note = { 0 };
        char root[RV_SHA256_HEX_SIZE];

        rv_hex(c->root, sizeof(c->root), root);
        if (rv_checkpoint_write(c, &note) == 0)
                *ret = json_pack("{s:I, s:s, s:s%}", "size", (json_int_t)c->size, "root", root, "note", note.data, note.size);
        return *ret ? 0 : rv_error_set(err, rv_raise(-ENOMEM), "out of memory for a checkpoint record");
}

static int append_locked(struct rv_seal *seal, json_t *body, struct rv_error *err)
{
        uint64_t size = seal->checkpoint.size;
        struct rv_log_spot spot;
        int r;

        r = rv_log_read_tail(seal->log, err);
        if (r == 0 && seal->log->next_seq > size)
                r = find_later(seal, size, seal->order.mode != RV_SEAL_NEXT_KEY, err);
        if (r == 0)
                r = rv_log_append_locked(seal->log, "checkpoint", body, &spot, err);
        return r < 0 ? rv_trace(r) : 0;
}

static int append(struct rv_seal *seal, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = NULL;
        uint64_t lock_wait_us = seal->log->lock_wait_us;
        int r;

        r = make_body(&seal->checkpoint, &body, err);
        if (r < 0)
                return rv_trace(r);
        seal->log->lock_wait_us = RV_MIN(lock_wait_us, LOCK_WAIT_US);
        r = rv_log_lock(seal->log, err);
        seal->log->lock_wait_us = lock_wait_us;
        if (r < 0)
                return rv_trace(r);
        r = append_locked(seal, body, err);
        rv_log_unlock(seal->log);
        /* What is copied elsewhere, and what a key depends on, is to be in the log for good. */
        if (r == 0 && seal->order.mode != RV_SEAL_NEW)
                r = rv_log_sync_all(seal->log, err);
        return rv_trace(r);
}

/* ---- The answer ---- */

static void take(struct rv_seal *seal, const struct rv_sign_answer *a)
{
        struct rv_checkpoint *c = &seal->checkpoint;

        *c = (struct rv_checkpoint){ .size = a->size, .has_next_key = a->has_next_key };
        memcpy(c->log_id, rv_log_id(seal->log), sizeof(c->log_id));
        memcpy(c->root, a->root, sizeof(c->root));
        if (c->has_next_key) {
                memcpy(c->next_key.log_id, c->log_id, sizeof(c->log_id));
                memcpy(c->next_key.public_key, a->next_key, sizeof(a->next_key));
        }
        c->n_signatures = RV_MIN(a->n_signatures, (uint32_t)RV_N_ELEMENTS(a->signatures));
        memcpy(c->signatures, a->signatures, sizeof(a->signatures));
}

static void on_signed(struct rv_seal *seal, const struct rv_sign_answer *a)
{
        struct rv_error err = { 0 };
        int r;

        take(seal, a);
        seal->sealed_us = rv_boot_us();
        rv_test_point("seal-append");
        r = append(seal, &err);
        rv_test_point("seal-tree");
        rv_tree_settle(&seal->tree);
        rv_tree_save(&seal->tree);
        finish(seal, r, &err);
}

/* Has the tree's base the root that the signer remembers? */
static bool is_base_signed(const struct rv_seal *seal, const struct rv_sign_answer *a)
{
        rv_merkle_hash root;

        rv_merkle_root(&seal->tree.base, root);
        return seal->tree.base.size == a->size && memcmp(root, a->root, sizeof(root)) == 0;
}

/* What was kept of the tree does not fit: the log itself tells. Once for each seal. */
static bool restart(struct rv_seal *seal)
{
        if (seal->has_restarted)
                return false;
        seal->has_restarted = true;
        rv_tree_restart(&seal->tree);
        return true;
}

static void fail_as_other_log(struct rv_seal *seal, const struct rv_sign_answer *a)
{
        struct rv_error err = { 0 };
        char root[RV_SHA256_HEX_SIZE];

        rv_hex(a->root, sizeof(a->root), root);
        rv_error_set(&err, rv_raise(-EBADMSG), "the log is not the one whose first %" PRIu64 " records were signed: it was changed, or an older copy was put in its place; `reeve audit verify --expect %" PRIu64 ":%s` tells more",
                     a->size, a->size, root);
        finish(seal, err.code, &err);
}

/* The base is to be where the signer is. */
static void align(struct rv_seal *seal, const struct rv_sign_answer *a)
{
        struct rv_error err = { 0 };
        bool is_other;
        int r;

        if (++seal->n_tries > TRIES)
                return fail(seal, -EAGAIN, "other processes always sealed first; the next reeve seals what is there");
        if (a->size == 0) {
                /* A signer that has signed nothing cannot tell whether what was kept is right. */
                rv_tree_restart(&seal->tree);
                return go(seal);
        }
        r = rv_tree_move(&seal->tree, a->size, &err);
        is_other = r == -EBADMSG || (r == 0 && !is_base_signed(seal, a));
        if (is_other && restart(seal))
                return align(seal, a);
        if (is_other)
                return fail_as_other_log(seal, a);
        if (r < 0)
                return finish(seal, r, &err);
        go(seal);
}

static void on_stale(struct rv_seal *seal, const struct rv_sign_answer *a)
{
        /* Another process has sealed all that this one knows of. */
        if (seal->order.mode == RV_SEAL_NEW && a->size >= rv_tree_size(&seal->tree))
                finish(seal, 0, NULL);
        else
                align(seal, a);
}

static void on_sign_answer(struct rv_seal *seal, const struct rv_sign_answer *a)
{
        switch ((enum rv_sign_code)a->code) {
        case RV_SIGN_OK:
                return on_signed(seal, a);
        case RV_SIGN_STALE:
                return on_stale(seal, a);
        case RV_SIGN_REFUSED:
                if (!a->size || !restart(seal))
                        return fail(seal, -EPERM, a->text);
                return align(seal, a);
        case RV_SIGN_NO_KEY:
        case RV_SIGN_THERE:
        case RV_SIGN_UNUSABLE:
                break;
        }
        fail(seal, -ENOKEY, a->text);
}

/* Nobody waits for it: what does not go well here is told when the log is to be sealed. */
static void on_query_answer(struct rv_seal *seal, const struct rv_sign_answer *a)
{
        uint64_t n = rv_log_n_durable(seal->log);

        if (!a || a->code != RV_SIGN_OK)
                return;
        if (!a->size)
                rv_tree_restart(&seal->tree);
        else if (a->size != seal->tree.base.size && a->size <= n && n - a->size < READ_MAX)
                (void)rv_tree_move(&seal->tree, a->size, NULL);
        if (n - seal->tree.base.size < READ_MAX)
                (void)rv_tree_read(&seal->tree, n, NULL);
}

static void on_answer(void *arg, const struct rv_sign_answer *a)
{
        struct rv_seal *seal = arg;
        bool is_ours = seal->is_answer_ours;

        seal->is_awaiting = seal->is_answer_ours = false;
        if (a && a->code <= RV_SIGN_STALE)
                seal->n_sealed = a->size;
        if (!is_ours)
                on_query_answer(seal, a);
        else if (a)
                on_sign_answer(seal, a);
        else
                fail(seal, -EPIPE, "the spawner, which signs, is gone; the next reeve seals what is there");
        if (!is_ours && seal->is_under_way)
                go(seal);
}

/* ---- The request ---- */

static void ask(struct rv_seal *seal)
{
        struct rv_sign_request q = { .kind = seal->order.mode == RV_SEAL_NEXT_KEY ? RV_SIGN_NEXT_KEY
                                                                                  : RV_SIGN_CHECKPOINT,
                .edge = seal->tree.base, .growth = seal->tree.growth };
        char text[256];
        int r;

        memcpy(q.log_id, rv_log_id(seal->log), sizeof(q.log_id));
        seal->is_awaiting = seal->is_answer_ours = true;
        r = seal->sign(seal->sign_ctx, &q, on_answer, seal);
        if (r == 0)
                return;
        seal->is_awaiting = seal->is_answer_ours = false;
        snprintf(text, sizeof(text), "the spawner, which signs, cannot be asked: %s; the next reeve seals what is there", strerror(-r));
        fail(seal, r, text);
}

static void open_tree(struct rv_seal *seal)
{
        if (!seal->has_tree)
                rv_tree_open(seal->log, &seal->tree);
        seal->has_tree = true;
}

static int read_tree(struct rv_seal *seal, struct rv_error *err)
{
        uint64_t n = rv_log_n_durable(seal->log);

        if (seal->order.mode == RV_SEAL_NEW && n > rv_tree_size(&seal->tree) &&
                n - rv_tree_size(&seal->tree) > READ_MAX)
                return rv_error_set(err, rv_raise(-EFBIG), "more than %u records are not sealed, or audit/tree was lost, which takes longer than a run may wait; `reeve audit checkpoint` does it once",
                                    READ_MAX);
        return rv_trace(rv_tree_read(&seal->tree, n, err));
}

static int read_log(struct rv_seal *seal, struct rv_error *err)
{
        struct rv_error other = { 0 };
        int r;

        open_tree(seal);
        r = read_tree(seal, err);
        if (r != -EBADMSG || seal->tree.base.size == 0 || !restart(seal))
                return rv_trace(r);
        return read_tree(seal, &other) == 0 ? 0 : r;
}

static void go(struct rv_seal *seal)
{
        struct rv_error err = { 0 };
        int r;

        r = read_log(seal, &err);
        if (r < 0)
                return finish(seal, r, &err);
        if (seal->order.mode == RV_SEAL_NEW && !seal->tree.n_others)
                return finish(seal, 0, NULL);
        /* A checkpoint of nothing but checkpoints says nothing: the last one is given again. */
        if (seal->order.mode == RV_SEAL_ALWAYS && !seal->tree.n_others && seal->tree.base.size)
                (void)rv_tree_move(&seal->tree, seal->tree.base.size, NULL);
        if (rv_tree_size(&seal->tree) == 0)
                return fail(seal, -ENODATA, "the log has no record that is durable");
        ask(seal);
}

static void begin(struct rv_seal *seal)
{
        seal->is_under_way = true;
        seal->n_tries = 0;
        seal->has_restarted = false;
        if (seal->host->timer_start(seal->host->ctx, DEADLINE_MS, on_deadline, seal, &seal->deadline) < 0)
                seal->deadline = NULL;
        if (!seal->is_awaiting)
                go(seal);
}

void rv_seal_start(struct rv_seal *seal, enum rv_seal_mode mode, rv_seal_fn done, void *arg)
{
        struct order order = { mode, done, arg };

        if (!seal->is_under_way) {
                seal->order = order;
                begin(seal);
        } else {
                rv_check(!seal->is_queued || !seal->next.done);
                seal->is_queued = true;
                seal->next = order;
        }
}

/* ---- When ---- */

void rv_seal_look(struct rv_seal *seal)
{
        uint64_t n = rv_log_n_durable(seal->log);

        if (seal->is_under_way || n <= seal->n_sealed)
                return;
        if (n - seal->n_sealed >= RV_SEAL_RECORDS || rv_boot_us() + SLACK_US - seal->sealed_us >= RV_SEAL_US)
                rv_seal_start(seal, RV_SEAL_NEW, NULL, NULL);
}

static void on_clock(void *arg)
{
        struct rv_seal *seal = arg;

        stop_timer(seal, &seal->clock);
        (void)seal->host->timer_start(seal->host->ctx, RV_SEAL_US / 1000, on_clock, seal, &seal->clock);
        rv_seal_look(seal);
}

void rv_seal_prepare(struct rv_seal *seal)
{
        struct rv_sign_request q = { .kind = RV_SIGN_QUERY };

        if (!seal->clock)
                (void)seal->host->timer_start(seal->host->ctx, RV_SEAL_US / 1000, on_clock, seal, &seal->clock);
        if (seal->is_awaiting || seal->is_under_way)
                return;
        open_tree(seal);
        memcpy(q.log_id, rv_log_id(seal->log), sizeof(q.log_id));
        seal->is_awaiting = true;
        if (seal->sign(seal->sign_ctx, &q, on_answer, seal) < 0)
                seal->is_awaiting = false;
}

int rv_seal_new(struct rv_log *log, const struct rv_host *host, rv_sign_fn sign, void *sign_ctx, struct rv_seal **ret)
{
        struct rv_seal *seal = calloc(1, sizeof(*seal));

        if (!seal)
                return rv_raise(-ENOMEM);
        seal->log = log;
        seal->host = host;
        seal->sign = sign;
        seal->sign_ctx = sign_ctx;
        seal->sealed_us = rv_boot_us();
        *ret = seal;
        return 0;
}

void rv_seal_free(struct rv_seal *seal)
{
        if (!seal)
                return;
        stop_timer(seal, &seal->deadline);
        stop_timer(seal, &seal->clock);
        free(seal);
}

const struct rv_checkpoint *rv_seal_checkpoint(const struct rv_seal *seal)
{
        return &seal->checkpoint;
}
