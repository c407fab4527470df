/* Decisions without an outcome: found once, whoever died when. */
#include "audit/recover.h"

#include "audit/live.h"
#include "audit/log_private.h"

#include "test_audit_common.h"

#include <dirent.h>

#define BOOT "audit/boot"

/* ---- Writers ---- */

static void id_of(unsigned n, char ret[33])
{
        snprintf(ret, 33, "%08x%024x", n * 2654435761u, n);
}

static void append(struct rv_log *log, const char *kind, unsigned n, const char *stage)
{
        _cleanup_(rv_json_unrefp) json_t *body = NULL;
        struct rv_error err = { 0 };
        char id[33];

        id_of(n, id);
        /* As in a real decision, with members of the same names further in. */
        body = json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:[{s:s}, s]}}", "decision_id", id, "stage", stage, "facts", "kind", "outcome", "instance",
                         "\"}", "decision_id", "ffffffffffffffffffffffffffffffff", "packages", "kind", "wheel", "\\\"kind\":\"outcome\"");
        if (rv_log_append(log, kind, body, NULL, &err) != 0)
                fail_msg("%s", err.message);
}

static struct rv_log *enlisted(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_error err = { 0 };

        if (rv_log_enlist(log, &err) != 0)
                fail_msg("%s", err.message);
        return log;
}

