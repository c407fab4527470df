/*
 * Sealing, with a signer that lives in the test: what is covered, what is written, what other processes did meanwhile,
 * and what happens when the signer refuses, is behind, or is not there.
 */
#include "test_audit_common.h"

#include "audit/seal.h"
#include "audit/tree.h"

#include <errno.h>

static const uint8_t secret[RV_CHECKPOINT_KEY_BYTES] = { 1, 2, 3 };

/* The signer: its memory, and what it does wrong. */
static struct {
        uint64_t size;
        rv_merkle_hash root;
        unsigned n_asked, n_queries;
        enum { WELL, GONE, SILENT, DUMB, UNUSABLE } mood;
        rv_sign_cb late_cb;
        void *late_arg;
} signer;

static unsigned n_warned, n_done;
static int done_r;
static char done_text[RV_ERROR_MESSAGE_MAX];
static void (*timer_cb[4])(void *arg);
static void *timer_arg[4];
static uint64_t timer_ms[4];

static void give_answer(const struct rv_sign_request *q, struct rv_sign_answer *a)
{
        struct rv_checkpoint c = { 0 };
        struct rv_merkle tree = q->edge;
        rv_merkle_hash root;

        *a = (struct rv_sign_answer){ .code = RV_SIGN_OK, .size = signer.size };
        memcpy(a->root, signer.root, sizeof(a->root));
        if (signer.mood == UNUSABLE) {
                a->code = RV_SIGN_UNUSABLE;
                strcpy(a->text, "the key is broken");
                return;
        }
        if (q->kind == RV_SIGN_QUERY)
                return;
        if (q->edge.size != signer.size) {
                a->code = RV_SIGN_STALE;
                return;
        }
        rv_merkle_root(&q->edge, root);
        if ((signer.size && memcmp(root, signer.root, sizeof(root)) != 0) || rv_merkle_grow(&tree, &q->growth) < 0) {
                a->code = RV_SIGN_REFUSED;
                strcpy(a->text, "it does not continue what was signed");
                return;
        }
        rv_merkle_root(&tree, signer.root);
        signer.size = c.size = a->size = tree.size;
        memcpy(c.root, signer.root, sizeof(c.root));
        memcpy(a->root, signer.root, sizeof(c.root));
        memcpy(c.log_id, q->log_id, sizeof(c.log_id));
        assert_int_equal(rv_checkpoint_sign(&c, secret), 0);
        a->n_signatures = 1;
        a->signatures[0] = c.signatures[0];
}

static int sign(void *ctx, const struct rv_sign_request *q, rv_sign_cb cb, void *arg)
{
        struct rv_sign_answer a;

        (void)ctx;
        signer.n_asked += q->kind != RV_SIGN_QUERY;
        signer.n_queries += q->kind == RV_SIGN_QUERY;
        if (signer.mood == GONE)
                return -EPIPE;
        if (signer.mood == SILENT) {
                signer.late_cb = cb;
                signer.late_arg = arg;
                return 0;
        }
        give_answer(q, &a);
        cb(arg, signer.mood == DUMB ? NULL : &a);
        return 0;
}

static int timer_start(void *ctx, uint64_t ms, void (*cb)(void *arg), void *arg, struct rv_host_timer **ret)
{
        (void)ctx;
        for (size_t i = 0; i < RV_N_ELEMENTS(timer_cb); i++) {
                if (timer_cb[i])
                        continue;
                timer_cb[i] = cb;
                timer_arg[i] = arg;
                timer_ms[i] = ms;
                *ret = (void *)&timer_cb[i];
                return 0;
        }
        return -ENOMEM;
}

static void timer_stop(void *ctx, struct rv_host_timer *timer)
{
        (void)ctx;
        *(void **)timer = NULL;
}

/* The timer of that time fires. */
static void fire(uint64_t ms)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(timer_cb); i++)
                if (timer_cb[i] && timer_ms[i] == ms) {
                        timer_cb[i](timer_arg[i]);
                        return;
                }
        fail_msg("no timer of %llu ms", (unsigned long long)ms);
}

static void log_line(void *ctx, enum rv_log_level level, const char *text)
{
        (void)ctx;
        assert_int_equal(level, RV_LOG_WARNING);
        assert_non_null(strstr(text, "could not be sealed"));
        n_warned++;
}

static const struct rv_host host = { .timer_start = timer_start, .timer_stop = timer_stop, .log = log_line };

