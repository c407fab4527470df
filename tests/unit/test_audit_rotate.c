/*
 * Segments that follow each other: by one writer, by many, by some that die, on a disk that fails. The test is linked
 * with --wrap for what rotation asks of the system, so that each of these calls can fail once.
 */
#include "audit/live.h"
#include "audit/lines.h"
#include "audit/recover.h"

#include "test_audit_segments.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>

static unsigned n_calls, fail_at;

/* Is it this call's turn to fail? */
static bool fails(int error)
{
        if (++n_calls != fail_at)
                return false;
        errno = error;
        return true;
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_openat64(int fd, const char *path, int flags, ...);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n);

static mode_t mode_of(int flags, va_list ap)
{
        return flags & O_CREAT ? va_arg(ap, mode_t) : 0;
}

int __wrap_openat(int fd, const char *path, int flags, ...)
{
        va_list ap;
        mode_t mode;

        va_start(ap, flags);
        mode = mode_of(flags, ap);
        va_end(ap);
        return fails(EMFILE) ? -1 : __real_openat(fd, path, flags, mode);
}

int __wrap_openat64(int fd, const char *path, int flags, ...)
{
        va_list ap;
        mode_t mode;

        va_start(ap, flags);
        mode = mode_of(flags, ap);
        va_end(ap);
        return fails(EMFILE) ? -1 : __real_openat(fd, path, flags | O_LARGEFILE, mode);
}

int __wrap_fsync(int fd)
{
        return fails(EIO) ? -1 : __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
        return fails(EIO) ? -1 : __real_fdatasync(fd);
}

ssize_t __wrap_write(int fd, const void *data, size_t n)
{
        return fails(ENOSPC) ? -1 : __real_write(fd, data, n);
}

static int make(void **state)
{
        fail_at = 0;
        return tmp_make(state);
}

#define ROTATING(f) cmocka_unit_test_setup_teardown(f, make, tmp_remove)

static void expect_records(void **state, size_t n, unsigned n_segments_min)
{
        _cleanup_(rv_json_unrefp) json_t *records = NULL;
        unsigned n_segments;

        records = read_segments(state, 0, &n_segments);
        assert_int_equal(json_array_size(records), n);
        assert_true(n_segments >= n_segments_min);
}

/* ---- One after another ---- */

static void each_in_its_segment(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_small(state, 2000);

        for (unsigned i = 0; i < 100; i++)
                assert_int_equal(append_text(log, "outcome", i * 7), i);
        expect_records(state, 100, 20);
}

/* A record that is larger than a segment has one to itself. */
static void a_record_each(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_small(state, 1);

        for (unsigned i = 0; i < 5; i++)
                append_text(log, "outcome", 3000000 / (i + 2));
        expect_records(state, 5, 5);
}

static void large_segments_do_not_end(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        for (unsigned i = 0; i < 20; i++)
                append_text(log, "outcome", 1000000);
        expect_records(state, 20, 1);
        assert_int_equal(log->segment_first, 0);
}

/* Nobody tells a writer that another has begun a segment, and all of it happens within one tick of the clock. */
static void by_turns(void **state)
{
        struct rv_log *logs[3];

        for (unsigned i = 0; i < 3; i++)
                logs[i] = open_small(state, i == 2 ? 100000 : 1500);   /* one would not rotate by itself */
        for (unsigned i = 0; i < 300; i++)
                assert_int_equal(append_text(logs[(i * i + i / 7) % 3], "outcome", i), i);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(rv_log_sync(logs[i], NULL), 0);
                rv_log_close(logs[i]);
        }
        expect_records(state, 300, 20);
}

/* As far as the directory's time tells, nothing has changed. */
static void within_one_tick(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *sleeper = open_small(state, 1000000), *busy = open_small(state, 1);
        struct stat st;

        append_text(sleeper, "decision", 1);
        append_text(busy, "decision", 1);
        assert_int_equal(fstat(sleeper->audit_fd, &st), 0);
        sleeper->listed_at = st.st_mtim;
        assert_int_equal(append_text(sleeper, "outcome", 1), 2);
        expect_records(state, 3, 2);
}

