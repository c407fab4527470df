/* When the log cannot be written: the error names the file, and nothing half-written stays. */
#include "audit/log_private.h"

#include "test_audit_common.h"

#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>

/* What this needs is not to be had: said, and with RV_MUST_RUN naming it a failure. */
static void skip_for(const char *need)
{
        const char *must = getenv("RV_MUST_RUN");

        if (must && strstr(must, need))
                fail_msg("needs %s", need);
        print_message("needs %s\n", need);
        skip();
}

static void check_open_fails(void **state, int want, const char *file)
{
        struct rv_log *log = (struct rv_log *)0x1;
        struct rv_error err = { 0 };
        int r;

        r = rv_log_open(tmp_path(state, "state"), &log, &err);
        if (r != want || !strstr(err.message, in_state(state, file)))
                fail_msg("%d, %s", r, err.message);
        assert_ptr_equal(log, 0x1);
        assert_int_equal(err.code, want);
}

static void check_append_fails(struct rv_log *log, int want, const char *file)
{
        _cleanup_(rv_json_unrefp) json_t *body = json_object();
        struct rv_error err = { 0 };
        uint64_t seq = 99;
        int r;

        r = rv_log_append(log, "outcome", body, &seq, &err);
        if (r != want || !strstr(err.message, file))
                fail_msg("%d, %s", r, err.message);
        assert_int_equal(seq, 99);
}

static void no_directory(void **state)
{
        assert_int_equal(rv_write_file(tmp_path(state, "state"), "", 0, 0600, false), 0);
        check_open_fails(state, -ENOTDIR, "");
}

static void audit_is_a_file(void **state)
{
        assert_int_equal(mkdir(tmp_path(state, "state"), 0700), 0);
        assert_int_equal(rv_write_file(in_state(state, "audit"), "", 0, 0600, false), 0);
        check_open_fails(state, -ENOTDIR, "audit");
}

static void lock_is_a_link(void **state)
{
        assert_int_equal(rv_mkdir_p(in_state(state, "audit"), 0700), 0);
        assert_int_equal(symlink("/etc/passwd", in_state(state, "audit/lock")), 0);
        check_open_fails(state, -ELOOP, "audit/lock");
}

static void secret_in_the_open(void **state)
{
        rv_log_close(open_log(state));
        assert_int_equal(chmod(in_state(state, "keys/hmac"), 0640), 0);
        check_open_fails(state, -EPERM, "keys/hmac");
        assert_int_equal(chmod(in_state(state, "keys/hmac"), 0600), 0);
        rv_log_close(open_log(state));
}

static void malformed_identity(void **state)
{
        static const char *const names[] = { "audit/id", "keys/hmac" };
        static const char *const texts[] = { "", "0123", "zz", "0123456789abcdef0123456789ABCDEF\n" };

        rv_log_close(open_log(state));
        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf old = { 0 };

                assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, names[i]), 100, &old), 0);
                for (size_t k = 0; k < RV_N_ELEMENTS(texts); k++) {
                        const char *path = in_state(state, names[i]);

                        assert_int_equal(rv_write_file(path, texts[k], strlen(texts[k]), 0600, false), 0);
                        check_open_fails(state, -EBADMSG, names[i]);
                }
                assert_int_equal(rv_write_file(in_state(state, names[i]), old.data, old.size, 0600, false), 0);
        }
        rv_log_close(open_log(state));
}

/* An id or a secret made anew would part the records before from those after. */
static void identity_lost_with_records(void **state)
{
        static const char *const names[] = { "audit/id", "keys/hmac" };

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
                char away[1024];

                append_text(log, "decision", 1);
                snprintf(away, sizeof(away), "%s", tmp_path(state, "away"));
                assert_int_equal(rename(in_state(state, names[i]), away), 0);
                check_open_fails(state, -EBADMSG, names[i]);
                assert_int_equal(rename(away, in_state(state, names[i])), 0);
        }
}