static void on_done(void *arg, int r, const struct rv_error *err)
{
        (void)arg;
        n_done++;
        done_r = r;
        snprintf(done_text, sizeof(done_text), "%s", r < 0 ? err->message : "");
}

static struct rv_seal *begin(struct rv_log *log)
{
        struct rv_seal *seal = NULL;

        memset(&signer, 0, sizeof(signer));
        memset(timer_cb, 0, sizeof(timer_cb));
        n_warned = n_done = 0;
        assert_int_equal(rv_seal_new(log, &host, sign, NULL, &seal), 0);
        return seal;
}

static void end(struct rv_seal *seal, struct rv_log *log)
{
        rv_seal_free(seal);
        for (size_t i = 0; i < RV_N_ELEMENTS(timer_cb); i++)
                assert_null(timer_cb[i]);
        rv_log_close(log);
}

static void start(struct rv_seal *seal, enum rv_seal_mode mode, int wanted)
{
        unsigned n = n_done;

        rv_seal_start(seal, mode, on_done, NULL);
        assert_int_equal(n_done, n + 1);
        if (done_r != wanted)
                fail_msg("%d instead of %d: %s", done_r, wanted, done_text);
}

static void add(struct rv_log *log, unsigned n, bool is_synced)
{
        for (unsigned i = 0; i < n; i++)
                append_text(log, "rejected", 10 + i);
        if (is_synced)
                assert_int_equal(rv_log_sync(log, NULL), 0);
}

/* The checkpoint records: each verifies and fits the log before it, and sizes never go down. Returns how many. */
static unsigned check_checkpoints(void **state, struct rv_log *log, uint64_t last_size)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        _cleanup_(rv_json_unrefp) json_t *records = read_log(state);
        struct rv_checkpoint_key key = { 0 };
        struct rv_merkle trees[200] = { { 0 } };
        const char *line;
        unsigned n = 0;
        uint64_t size = 0;

        memcpy(key.log_id, rv_log_id(log), sizeof(key.log_id));
        assert_int_equal(rv_checkpoint_public(secret, key.public_key), 0);
        read_segment(state, &b);
        line = b.data;
        for (size_t i = 0; i < json_array_size(records); i++) {
                const json_t *record = json_array_get(records, i);
                const char *end = strchr(line, '\n'), *note = rv_json_get_string(record, "note", "");
                struct rv_checkpoint c;
                rv_merkle_hash leaf, root;
                char hex[RV_SHA256_HEX_SIZE];

                trees[i + 1] = trees[i];
                rv_merkle_leaf(line, (size_t)(end - line), leaf);
                rv_merkle_push(&trees[i + 1], leaf);
                line = end + 1;
                if (strcmp(rv_json_get_string(record, "kind", ""), "checkpoint") != 0)
                        continue;
                n++;
                assert_int_equal(rv_checkpoint_read(note, strlen(note), &c), 0);
                assert_int_equal(rv_checkpoint_verify(&c, &key), 0);
                assert_int_equal(json_integer_value(json_object_get(record, "size")), c.size);
                assert_true(c.size <= i && c.size >= size);
                size = c.size;
                rv_merkle_root(&trees[c.size], root);
                assert_memory_equal(root, c.root, sizeof(root));
                rv_hex(root, sizeof(root), hex);
                assert_string_equal(rv_json_get_string(record, "root", ""), hex);
        }
        assert_int_equal(size, last_size);
        return n;
}

static void what_is_durable_is_sealed(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);

        add(log, 5, true);
        add(log, 2, false);
        rv_seal_prepare(seal);
        assert_int_equal(signer.n_queries, 1);
        start(seal, RV_SEAL_NEW, 0);
        assert_int_equal(rv_seal_checkpoint(seal)->size, 5);
        assert_int_equal(check_checkpoints(state, log, 5), 1);
        /* Nothing is new that is durable. */
        start(seal, RV_SEAL_NEW, 0);
        assert_int_equal(signer.n_asked, 1);
        add(log, 1, true);
        start(seal, RV_SEAL_NEW, 0);
        assert_int_equal(check_checkpoints(state, log, 9), 2);
        assert_int_equal(n_warned, 0);
        end(seal, log);
}

static void checkpoints_alone_are_not_sealed(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);

        add(log, 5, true);
        start(seal, RV_SEAL_NEW, 0);
        assert_int_equal(rv_log_sync_all(log, NULL), 0);
        start(seal, RV_SEAL_NEW, 0);
        assert_int_equal(signer.n_asked, 1);
        /* Asked for it all the same: the last one, and no further record. */
        start(seal, RV_SEAL_ALWAYS, 0);
        assert_int_equal(rv_seal_checkpoint(seal)->size, 5);
        assert_int_equal(check_checkpoints(state, log, 5), 1);
        end(seal, log);
}

