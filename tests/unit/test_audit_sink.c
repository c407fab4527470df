/* The second place of the log: what arrives there, and what happens when it does not. */
#include "test_audit_common.h"

#include "audit/log_private.h"
#include "audit/sink_private.h"
#include "base/clock.h"

#include <signal.h>

#define FAR_US (rv_boot_us() + 30000000)

/* A sink "file:DIR/out", or "command:DIR/ship". */
static struct rv_config_sink config_of(void **state, const char *scheme, const char *name)
{
        static char to[8][1024];
        static unsigned next;
        struct rv_config_sink c = { .has_records = true, .behind = "wait", .lag_max_bytes = 1 << 24, .timeout_ms = 20000 };

        next = (next + 1) % 8;
        snprintf(to[next], sizeof(to[0]), "%s:%s", scheme, tmp_path(state, name));
        c.to = to[next];
        return c;
}

static struct rv_sink *open_sink(const struct rv_config_sink *c)
{
        struct rv_sink *sink = NULL;

        assert_int_equal(rv_sink_open(c, &sink, NULL), 0);
        return sink;
}

/* One attempt with a sink of its own. */
static int attempt(
        const struct rv_config_sink *c, struct rv_log *log, struct rv_sink_progress *progress, struct rv_error *err)
{
        struct rv_sink_progress own = { 0 };
        struct rv_sink *sink = open_sink(c);
        int r = rv_sink_send(sink, log, FAR_US, progress ? progress : &own, err);

        rv_sink_close(sink);
        return r;
}

static void deliver(const struct rv_config_sink *c, struct rv_log *log)
{
        struct rv_error err = { 0 };

        if (attempt(c, log, NULL, &err) != 0)
                fail_msg("%s", err.message);
}

static void write_script(void **state, const char *name, const char *body)
{
        char text[4096];
        int n = snprintf(text, sizeof(text), "#!/bin/sh\ncd '%s' || exit 9\n%s\n", (const char *)*state, body);

        assert_int_equal(rv_write_file(tmp_path(state, name), text, (size_t)n, 0755, false), 0);
}

static void read_out(void **state, struct rv_buf *out)
{
        out->size = 0;
        assert_int_equal(rv_read_file_at(AT_FDCWD, tmp_path(state, "out"), (size_t)64 << 20, out), 0);
}

/* The file has the log's bytes and no others. */
static void assert_same(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        _cleanup_(rv_buf_fini) struct rv_buf log = { 0 };

        read_out(state, &out);
        read_segment(state, &log);
        assert_int_equal(out.size, log.size);
        assert_memory_equal(out.data, log.data, log.size);
}

/*
 * Whole records in the order of the log, doubles allowed, none left out from 0 to @n - 1. Returns how many. A line
 * that was cut off when its writer was killed is no record.
 */
static size_t check_order(void **state, uint64_t n)
{
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        uint64_t wanted = 0;
        size_t n_lines = 0;

        read_out(state, &out);
        for (char *line = out.data, *end; line < out.data + out.size; line = end + 1, n_lines++) {
                _cleanup_(rv_json_unrefp) json_t *record = NULL;
                uint64_t seq;

                end = memchr(line, '\n', (size_t)(out.data + out.size - line));
                assert_non_null(end);
                record = json_loadb(line, (size_t)(end - line), 0, NULL);
                if (!record) {
                        n_lines--;
                        continue;
                }
                seq = (uint64_t)json_integer_value(json_object_get(record, "seq"));
                assert_true(seq <= wanted);
                wanted = RV_MAX(wanted, seq + 1);
        }
        assert_int_equal(wanted, n);
        return n_lines;
}

static uint64_t lag_of(struct rv_log *log)
{
        uint64_t lag = UINT64_MAX;

        assert_int_equal(rv_sink_lag(log, &lag, NULL), 0);
        return lag;
}