/* A writer that dies: decisions from @first on, of which those of an odd number get their outcome. */
static void write_and_die(void **state, unsigned first, unsigned n, bool is_enlisted, const char *left)
{
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0) {
                struct rv_log *log = is_enlisted ? enlisted(state) : open_log(state);
                _cleanup_(rv_json_unrefp) json_t *body = left ? json_loads(left, 0, NULL) : NULL;

                for (unsigned i = first; i < first + n; i++) {
                        append(log, "decision", i, "requested");
                        if (i % 2)
                                append(log, "outcome", i, "");
                }
                _exit(body && rv_log_leave(log, body) != 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

/* ---- Who comes next ---- */

struct seen {
        unsigned n, fail_at;       /* 0: never */
        useconds_t slowly_us;      /* so that others come meanwhile */
        char ids[64][33];
        char stages[64][16], first_stages[64][16];
        bool had_left[64];
};

static int conclude(
        void *ctx, struct rv_log *log, const json_t *first, const json_t *decision, json_t *left, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = NULL;
        struct seen *seen = ctx;

        if (seen->fail_at && seen->n + 1 == seen->fail_at)
                return rv_error_set(err, -EDQUOT, "no more");
        assert_true(seen->n < 64);
        usleep(seen->slowly_us);
        snprintf(seen->ids[seen->n], 33, "%s", rv_json_get_string(decision, "decision_id", ""));
        assert_string_equal(rv_json_get_string(first, "decision_id", ""), seen->ids[seen->n]);
        snprintf(seen->first_stages[seen->n], 16, "%s", rv_json_get_string(first, "stage", ""));
        snprintf(seen->stages[seen->n], 16, "%s", rv_json_get_string(decision, "stage", ""));
        seen->had_left[seen->n++] = left != NULL;
        body = json_pack("{s:O}", "decision_id", json_object_get(decision, "decision_id"));
        return rv_log_append(log, "outcome", body, NULL, err);
}

static int recover(void **state, struct seen *seen)
{
        _cleanup_(rv_log_closep) struct rv_log *log = enlisted(state);
        struct rv_error err = { 0 };
        int r = rv_log_recover(log, conclude, seen, &err);

        assert_int_equal(r < 0, err.code != 0);
        return r;
}

static void check_ids(const struct seen *seen, const unsigned *want, size_t n)
{
        char id[33];

        assert_int_equal(seen->n, n);
        for (size_t i = 0; i < n; i++) {
                id_of(want[i], id);
                assert_string_equal(seen->ids[i], id);
        }
}

static unsigned n_live(void **state)
{
        DIR *dir = opendir(in_state(state, "audit/live"));
        struct dirent *e;
        unsigned n = 0;

        while (dir && (e = readdir(dir)))
                n += e->d_name[0] != '.';
        if (dir)
                closedir(dir);
        return n;
}

/* ---- After a process died ---- */

static void nothing_to_do(void **state)
{
        struct seen seen = { 0 };

        assert_int_equal(recover(state, &seen), 0);
        assert_int_equal(access(in_state(state, BOOT), F_OK), 0);
        assert_int_equal(recover(state, &seen), 0);
        assert_int_equal(seen.n, 0);
        assert_int_equal(n_live(state), 0);
}

static void dead_writers(void **state)
{
        static const unsigned want[] = { 2, 4, 10, 12 };
        _cleanup_(rv_json_unrefp) json_t *records = NULL;
        struct seen seen = { 0 };
        unsigned n = 0;

        assert_int_equal(recover(state, &seen), 0);
        write_and_die(state, 2, 3, true, NULL);
        write_and_die(state, 10, 3, true, NULL);
        write_and_die(state, 21, 1, true, NULL);
        assert_int_equal(n_live(state), 3);
        assert_int_equal(recover(state, &seen), 4);
        assert_int_equal(seen.n, RV_N_ELEMENTS(want));
        for (size_t i = 0; i < RV_N_ELEMENTS(want); i++) {      /* which of the dead comes first is the directory's order */
                char id[33];

                id_of(want[i], id);
                for (unsigned k = 0; k < seen.n; k++)
                        n += strcmp(seen.ids[k], id) == 0;
        }
        assert_int_equal(n, 4);
        assert_int_equal(n_live(state), 0);
        assert_int_equal(recover(state, &seen), 0);
        records = read_log(state);
        assert_int_equal(json_array_size(records), 7 * 2);
}

static void living_writer(void **state)
{
        static const unsigned want[] = { 2 };
        struct rv_log *living = enlisted(state);
        struct seen seen = { 0 };

        append(living, "decision", 100, "requested");
        write_and_die(state, 2, 1, true, NULL);
        assert_int_equal(recover(state, &seen), 1);
        check_ids(&seen, want, 1);
        assert_int_equal(n_live(state), 1);
        append(living, "outcome", 100, "");
        rv_log_close(living);
        assert_int_equal(n_live(state), 0);
}

static void two_stages(void **state)
{
        static const unsigned want[] = { 6 };
        struct seen seen = { 0 };
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                struct rv_log *log = enlisted(state);

                append(log, "decision", 6, "requested");
                append(log, "decision", 6, "resolved");
                _exit(0);
        }
        waitpid(pid, &status, 0);
        assert_int_equal(recover(state, &seen), 1);
        check_ids(&seen, want, 1);
        assert_string_equal(seen.stages[0], "resolved");
        assert_string_equal(seen.first_stages[0], "requested");
}

static void left_outcome(void **state)
{
        char left[128], id[33];
        struct seen seen = { 0 };

        id_of(4, id);
        snprintf(left, sizeof(left), "{\"decision_id\":\"%s\",\"status\":\"completed\"}", id);
        write_and_die(state, 2, 4, true, left);
        assert_int_equal(recover(state, &seen), 2);
        assert_false(seen.had_left[0]);
        assert_true(seen.had_left[1]);
}

static void interrupted(void **state)
{
        static const unsigned want[] = { 2, 4, 6 };
        struct seen seen = { .fail_at = 2 };

        assert_int_equal(recover(state, &seen), 0);
        write_and_die(state, 2, 5, true, NULL);
        assert_int_equal(recover(state, &seen), -EDQUOT);
        assert_int_equal(n_live(state), 1);
        seen.fail_at = 0;
        assert_int_equal(recover(state, &seen), 2);
        check_ids(&seen, want, 3);
        assert_int_equal(n_live(state), 0);
}

/* What a live file holds -> is the decision found all the same? */
static void odd_files(void **state)
{
        static const struct {
                const char *name, *text;
                int want;
        } rows[] = {
                { "empty: nothing was written after it", "", 0 },
                { "cut short", "-", 1 },
                { "no place", "nonsense\n", 1 },
                { "another segment's name", "audit.jsonl 0\n", 1 },
                { "whole, with a broken line behind", "- 0\n{\"decision_id\":\n[]\n{}", 1 },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct seen seen = { 0 };
                struct rv_log *log;
                char path[64];

                assert_int_equal(recover(state, &seen), 0);
                log = enlisted(state);
                append(log, "decision", (unsigned)i * 2, "requested");
                rv_log_owe(log);
                snprintf(path, sizeof(path), "audit/live/%s", rv_log_instance(log));
                assert_int_equal(truncate(in_state(state, path), 0), 0);
                write_raw(state, path, rows[i].text, strlen(rows[i].text));
                rv_log_close(log);
                if (recover(state, &seen) != rows[i].want || n_live(state) != 0)
                        fail_msg("%s: %u found, %u files left", rows[i].name, seen.n, n_live(state));
                if (rows[i].want == 0) {        /* whose decision is still open: the next row must not find it */
                        log = open_log(state);
                        append(log, "outcome", (unsigned)i * 2, "");
                        rv_log_close(log);
                }
        }
}

static void other_names(void **state)
{
        struct seen seen = { 0 };

        assert_int_equal(recover(state, &seen), 0);
        assert_int_equal(rv_write_file(in_state(state, "audit/live/README"), "x", 1, 0600, false), 0);
        assert_int_equal(symlink("/etc/passwd", in_state(state, "audit/live/0123456789abcdef0123456789abcdef")), 0);
        assert_int_equal(recover(state, &seen), -ELOOP);
        assert_int_equal(unlink(in_state(state, "audit/live/0123456789abcdef0123456789abcdef")), 0);
        assert_int_equal(recover(state, &seen), 0);
        assert_int_equal(n_live(state), 1);
}

static int recover_at_once(void **state, unsigned i)
{
        struct seen seen = { .slowly_us = 1000 };

        (void)i;
        return recover(state, &seen) < 0;
}

/* However many start at once, each decision has one outcome. */
static void at_once(void **state)
{
        for (int round = 0; round < 5; round++) {
                _cleanup_(rv_json_unrefp) json_t *records = NULL, *seen = json_object();
                struct seen last = { 0 };
                const char *name;
                json_t *record;
                size_t i;

                if (round % 2)
                        unlink(in_state(state, BOOT));
                for (unsigned k = 0; k < 6; k++)
                        write_and_die(state, (unsigned)round * 100 + k * 10, 7, k % 3 != 0 || round % 2 == 0, NULL);
                in_processes(6, state, recover_at_once);
                assert_true(recover(state, &last) >= 0);
                records = read_log(state);
                json_array_foreach(records, i, record) {
                        const char *id = rv_json_get_string(record, "decision_id", "");
                        json_int_t n = json_integer_value(json_object_get(seen, id));

                        json_object_set_new(seen, id, json_integer(n + (strcmp(rv_json_get_string(record, "kind", ""), "outcome") ? 1000 : 1)));
                }
                json_object_foreach(seen, name, record)
                        assert_int_equal(json_integer_value(record), 1001);
        }
}

/* ---- After the machine went down ---- */

static void reboot(void **state)
{
        assert_int_equal(rv_write_file(in_state(state, BOOT), "another\n", 8, 0600, false), 0);
}

static void without_live_files(void **state)
{
        static const unsigned want[] = { 2, 4, 10 };
        struct rv_log *living;
        struct seen seen = { 0 };

        assert_int_equal(recover(state, &seen), 0);
        write_and_die(state, 2, 3, false, NULL);
        write_and_die(state, 10, 1, false, NULL);
        assert_int_equal(recover(state, &seen), 0);     /* the same boot: somebody else's business */
        living = enlisted(state);
        append(living, "decision", 100, "requested");
        reboot(state);
        assert_int_equal(recover(state, &seen), 3);
        check_ids(&seen, want, 3);
        reboot(state);
        assert_int_equal(recover(state, &seen), 0);
        append(living, "outcome", 100, "");
        rv_log_close(living);
}

static void boot_file(void **state)
{
        static const struct {
                const char *name, *text;
                bool finds;
        } rows[] = {
                { "absent", NULL, true },
                { "empty", "", true },
                { "too long", "0123456789012345678901234567890123456789012345678901234567890123456789", true },
                { "right", "right", false },
        };
        _cleanup_(rv_buf_fini) struct rv_buf right = { 0 };
        struct seen seen = { 0 };

        assert_int_equal(recover(state, &seen), 0);
        assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, BOOT), 100, &right), 0);
        for (unsigned i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const char *text = rows[i].finds ? rows[i].text : right.data;
                _cleanup_(rv_buf_fini) struct rv_buf now = { 0 };

                seen.n = 0;
                write_and_die(state, 2 + 2 * i, 1, false, NULL);
                unlink(in_state(state, BOOT));
                if (text)
                        assert_int_equal(rv_write_file(in_state(state, BOOT), text, strlen(text), 0600, false), 0);
                if (recover(state, &seen) != rows[i].finds)
                        fail_msg("%s: %u found", rows[i].name, seen.n);
                assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, BOOT), 100, &now), 0);
                assert_string_equal(now.data, right.data);
        }
}

