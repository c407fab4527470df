/*
 * The pipeline on a log that fails: at the rejected record, at the decision, at its sync, at the outcome. No
 * log, no run; once the program ran the answer goes out in any case and says that it is not recorded.
 */
#include "test_pipeline.h"

#include <sys/stat.h>

static const struct rv_observation
        ok = { .started = RV_STARTED_YES, .has_wait_status = 1, .is_teardown_complete = 1 },
        killed_held = { .started = RV_STARTED_NO, .was_stopped = 1, .is_teardown_complete = 1 };

static const struct rv_fake_step whole_run[] = {
        { .kind = RV_FAKE_HELD },
        { .kind = RV_FAKE_STARTED },
        { .kind = RV_FAKE_ENDED },
        { .kind = RV_FAKE_OBSERVE, .seen = &ok },
};

/* No file may grow from now on, but for the log's @n_more bytes: the disk is full. */
static void fill_disk(struct bench *b, rlim_t n_more)
{
        struct rlimit limit = { .rlim_max = RLIM_INFINITY };
        struct stat st = { 0 };

        (void)stat(in_state(&b->tmp, SEGMENT), &st);
        limit.rlim_cur = (rlim_t)st.st_size + n_more;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void free_disk(void)
{
        struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int log_remove(void **state)
{
        free_disk();
        return bench_remove(state);
}

#define ON_LOG(f) cmocka_unit_test_setup_teardown(f, bench_make, log_remove)

static void expect_unavailable(const struct bench *b)
{
        const char *detail;

        if (!b->problem)
                fail_msg("%s: an outcome, although nothing could be recorded", b->now->name);
        expect_number(b, "status", json_integer_value(json_object_get(b->problem, "status")), 503);
        detail = rv_json_get_string(b->problem, "detail", "");
        if (!strstr(detail, "00000000000000000000.jsonl"))
                fail_msg("%s: the problem does not name the file: %s", b->now->name, detail);
}

/* A log that works again goes on where it was. */
static void expect_recovery(struct bench *b)
{
        const struct case_ again = { .name = "a good run", .script = { .steps = whole_run, .n_steps = 4 } };

        free_disk();
        perform(b, &again);
        expect_text(b, "code", reason_of(b, "code"), "ok");
        expect_number(b, "recorded", json_is_true(json_object_get(b->outcome, "recorded")), 1);
}

static void rejected_is_not_recorded(void **state)
{
        const struct case_ c = { .name = "a rejected request", .request = "{}" };
        struct bench *b = *state;

        for (rlim_t n_more = 0; n_more < 300; n_more += 100) {
                fill_disk(b, n_more);
                perform(b, &c);
                expect_unavailable(b);
                expect_kinds(b, "");
        }
        expect_recovery(b);
}

static void decision_is_not_recorded(void **state)
{
        const struct case_ c = { .name = "the decision", .script = { .steps = whole_run, .n_steps = 4 } };
        struct bench *b = *state;

        for (rlim_t n_more = 0; n_more < 900; n_more += 100) {
                fill_disk(b, n_more);
                perform(b, &c);
                expect_unavailable(b);
                expect_number(b, "the number of starts", b->calls.n_starts, 0);
                expect_kinds(b, "");
        }
        expect_recovery(b);
}

static void denial_is_not_recorded(void **state)
{
        static const struct case_ cases[] = {
                { .name = "a denial", .bundle_error = "gone" },
                { .name = "a ceiling", .tenant = "offline", .request = PLAIN_WITH("\"network\":{\"mode\":\"any\"}") },
                { .name = "an unknown backend", .tenant = "nowhere" },
        };
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                fill_disk(b, 10);
                perform(b, &cases[i]);
                expect_unavailable(b);
                expect_kinds(b, "");
        }
        expect_recovery(b);
}

static void log_is_gone(void **state)
{
        const struct case_ c = { .name = "the segment was removed", .script = { .steps = whole_run, .n_steps = 4 } };
        struct bench *b = *state;

        expect_recovery(b);
        assert_int_equal(unlink(in_state(&b->tmp, SEGMENT)), 0);
        perform(b, &c);
        expect_unavailable(b);
        expect_number(b, "the number of starts", b->calls.n_starts, 0);
}

/* ---- Started, held, and the decision cannot be made durable ---- */

static const struct rv_fake_step held_first[] = {
        { .kind = RV_FAKE_HELD, .after_ms = RV_FAKE_AT_ONCE },
        { .kind = RV_FAKE_STARTED },
        { .kind = RV_FAKE_OBSERVE, .seen = &ok },
};
static const struct rv_fake_step held_later[] = {
        { .kind = RV_FAKE_HELD, .after_ms = 30 },
        { .kind = RV_FAKE_STARTED },
        { .kind = RV_FAKE_OBSERVE, .seen = &ok },
};
static const struct rv_fake_step over_first[] = {
        { .kind = RV_FAKE_OBSERVE, .after_ms = RV_FAKE_AT_ONCE, .seen = &killed_held, .result = "1" },
};

static const struct {
        struct case_ c;
        unsigned n_stops;
} unsynced[] = {
        { { .name = "held already", .script = { .steps = held_first, .n_steps = 3, .on_stop = &killed_held } }, 1 },
        { { .name = "held later", .script = { .steps = held_later, .n_steps = 3, .on_stop = &killed_held, .stop_ms = 60 } }, 1 },
        { { .name = "stopped at once", .script = { .steps = held_first, .n_steps = 3, .on_stop = &killed_held, .stop_ms = RV_FAKE_AT_ONCE,
            .release_ms = RV_FAKE_AT_ONCE } }, 1 },
        { { .name = "over already", .script = { .steps = over_first, .n_steps = 1 } }, 0 },
        { { .name = "a result is closed", .script = { .steps = held_first, .n_steps = 3, .on_stop = &killed_held, .on_stop_result = "1" } }, 1 },
};

static unsigned count_fds(void)
{
        unsigned n = 0;

        for (int fd = 0; fd < 256; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static void decision_is_not_durable(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(unsynced); i++) {
                void *bench;
                struct bench *b;
                unsigned n_fds;

                /* After a failed sync a log is not used again: each row has its own. */
                assert_int_equal(bench_make(&bench), 0);
                b = bench;
                expect_recovery(b);             /* a loop opens what it needs when it first runs */
                n_fds = count_fds();
                fail_sync_at = 1;
                perform(b, &unsynced[i].c);
                expect_unavailable(b);
                expect_number(b, "the number of starts", b->calls.n_starts, 1);
                expect_number(b, "the number of goes", b->calls.n_goes, 0);
                expect_number(b, "the number of stops", b->calls.n_stops, unsynced[i].n_stops);
                expect_kinds(b, "decision");
                expect_number(b, "the number of open files", count_fds(), n_fds);
                perform(b, &unsynced[i].c);     /* and nothing more is let through */
                expect_unavailable(b);
                expect_number(b, "the number of starts", b->calls.n_starts, 0);
                bench_remove(&bench);
        }
}

/* ---- The program ran, and its outcome cannot be recorded ---- */

static void fill_at_go(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        if (call == RV_FAKE_GO)
                fill_disk(ctx, 50);
}

static void expect_unrecorded(const struct bench *b)
{
        if (!b->outcome)
                fail_msg("%s: a problem although the program ran", b->now->name);
        expect_text(b, "code", reason_of(b, "code"), "ok");
        expect_number(b, "recorded", json_is_true(json_object_get(b->outcome, "recorded")), 0);
        expect_number(b, "exit status", b->exit_status, 0);
}

static void outcome_is_not_recorded(void **state)
{
        const struct case_ c = { .name = "the outcome", .script = { .steps = whole_run, .n_steps = 4, .call = fill_at_go } };
        struct bench *b = *state;

        perform(b, &c);
        expect_unrecorded(b);
        expect_kinds(b, "decision");
        expect_recovery(b);
}

static void outcome_is_not_durable(void **state)
{
        const struct case_ c = { .name = "the outcome's sync", .script = { .steps = whole_run, .n_steps = 4 } };
        struct bench *b = *state;

        fail_sync_at = 2;
        perform(b, &c);
        expect_unrecorded(b);
        expect_number(b, "the number of goes", b->calls.n_goes, 1);
}

/* One sync for the decision, one for the outcome; a denial needs one for both. */
static void the_number_of_syncs(void **state)
{
        const struct case_ run = { .name = "a run", .script = { .steps = whole_run, .n_steps = 4 } };
        const struct case_ denial = { .name = "a denial", .bundle_error = "gone" };
        const struct case_ rejected = { .name = "a rejected request", .request = "{}" };
        struct bench *b = *state;

        perform(b, &run);
        expect_number(b, "the number of syncs", n_syncs, 2);
        perform(b, &denial);
        expect_number(b, "the number of syncs", n_syncs, 1);
        perform(b, &rejected);
        expect_number(b, "the number of syncs", n_syncs, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ON_LOG(rejected_is_not_recorded),
                ON_LOG(decision_is_not_recorded),
                ON_LOG(denial_is_not_recorded),
                ON_LOG(log_is_gone),
                cmocka_unit_test(decision_is_not_durable),
                ON_LOG(outcome_is_not_recorded),
                ON_LOG(outcome_is_not_durable),
                ON_LOG(the_number_of_syncs),
        };

        signal(SIGXFSZ, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