/* Behind an empty log, and one of which nothing is durable. */
static void nothing_to_seal(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);

        start(seal, RV_SEAL_NEW, 0);
        start(seal, RV_SEAL_ALWAYS, -ENODATA);
        add(log, 3, false);
        start(seal, RV_SEAL_NEW, 0);
        assert_int_equal(signer.n_asked, 0);
        end(seal, log);
}

static void another_start_goes_on(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);

        for (unsigned i = 0; i < 12; i++) {
                uint64_t size = signer.size;
                rv_merkle_hash root;

                memcpy(root, signer.root, sizeof(root));
                end(seal, log);
                log = open_log(state);
                seal = begin(log);
                signer.size = size;
                memcpy(signer.root, root, sizeof(root));
                if (i == 5)
                        assert_int_equal(unlink(in_state(state, "audit/tree")), 0);
                add(log, 1 + i, true);
                if (i % 2)
                        rv_seal_prepare(seal);
                start(seal, RV_SEAL_NEW, 0);
                /* From where it was kept; without that the signer is asked twice. */
                assert_int_equal(signer.n_asked, i == 5 && !(i % 2) ? 2 : 1);
        }
        assert_int_equal(check_checkpoints(state, log, 12 + 66 + 11), 12);
        end(seal, log);
}

/* Two processes: each seals what it knows of, and none covers less than one before it in the log. */
static void two_at_once(void **state)
{
        struct rv_log *log = open_log(state), *other_log = open_log(state);
        struct rv_seal *seal = begin(log), *other = NULL;

        assert_int_equal(rv_seal_new(other_log, &host, sign, NULL, &other), 0);
        for (unsigned i = 0; i < 8; i++) {
                add(log, 2, true);
                add(other_log, 1, true);
                start(other, RV_SEAL_NEW, 0);
                /* All of it is covered. */
                start(seal, RV_SEAL_NEW, 0);
                add(log, 2, true);
                start(seal, RV_SEAL_NEW, 0);
        }
        assert_int_equal(check_checkpoints(state, log, signer.size), 16);
        rv_seal_free(other);
        rv_log_close(other_log);
        end(seal, log);
}

/* Between the signature and the record another process appended one of more. */
static void a_later_one_came_first(void **state)
{
        struct rv_log *log = open_log(state), *other_log = open_log(state);
        struct rv_seal *seal = begin(log), *other = NULL;
        struct rv_sign_answer a;
        struct rv_sign_request q = { .kind = RV_SIGN_CHECKPOINT };
        rv_sign_cb cb;
        void *arg;
        struct rv_tree tree;

        assert_int_equal(rv_seal_new(other_log, &host, sign, NULL, &other), 0);
        add(log, 3, true);
        signer.mood = SILENT;
        rv_seal_start(seal, RV_SEAL_NEW, on_done, NULL);
        cb = signer.late_cb;
        arg = signer.late_arg;
        /* The signature for 3 records, which takes its time. */
        rv_tree_open(log, &tree);
        assert_int_equal(rv_tree_read(&tree, 3, NULL), 0);
        q.growth = tree.growth;
        memcpy(q.log_id, rv_log_id(log), sizeof(q.log_id));
        give_answer(&q, &a);
        signer.mood = WELL;
        add(other_log, 2, true);
        start(other, RV_SEAL_NEW, 0);
        assert_int_equal(check_checkpoints(state, log, 5), 1);
        cb(arg, &a);
        assert_int_equal(n_done, 2);
        assert_int_equal(done_r, 0);
        assert_int_equal(check_checkpoints(state, log, 5), 1);
        rv_seal_free(other);
        rv_log_close(other_log);
        end(seal, log);
}

/* The signer remembers more, less, nothing, or something else. */
static void a_signer_that_is_elsewhere(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);

        add(log, 20, true);
        start(seal, RV_SEAL_NEW, 0);
        add(log, 3, true);
        signer.size = 0;
        start(seal, RV_SEAL_NEW, 0);
        assert_int_equal(signer.size, 24);
        add(log, 3, true);
        {
                struct rv_tree tree;

                rv_tree_open(log, &tree);
                assert_int_equal(rv_tree_move(&tree, 11, NULL), 0);
                signer.size = 11;
                rv_merkle_root(&tree.base, signer.root);
        }
        start(seal, RV_SEAL_NEW, 0);
        assert_int_equal(signer.size, 28);
        assert_int_equal(check_checkpoints(state, log, 28), 3);
        add(log, 1, true);
        signer.root[3] ^= 1;
        start(seal, RV_SEAL_NEW, -EBADMSG);
        assert_int_equal(n_warned, 1);
        assert_int_equal(check_checkpoints(state, log, 28), 3);
        end(seal, log);
}