/* A million decisions need no more memory than one: those with an outcome are let go of. Small here, and across segments. */
static void many_segments(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf all = { 0 };
        static const unsigned want[] = { 600, 602, 604, 606 };
        struct seen seen = { 0 };
        struct rv_log *log = open_log(state);
        size_t middle;

        for (unsigned i = 1; i < 600; i++)
                append(log, "decision", i, "requested");
        for (unsigned i = 1; i < 600; i++)
                append(log, "outcome", i, "");
        rv_log_close(log);
        write_and_die(state, 600, 8, false, NULL);
        /* The first half becomes a segment of its own. */
        read_segment(state, &all);
        middle = (size_t)((const char *)memchr(all.data + all.size / 2, '\n', all.size / 2) - all.data) + 1;
        assert_int_equal(rv_write_file(in_state(state, "audit/00000000000000000001.jsonl"), all.data + middle, all.size - middle, 0600, false), 0);
        assert_int_equal(truncate(in_state(state, SEGMENT), (off_t)middle), 0);
        assert_int_equal(recover(state, &seen), 4);
        check_ids(&seen, want, 4);
}

static void damaged_log(void **state)
{
        _cleanup_(rv_freep) char *text = malloc(RV_LOG_RECORD_BYTES_MAX * 2);
        struct seen seen = { 0 };

        write_and_die(state, 2, 1, false, NULL);
        write_raw(state, SEGMENT, "{\"kind\":\"decision\",\"decision_id\":\n{}\n\n[1]\nnull\n", 47);
        write_and_die(state, 3, 0, false, NULL);
        memset(text, 'x', RV_LOG_RECORD_BYTES_MAX * 2);
        write_raw(state, SEGMENT, text, RV_LOG_RECORD_BYTES_MAX * 2);
        assert_int_equal(recover(state, &seen), -EBADMSG);
        assert_int_equal(seen.n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(nothing_to_do),
                TMP(dead_writers),
                TMP(living_writer),
                TMP(two_stages),
                TMP(left_outcome),
                TMP(interrupted),
                TMP(odd_files),
                TMP(other_names),
                TMP(at_once),
                TMP(without_live_files),
                TMP(boot_file),
                TMP(many_segments),
                TMP(damaged_log),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