static void file_gets_every_line_once(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "file", "out");
        struct rv_sink_progress progress = { 0 };
        struct stat st;

        assert_int_equal(lag_of(log), 0);
        deliver(&c, log);       /* of nothing */
        for (int i = 0; i < 10; i++)
                append_text(log, "rejected", 100);
        assert_true(lag_of(log) > 1000);
        assert_int_equal(attempt(&c, log, &progress, NULL), 0);
        assert_int_equal(progress.n_records, 10);
        assert_int_equal(lag_of(log), 0);
        assert_same(state);
        append_text(log, "rejected", 100);
        deliver(&c, log);
        deliver(&c, log);
        assert_same(state);
        assert_int_equal(stat(tmp_path(state, "out"), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
}

static void checkpoints_alone(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "file", "out");
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        struct rv_sink_progress progress = { 0 };

        c.has_records = false;
        append_text(log, "rejected", 100);
        deliver(&c, log);
        assert_int_equal(lag_of(log), 0);
        append_text(log, "checkpoint", 100);
        append_text(log, "rejected", 100);
        append_text(log, "checkpoint", 100);
        append_text(log, "outcome", 100);
        assert_int_equal(attempt(&c, log, &progress, NULL), 0);
        assert_int_equal(progress.n_records, 2);
        assert_int_equal(lag_of(log), 0);
        read_out(state, &out);
        assert_non_null(strstr(out.data, "\"seq\":1,"));
        assert_non_null(strstr(out.data, "\"seq\":3,"));
        assert_null(strstr(out.data, "\"rejected\""));
}

static void mark_that_does_not_fit_begins_again(void **state)
{
        static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "file", "out");
        char other[512], good[512] = "", forged[512];
        struct rv_buf mark = { 0 };

        for (int i = 0; i < 3; i++)
                append_text(log, "rejected", 50);
        deliver(&c, log);
        assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, "audit/sent"), 500, &mark), 0);
        memcpy(good, mark.data, mark.size);
        rv_buf_fini(&mark);
        snprintf(other, sizeof(other), "00000000000000000000.jsonl 0 10 0 %s\n", zeros);
        /* The right place, another line: a log that was made anew has the same names and sizes. */
        snprintf(forged, sizeof(forged), "%.*s %s\n", (int)(strrchr(good, ' ') - good), good, zeros);
        for (size_t i = 0; i < 10; i++) {
                const char *const marks[] = { "", "x", "00000000000000000000.jsonl", other, "00000000000000000007.jsonl 0 10 0 a\n",
                                              "../../../../../../etc/passwd 0 10 0 a\n", NULL, "00000000000000000000.jsonl 99999999999999999999999 9 9 a\n", forged, good };
                uint64_t whole;

                assert_int_equal(unlink(tmp_path(state, "out")), 0);
                if (marks[i])
                        assert_int_equal(rv_write_file(in_state(state, "audit/sent"), marks[i], strlen(marks[i]), 0600, false), 0);
                else
                        assert_int_equal(unlink(in_state(state, "audit/sent")), 0);
                whole = lag_of(log);
                if (marks[i] == good) {
                        assert_int_equal(whole, 0);
                        break;
                }
                assert_true(whole > 0);
                deliver(&c, log);
                assert_same(state);
        }
}

static void segments(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "file", "out");
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        char *last;

        for (int i = 0; i < 4; i++)
                append_text(log, "rejected", 50);
        rv_log_close(rv_take(&log));
        read_segment(state, &b);
        last = memrchr(b.data, '\n', b.size - 1);
        assert_int_equal(rv_write_file(in_state(state, "audit/00000000000000000003.jsonl"), last + 1, b.size - (size_t)(last + 1 - b.data), 0600, false), 0);
        assert_int_equal(truncate(in_state(state, SEGMENT), last + 1 - b.data), 0);
        log = open_log(state);
        assert_int_equal(lag_of(log), b.size);
        deliver(&c, log);
        assert_int_equal(check_order(state, 4), 4);
        append_text(log, "rejected", 50);
        assert_true(lag_of(log) > 0 && lag_of(log) < 600);
        deliver(&c, log);
        assert_int_equal(check_order(state, 5), 5);
}

static void batches(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "command", "ship");
        _cleanup_(rv_buf_fini) struct rv_buf sizes = { 0 };
        unsigned n_batches = 0;

        write_script(state, "ship", "cat >part && wc -c <part >>sizes && cat part >>out");
        for (int i = 0; i < 3000; i++)
                append_text(log, "rejected", 1000);
        append_text(log, "rejected", 1900000);
        append_text(log, "rejected", 10);
        deliver(&c, log);
        assert_int_equal(check_order(state, 3002), 3002);
        assert_same(state);
        assert_int_equal(rv_read_file_at(AT_FDCWD, tmp_path(state, "sizes"), 4096, &sizes), 0);
        for (char *p = sizes.data; *p; n_batches++) {
                unsigned long n = strtoul(p, &p, 10);

                assert_true(n <= RV_SINK_BATCH_BYTES || (n > 1900000 && n < 1901000));
                p += strspn(p, "\n");
        }
        assert_true(n_batches >= 5 && n_batches <= 8);
}

