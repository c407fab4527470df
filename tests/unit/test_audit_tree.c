/*
 * The tree over a log: it agrees with one built leaf by leaf, goes on from what was kept, does not believe what does
 * not fit, goes over segments, and says what is missing.
 */
#include "test_audit_common.h"

#include "audit/tree.h"

#include <errno.h>

#define SECOND "audit/00000000000000000007.jsonl"

static struct rv_log *log_of(void **state, unsigned n)
{
        struct rv_log *log = open_log(state);

        for (unsigned i = 0; i < n; i++)
                append_text(log, i % 5 == 4 ? "checkpoint" : "rejected", 10 + i * 37 % 500);
        return log;
}

/* The root over the first @n lines of the file, leaf by leaf. */
static void root_of(void **state, uint64_t n, rv_merkle_hash ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        struct rv_merkle tree = { 0 };
        const char *line;

        read_segment(state, &b);
        line = b.data;
        for (uint64_t i = 0; i < n; i++) {
                const char *end = strchr(line, '\n');
                rv_merkle_hash leaf;

                assert_non_null(end);
                rv_merkle_leaf(line, (size_t)(end - line), leaf);
                rv_merkle_push(&tree, leaf);
                line = end + 1;
        }
        rv_merkle_root(&tree, ret);
}

/* Base and growth together have the root of the log's first @n records. */
static void expect_tree(void **state, const struct rv_tree *tree, uint64_t base, uint64_t n)
{
        struct rv_merkle grown = tree->base;
        rv_merkle_hash root, wanted;

        assert_int_equal(tree->base.size, base);
        assert_int_equal(rv_tree_size(tree), n);
        assert_int_equal(rv_merkle_grow(&grown, &tree->growth), 0);
        rv_merkle_root(&grown, root);
        root_of(state, n, wanted);
        assert_memory_equal(root, wanted, sizeof(root));
}

static void expect_read(struct rv_tree *tree, uint64_t n)
{
        struct rv_error err = { 0 };

        if (rv_tree_read(tree, n, &err) != 0)
                fail_msg("%s", err.message);
}

static void it_grows_with_the_log(void **state)
{
        struct rv_log *log = log_of(state, 40);
        struct rv_tree tree;

        rv_tree_open(log, &tree);
        expect_tree(state, &tree, 0, 0);
        for (uint64_t n = 0; n <= 40; n += 3) {
                expect_read(&tree, n);
                expect_tree(state, &tree, tree.base.size, n);
                if (n % 2)
                        rv_tree_settle(&tree);
        }
        expect_read(&tree, 7);
        assert_int_equal(rv_tree_size(&tree), 39);
        rv_log_close(log);
}

static void checkpoints_are_told_apart(void **state)
{
        struct rv_log *log = log_of(state, 10);
        struct rv_tree tree;

        rv_tree_open(log, &tree);
        expect_read(&tree, 9);
        assert_int_equal(tree.n_others, 8);
        rv_tree_settle(&tree);
        expect_read(&tree, 10);
        assert_int_equal(tree.n_others, 0);
        rv_log_close(log);
}

static void it_is_kept(void **state)
{
        struct rv_log *log = log_of(state, 23);
        struct rv_tree tree, again;

        rv_tree_open(log, &tree);
        rv_tree_save(&tree);
        assert_int_equal(access(in_state(state, "audit/tree"), F_OK), -1);
        expect_read(&tree, 21);
        rv_tree_settle(&tree);
        expect_read(&tree, 23);
        rv_tree_save(&tree);
        rv_tree_open(log, &again);
        expect_tree(state, &again, 21, 21);
        assert_string_equal(again.place.sha256, tree.base_place.sha256);
        expect_read(&again, 23);
        expect_tree(state, &again, 21, 23);
        rv_log_close(log);
}

/* Each byte of the file changed, and each beginning of it: what is then read is the log's, or the log is read anew. */
static void a_file_that_does_not_fit_is_not_believed(void **state)
{
        struct rv_log *log = log_of(state, 23);
        _cleanup_(rv_buf_fini) struct rv_buf good = { 0 };
        unsigned n_kept = 0;
        struct rv_tree tree;

        rv_tree_open(log, &tree);
        expect_read(&tree, 21);
        rv_tree_settle(&tree);
        rv_tree_save(&tree);
        assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, "audit/tree"), 8192, &good), 0);
        for (size_t i = 0; i < good.size; i++) {
                /* The hashes of the edge are not checked here: the signer knows the root. */
                if (i >= good.size - 3 * 65 && good.data[i] != '\n')
                        continue;
                good.data[i] ^= 1;
                assert_int_equal(rv_write_file(in_state(state, "audit/tree"), good.data, good.size, 0600, false), 0);
                good.data[i] ^= 1;
                rv_tree_open(log, &tree);
                n_kept += tree.base.size != 0;
        }
        assert_int_equal(n_kept, 0);
        for (size_t n = 0; n < good.size; n++) {
                assert_int_equal(rv_write_file(in_state(state, "audit/tree"), good.data, n, 0600, false), 0);
                rv_tree_open(log, &tree);
                assert_int_equal(tree.base.size, 0);
        }
        expect_read(&tree, 23);
        expect_tree(state, &tree, 0, 23);
        rv_log_close(log);
}

