/* The lines of a log: whole, in order, each once, wherever reading begins and however the log is cut into ranges. */
#include "audit/lines.h"
#include "audit/log_private.h"

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
        const struct rv_segments *segments, uint64_t from, uint64_t to, struct rv_buf *out, uint64_t *ret_tail)
{
        struct rv_lines lines;
        struct rv_error err = { 0 };
        const char *line;
        size_t n;
        int r;

        r = rv_lines_begin_range(&lines, segments, from, to, &err);
        while (r == 0 && (r = rv_lines_next(&lines, &line, &n, &err)) > 0) {
                rv_buf_printf(out, "%.*s|", (int)n, line);
                r = 0;
        }
        if (ret_tail)
                *ret_tail = lines.rest;
        if (r < 0)
                assert_true(err.message[0] != 0);
        rv_lines_close(&lines);
        return r;
}

#define A "00000000000000000000.jsonl"
#define B "00000000000000000003.jsonl"
#define C "00000000000000000003.jsonl.old"
#define D "00000000000000000004.jsonl"

static void every_cut(void **state)
{
        struct rv_segments segments;
        uint64_t tail;
        int fd;

        put(state, A, "one\ntwo\n\n");
        put(state, B, "three\nfour\nfi");
        put(state, C, "not\n");
        put(state, "id", "x\n");
        fd = open_dir(state);
        assert_int_equal(rv_segments_open(fd, "audit", &segments, NULL), 0);
        assert_int_equal(segments.n, 2);
        assert_int_equal(segments.size, 9 + 13);
        assert_int_equal(rv_segments_at_seq(&segments, 2), 0);
        assert_int_equal(rv_segments_at_seq(&segments, 3), 9);
        assert_int_equal(rv_segments_past_seq(&segments, 2), 9);
        assert_int_equal(rv_segments_past_seq(&segments, 3), 22);
        for (uint64_t a = 0; a <= segments.size; a++) {
                for (uint64_t b = a; b <= segments.size; b++) {
                        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };

                        assert_int_equal(read_range(&segments, 0, a, &out, NULL), 0);
                        assert_int_equal(read_range(&segments, a, b, &out, NULL), 0);
                        assert_int_equal(read_range(&segments, b, segments.size, &out, &tail), 0);
                        if (strcmp(out.data, "one|two||three|four|") != 0)
                                fail_msg("cut at %llu and %llu: %s", (unsigned long long)a, (unsigned long long)b, out.data);
                }
        }
        rv_segments_fini(&segments);
        close(fd);
}

static void tail_and_faults(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        struct rv_segments segments;
        struct rv_error err = { 0 };
        uint64_t tail = 0;
        int fd;

        put(state, "id", "x\n");
        fd = open_dir(state);
        assert_int_equal(rv_segments_open(fd, "audit", &segments, &err), -ENOENT);
        assert_non_null(strstr(err.message, "audit"));
        put(state, A, "one\ntw");
        assert_int_equal(rv_segments_open(fd, "audit", &segments, NULL), 0);
        assert_int_equal(read_range(&segments, 0, segments.size, &out, &tail), 0);
        assert_int_equal(tail, 2);
        /* What is appended later is not seen; what is gone is said. */
        put(state, A, "one\ntwo\nthree\n");
        out.size = 0;
        assert_int_equal(read_range(&segments, 0, segments.size, &out, &tail), 0);
        assert_string_equal(out.data, "one|");
        put(state, A, "on");
        assert_int_equal(read_range(&segments, 0, segments.size, &out, &tail), -EBADMSG);
        rv_segments_fini(&segments);
        put(state, B, "four\n");
        assert_int_equal(rv_segments_open(fd, "audit", &segments, NULL), 0);
        assert_int_equal(read_range(&segments, 0, segments.size, &out, &tail), -EBADMSG);
        rv_segments_fini(&segments);
        close(fd);
}

static void line_without_end(void **state)
{
        size_t n = (size_t)5 << 20;
        _cleanup_(rv_freep) char *text = malloc(n + 1);
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        struct rv_segments segments;
        int fd;

        memset(text, 'x', n);
        text[n] = 0;
        put(state, A, text);
        fd = open_dir(state);
        assert_int_equal(rv_segments_open(fd, "audit", &segments, NULL), 0);
        assert_int_equal(read_range(&segments, 0, segments.size, &out, NULL), -EBADMSG);
        rv_segments_fini(&segments);
        close(fd);
}

static void segment_that_is_none(void **state)
{
        struct rv_segments segments;
        struct rv_error err = { 0 };
        char path[512];
        int fd;

        put(state, A, "one\n");
        snprintf(path, sizeof(path), "%s", tmp_path(state, "audit/" B));
        assert_int_equal(symlink("/etc/passwd", path), 0);
        fd = open_dir(state);
        assert_int_equal(rv_segments_open(fd, "audit", &segments, &err), -EINVAL);
        assert_non_null(strstr(err.message, B));
        close(fd);
}