/* Half of the deliveries fail, before or after the batch was taken: everything is there in the end. */
static void nothing_is_lost(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "command", "ship");
        unsigned n_failed = 0;
        size_t n_lines;

        write_script(state, "ship",
                     "n=$(cat n 2>/dev/null || echo 0); n=$((n + 1)); echo $n >n\n"
                     "case $((n % 4)) in 1) exit 3;; 2) cat >>out; kill -9 $$;; esac\ncat >>out");
        for (int i = 0; i < 1000; i++) {
                append_text(log, "rejected", 200);
                if (i % 10 == 9)
                        n_failed += attempt(&c, log, NULL, NULL) != 0;
        }
        while (attempt(&c, log, NULL, NULL) != 0)
                n_failed++;
        n_lines = check_order(state, 1000);
        assert_true(n_failed >= 45);
        assert_true(n_lines > 1000);
        print_message("%u of some 100 deliveries failed, %zu lines for 1000 records\n", n_failed, n_lines);
}

static void assert_fails(void **state, const char *script, int wanted, const char *message)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "command", "ship");
        char last[RV_ERROR_MESSAGE_MAX];
        struct rv_error err = { 0 };
        uint64_t before = rv_boot_us();

        c.timeout_ms = 500;
        if (script)
                write_script(state, "ship", script);
        append_text(log, "rejected", 200000);
        assert_int_equal(attempt(&c, log, NULL, &err), wanted);
        if (!strstr(err.message, message))
                fail_msg("%s", err.message);
        assert_true(rv_boot_us() - before < 3000000);
        assert_true(lag_of(log) > 200000);
        assert_int_equal(rv_sink_last_error(log, last, sizeof(last)), 0);
        assert_string_equal(last, err.message);
}

static void commands_that_fail(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = NULL;
        struct rv_config_sink c = config_of(state, "command", "ship");
        char last[RV_ERROR_MESSAGE_MAX];

        assert_fails(state, NULL, -ENOENT, "No such file");
        assert_fails(state, "cat >/dev/null; echo 'no such host' >&2; exit 3", -EREMOTEIO, "ended with status 3: no such host");
        assert_fails(state, "kill -9 $$", -EREMOTEIO, "ended by signal 9");
        assert_fails(state, "head -c 100 >/dev/null", -EREMOTEIO, "without having read");
        assert_fails(state, "exit 0", -EREMOTEIO, "without having read");
        assert_fails(state, "cat >/dev/null; sleep 60", -ETIMEDOUT, "took too long");
        assert_fails(state, "sleep 60 & sleep 60", -ETIMEDOUT, "took too long");
        assert_fails(state, "yes >&2", -ETIMEDOUT, "took too long");
        log = open_log(state);
        write_script(state, "ship", "exec >/dev/null; cat; sleep 60 &");
        c.timeout_ms = 2000;
        deliver(&c, log);
        assert_int_equal(rv_sink_last_error(log, last, sizeof(last)), 0);
        assert_string_equal(last, "");
}

static void command_gets_nothing_else(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "command", "ship one  two");
        _cleanup_(rv_buf_fini) struct rv_buf got = { 0 };
        int fds[2];

        setenv("SECRET", "x", 1);
        assert_int_equal(pipe(fds), 0);         /* open across exec, as a careless caller leaves it */
        write_script(state, "ship", "cat >/dev/null; { echo \"$*\"; env; ls /proc/$$/fd; trap; } >got");
        append_text(log, "rejected", 10);
        deliver(&c, log);
        close(fds[0]);
        close(fds[1]);
        assert_int_equal(rv_read_file_at(AT_FDCWD, tmp_path(state, "got"), 65536, &got), 0);
        assert_true(strncmp(got.data, "one two\n", 8) == 0);
        assert_null(strstr(got.data, "SECRET"));
        assert_non_null(strstr(got.data, "PATH=/usr/local/sbin"));
        assert_null(strstr(got.data, "\n5\n"));
}

