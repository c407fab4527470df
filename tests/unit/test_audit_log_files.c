/* The lines of a log that is only read: whole, in order, each once, however the log is cut into ranges. */
#include "audit/log_files.h"

#include "test_audit_common.h"

static void put(void **state, const char *name, const char *text)
{
        char path[512];

        (void)mkdir(tmp_path(state, "audit"), 0700);
        snprintf(path, sizeof(path), "audit/%s", name);
        assert_int_equal(rv_write_file(tmp_path(state, path), text, strlen(text), 0600, false), 0);
}

static int open_dir(void **state)
{
        int fd = open(tmp_path(state, "audit"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_true(fd >= 0);
        return fd;
}

/* The lines that begin in a range, joined by '|'. */
static int read_range(
        const struct rv_log_files *files, uint64_t from, uint64_t to, struct rv_buf *out, uint64_t *ret_tail)
{
        struct rv_log_lines lines;
        struct rv_error err = { 0 };
        const char *line;
        size_t n;
        int r;

        r = rv_log_lines_open(files, from, to, &lines, &err);
        while (r == 0 && (r = rv_log_lines_next(&lines, &line, &n, &err)) > 0) {
                rv_buf_printf(out, "%.*s|", (int)n, line);
                r = 0;
        }
        if (ret_tail)
                *ret_tail = lines.tail_bytes;
        if (r < 0)
                assert_true(err.message[0] != 0);
        rv_log_lines_close(&lines);
        return r;
}

#define A "00000000000000000000.jsonl"
#define B "00000000000000000003.jsonl"
#define C "00000000000000000003.jsonl.old"

static void every_cut(void **state)
{
        struct rv_log_files files;
        uint64_t tail;
        int fd;

        put(state, A, "one\ntwo\n\n");
        put(state, B, "three\nfour\nfi");
        put(state, C, "not\n");
        put(state, "id", "x\n");
        fd = open_dir(state);
        assert_int_equal(rv_log_files_open(fd, "audit", &files, NULL), 0);
        assert_int_equal(files.n_files, 2);
        assert_int_equal(files.size, 9 + 13);
        assert_int_equal(rv_log_files_at_seq(&files, 2), 0);
        assert_int_equal(rv_log_files_at_seq(&files, 3), 9);
        assert_int_equal(rv_log_files_past_seq(&files, 2), 9);
        assert_int_equal(rv_log_files_past_seq(&files, 3), 22);
        for (uint64_t a = 0; a <= files.size; a++) {
                for (uint64_t b = a; b <= files.size; b++) {
                        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };

                        assert_int_equal(read_range(&files, 0, a, &out, NULL), 0);
                        assert_int_equal(read_range(&files, a, b, &out, NULL), 0);
                        assert_int_equal(read_range(&files, b, files.size, &out, &tail), 0);
                        if (strcmp(out.data, "one|two||three|four|") != 0)
                                fail_msg("cut at %llu and %llu: %s", (unsigned long long)a, (unsigned long long)b, out.data);
                }
        }
        rv_log_files_close(&files);
        close(fd);
}

static void tail_and_faults(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        struct rv_log_files files;
        struct rv_error err = { 0 };
        uint64_t tail = 0;
        int fd;

        put(state, "id", "x\n");
        fd = open_dir(state);
        assert_int_equal(rv_log_files_open(fd, "audit", &files, &err), -ENOENT);
        assert_non_null(strstr(err.message, "audit"));
        put(state, A, "one\ntw");
        assert_int_equal(rv_log_files_open(fd, "audit", &files, NULL), 0);
        assert_int_equal(read_range(&files, 0, files.size, &out, &tail), 0);
        assert_int_equal(tail, 2);
        /* What is appended later is not seen; what is gone is said. */
        put(state, A, "one\ntwo\nthree\n");
        out.size = 0;
        assert_int_equal(read_range(&files, 0, files.size, &out, &tail), 0);
        assert_string_equal(out.data, "one|");
        put(state, A, "on");
        assert_int_equal(read_range(&files, 0, files.size, &out, &tail), -EBADMSG);
        rv_log_files_close(&files);
        put(state, B, "four\n");
        assert_int_equal(rv_log_files_open(fd, "audit", &files, NULL), 0);
        assert_int_equal(read_range(&files, 0, files.size, &out, &tail), -EBADMSG);
        rv_log_files_close(&files);
        close(fd);
}

static void line_without_end(void **state)
{
        size_t n = (size_t)5 << 20;
        _cleanup_(rv_freep) char *text = malloc(n + 1);
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        struct rv_log_files files;
        int fd;

        memset(text, 'x', n);
        text[n] = 0;
        put(state, A, text);
        fd = open_dir(state);
        assert_int_equal(rv_log_files_open(fd, "audit", &files, NULL), 0);
        assert_int_equal(read_range(&files, 0, files.size, &out, NULL), -EBADMSG);
        rv_log_files_close(&files);
        close(fd);
}

static void segment_that_is_none(void **state)
{
        struct rv_log_files files;
        struct rv_error err = { 0 };
        char path[512];
        int fd;

        put(state, A, "one\n");
        snprintf(path, sizeof(path), "%s", tmp_path(state, "audit/" B));
        assert_int_equal(symlink("/etc/passwd", path), 0);
        fd = open_dir(state);
        assert_int_equal(rv_log_files_open(fd, "audit", &files, &err), -EINVAL);
        assert_non_null(strstr(err.message, B));
        close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = { TMP(every_cut), TMP(tail_and_faults), TMP(line_without_end),
                TMP(segment_that_is_none) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