static void the_base_moves(void **state)
{
        struct rv_log *log = log_of(state, 40);
        static const uint64_t to[] = { 12, 12, 30, 7, 0, 40, 39 };
        struct rv_tree tree;

        rv_tree_open(log, &tree);
        expect_read(&tree, 20);
        for (size_t i = 0; i < RV_N_ELEMENTS(to); i++) {
                assert_int_equal(rv_tree_move(&tree, to[i], NULL), 0);
                expect_tree(state, &tree, to[i], to[i]);
                expect_read(&tree, 40);
                expect_tree(state, &tree, to[i], 40);
        }
        assert_int_equal(rv_tree_move(&tree, 41, NULL), -EBADMSG);
        expect_tree(state, &tree, 39, 40);
        rv_log_close(log);
}

static void a_log_that_is_shorter(void **state)
{
        struct rv_log *log = log_of(state, 10);
        struct rv_error err = { 0 };
        struct rv_tree tree;

        rv_tree_open(log, &tree);
        expect_read(&tree, 6);
        assert_int_equal(rv_tree_read(&tree, 11, &err), -EBADMSG);
        assert_non_null(strstr(err.message, "ends after 10 records"));
        expect_tree(state, &tree, 0, 6);
        rv_log_close(log);
}

/* The last record is not the one that this log object wrote. */
static void a_log_that_was_changed(void **state)
{
        struct rv_log *log = log_of(state, 10);
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        struct rv_error err = { 0 };
        struct rv_tree tree;

        read_segment(state, &b);
        b.data[b.size - 100] ^= 1;
        assert_int_equal(rv_write_file(in_state(state, SEGMENT), b.data, b.size, 0600, false), 0);
        rv_tree_open(log, &tree);
        assert_int_equal(rv_tree_read(&tree, 10, &err), -EBADMSG);
        assert_non_null(strstr(err.message, "not the one that was written"));
        rv_log_close(log);
}

/* What a crash left of a line, and what another writer then puts in its place. */
static void an_incomplete_line_does_not_count(void **state)
{
        struct rv_log *log = log_of(state, 10);
        struct rv_tree tree;

        write_raw(state, SEGMENT, "{\"half", 6);
        rv_tree_open(log, &tree);
        assert_int_equal(rv_tree_read(&tree, 11, NULL), -EBADMSG);
        expect_read(&tree, 10);
        append_text(log, "rejected", 5);       /* and a gap record before it */
        expect_read(&tree, 12);
        expect_tree(state, &tree, 0, 12);
        rv_log_close(log);
}

/* ---- Segments ---- */

/* The log's 20 records as two files, the second beginning with record 7. */
static struct rv_log *in_two(void **state, size_t *ret_first)
{
        struct rv_log *log = log_of(state, 20);
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        const char *line;

        read_segment(state, &b);
        line = b.data;
        for (int i = 0; i < 7; i++)
                line = strchr(line, '\n') + 1;
        *ret_first = (size_t)(line - b.data);
        assert_int_equal(rv_write_file(in_state(state, SECOND), line, b.size - *ret_first, 0600, false), 0);
        assert_int_equal(truncate(in_state(state, SEGMENT), (off_t)*ret_first), 0);
        rv_log_close(log);
        return open_log(state);
}

static void over_segments(void **state)
{
        struct rv_error err = { 0 };
        size_t first;
        struct rv_log *log = in_two(state, &first);
        struct rv_tree tree, other;

        for (uint64_t n = 5; n <= 9; n++) {
                rv_tree_open(log, &tree);
                expect_read(&tree, n);
                rv_tree_settle(&tree);
                rv_tree_save(&tree);
                rv_tree_open(log, &tree);
                assert_int_equal(tree.base.size, n);
                expect_read(&tree, 20);
        }
        /* Without the old segment it goes on from what was kept, and only from that. */
        assert_int_equal(rename(in_state(state, SEGMENT), in_state(state, "kept")), 0);
        rv_tree_open(log, &tree);
        assert_int_equal(tree.base.size, 9);
        expect_read(&tree, 20);
        assert_int_equal(rv_tree_move(&tree, 8, &err), -ESTALE);
        assert_non_null(strstr(err.message, "put the older segments back"));
        rv_tree_restart(&tree);
        assert_int_equal(rv_tree_read(&tree, 20, NULL), -ESTALE);
        assert_int_equal(rename(in_state(state, "kept"), in_state(state, SEGMENT)), 0);
        rv_tree_open(log, &other);
        expect_read(&other, 20);
        expect_read(&tree, 20);
        assert_string_equal(tree.place.sha256, other.place.sha256);
        rv_log_close(log);
}

static void a_segment_that_is_missing(void **state)
{
        struct rv_error err = { 0 };
        size_t first;
        struct rv_log *log = in_two(state, &first);
        struct rv_tree tree;

        assert_int_equal(rename(in_state(state, SECOND), in_state(state, "audit/00000000000000000008.jsonl")), 0);
        rv_tree_open(log, &tree);
        assert_int_equal(rv_tree_read(&tree, 20, &err), -EBADMSG);
        assert_non_null(strstr(err.message, "a segment is missing"));
        rv_log_close(log);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(it_grows_with_the_log),
                TMP(checkpoints_are_told_apart),
                TMP(it_is_kept),
                TMP(a_file_that_does_not_fit_is_not_believed),
                TMP(the_base_moves),
                TMP(a_log_that_is_shorter),
                TMP(a_log_that_was_changed),
                TMP(an_incomplete_line_does_not_count),
                TMP(over_segments),
                TMP(a_segment_that_is_missing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
