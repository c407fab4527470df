/* The log's secret given up: the chain goes on, what was hidden is beyond proof, and nobody writes with the old one. */
#include "audit/erase.h"

#include "audit/live.h"
#include "audit/redact.h"

#include "test_audit_segments.h"

static int erase(void **state, uint64_t *ret_seq, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = open(tmp_path(state, "state"), O_PATH | O_DIRECTORY | O_CLOEXEC);

        return rv_log_erase_secret(fd, tmp_path(state, "state"), ret_seq, err);
}

static void erase_well(void **state, uint64_t want_seq)
{
        struct rv_error err = { 0 };
        uint64_t seq = 99;

        if (erase(state, &seq, &err) != 0)
                fail_msg("%s", err.message);
        assert_int_equal(seq, want_seq);
}

static void erase_fails(void **state, int want, const char *why)
{
        struct rv_error err = { 0 };
        uint64_t seq = 99;
        int r = erase(state, &seq, &err);

        if (r != want || err.code != want || !strstr(err.message, why))
                fail_msg("%d, %s", r, err.message);
        assert_int_equal(seq, 99);
}

static void hmac_now(void **state, char ret[65])
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        rv_log_hmac(log, "value", 5, ret);
}

static void a_new_secret(void **state)
{
        _cleanup_(rv_closep) int old_fd = -EBADF;
        _cleanup_(rv_json_unrefp) json_t *records = NULL;
        char before[65], after[65], text[65] = "", old[65] = "";
        struct rv_log *log = open_log(state);
        struct stat st;

        append_text(log, "decision", 1);
        rv_log_close(log);
        hmac_now(state, before);
        old_fd = open(in_state(state, "keys/hmac"), O_RDONLY | O_CLOEXEC);
        assert_int_equal(pread(old_fd, old, 64, 0), 64);
        erase_well(state, 1);
        hmac_now(state, after);
        assert_string_not_equal(before, after);
        /* Of the old one nothing is left where it was, nor a file beside the new one. */
        assert_int_equal(pread(old_fd, text, 64, 0), 64);
        assert_int_equal(strspn(text, "x"), 64);
        assert_int_equal(stat(in_state(state, "keys/hmac"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(fstat(old_fd, &st), 0);
        assert_int_equal(st.st_nlink, 0);
        log = open_log(state);
        append_text(log, "outcome", 1);
        rv_log_close(log);
        records = read_log(state);
        assert_int_equal(json_array_size(records), 3);
        assert_string_equal(member(records, 1, "kind"), "gap");
        assert_string_equal(member(records, 1, "cause"), "secret_erased");
}

static void a_secret_that_is_lost(void **state)
{
        static const char *const texts[] = { NULL, "", "0123\n", "zz" };

        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++) {
                struct rv_log *log = open_log(state), *none = NULL;
                struct rv_error err = { 0 };
                char hex[65];

                append_text(log, "decision", 1);
                rv_log_close(log);
                assert_int_equal(unlink(in_state(state, "keys/hmac")), 0);
                if (texts[i])
                        assert_int_equal(rv_write_file(in_state(state, "keys/hmac"), texts[i], strlen(texts[i]), 0600, false), 0);
                else
                        assert_int_equal(rmdir(in_state(state, "keys")), 0);
                assert_int_equal(rv_log_open(tmp_path(state, "state"), &none, &err), -EBADMSG);
                if (!texts[i] && !strstr(err.message, "reeve audit erase --yes"))
                        fail_msg("%s", err.message);
                erase_well(state, 2 * i + 1);
                hmac_now(state, hex);
        }
}

static void while_a_writer_lives(void **state)
{
        struct rv_log *log = open_log(state);
        char before[65], after[65];

        assert_int_equal(rv_log_enlist(log, NULL), 0);
        append_text(log, "decision", 1);
        hmac_now(state, before);
        erase_fails(state, -EBUSY, "is running");
        hmac_now(state, after);
        assert_string_equal(before, after);
        rv_log_owe(log);
        rv_log_close(log);
        /* One that died owing an outcome is in nobody's way. */
        erase_well(state, 1);
}

/* A writer that has read the secret and has not said so yet, when it is erased. */
static void between_opening_and_enlisting(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        char before[65], after[65], want[65];

        append_text(log, "decision", 1);
        rv_log_hmac(log, "value", 5, before);
        erase_well(state, 1);
        assert_int_equal(rv_log_enlist(log, NULL), 0);
        rv_log_hmac(log, "value", 5, after);
        assert_string_not_equal(before, after);
        hmac_now(state, want);
        assert_string_equal(after, want);
}

static void nothing_is_erased(void **state)
{
        char before[65], after[65];
        struct rv_log *log;

        assert_int_equal(mkdir(tmp_path(state, "state"), 0700), 0);
        erase_fails(state, -ENOENT, "there is no log");
        assert_int_equal(access(in_state(state, "audit"), F_OK), -1);
        log = open_log(state);
        append_text(log, "decision", 1);
        rv_log_close(log);
        hmac_now(state, before);
        write_raw(state, SEGMENT, "garbage\n", 8);
        erase_fails(state, -EBADMSG, "is no record of this log");
        hmac_now(state, after);
        assert_string_equal(before, after);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(a_new_secret),
                TMP(a_secret_that_is_lost),
                TMP(while_a_writer_lives),
                TMP(between_opening_and_enlisting),
                TMP(nothing_is_erased),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