static int append_many(void **state, unsigned i)
{
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:i}", "who", (int)i);
        struct rv_log *log = NULL;

        for (unsigned k = 0; k < 300; k++) {
                if (k % 100 == 0) {
                        rv_log_close(log);
                        log = NULL;
                        if (rv_log_open(tmp_path(state, "state"), &log, NULL) < 0)
                                return 1;
                        log->segment_max = 1000 + 300 * i;
                }
                if (rv_log_append(log, "decision", body, NULL, NULL) < 0 || (k % 30 == 0 && rv_log_sync(log, NULL) < 0))
                        return 2;
        }
        rv_log_close(log);
        return 0;
}

static void many_at_once(void **state)
{
        in_processes(8, state, append_many);
        expect_records(state, 8 * 300, 100);
}

/* ---- What a crash leaves ---- */

static void make_empty(void **state, uint64_t seq, const char *text)
{
        char name[RV_LOG_SEGMENT_NAME_SIZE], path[64];

        rv_log_segment_name(seq, name);
        snprintf(path, sizeof(path), "audit/%s", name);
        assert_int_equal(rv_write_file(in_state(state, path), text, strlen(text), 0600, false), 0);
}

/* A segment was made, and nothing written to it, or part of a record: for one that opens the log and one that has it. */
static void an_empty_segment(void **state)
{
        static const char *const texts[] = { "", "{\"kind\":\"outc" };

        for (unsigned i = 0; i < 4; i++) {
                _cleanup_(rv_log_closep) struct rv_log *open = open_log(state), *fresh = NULL;
                uint64_t seq = append_text(open, "decision", 10);
                unsigned n_cut = texts[i % 2][0] != 0;

                make_empty(state, seq + 1, texts[i % 2]);
                fresh = open_log(state);
                assert_int_equal(append_text(i < 2 ? fresh : open, "outcome", 10), seq + 1 + n_cut);
                assert_int_equal(append_text(i < 2 ? open : fresh, "outcome", 10), seq + 2 + n_cut);
        }
        expect_records(state, 14, 5);
}

static void a_segment_that_does_not_follow(void **state)
{
        static const uint64_t names[] = { 2, 4, 1000 };

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
                _cleanup_(rv_json_unrefp) json_t *body = json_object();
                struct rv_error err = { 0 };
                char name[RV_LOG_SEGMENT_NAME_SIZE];

                for (unsigned k = 0; i == 0 && k < 3; k++)
                        append_text(log, "decision", 10);
                make_empty(state, names[i], "");
                rv_log_close(rv_take(&log));
                log = open_log(state);
                assert_int_equal(rv_log_append(log, "outcome", body, NULL, &err), -EBADMSG);
                rv_log_segment_name(names[i], name);
                assert_non_null(strstr(err.message, name));
                assert_int_equal(unlinkat(log->audit_fd, name, 0), 0);
        }
        expect_records(state, 3, 1);
}

/* The one before an empty segment is needed, and nothing else is. */
static void the_one_before_is_gone(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = json_object();
        struct rv_error err = { 0 };

        append_text(log, "decision", 10);
        make_empty(state, 1, "");
        assert_int_equal(unlink(in_state(state, SEGMENT)), 0);
        rv_log_close(rv_take(&log));
        log = open_log(state);
        assert_int_equal(rv_log_append(log, "outcome", body, NULL, &err), -EBADMSG);
        assert_non_null(strstr(err.message, "the segment before it"));
}

static struct {
        uint64_t acknowledged;
} *shared;

