/* Which writers of a log live, and what they owe it. */
#include "audit/live.h"

#include "audit/live_private.h"

#include "test_audit_common.h"

#include <dirent.h>
#include <sys/file.h>

static const char *live_path(void **state, const struct rv_log *log)
{
        char name[128];

        snprintf(name, sizeof(name), "audit/live/%s", rv_log_instance(log));
        return in_state(state, name);
}

static struct rv_log *enlisted(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_error err = { 0 };

        if (rv_log_enlist(log, &err) != 0)
                fail_msg("%s", err.message);
        return log;
}

static void check_content(const char *path, const char *want)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };

        assert_int_equal(rv_read_file_at(AT_FDCWD, path, 1 << 20, &b), 0);
        assert_string_equal(b.data, want);
}

static void enlisted_and_closed(void **state)
{
        struct rv_log *log = enlisted(state);
        char path[512];
        struct stat st;
        int fd;

        snprintf(path, sizeof(path), "%s", live_path(state, log));
        check_content(path, "- 0\n");
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        fd = open(path, O_RDWR | O_CLOEXEC);
        assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
        assert_int_equal(errno, EWOULDBLOCK);
        rv_log_close(log);
        assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
        close(fd);
        assert_int_equal(access(path, F_OK), -1);
}

static void not_enlisted(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = json_object();

        assert_int_equal(access(in_state(state, "audit/live"), F_OK), -1);
        assert_int_equal(rv_log_leave(log, body), -ENOENT);
}

static void kept_while_owed(void **state)
{
        struct rv_log *log = enlisted(state);
        char path[512];

        snprintf(path, sizeof(path), "%s", live_path(state, log));
        rv_log_owe(log);
        rv_log_owe(log);
        rv_log_settle(log);
        rv_log_close(log);
        assert_int_equal(access(path, F_OK), 0);

        log = enlisted(state);
        snprintf(path, sizeof(path), "%s", live_path(state, log));
        rv_log_owe(log);
        rv_log_settle(log);
        rv_log_close(log);
        assert_int_equal(access(path, F_OK), -1);
}

/* The place is never behind the first record, and not more than one record before the end. */
static void place_in_a_log(void **state)
{
        struct rv_log *log = open_log(state);
        char segment[RV_LOG_SEGMENT_NAME_SIZE];
        unsigned long long offset;
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        struct stat st;

        for (int i = 0; i < 5; i++)
                append_text(log, "outcome", 1 << 20);
        rv_log_close(log);
        assert_int_equal(stat(in_state(state, SEGMENT), &st), 0);
        log = enlisted(state);
        assert_int_equal(rv_read_file_at(AT_FDCWD, live_path(state, log), 4096, &b), 0);
        assert_int_equal(sscanf(b.data, "%26s %llu", segment, &offset), 2);
        assert_string_equal(segment, &SEGMENT[sizeof("audit/") - 1]);
        assert_int_equal(offset, (unsigned long long)st.st_size - RV_LOG_RECORD_BYTES_MAX);
        rv_log_close(log);
}

static void left_outcomes(void **state)
{
        struct rv_log *log = enlisted(state);
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s, s:s}", "run_id", "r", "code", "ok");
        _cleanup_(rv_json_unrefp) json_t *big = json_object();
        char path[512], text[RV_LIVE_BYTES_MAX];

        snprintf(path, sizeof(path), "%s", live_path(state, log));
        rv_log_owe(log);
        assert_int_equal(rv_log_leave(log, body), 0);
        memset(text, 'x', sizeof(text));
        json_object_set_new(big, "text", json_stringn(text, sizeof(text) - 20));
        assert_int_equal(rv_log_leave(log, big), -ENOSPC);
        assert_int_equal(rv_log_leave(log, body), 0);
        rv_log_close(log);
        check_content(path, "- 0\n{\"code\":\"ok\",\"run_id\":\"r\"}\n{\"code\":\"ok\",\"run_id\":\"r\"}\n");
}

static void cannot_be_made(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_error err = { 0 };

        assert_int_equal(rv_write_file(in_state(state, "audit/live"), "", 0, 0600, false), 0);
        assert_int_equal(rv_log_enlist(log, &err), -ENOTDIR);
        assert_non_null(strstr(err.message, "audit/live/"));
}

/* Somebody takes each new file for a dead one's as long as it is not locked: names are not reused, nobody is lost. */
static int make_and_close(void **state, unsigned i)
{
        for (int k = 0; k < 200; k++) {
                struct rv_log *log = NULL;
                struct rv_dead dead;
                struct dirent *e;
                DIR *dir;

                if (rv_log_open(tmp_path(state, "state"), &log, NULL) != 0)
                        return 1;
                if (i % 2 == 0) {
                        /* Exhausting its tries against that many takers is no fault of its own. */
                        int r = rv_log_enlist(log, NULL);

                        if (r != 0 && r != -EBUSY)
                                return 2;
                        if (r == 0 && access(live_path(state, log), F_OK) != 0)
                                return 3;
                } else {
                        dir = opendir(in_state(state, "audit/live"));
                        while (dir && (e = readdir(dir)))
                                if (rv_dead_take(log, e->d_name, &dead, NULL) == 1) {
                                        if (dead.may_have_records || rv_dead_remove(log, &dead, NULL) != 0)
                                                return 4;
                                        rv_dead_release(&dead);
                                }
                        if (dir)
                                closedir(dir);
                }
                rv_log_close(log);
        }
        return 0;
}

static void taken_while_made(void **state)
{
        rv_log_close(enlisted(state));
        in_processes(4, state, make_and_close);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(enlisted_and_closed),
                TMP(not_enlisted),
                TMP(kept_while_owed),
                TMP(place_in_a_log),
                TMP(left_outcomes),
                TMP(cannot_be_made),
                TMP(taken_while_made),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