static void files_that_fail(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "file", "pipe");
        struct rv_error err = { 0 };

        append_text(log, "rejected", 10);
        assert_int_equal(mkfifo(tmp_path(state, "pipe"), 0600), 0);
        assert_int_equal(attempt(&c, log, NULL, &err), -ENXIO);
        assert_non_null(strstr(err.message, "nobody reads"));
        assert_int_equal(symlink("/nowhere/x", tmp_path(state, "link")), 0);
        c = config_of(state, "file", "link");
        assert_int_equal(attempt(&c, log, NULL, NULL), -ELOOP);
        c = config_of(state, "file", "no/such/place");
        assert_int_equal(attempt(&c, log, NULL, NULL), -ENOENT);
        c.to = "file:/dev/full";
        assert_int_equal(attempt(&c, log, NULL, NULL), -ENOSPC);
        assert_true(lag_of(log) > 0);
}

/* A pipe that stands still is given up, and what it got of a line is no record. */
static void pipe_that_stands_still(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "file", "pipe");
        _cleanup_(rv_closep) int reader = -EBADF;

        assert_int_equal(mkfifo(tmp_path(state, "pipe"), 0600), 0);
        reader = open(tmp_path(state, "pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        append_text(log, "rejected", 10);
        deliver(&c, log);
        append_text(log, "rejected", 500000);
        c.timeout_ms = 300;
        assert_int_equal(attempt(&c, log, NULL, NULL), -ETIMEDOUT);
        assert_true(lag_of(log) > 500000);
}

static void line_after_a_cut_one_begins_anew(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "file", "out");
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };

        assert_int_equal(rv_write_file(tmp_path(state, "out"), "{\"cut", 5, 0600, false), 0);
        append_text(log, "rejected", 10);
        deliver(&c, log);
        append_text(log, "rejected", 10);
        deliver(&c, log);
        read_out(state, &out);
        assert_memory_equal(out.data, "{\"cut\n{\"", 8);
        assert_null(strstr(out.data, "\n\n"));
}

/* The command has the batch and kills whoever sends, before the mark is moved: it comes again. */
static void crash_before_the_mark(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "command", "ship");
        struct rv_config_sink good = config_of(state, "command", "good");
        int status;
        pid_t pid;

        write_script(state, "ship", "cat >>out; kill -9 $PPID");
        write_script(state, "good", "cat >>out");
        for (int i = 0; i < 5; i++)
                append_text(log, "rejected", 10);
        pid = fork();
        if (pid == 0) {
                struct rv_log *own = open_log(state);

                _exit(attempt(&c, own, NULL, NULL) == 0);
        }
        assert_true(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        assert_true(lag_of(log) > 0);
        deliver(&good, log);
        assert_int_equal(check_order(state, 5), 10);
}

static int append_and_send(void **state, unsigned i)
{
        struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "file", "out");
        int r = 0;

        for (int k = 0; k < 50 && r >= 0; k++) {
                append_text(log, "rejected", 20 + i);
                r = attempt(&c, log, NULL, NULL);
        }
        rv_log_close(log);
        return r < 0;
}

static void many_at_once(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = NULL;
        struct rv_config_sink c = config_of(state, "file", "out");

        in_processes(4, state, append_and_send);
        log = open_log(state);
        deliver(&c, log);
        assert_int_equal(check_order(state, 200), 200);
        assert_same(state);
}

static void who_finds_the_lock_taken_leaves(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "command", "ship");
        struct rv_config_sink file = config_of(state, "file", "out");
        int status;
        pid_t pid;

        write_script(state, "ship", "cat >>out; touch has; sleep 0.5");
        append_text(log, "rejected", 10);
        pid = fork();
        if (pid == 0) {
                struct rv_log *own = open_log(state);

                _exit(attempt(&c, own, NULL, NULL) != 0);
        }
        while (access(tmp_path(state, "has"), F_OK) < 0)
                usleep(1000);
        append_text(log, "rejected", 10);
        assert_int_equal(attempt(&file, log, NULL, NULL), RV_SINK_E_BUSY);
        assert_true(waitpid(pid, &status, 0) == pid && status == 0);
        /* The holder looked once more, and found what came meanwhile. */
        assert_int_equal(lag_of(log), 0);
        assert_int_equal(check_order(state, 2), 2);
}