static void write_until_killed(void **state, uint64_t segment_max)
{
        struct rv_log *log = NULL;
        uint64_t seq;

        if (rv_log_open(tmp_path(state, "state"), &log, NULL) < 0)
                _exit(1);
        log->segment_max = segment_max;
        for (unsigned i = 0;; i++) {
                _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:i}", "i", (int)i);
                uint64_t seen;

                if (rv_log_append_synced(log, "decision", body, &seq, NULL) < 0)
                        _exit(2);
                seen = __atomic_load_n(&shared->acknowledged, __ATOMIC_SEQ_CST);
                while (seen < seq + 1 &&
                        !__atomic_compare_exchange_n(
                                &shared->acknowledged, &seen, seq + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                        ;
        }
}

/* kill -9 at random moments, with a segment begun every few records. */
static void killed_at_random(void **state)
{
        unsigned random = 1;

        shared->acknowledged = 0;
        for (unsigned round = 0; round < 40; round++) {
                pid_t pids[3];

                for (unsigned i = 0; i < 3; i++) {
                        pids[i] = fork();
                        assert_true(pids[i] >= 0);
                        if (pids[i] == 0)
                                write_until_killed(state, 300 + 400 * i);
                }
                random = random * 1103515245 + 12345;
                usleep(1000 + random / 65536 % 20000);
                for (unsigned i = 0; i < 3; i++) {
                        int status;

                        kill(pids[i], SIGKILL);
                        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
                        assert_true(WIFSIGNALED(status));
                }
        }
        {
                _cleanup_(rv_log_closep) struct rv_log *log = open_small(state, 300);
                _cleanup_(rv_json_unrefp) json_t *records = NULL;
                unsigned n_segments;

                append_text(log, "outcome", 1);
                records = read_segments(state, 0, &n_segments);
                print_message("%zu records, %llu acknowledged, %u segments\n", json_array_size(records), (unsigned long long)shared->acknowledged, n_segments);
                assert_true(json_array_size(records) > shared->acknowledged);
                assert_true(n_segments > 40);
        }
}

/* Each call that rotation makes fails once; the log goes on behind it. */
static void whatever_fails(void **state)
{
        size_t n_want = 0;
        unsigned at = 0, n_failed = 0;

        for (bool is_done = false; !is_done; at++) {
                _cleanup_(rv_log_closep) struct rv_log *log = open_small(state, 1), *next = NULL;
                _cleanup_(rv_json_unrefp) json_t *body = json_object(), *records = NULL;
                int r;

                append_text(log, "decision", 10);
                n_calls = 0;
                fail_at = at + 1;
                r = rv_log_append(log, "outcome", body, NULL, NULL);
                is_done = n_calls < fail_at;
                fail_at = 0;
                if (r == 0)
                        n_want++;
                else
                        n_failed++;
                /* A failed sync ends this log object, nothing else does. */
                if (log->broken) {
                        assert_int_equal(rv_log_append(log, "outcome", body, NULL, NULL), -EIO);
                        next = open_small(state, 1);
                }
                append_text(next ? next : log, "outcome", 10);
                n_want += 2;
                records = read_segments(state, 0, NULL);
                assert_int_equal(json_array_size(records), n_want);
        }
        assert_true(n_failed >= 3);
}

/* ---- What an operator does ---- */

/* Moves away all but the newest @keep segments; returns the first seq that is left. */
static uint64_t move_away(void **state, unsigned keep)
{
        struct dirent **names;
        uint64_t first = 0;
        int n = scandir(in_state(state, "audit"), &names, is_segment_entry, compare_names);

        assert_true(n > (int)keep);
        for (int i = 0; i < n; i++) {
                if (i < n - (int)keep) {
                        char path[64];

                        snprintf(path, sizeof(path), "audit/%.30s", names[i]->d_name);
                        assert_int_equal(rename(in_state(state, path), tmp_path(state, names[i]->d_name)), 0);
                } else if (i == n - (int)keep) {
                        first = strtoull(names[i]->d_name, NULL, 10);
                }
                free(names[i]);
        }
        free(names);
        return first;
}

/* Old segments are moved away while one writer still has the first of them open. */
static void old_ones_are_moved_away(void **state)
{
        for (unsigned n_more = 1; n_more < 12; n_more += 5) {
                _cleanup_(rv_log_closep) struct rv_log *sleeper = open_small(state, 1000000),
                                                       *busy = open_small(state, 500);
                _cleanup_(rv_json_unrefp) json_t *records = NULL;
                uint64_t seq, first;

                append_text(sleeper, "decision", 600);
                for (unsigned i = 0; i < n_more; i++)
                        append_text(busy, "outcome", 600);
                first = move_away(state, 1);
                seq = append_text(sleeper, "outcome", 1);
                assert_int_equal(append_text(busy, "outcome", 1), seq + 1);
                records = read_segments(state, first, NULL);
                assert_int_equal(json_array_size(records), seq + 2 - first);
        }
}

static int conclude(
        void *ctx, struct rv_log *log, const json_t *first, const json_t *decision, json_t *left, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = json_object();

        (void)ctx;
        (void)first;
        (void)left;
        json_object_set(body, "decision_id", json_object_get(decision, "decision_id"));
        return rv_log_append(log, "outcome", body, NULL, err);
}

/* What a dead writer owes is found in the segments that are left, although its place was in one that is not. */
static void recovery_without_the_old_ones(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = NULL;
        pid_t pid;
        int status;

        log = open_small(state, 500);
        append_text(log, "decision", 600);
        assert_int_equal(rv_log_enlist(log, NULL), 0);
        assert_int_equal(rv_log_recover(log, conclude, NULL, NULL), 0);
        rv_log_close(rv_take(&log));
        pid = fork();
        if (pid == 0) {
                _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s}", "decision_id", "0123456789abcdef0123456789abcdef");

                log = open_small(state, 500);
                if (rv_log_enlist(log, NULL) < 0)
                        _exit(1);
                append_text(log, "config", 600);
                append_text(log, "config", 600);
                _exit(rv_log_append(log, "decision", body, NULL, NULL) < 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        move_away(state, 1);
        log = open_small(state, 500);
        assert_int_equal(rv_log_enlist(log, NULL), 0);
        assert_int_equal(rv_log_recover(log, conclude, NULL, NULL), 1);
}

/* ---- Those who keep a place in the log ---- */

static void notes_across_segments(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *a = open_small(state, 1), *b = open_small(state, 1);

        for (unsigned i = 0; i < 8; i++) {
                const char *digest = i % 4 < 2 ? "sha256:a" : "sha256:b";

                if (i == 5)
                        assert_int_equal(unlink(in_state(state, "audit/last/config")), 0);
                assert_int_equal(rv_log_note_config(i % 2 ? a : b, digest, NULL, NULL), i % 2 == 0);
                append_text(i % 3 ? a : b, "outcome", 100);
                append_text(i % 3 ? b : a, "outcome", 100);
        }
        /* The newest one is long ago. */
        for (unsigned i = 0; i < 20; i++)
                append_text(a, "outcome", 100);
        assert_int_equal(unlink(in_state(state, "audit/last/config")), 0);
        assert_int_equal(rv_log_note_config(b, "sha256:b", NULL, NULL), 0);
        assert_int_equal(rv_log_note_config(b, "sha256:a", NULL, NULL), 1);
}

/* Read while it is written: no line is left out where one segment ends and the next begins. */
static void read_while_written(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_small(state, 400);
        struct rv_lines reader;
        uint64_t seen = 0;
        pid_t pid;
        int status;

        rv_lines_begin(&reader, log->audit_fd, log->audit_path);
        pid = fork();
        if (pid == 0) {
                _cleanup_(rv_log_closep) struct rv_log *own = open_small(state, 400);

                for (unsigned i = 0; i < 1500; i++)
                        append_text(own, "outcome", i % 100);
                _exit(0);
        }
        while (seen < 1500) {
                const char *line;
                char want[64];
                size_t n;
                int r = rv_lines_next(&reader, &line, &n, NULL);

                assert_true(r >= 0);
                if (r == 0)
                        continue;
                snprintf(want, sizeof(want), "\"seq\":%llu,", (unsigned long long)seen++);
                if (!memmem(line, n, want, strlen(want)))
                        fail_msg("record %llu is left out", (unsigned long long)seen - 1);
        }
        rv_lines_close(&reader);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROTATING(each_in_its_segment),
                ROTATING(a_record_each),
                ROTATING(large_segments_do_not_end),
                ROTATING(by_turns),
                ROTATING(within_one_tick),
                ROTATING(many_at_once),
                ROTATING(an_empty_segment),
                ROTATING(a_segment_that_does_not_follow),
                ROTATING(the_one_before_is_gone),
                ROTATING(killed_at_random),
                ROTATING(whatever_fails),
                ROTATING(old_ones_are_moved_away),
                ROTATING(recovery_without_the_old_ones),
                ROTATING(notes_across_segments),
                ROTATING(read_while_written),
        };

        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
