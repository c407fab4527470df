/*
 * What verifying a log tells and finds. tests/audit damages logs in every way; here are what only the library shows,
 * and logs that are written meanwhile.
 */
#include "test_audit_seal.h"

struct run {
        struct rv_verify_input input;
        struct rv_verify_result result;
        struct rv_error err;
        struct rv_checkpoint_key keys[4];
        struct rv_verify_fault faults[8];
        size_t n_faults;
};

static void on_fault(void *ctx, const struct rv_verify_fault *fault)
{
        struct run *run = ctx;

        if (run->n_faults < RV_N_ELEMENTS(run->faults))
                run->faults[run->n_faults] = *fault;
        run->n_faults++;
}

/* Keys are told by their seeds. */
static int verify(void **state, struct run *run, const char *log_id, const char *seeds)
{
        int fd = open(in_state(state, "audit"), O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

        run->input.audit_fd = fd;
        run->input.path = "audit";
        run->input.keys = run->keys;
        run->input.n_keys = strlen(seeds);
        run->input.on_fault = on_fault;
        run->input.ctx = run;
        run->n_faults = 0;
        for (size_t i = 0; i < run->input.n_keys; i++)
                run->keys[i] = key_of(log_id, (uint8_t)seeds[i]);
        r = rv_verify_log(&run->input, &run->result, &run->err);
        close(fd);
        return r;
}

/* 12 records: 0 to 4 texts, 5 a checkpoint of 5, 6 and 7 texts, 8 one of 7 that hands over, 9 a text, 10 one of 10, 11 a text. */
static void write_log(void **state, char ret_id[RV_LOG_ID_SIZE])
{
        struct rv_log *log = open_log(state);

        for (int i = 0; i < 5; i++)
                append_text(log, "rejected", 20);
        seal(state, log, 5, 'a', 'a');
        append_text(log, "gap", 20);
        append_text(log, "gap", 20);
        seal(state, log, 7, 'a', 'b');
        append_text(log, "gap", 20);
        seal(state, log, 10, 'b', 'b');
        append_text(log, "gap", 20);
        memcpy(ret_id, rv_log_id(log), RV_LOG_ID_SIZE);
        rv_log_close(log);
}

static void a_good_log_is_described(void **state)
{
        char id[RV_LOG_ID_SIZE];
        struct run run = { 0 };
        struct rv_checkpoint_key key;

        write_log(state, id);
        assert_int_equal(verify(state, &run, id, "a"), 0);
        assert_int_equal(run.n_faults, 0);
        assert_string_equal(run.result.log_id, id);
        assert_int_equal(run.result.n_records, 12);
        assert_int_equal(run.result.n_segments, 1);
        assert_int_equal(run.result.n_checkpoints, 3);
        assert_int_equal(run.result.last.size, 10);
        assert_int_equal(run.result.last_seq, 10);
        assert_int_equal(run.result.n_unsealed, 2);
        assert_true(run.result.unsealed_time_us > 0 && run.result.unsealed_time_us == run.result.last_time_us);
        assert_int_equal(run.result.n_rotations, 1);
        key = key_of(id, 'b');
        assert_memory_equal(run.result.key.public_key, key.public_key, sizeof(key.public_key));
        write_raw(state, SEGMENT, "{\"half", 6);
        assert_int_equal(verify(state, &run, id, "a"), 0);
        assert_int_equal(run.result.incomplete_bytes, 6);
        assert_int_equal(run.result.n_records, 12);
}

static void a_later_key_vouches_for_what_is_before(void **state)
{
        char id[RV_LOG_ID_SIZE];
        struct run run = { 0 };

        write_log(state, id);
        assert_int_equal(verify(state, &run, id, "b"), 0);
        assert_int_equal(run.result.n_earlier, 1);
        assert_int_equal(run.result.n_rotations, 0);
        assert_int_equal(verify(state, &run, id, "ab"), 0);
        assert_int_equal(verify(state, &run, id, "ac"), RV_VERIFY_E_FAULT);
        assert_int_equal(run.result.fault.seq, 8);
        assert_int_equal(verify(state, &run, id, "c"), RV_VERIFY_E_FAULT);
        assert_int_equal(run.result.fault.what, RV_VERIFY_KEY);
        assert_int_equal(run.result.fault.seq, 5);
        assert_int_equal(verify(state, &run, id, ""), RV_VERIFY_E_FAULT);
        assert_int_equal(run.result.fault.seq, 5);
}

/* A key that is changed every day for months. */
static void keys_without_number(void **state)
{
        struct rv_log *log = open_log(state);
        char id[RV_LOG_ID_SIZE];
        struct run run = { 0 };

        memcpy(id, rv_log_id(log), sizeof(id));
        append_text(log, "gap", 1);
        for (uint8_t i = 1; i <= 150; i++)
                seal(state, log, i, i, i + 1);
        rv_log_close(log);
        assert_int_equal(verify(state, &run, id, "\x01"), 0);
        assert_int_equal(run.result.n_rotations, 150);
}

static void the_old_key_signs_no_more(void **state)
{
        struct rv_log *log = open_log(state);
        char id[RV_LOG_ID_SIZE];
        struct run run = { 0 };

        memcpy(id, rv_log_id(log), sizeof(id));
        append_text(log, "gap", 1);
        seal(state, log, 1, 'a', 'b');
        append_text(log, "gap", 1);
        seal(state, log, 3, 'a', 'a');
        rv_log_close(log);
        assert_int_equal(verify(state, &run, id, "a"), RV_VERIFY_E_FAULT);
        assert_int_equal(run.result.fault.what, RV_VERIFY_KEY);
        assert_int_equal(run.result.fault.seq, 3);
}

/* Whoever has the old key cannot hand over to a key that does not sign too. */
static void the_next_key_has_to_sign(void **state)
{
        struct rv_log *log = open_log(state);
        uint8_t secret[RV_CHECKPOINT_KEY_BYTES] = { 'a' };
        char id[RV_LOG_ID_SIZE];
        struct run run = { 0 };
        struct rv_checkpoint c;

        memcpy(id, rv_log_id(log), sizeof(id));
        append_text(log, "gap", 1);
        make_checkpoint(state, log, 1, &c);
        c.has_next_key = true;
        c.next_key = key_of(id, 'b');
        assert_int_equal(rv_checkpoint_sign(&c, secret), 0);
        append_checkpoint(log, &c);
        rv_log_close(log);
        assert_int_equal(verify(state, &run, id, "a"), RV_VERIFY_E_FAULT);
        assert_int_equal(run.result.fault.what, RV_VERIFY_KEY);
        assert_int_equal(run.result.fault.seq, 1);
}

/* The offset that a fault names is where the line begins. */
static void the_place_is_named(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        char id[RV_LOG_ID_SIZE];
        struct run run = { 0 };
        const char *line;
        int fd;

        write_log(state, id);
        read_segment(state, &b);
        line = strchr(strchr(b.data, '\n') + 1, '\n') + 1;
        fd = open(in_state(state, SEGMENT), O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "9", 1, strstr(line, "xx") - b.data), 1);
        close(fd);
        assert_int_equal(verify(state, &run, id, "a"), RV_VERIFY_E_FAULT);
        assert_int_equal(run.result.fault.what, RV_VERIFY_PREV);
        assert_int_equal(run.result.fault.seq, 2);
        assert_int_equal(run.result.fault.offset, line - b.data);
        assert_string_equal(run.result.fault.segment, "00000000000000000000.jsonl");
}