static void time_ends_between_batches(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "command", "ship");
        struct rv_sink_progress progress = { 0 };
        struct rv_sink *sink = open_sink(&c);
        uint64_t before = rv_boot_us();

        write_script(state, "ship", "sleep 0.3; echo >>out; cat >>out");
        for (int i = 0; i < 5000; i++)
                append_text(log, "rejected", 1000);
        assert_int_equal(rv_sink_send(sink, log, rv_boot_us() + 800000, &progress, NULL), -ETIMEDOUT);
        rv_sink_close(sink);
        assert_true(rv_boot_us() - before < 3500000);
        assert_true(progress.n_records >= 500 && progress.n_records < 4000);
        write_script(state, "ship", "echo >>out; cat >>out");
        deliver(&c, log);
        assert_true(check_order(state, 5000) >= 5000);
}

/* A sink that hangs is left alone for a while; one that fails at once is not, nor one that has delivered something. */
static void rest_after_a_hang(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_config_sink c = config_of(state, "command", "ship");
        char last[RV_ERROR_MESSAGE_MAX];

        append_text(log, "outcome", 10);
        assert_int_equal(rv_sink_rest_us(log), 0);
        write_script(state, "ship", "cat >/dev/null; exit 1");
        assert_true(attempt(&c, log, NULL, NULL) < 0);
        assert_int_equal(rv_sink_rest_us(log), 0);
        write_script(state, "ship", "sleep 30");
        c.timeout_ms = 1100;
        for (uint64_t rest_us = 1100000; rest_us < 5000000; rest_us *= 2) {
                uint64_t left_us;

                assert_int_equal(attempt(&c, log, NULL, NULL), -ETIMEDOUT);
                left_us = rv_sink_rest_us(log);
                assert_true(left_us > rest_us - 600000 && left_us < rest_us + 5000000);
        }
        assert_int_equal(rv_sink_last_error(log, last, sizeof(last)), 0);
        assert_true(strstr(last, "took too long") && !strchr(last, '\n'));
        write_script(state, "ship", "cat >out");
        deliver(&c, log);
        assert_int_equal(rv_sink_rest_us(log), 0);
        assert_int_equal(rv_write_file(in_state(state, "audit/sending"), "x\n99999999999999999 1000000\n", 28, 0600, false), 0);
        assert_int_equal(rv_sink_rest_us(log), 0);
}

static void name_has_no_secret(void **state)
{
        static const char *const rows[][2] = {
                { "https://user:secret@collector.example/reeve?key=secret", "https://collector.example/reeve" },
                { "https://collector.example#x", "https://collector.example" },
                { "command:/bin/ship --token secret", "command:/bin/ship" },
                { "file:/no/such/place/a b.jsonl", "file:/no/such/place/a b.jsonl" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_config_sink c = { .to = rows[i][0], .behind = "wait" };
                struct rv_sink *sink = open_sink(&c);

                assert_string_equal(rv_sink_name(sink), rows[i][1]);
                rv_sink_close(sink);
        }
}

static void header_file(void **state)
{
        char path[1024];
        struct rv_config_sink c = { .to = "https://127.0.0.1:1/", .behind = "wait", .has_records = true, .timeout_ms = 1000, .header_file = path };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_error err = { 0 };

        snprintf(path, sizeof(path), "%s", tmp_path(state, "headers"));
        append_text(log, "rejected", 10);
        assert_int_equal(rv_write_file(path, "A: b\n", 5, 0644, false), 0);
        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(attempt(&c, log, NULL, &err), -EPERM);
        assert_non_null(strstr(err.message, "mode 0600"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(file_gets_every_line_once),
                TMP(checkpoints_alone),
                TMP(mark_that_does_not_fit_begins_again),
                TMP(segments),
                TMP(batches),
                TMP(nothing_is_lost),
                TMP(commands_that_fail),
                TMP(command_gets_nothing_else),
                TMP(files_that_fail),
                TMP(pipe_that_stands_still),
                TMP(line_after_a_cut_one_begins_anew),
                TMP(crash_before_the_mark),
                TMP(many_at_once),
                TMP(who_finds_the_lock_taken_leaves),
                TMP(time_ends_between_batches),
                TMP(rest_after_a_hang),
                TMP(name_has_no_secret),
                TMP(header_file),
        };

        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