static void reader_lines(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        static const char text[] = "one\n\nthree\nincomplete";
        static const struct {
                uint64_t offset;
                const char *lines[4];
        } rows[] = {
                { 0, { "one", "", "three", NULL } },
                { 1, { "", "three", NULL } },
                { 3, { "", "three", NULL } },
                { 4, { "", "three", NULL } },
                { 5, { "three", NULL } },
                { 10, { NULL } },
                { 11, { NULL } },
                { 99, { NULL } },
        };

        assert_int_equal(rv_write_file(in_state(state, SEGMENT), text, sizeof(text) - 1, 0600, false), 0);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_lines reader;
                const char *line;
                size_t n, k = 0;

                assert_int_equal(rv_lines_begin_at(&reader, log->audit_fd, "audit", &SEGMENT[sizeof("audit/") - 1], rows[i].offset, NULL), 0);
                while (rv_lines_next(&reader, &line, &n, NULL) == 1) {
                        const char *want = rows[i].lines[k];

                        if (!want || strlen(want) != n || memcmp(line, want, n) != 0)
                                fail_msg("from %llu: line %zu is %.*s", (unsigned long long)rows[i].offset, k, (int)n, line);
                        k++;
                }
                assert_null(rows[i].lines[k]);
                rv_lines_close(&reader);
        }
}

/* Lines of all sizes around that of the buffer, each told where it stands. */
static void reader_sizes(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        static const size_t sizes[] = { 1, 262143, 262144, 262145, 0, RV_LOG_RECORD_BYTES_MAX - 1, 5, 524288, 3 };
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        struct rv_lines reader;
        uint64_t offset = 0;
        const char *line;
        size_t n;

        for (size_t i = 0; i < RV_N_ELEMENTS(sizes); i++) {
                for (size_t k = 0; k < sizes[i]; k++)
                        rv_buf_putc(&b, (char)('a' + i));
                rv_buf_putc(&b, '\n');
        }
        assert_int_equal(rv_write_file(in_state(state, SEGMENT), b.data, b.size, 0600, false), 0);
        rv_lines_begin(&reader, log->audit_fd, "audit");
        for (size_t i = 0; i < RV_N_ELEMENTS(sizes); i++) {
                assert_int_equal(rv_lines_next(&reader, &line, &n, NULL), 1);
                assert_int_equal(n, sizes[i]);
                assert_int_equal(reader.offset, offset);
                assert_true(n == 0 || (line[0] == (char)('a' + i) && line[n - 1] == (char)('a' + i)));
                offset += n + 1;
        }
        assert_int_equal(rv_lines_next(&reader, &line, &n, NULL), 0);
        /* What is appended later is there for the next call. */
        write_raw(state, SEGMENT, "more\n", 5);
        assert_int_equal(rv_lines_next(&reader, &line, &n, NULL), 1);
        assert_int_equal(n, 4);
        rv_lines_close(&reader);
}

static void expect_next(struct rv_lines *lines, const char *want)
{
        const char *line;
        size_t n;

        assert_int_equal(rv_lines_next(lines, &line, &n, NULL), want != NULL);
        if (want && (n != strlen(want) || memcmp(line, want, n) != 0))
                fail_msg("%.*s, not %s", (int)n, line, want);
}

/* An incomplete line that a writer cuts off and another that stands there later; a segment that is taken away. */
static void changes_meanwhile(void **state)
{
        struct rv_lines lines;
        int fd;

        put(state, A, "one\ntw");
        fd = open_dir(state);
        rv_lines_begin(&lines, fd, "audit");
        expect_next(&lines, "one");
        expect_next(&lines, NULL);
        assert_int_equal(lines.rest, 2);
        fd = openat(fd, A, O_WRONLY | O_TRUNC | O_CLOEXEC);
        assert_int_equal(rv_write_all(fd, "one\nTWO\n", 8), 0);
        close(fd);
        expect_next(&lines, "TWO");
        expect_next(&lines, NULL);
        put(state, B, "three\n");
        expect_next(&lines, "three");
        put(state, D, "four\n");
        assert_int_equal(unlink(tmp_path(state, "audit/" B)), 0);
        expect_next(&lines, "four");
        expect_next(&lines, NULL);
        close(lines.dir_fd);
        rv_lines_close(&lines);
}

int main(void)
{
        const struct CMUnitTest tests[] = { TMP(every_cut), TMP(tail_and_faults), TMP(line_without_end),
                TMP(segment_that_is_none), TMP(reader_lines), TMP(reader_sizes), TMP(changes_meanwhile) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