/* What is kept of the tree is wrong in a way that only the signer can tell. */
static void a_wrong_edge_is_made_anew(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        uint64_t size;
        rv_merkle_hash root;

        add(log, 20, true);
        start(seal, RV_SEAL_NEW, 0);
        size = signer.size;
        memcpy(root, signer.root, sizeof(root));
        assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, "audit/tree"), 8192, &text), 0);
        text.data[text.size - 2] = text.data[text.size - 2] == 'a' ? 'b' : 'a';
        assert_int_equal(rv_write_file(in_state(state, "audit/tree"), text.data, text.size, 0600, false), 0);
        end(seal, log);
        log = open_log(state);
        seal = begin(log);
        signer.size = size;
        memcpy(signer.root, root, sizeof(root));
        add(log, 2, true);
        start(seal, RV_SEAL_NEW, 0);
        assert_int_equal(signer.n_asked, 2);
        assert_int_equal(check_checkpoints(state, log, 23), 2);
        end(seal, log);
}

/* An older copy of the log is put back: that is told at once, not when it has grown to where it was. */
static void an_older_copy_is_told(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);
        uint64_t size;
        rv_merkle_hash root;

        add(log, 20, true);
        start(seal, RV_SEAL_NEW, 0);
        size = signer.size;
        memcpy(root, signer.root, sizeof(root));
        end(seal, log);
        assert_int_equal(unlink(in_state(state, SEGMENT)), 0);
        log = open_log(state);
        seal = begin(log);
        signer.size = size;
        memcpy(signer.root, root, sizeof(root));
        add(log, 3, true);
        rv_seal_prepare(seal);
        start(seal, RV_SEAL_NEW, -EBADMSG);
        assert_non_null(strstr(done_text, "--expect 20:"));
        assert_int_equal(n_warned, 1);
        assert_int_equal(check_checkpoints(state, log, 0), 0);
        end(seal, log);
}

/* The whole of a file, with one piece of text in another's place. */
static void lie(void **state, const char *name, const char *old, const char *new)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 }, lied = { 0 };
        char *at;

        assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, name), 8192, &text), 0);
        at = strstr(text.data, old);
        assert_non_null(at);
        rv_buf_append(&lied, text.data, (size_t)(at - text.data));
        rv_buf_puts(&lied, new);
        rv_buf_puts(&lied, at + strlen(old));
        assert_int_equal(rv_write_file(in_state(state, name), lied.data, lied.size, 0600, false), 0);
}

/* What is kept of the tree leads to a size that the log does not have, whatever the signer remembers. */
static void a_wrong_size_is_made_anew(void **state)
{
        for (unsigned i = 0; i < 3; i++) {
                struct rv_log *log = open_log(state);
                struct rv_seal *seal = begin(log);

                add(log, 16, true);
                start(seal, RV_SEAL_NEW, 0);
                rv_seal_free(seal);
                lie(state, "audit/tree", "reeve tree 1\n16 ", i & 1 ? "reeve tree 1\n32 " : "reeve tree 1\n8 ");
                assert_int_equal(rv_seal_new(log, &host, sign, NULL, &seal), 0);
                add(log, 2, true);
                if (i)
                        rv_seal_prepare(seal);
                start(seal, RV_SEAL_NEW, 0);
                assert_int_equal(check_checkpoints(state, log, 19), 2);
                end(seal, log);
                assert_int_equal(unlink(in_state(state, SEGMENT)), 0);
                assert_int_equal(unlink(in_state(state, "audit/tree")), 0);
        }
}