/* Without records there is nothing to part: a crash while the log was made. */
static void identity_half_made(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = NULL;
        char before[65], after[65];

        log = open_log(state);
        rv_log_hmac(log, "x", 1, before);
        rv_log_close(rv_take(&log));
        assert_int_equal(unlink(in_state(state, "audit/id")), 0);
        log = open_log(state);
        rv_log_hmac(log, "x", 1, after);
        assert_string_equal(before, after);
        append_text(log, "decision", 1);
}

static void lock_held(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_closep) int fd = open(in_state(state, "audit/lock"), O_RDWR | O_CLOEXEC);

        log->lock_wait_us = 20000;
        assert_int_equal(flock(fd, LOCK_EX), 0);
        check_append_fails(log, -ETIMEDOUT, "/audit/lock");
        assert_int_equal(flock(fd, LOCK_UN), 0);
        assert_int_equal(append_text(log, "outcome", 1), 0);
}

static void segment_removed(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        append_text(log, "decision", 1);
        assert_int_equal(unlink(in_state(state, SEGMENT)), 0);
        check_append_fails(log, -ESTALE, SEGMENT);
}

static void unknown_segment(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        append_text(log, "decision", 1);
        rv_log_close(rv_take(&log));
        assert_int_equal(rv_write_file(in_state(state, "audit/00000000000000000002.jsonl"), "", 0, 0600, false), 0);
        log = open_log(state);
        check_append_fails(log, -EBADMSG, SEGMENT);
}

/* After a failed sync nobody can tell what is on the disk: no later success may hide that. */
static void failed_sync_is_final(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_error err = { 0 };
        int fds[2], keep;

        append_text(log, "decision", 1);
        keep = dup(log->segment_fd);
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        assert_true(dup2(fds[1], log->segment_fd) >= 0);   /* which knows no fdatasync() */
        assert_int_equal(rv_log_sync(log, &err), -EINVAL);
        assert_non_null(strstr(err.message, in_state(state, SEGMENT)));
        assert_true(dup2(keep, log->segment_fd) >= 0);
        close(keep);
        close(fds[0]);
        close(fds[1]);
        assert_int_equal(rv_log_sync(log, NULL), -EINVAL);
        check_append_fails(log, -EINVAL, SEGMENT);
        assert_int_equal(rv_log_note_config(log, "x", NULL, NULL), -EINVAL);
}

/* Written in part and then refused: as on a full disk, without one. */
static void short_write_is_taken_back(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *records = NULL;
        struct rlimit old, small = { 0 };

        append_text(log, "decision", 100);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        small.rlim_cur = 1000;
        small.rlim_max = old.rlim_max;
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        {
                _cleanup_(rv_json_unrefp) json_t *body = json_object();
                char text[2000];

                memset(text, 'x', sizeof(text));
                json_object_set_new(body, "text", json_stringn(text, sizeof(text)));
                assert_int_equal(rv_log_append(log, "outcome", body, NULL, NULL), -EFBIG);
        }
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(append_text(log, "outcome", 2000), 1);
        records = read_log(state);
        assert_int_equal(json_array_size(records), 2);
}

/* Mounts a small tmpfs at the state directory, in a mount namespace of this process. */
static bool mount_small(void **state)
{
        return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
               mkdir(tmp_path(state, "state"), 0700) == 0 &&
               mount("tmpfs", tmp_path(state, "state"), "tmpfs", 0, "size=256k") == 0;
}

