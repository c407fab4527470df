/* The stored bytes of outcomes: whole or not at all, with the right digest or none, and not for ever. */
#include "store/outcomes.h"

#include "base/clock.h"

#include "test_audit_common.h"

#define ID "0123456789abcdef0123456789abcdef"
#define OTHER "1123456789abcdef0123456789abcdef"
#define FILE_OF(id) "outcomes/" id

static void put(struct rv_log *log, const char *id, const char *text)
{
        struct rv_error err = { 0 };

        if (rv_outcomes_put(log, id, text, strlen(text), &err) != 0)
                fail_msg("%s", err.message);
}

static int get(struct rv_log *log, const char *id, const char *of, struct rv_buf *out)
{
        char sha256[RV_SHA256_HEX_SIZE];
        struct rv_error err = { 0 };
        int r;

        rv_sha256_hex(of, strlen(of), sha256);
        r = rv_outcomes_get(log, id, sha256, out, &err);
        assert_true(r == 0 ? !err.message[0] : err.code == r && strstr(err.message, id));
        return r;
}

static void there_and_back(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        struct stat st;

        assert_int_equal(get(log, ID, "a", &out), -ENOENT);
        put(log, ID, "a");
        assert_int_equal(get(log, ID, "a", &out), 0);
        assert_string_equal(out.data, "a");
        put(log, ID, "longer");         /* the one that went out unrecorded, say */
        assert_int_equal(get(log, ID, "a", &out), -EBADMSG);
        assert_int_equal(out.size, 1);
        assert_int_equal(get(log, ID, "longer", &out), 0);
        assert_string_equal(out.data, "alonger");
        assert_int_equal(get(log, OTHER, "a", &out), -ENOENT);
        assert_int_equal(stat(in_state(state, FILE_OF(ID)), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(stat(in_state(state, "outcomes"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
}

static void traps(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        struct rv_error err = { 0 };

        assert_int_equal(rv_outcomes_put(log, "../keys/hmac", "x", 1, &err), -EINVAL);
        assert_int_equal(rv_outcomes_put(log, "", "x", 1, NULL), -EINVAL);
        assert_int_equal(rv_outcomes_get(log, "../keys/hmac", "", &out, NULL), -EINVAL);
        put(log, OTHER, "secret");
        assert_int_equal(symlink(OTHER, in_state(state, FILE_OF(ID))), 0);
        assert_int_equal(get(log, ID, "secret", &out), -EBADMSG);
        put(log, ID, "own");            /* in place of the link, not through it */
        assert_int_equal(get(log, ID, "own", &out), 0);
        assert_int_equal(get(log, OTHER, "secret", &out), 0);
        assert_int_equal(unlink(in_state(state, FILE_OF(ID))), 0);
        assert_int_equal(mkfifo(in_state(state, FILE_OF(ID)), 0600), 0);
        assert_int_equal(get(log, ID, "own", &out), -EBADMSG);
}

static void set_age(void **state, const char *name, uint64_t age_us)
{
        uint64_t then = rv_now_us() - age_us;
        struct timespec t[2] = { { .tv_sec = (time_t)(then / 1000000) }, { .tv_sec = (time_t)(then / 1000000) } };

        assert_int_equal(utimensat(AT_FDCWD, in_state(state, name), t, 0), 0);
}

static void pruned(void **state)
{
        const uint64_t hour = UINT64_C(3600) * 1000000;
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };

        assert_int_equal(rv_outcomes_prune(log), 0);    /* no such directory */
        put(log, ID, "old");
        put(log, OTHER, "young");
        assert_int_equal(rv_write_file(in_state(state, FILE_OF(ID) ".77.new"), "x", 1, 0600, false), 0);
        set_age(state, FILE_OF(ID), 26 * hour);
        set_age(state, FILE_OF(OTHER), 24 * hour + hour / 2);
        set_age(state, FILE_OF(ID) ".77.new", 2 * hour);
        assert_int_equal(rv_outcomes_prune(log), 2);
        assert_int_equal(get(log, ID, "old", &out), -ENOENT);
        assert_int_equal(get(log, OTHER, "young", &out), 0);
        set_age(state, FILE_OF(OTHER), 26 * hour);
        assert_int_equal(rv_outcomes_prune(log), 0);    /* not twice an hour */
        set_age(state, "outcomes/.pruned", 2 * hour);
        assert_int_equal(rv_outcomes_prune(log), 1);
        assert_int_equal(get(log, OTHER, "young", &out), -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = { TMP(there_and_back), TMP(traps), TMP(pruned) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