/* A signer that remembers nothing cannot find fault with it, and is not shown it. */
static void a_new_signer_is_shown_the_log(void **state)
{
        for (unsigned i = 0; i < 2; i++) {
                struct rv_log *log = open_log(state);
                struct rv_seal *seal = begin(log);
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

                add(log, 20, true);
                start(seal, RV_SEAL_NEW, 0);
                end(seal, log);
                assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, "audit/tree"), 8192, &text), 0);
                text.data[text.size - 2] = text.data[text.size - 2] == 'a' ? 'b' : 'a';
                assert_int_equal(rv_write_file(in_state(state, "audit/tree"), text.data, text.size, 0600, false), 0);
                log = open_log(state);
                seal = begin(log);
                add(log, 2, true);
                if (i)
                        rv_seal_prepare(seal);
                start(seal, RV_SEAL_NEW, 0);
                assert_int_equal(check_checkpoints(state, log, 23), 2);
                end(seal, log);
                assert_int_equal(unlink(in_state(state, SEGMENT)), 0);
                assert_int_equal(unlink(in_state(state, "audit/tree")), 0);
        }
}

static void no_signer(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);

        add(log, 5, true);
        signer.mood = GONE;
        rv_seal_prepare(seal);
        start(seal, RV_SEAL_NEW, -EPIPE);
        assert_int_equal(n_warned, 1);
        signer.mood = DUMB;
        start(seal, RV_SEAL_NEW, -EPIPE);
        signer.mood = UNUSABLE;
        start(seal, RV_SEAL_NEW, -ENOKEY);
        assert_non_null(strstr(done_text, "the key is broken"));
        assert_int_equal(n_warned, 1);
        /* One of them has signed, and it did not come here: the next seal covers more. */
        signer.mood = WELL;
        start(seal, RV_SEAL_NEW, 0);
        add(log, 1, true);
        start(seal, RV_SEAL_NEW, 0);
        assert_int_equal(check_checkpoints(state, log, 6), 1);
        end(seal, log);
}

static void a_signer_that_is_late(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);
        struct rv_sign_answer a = { .code = RV_SIGN_UNUSABLE };

        add(log, 5, true);
        signer.mood = SILENT;
        rv_seal_start(seal, RV_SEAL_NEW, on_done, NULL);
        assert_int_equal(n_done, 0);
        fire(2000);
        assert_int_equal(done_r, -ETIMEDOUT);
        assert_int_equal(n_warned, 1);
        /* The next one waits for that answer, which is not its own. */
        signer.mood = WELL;
        rv_seal_start(seal, RV_SEAL_NEW, on_done, NULL);
        assert_int_equal(n_done, 1);
        signer.late_cb(signer.late_arg, &a);
        assert_int_equal(n_done, 2);
        assert_int_equal(done_r, 0);
        assert_int_equal(check_checkpoints(state, log, 5), 1);
        end(seal, log);
}

static void one_after_the_other(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);
        struct rv_sign_answer a = { .code = RV_SIGN_STALE };

        add(log, 5, true);
        signer.mood = SILENT;
        rv_seal_start(seal, RV_SEAL_NEW, on_done, NULL);
        rv_seal_start(seal, RV_SEAL_NEW, on_done, NULL);
        assert_int_equal(n_done, 0);
        signer.mood = WELL;
        signer.late_cb(signer.late_arg, &a);
        assert_int_equal(n_done, 2);
        assert_int_equal(check_checkpoints(state, log, 5), 1);
        end(seal, log);
}

static void every_thousand_records(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);

        add(log, 20, true);
        rv_seal_prepare(seal);
        rv_seal_look(seal);
        assert_int_equal(signer.n_asked, 0);
        add(log, 981, true);
        rv_seal_look(seal);
        assert_int_equal(signer.size, 1001);
        rv_seal_look(seal);
        assert_int_equal(signer.n_asked, 1);
        /* The clock asks too. */
        add(log, 1, true);
        fire(60000);
        assert_int_equal(signer.n_asked, 1);
        end(seal, log);
}

static void a_log_that_cannot_be_written(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_seal *seal = begin(log);

        add(log, 5, true);
        assert_int_equal(unlink(in_state(state, SEGMENT)), 0);
        start(seal, RV_SEAL_NEW, -EBADMSG);
        assert_int_equal(n_warned, 1);
        end(seal, log);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(what_is_durable_is_sealed),
                TMP(checkpoints_alone_are_not_sealed),
                TMP(nothing_to_seal),
                TMP(another_start_goes_on),
                TMP(two_at_once),
                TMP(a_later_one_came_first),
                TMP(a_signer_that_is_elsewhere),
                TMP(a_wrong_edge_is_made_anew),
                TMP(an_older_copy_is_told),
                TMP(a_wrong_size_is_made_anew),
                TMP(a_new_signer_is_shown_the_log),
                TMP(no_signer),
                TMP(a_signer_that_is_late),
                TMP(one_after_the_other),
                TMP(every_thousand_records),
                TMP(a_log_that_cannot_be_written),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