static void fill_disk(void **state)
{
        int fd = open(in_state(state, "filler"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        char page[4096] = { 0 };

        assert_true(fd >= 0);
        while (write(fd, page, sizeof(page)) > 0)
                ;
        assert_int_equal(errno, ENOSPC);
        close(fd);
}

static void disk_full(void **state)
{
        struct rv_log *log;
        json_t *records;
        unsigned n = 1;

        if (geteuid() != 0 || !mount_small(state))
                skip_for("root");
        log = open_log(state);
        append_text(log, "decision", 100);
        fill_disk(state);
        /* The page in use still has room for some records; then one of them fits in part only. */
        for (;; n++) {
                _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s}", "status", "completed");
                struct rv_error err = { 0 };
                int r = rv_log_append(log, "outcome", body, NULL, &err);

                if (r == 0) {
                        assert_true(n < 50);
                        continue;
                }
                assert_int_equal(r, -ENOSPC);
                assert_non_null(strstr(err.message, in_state(state, SEGMENT)));
                assert_non_null(strstr(err.message, "No space left"));
                break;
        }
        records = read_log(state);
        assert_int_equal(json_array_size(records), n);
        json_decref(records);
        assert_int_equal(unlink(in_state(state, "filler")), 0);
        assert_int_equal(append_text(log, "gap", 5000), n);
        records = read_log(state);
        assert_int_equal(json_array_size(records), n + 1);
        json_decref(records);
        rv_log_close(log);
        assert_int_equal(umount2(tmp_path(state, "state"), MNT_DETACH), 0);
}

static void disk_full_at_first(void **state)
{
        struct rv_log *log = (struct rv_log *)0x1;
        struct rv_error err = { 0 };

        if (geteuid() != 0 || !mount_small(state))
                skip_for("root");
        fill_disk(state);
        assert_int_equal(rv_log_open(tmp_path(state, "state"), &log, &err), -ENOSPC);
        assert_non_null(strstr(err.message, tmp_path(state, "state")));
        assert_ptr_equal(log, 0x1);
        assert_int_equal(unlink(in_state(state, "filler")), 0);
        log = open_log(state);
        append_text(log, "decision", 1);
        rv_log_close(log);
        assert_int_equal(umount2(tmp_path(state, "state"), MNT_DETACH), 0);
}

static void read_only(void **state)
{
        struct rv_log *log;

        if (geteuid() != 0 || !mount_small(state))
                skip_for("root");
        log = open_log(state);
        append_text(log, "decision", 1);
        rv_log_close(log);
        assert_int_equal(mount(NULL, tmp_path(state, "state"), NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
        check_open_fails(state, -EROFS, "audit/lock");
        assert_int_equal(umount2(tmp_path(state, "state"), MNT_DETACH), 0);
}

static void another_user(void **state)
{
        struct rv_log *log = NULL;

        if (geteuid() != 0)
                skip_for("root");
        assert_int_equal(chmod(*state, 0755), 0);
        rv_log_close(open_log(state));
        assert_int_equal(seteuid(65534), 0);
        check_open_fails(state, -EACCES, "audit");
        assert_int_equal(seteuid(0), 0);
        /* A directory that cannot be made. */
        assert_int_equal(rename(tmp_path(state, "state"), tmp_path(state, "away")), 0);
        assert_int_equal(seteuid(65534), 0);
        check_open_fails(state, -EACCES, "");
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(rv_log_open(tmp_path(state, "away"), &log, NULL), 0);
        rv_log_close(log);
}

/* The way of a process that gives up privilege: the path is closed to it, the descriptor is not. */
static void opened_before_dropping(void **state)
{
        struct rv_error err = { 0 };
        struct rv_log *log = NULL;
        int fd;

        if (geteuid() != 0)
                skip_for("root");
        assert_int_equal(mkdir(tmp_path(state, "state"), 0700), 0);
        assert_int_equal(chown(tmp_path(state, "state"), 2000000, 2000000), 0);
        fd = open(tmp_path(state, "state"), O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(seteuid(2000000), 0);
        if (rv_log_open_at(fd, tmp_path(state, "state"), &log, &err) != 0)
                fail_msg("%s", err.message);
        append_text(log, "decision", 1);
        assert_int_equal(rv_log_note_config(log, "x", NULL, NULL), 1);
        assert_int_equal(rv_log_sync(log, NULL), 0);
        rv_log_close(log);
        assert_int_equal(seteuid(0), 0);
        close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(no_directory),
                TMP(audit_is_a_file),
                TMP(lock_is_a_link),
                TMP(secret_in_the_open),
                TMP(malformed_identity),
                TMP(identity_lost_with_records),
                TMP(identity_half_made),
                TMP(lock_held),
                TMP(segment_removed),
                TMP(unknown_segment),
                TMP(failed_sync_is_final),
                TMP(short_write_is_taken_back),
                TMP(disk_full),
                TMP(disk_full_at_first),
                TMP(read_only),
                TMP(another_user),
                TMP(opened_before_dropping),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