static void one_goes_on_behind_a_fault_if_asked(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        char id[RV_LOG_ID_SIZE], *line[12];
        struct run run = { .input = { .is_all = true } };
        struct rv_buf out = { 0 };

        write_log(state, id);
        read_segment(state, &b);
        line[0] = b.data;
        for (int i = 1; i < 12; i++)
                line[i] = strchr(line[i - 1], '\n') + 1;
        *strstr(line[1], "xx") = '9';       /* 1: changed */
        line[3][0] = '[';                    /* 3: no record */
        rv_buf_append(&out, b.data, (size_t)(line[6] - b.data));
        rv_buf_append(&out, line[7], (size_t)(b.data + b.size - line[7]));   /* 6: missing */
        assert_int_equal(truncate(in_state(state, SEGMENT), 0), 0);
        write_raw(state, SEGMENT, out.data, out.size);
        rv_buf_fini(&out);
        assert_int_equal(verify(state, &run, id, "a"), RV_VERIFY_E_FAULT);
        assert_int_equal(run.n_faults, 3);
        assert_int_equal(run.result.n_faults, 3);
        assert_int_equal(run.faults[0].what, RV_VERIFY_PREV);
        assert_int_equal(run.faults[0].seq, 1);
        assert_int_equal(run.faults[1].what, RV_VERIFY_FORM);
        assert_int_equal(run.faults[1].seq, 3);
        assert_int_equal(run.faults[2].what, RV_VERIFY_SEQ);
        assert_int_equal(run.faults[2].seq, 6);
        run.input.is_all = false;
        assert_int_equal(verify(state, &run, id, "a"), RV_VERIFY_E_FAULT);
        assert_int_equal(run.n_faults, 1);
}

static void what_cannot_be_read_is_no_verdict(void **state)
{
        struct rv_verify_result result;
        struct rv_error err = { 0 };
        struct rv_verify_input input = { .path = "audit" };
        int fd = open(*state, O_RDONLY | O_DIRECTORY | O_PATH | O_CLOEXEC);

        input.audit_fd = -EBADF;
        assert_int_equal(rv_verify_log(&input, &result, &err), -EBADF);
        assert_true(strstr(err.message, "audit") != NULL);
        input.audit_fd = fd;
        assert_int_equal(rv_verify_log(&input, &result, &err), RV_VERIFY_E_FAULT);
        assert_int_equal(result.fault.what, RV_VERIFY_EMPTY);
        close(fd);
}

/* ---- A log that is written meanwhile ---- */

static int write_on(void **state, unsigned i)
{
        struct rv_log *log = open_log(state);

        for (int n = 0; n < 400; n++) {
                append_text(log, "rejected", 10 + (size_t)(n * 37 % 3000));
                if (i != 0 || n % 5 != 0)
                        continue;
                /* What a crash leaves: half a line, which the next append cuts off. */
                assert_int_equal(rv_log_lock(log, NULL), 0);
                write_raw(state, SEGMENT, "{\"build\":\"0\",\"half\":\"of a line", 29);
                rv_log_unlock(log);
        }
        rv_log_close(log);
        return 0;
}

static int verify_on(void **state)
{
        struct run run = { 0 };
        uint64_t n = 0;

        for (int i = 0; i < 60; i++) {
                int r = verify(state, &run, "", "");

                if (r != 0 && run.result.fault.what != RV_VERIFY_EMPTY) {
                        print_message("%d %s%s %llu\n", r, run.err.message, run.result.fault.text, (unsigned long long)run.result.fault.seq);
                        return 1;
                }
                if (r == 0 && run.result.n_records < n)
                        return 2;
                n = r == 0 ? run.result.n_records : n;
        }
        return 0;
}

static int write_or_verify(void **state, unsigned i)
{
        return i < 2 ? write_on(state, i) : verify_on(state);
}

static void a_live_log_can_be_verified(void **state)
{
        struct run run = { 0 };
        struct rv_log *log = open_log(state);

        append_text(log, "gap", 1);
        rv_log_close(log);
        in_processes(3, state, write_or_verify);
        assert_int_equal(verify(state, &run, "", ""), 0);
        /* Each cut-off line is on record by a gap of its own. */
        assert_true(run.result.n_records > 801);
}

static void a_new_segment_may_come_meanwhile(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        char id[RV_LOG_ID_SIZE], name[64];
        struct run run = { 0 };
        const char *p;
        size_t n;

        write_log(state, id);
        read_segment(state, &b);
        /* The log again, each record in a segment of its own. */
        p = b.data;
        for (unsigned seq = 0; seq < 12; seq++, p += n) {
                int fd;

                n = (size_t)(strchr(p, '\n') - p) + 1;
                snprintf(name, sizeof(name), "audit/%020u.jsonl", seq);
                fd = open(in_state(state, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                assert_int_equal(rv_write_all(fd, p, n), 0);
                close(fd);
                assert_int_equal(verify(state, &run, id, "a"), 0);
                assert_int_equal(run.result.n_records, seq + 1);
                assert_int_equal(run.result.n_segments, seq + 1);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(a_good_log_is_described),
                TMP(a_later_key_vouches_for_what_is_before),
                TMP(keys_without_number),
                TMP(the_old_key_signs_no_more),
                TMP(the_next_key_has_to_sign),
                TMP(the_place_is_named),
                TMP(one_goes_on_behind_a_fault_if_asked),
                TMP(what_cannot_be_read_is_no_verdict),
                TMP(a_live_log_can_be_verified),
                TMP(a_new_segment_may_come_meanwhile),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
