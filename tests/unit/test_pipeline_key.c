/*
 * Idempotency keys through the whole pipeline: what runs, what is given again, what is refused, who waits for whom.
 */
#include "test_pipeline.h"

#include "base/clock.h"
#include "store/outcomes.h"

static const struct rv_observation ok = { .started = RV_STARTED_YES, .has_wait_status = 1, .is_teardown_complete = 1 },
                                   exit_7 = { .started = RV_STARTED_YES,
                                           .has_wait_status = 1,
                                           .wait_status = 7 << 8,
                                           .is_teardown_complete = 1 },
                                   no_setup = { .started = RV_STARTED_NO,
                                           .fault = RV_BACKEND_FAULT_SETUP,
                                           .fault_errno = EPERM,
                                           .fault_step = "mount /proc",
                                           .fault_text = "cannot mount /proc",
                                           .is_teardown_complete = 1 },
                                   lost = { .started = RV_STARTED_UNKNOWN, .fault = RV_BACKEND_FAULT_LOST };

#define SAY(to, text) { .kind = RV_FAKE_OUTPUT, .stream = (to), .data = (text), .n_bytes = sizeof(text) - 1 }
static const struct rv_fake_step good[] = {
        { .kind = RV_FAKE_HELD }, { .kind = RV_FAKE_STARTED }, SAY(RV_STREAM_STDOUT, "out\x1b\xff"), SAY(RV_STREAM_STDERR, "err\n"),
        { .kind = RV_FAKE_ENDED }, { .kind = RV_FAKE_OBSERVE, .seen = &ok, .result = "{ \"a\" : [1.50, 1e3] }" },
};
static const struct rv_fake_step bad[] = {
        { .kind = RV_FAKE_HELD },
        { .kind = RV_FAKE_STARTED },
        { .kind = RV_FAKE_ENDED },
        { .kind = RV_FAKE_OBSERVE, .seen = &exit_7 },
};
static const struct rv_fake_step cannot[] = { { .kind = RV_FAKE_OBSERVE, .seen = &no_setup } };
static const struct rv_fake_step loses[] = { { .kind = RV_FAKE_HELD }, { .kind = RV_FAKE_OBSERVE, .seen = &lost } };
static const struct rv_fake_step slow[] = {
        { .kind = RV_FAKE_HELD }, { .kind = RV_FAKE_STARTED }, SAY(RV_STREAM_STDOUT, "slow"), { .kind = RV_FAKE_ENDED, .after_ms = 300 },
        { .kind = RV_FAKE_OBSERVE, .seen = &ok },
};

#define SCRIPT(s) { .steps = s, .n_steps = RV_N_ELEMENTS(s) }
#define KEY "\"idempotency_key\":\"KEY-SECRET\""

static void expect_run(const struct bench *b, const char *code)
{
        if (!b->outcome)
                fail_msg("%s: a problem", b->now->name);
        expect_text(b, "code", reason_of(b, "code"), code);
        expect_number(b, "replayed", json_is_true(json_object_get(b->outcome, "replayed")), 0);
}

static void expect_replay(const struct bench *b, const char *run_id)
{
        if (!b->outcome)
                fail_msg("%s: a problem: %s", b->now->name, rv_json_get_string(b->problem, "detail", "?"));
        expect_number(b, "replayed", json_is_true(json_object_get(b->outcome, "replayed")), 1);
        expect_text(b, "run_id", b->run_id, run_id);
        expect_number(b, "the number of starts", b->calls.n_starts, 0);
}

static void expect_problem(const struct bench *b, int status, const char *type)
{
        if (!b->problem)
                fail_msg("%s: an outcome", b->now->name);
        expect_number(b, "status", json_integer_value(json_object_get(b->problem, "status")), status);
        if (!strstr(rv_json_get_string(b->problem, "type", ""), type))
                fail_msg("%s: the type is %s", b->now->name, rv_json_get_string(b->problem, "type", ""));
        expect_number(b, "the number of starts", b->calls.n_starts, 0);
        expect_kinds(b, "rejected");
        expect_number(b, "the record's status", json_integer_value(json_object_get(json_array_get(b->records, 0), "status")), status);
}

static void given_again(void **state)
{
        const struct case_ first = { .name = "the first", .request = PLAIN_WITH(KEY), .script = SCRIPT(good) };
        const struct case_ other_spelling = { .name = "the same, spelt otherwise", .script = SCRIPT(bad),
                                              .request = "{ \"timeout_s\": 30, " KEY ", \"source\": \"" SOURCE_TEXT "\", \"language\": \"python\", \"network\": {\"mode\": \"none\"} }" };
        _cleanup_(rv_json_unrefp) json_t *outcome = NULL;
        struct bench *b = *state;
        char run_id[64];

        perform(b, &first);
        expect_run(b, "ok");
        memcpy(run_id, b->run_id, sizeof(run_id));
        outcome = json_incref(b->outcome);
        for (int i = 0; i < 2; i++) {
                perform(b, &other_spelling);
                expect_replay(b, run_id);
                expect_number(b, "output", (long long)b->live[0].size, 7);
                assert_memory_equal(b->live[0].data, "out\x1b\xef\xbf\xbd", 7);
                assert_string_equal(b->live[1].data, "err\n");
                json_object_set_new(b->outcome, "replayed", json_false());
                expect_number(b, "the same outcome", json_equal(b->outcome, outcome), 1);
                expect_kinds(b, "idempotent_replay");
        }
}

/* What an outcome must say for the key to be taken, or free. */
static void taken_or_free(void **state)
{
        static const struct {
                struct case_ c;
                const char *code;
                bool is_taken;
        } rows[] = {
                { { .name = "it failed", .script = SCRIPT(bad) }, "exit_nonzero", true },
                { { .name = "it was lost", .script = SCRIPT(loses) }, "backend_lost", true },
                { { .name = "it could not start", .script = SCRIPT(cannot) }, "backend_failed", false },
                { { .name = "nothing was started", .script = { .start_error = EAGAIN } }, "backend_failed", false },
                { { .name = "denied", .bundle_error = "gone", .script = SCRIPT(good) }, "policy_error", false },
                { { .name = "over the ceiling", .tenant = "offline", .script = SCRIPT(good), .request = PLAIN_WITH(KEY ",\"network\":{\"mode\":\"any\"}") }, "network_denied", false },
                { { .name = "no such backend", .tenant = "nowhere", .script = SCRIPT(good) }, "backend_denied", false },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct case_ c = rows[i].c, again = { .name = c.name, .script = SCRIPT(good) };
                void *bench;
                struct bench *b;
                char run_id[64];

                assert_int_equal(bench_make(&bench), 0);
                b = bench;
                if (!c.request)
                        c.request = PLAIN_WITH(KEY);
                again.request = c.request;
                perform(b, &c);
                expect_run(b, rows[i].code);
                memcpy(run_id, b->run_id, sizeof(run_id));
                perform(b, &again);
                if (rows[i].is_taken)
                        expect_replay(b, run_id);
                else
                        expect_run(b, "ok");
                bench_remove(&bench);
        }
        (void)state;
}

static void another_request(void **state)
{
        const struct case_ first = { .name = "the first", .request = PLAIN_WITH(KEY), .script = SCRIPT(good) };
        const struct case_ others[] = {
                { .name = "another limit", .request = PLAIN_WITH(KEY ",\"timeout_s\":31"), .script = SCRIPT(good) },
                { .name = "another source", .request = "{\"language\":\"python\",\"source\":\"1\"," KEY "}", .script = SCRIPT(good) },
                { .name = "another variable", .request = PLAIN_WITH(KEY ",\"env\":{\"A\":\"ENV-SECRET\"}"), .script = SCRIPT(good) },
                { .name = "another input", .request = PLAIN_WITH(KEY ",\"stdin\":\"\\u0000\""), .script = SCRIPT(good) },
        };
        struct bench *b = *state;

        perform(b, &first);
        for (size_t i = 0; i < RV_N_ELEMENTS(others); i++) {
                json_t *fault;

                perform(b, &others[i]);
                expect_problem(b, 422, "request-invalid");
                fault = json_array_get(json_object_get(b->problem, "errors"), 0);
                expect_text(b, "pointer", rv_json_get_string(fault, "pointer", ""), "/idempotency_key");
                expect_text(b, "code", rv_json_get_string(fault, "code", ""), "conflict");
        }
}

/* One key is as many as there are tenants and principals. */
static void scopes(void **state)
{
        const struct case_ cases[] = {
                { .name = "alice", .request = PLAIN_WITH(KEY), .script = SCRIPT(good) },
                { .name = "bob", .request = PLAIN_WITH(KEY), .principal = "bob", .script = SCRIPT(good) },
                { .name = "another tenant", .request = PLAIN_WITH(KEY), .tenant = "named", .script = SCRIPT(good) },
                { .name = "another key", .request = PLAIN_WITH("\"idempotency_key\":\"KEY-SECRET2\""), .script = SCRIPT(good) },
                { .name = "no key", .script = SCRIPT(good) },
        };
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                perform(b, &cases[i]);
                expect_run(b, "ok");
        }
}

/* Without a key nothing of the store is touched. */
static void no_key(void **state)
{
        const struct case_ c = { .name = "no key", .script = SCRIPT(good) };
        struct bench *b = *state;

        perform(b, &c);
        assert_int_equal(access(in_state(&b->tmp, "index.sqlite"), F_OK), -1);
        assert_int_equal(access(in_state(&b->tmp, "index.lock"), F_OK), -1);
        assert_int_equal(access(in_state(&b->tmp, "outcomes"), F_OK), -1);
}

static const char *stored(struct bench *b)
{
        char path[128];

        snprintf(path, sizeof(path), "outcomes/%s", rv_json_get_string(b->outcome, "decision_id", ""));
        return in_state(&b->tmp, path);
}

/* The record says that it took place: without the bytes there is no answer, and no second run. */
static void lost_bytes(void **state)
{
        const struct case_ c = { .name = "bytes that are lost", .request = PLAIN_WITH(KEY), .script = SCRIPT(good) };
        struct bench *b = *state;
        char path[1024], run_id[64];

        perform(b, &c);
        snprintf(path, sizeof(path), "%s", stored(b));
        memcpy(run_id, b->run_id, sizeof(run_id));
        assert_int_equal(truncate(path, 100), 0);
        for (int i = 0; i < 2; i++) {
                perform(b, &c);
                expect_problem(b, 503, "outcome-lost");
                if (!strstr(rv_json_get_string(b->problem, "detail", ""), run_id))
                        fail_msg("the run is not named: %s", rv_json_get_string(b->problem, "detail", ""));
                (void)unlink(path);
        }
}

/* Other bytes than the log has the digest of are not given to anybody. */
static void forged_bytes(void **state)
{
        const struct case_ c = { .name = "forged bytes", .request = PLAIN_WITH(KEY), .script = SCRIPT(good) };
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct bench *b = *state;
        char path[1024], *at;

        perform(b, &c);
        snprintf(path, sizeof(path), "%s", stored(b));
        assert_int_equal(rv_read_file_at(AT_FDCWD, path, 1 << 20, &text), 0);
        at = strstr(text.data, "\"text\":\"out");
        assert_non_null(at);
        memcpy(at + 8, "OUT", 3);
        assert_int_equal(rv_write_file(path, text.data, text.size, 0600, false), 0);
        perform(b, &c);
        expect_problem(b, 503, "outcome-lost");
}

static void in_index(struct bench *b, const char *name, const char *bytes)
{
        char path[64];

        snprintf(path, sizeof(path), "index.sqlite%s", name);
        if (bytes)
                assert_int_equal(rv_write_file(in_state(&b->tmp, path), bytes, strlen(bytes), 0600, false), 0);
        else
                (void)unlink(in_state(&b->tmp, path));
}

static void index_is_gone(void **state)
{
        const struct case_ c = { .name = "the index", .request = PLAIN_WITH(KEY), .script = SCRIPT(good) };
        struct bench *b = *state;
        char run_id[64];

        perform(b, &c);
        memcpy(run_id, b->run_id, sizeof(run_id));
        in_index(b, "", NULL);
        perform(b, &c);
        expect_replay(b, run_id);
        in_index(b, "", "no database");
        perform(b, &c);
        expect_replay(b, run_id);
        in_index(b, "", "");
        in_index(b, "-wal", "nonsense");
        in_index(b, "-shm", "nonsense");
        perform(b, &c);
        expect_replay(b, run_id);
}

/* ---- Two at once ---- */

struct second {
        struct rv_run_input input;
        struct rv_run *run;
        bool is_released, is_awaited;   /* the loop runs for it alone */
        json_t *outcome, *problem;
};

static struct second second;

static int sink_buf(void *ctx, const void *data, size_t n)
{
        return rv_buf_append(ctx, data, n);
}

static void on_second_answered(void *ctx, struct rv_run *run)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        (void)ctx;
        if (rv_run_problem(run)) {
                second.problem = rv_problem_to_json(rv_run_problem(run));
                return;
        }
        assert_int_equal(rv_outcome_write(rv_run_outcome(run), sink_buf, &text), 0);
        second.outcome = json_loadb(text.data, text.size, 0, NULL);
}

static void on_second_released(void *ctx, struct rv_run *run)
{
        (void)run;
        second.is_released = true;
        if (second.is_awaited)
                rv_loop_stop(&((struct bench *)ctx)->loop);
}

static void start_second(struct bench *b, const char *request, bool has_wait, uint32_t wait_s)
{
        second = (struct second){ .input = {
                                          .tenant = "local",
                                          .bundle = b->bundle,
                                          .principal = "alice",
                                          .text = request,
                                          .text_bytes = strlen(request),
                                          .has_wait = has_wait,
                                          .wait_s = wait_s,
                                          .ctx = b,
                                          .answered = on_second_answered,
                                          .released = on_second_released,
                                  } };
        assert_int_equal(rv_run_start(&b->core, &second.input, &second.run), 0);
}

static void finish_second(struct bench *b)
{
        second.is_awaited = true;
        while (!second.is_released)
                rv_loop_run(&b->loop);
        rv_run_free(second.run);
        second.run = NULL;
}

static void forget_second(void)
{
        json_decref(second.outcome);
        json_decref(second.problem);
        second.outcome = second.problem = NULL;
}

static void start_same(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        if (call == RV_FAKE_GO)
                start_second(ctx, PLAIN_WITH(KEY), false, 0);
}

static void the_second_waits(void **state)
{
        const struct case_ c = { .name = "two at once", .request = PLAIN_WITH(KEY), .has_company = true, .script = { .steps = slow, .n_steps = RV_N_ELEMENTS(slow), .call = start_same } };
        struct bench *b = *state;
        char run_id[64];

        perform(b, &c);
        expect_run(b, "ok");
        memcpy(run_id, b->run_id, sizeof(run_id));
        finish_second(b);
        if (!second.outcome)
                fail_msg("%s: the second: %s", c.name, rv_json_get_string(second.problem, "detail", "no detail"));
        assert_string_equal(rv_json_get_string(second.outcome, "run_id", ""), run_id);
        assert_true(json_is_true(json_object_get(second.outcome, "replayed")));
        assert_int_equal(b->calls.n_starts, 1);
        forget_second();
}

/* A script is borrowed by the runs that play it: this one outlives what starts the first. */
static const struct rv_fake_script well = SCRIPT(good);

static void start_same_well(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        struct bench *b = ctx;

        if (call != RV_FAKE_GO)
                return;
        start_second(b, PLAIN_WITH(KEY), false, 0);
        rv_fake_play(b->backend_state, &well);
}

/* The first cannot start, so the key is free for the one that waited. */
static void the_second_runs_instead(void **state)
{
        static const struct rv_fake_step slow_cannot[] = { { .kind = RV_FAKE_HELD },
                { .kind = RV_FAKE_OBSERVE, .after_ms = 200, .seen = &no_setup } };
        const struct case_ c = { .name = "the first cannot",
                .request = PLAIN_WITH(KEY),
                .has_company = true,
                .script = { .steps = slow_cannot, .n_steps = RV_N_ELEMENTS(slow_cannot), .call = start_same_well } };
        struct bench *b = *state;

        perform(b, &c);
        expect_run(b, "backend_failed");
        finish_second(b);
        if (!second.outcome)
                fail_msg("%s: the second: %s", c.name, rv_json_get_string(second.problem, "detail", "no detail"));
        assert_false(json_is_true(json_object_get(second.outcome, "replayed")));
        assert_string_equal(rv_json_get_string(second.outcome, "status", ""), "completed");
        assert_string_not_equal(rv_json_get_string(second.outcome, "run_id", ""), b->run_id);
        forget_second();
}

static void start_impatient(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        if (call == RV_FAKE_GO)
                start_second(ctx, PLAIN_WITH(KEY), true, 0);
}

static void the_second_does_not_wait(void **state)
{
        const struct case_ c = { .name = "no patience", .request = PLAIN_WITH(KEY), .has_company = true, .script = { .steps = slow, .n_steps = RV_N_ELEMENTS(slow), .call = start_impatient } };
        struct bench *b = *state;

        perform(b, &c);
        assert_true(second.is_released);
        rv_run_free(second.run);
        assert_int_equal(json_integer_value(json_object_get(second.problem, "status")), 409);
        assert_in_range(json_integer_value(json_object_get(second.problem, "retry_after_s")), 1, 30);
        expect_kinds(b, "decision rejected outcome");
        assert_int_equal(json_integer_value(json_object_get(json_array_get(b->records, 1), "status")), 409);
        forget_second();
}

static void start_other(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        if (call == RV_FAKE_GO)
                start_second(ctx, PLAIN_WITH(KEY ",\"timeout_s\":29"), false, 0);
}

static void another_request_in_flight(void **state)
{
        const struct case_ c = { .name = "another request in flight", .request = PLAIN_WITH(KEY), .has_company = true, .script = { .steps = slow, .n_steps = RV_N_ELEMENTS(slow), .call = start_other } };
        struct bench *b = *state;

        perform(b, &c);
        assert_true(second.is_released);
        rv_run_free(second.run);
        assert_int_equal(json_integer_value(json_object_get(second.problem, "status")), 422);
        forget_second();
}

static void start_and_stop(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        if (call != RV_FAKE_GO)
                return;
        start_second(ctx, PLAIN_WITH(KEY), false, 0);
        assert_false(second.is_released);
        rv_run_stop(second.run, RV_STOP_CANCELLED);
        assert_true(second.is_released);
        rv_run_free(second.run);
}

static void the_wait_is_cancelled(void **state)
{
        const struct case_ c = { .name = "a cancelled wait", .request = PLAIN_WITH(KEY), .has_company = true, .script = { .steps = slow, .n_steps = RV_N_ELEMENTS(slow), .call = start_and_stop } };
        struct bench *b = *state;

        perform(b, &c);
        expect_run(b, "ok");
        assert_int_equal(json_integer_value(json_object_get(second.problem, "status")), 409);
        assert_non_null(strstr(rv_json_get_string(second.problem, "type", ""), "wait-ended"));
        expect_kinds(b, "decision rejected outcome");
        forget_second();
}

/* Between the look and the claim: both found the key free, and one run comes of it. */
static struct bench *racing;

static void can_race(void *backend_state, struct rv_manifest *ret)
{
        struct bench *b = racing;

        racing = NULL;
        if (b)
                start_second(b, PLAIN_WITH(KEY), false, 0);
        rv_fake_backend.can(backend_state, ret);
}

static void both_found_it_free(void **state)
{
        const struct case_ c = { .name = "a race", .request = PLAIN_WITH(KEY), .has_company = true, .script = SCRIPT(slow) };
        struct rv_backend backend = rv_fake_backend;
        struct bench *b = *state;

        backend.can = can_race;
        b->core.backends[0].backend = &backend;
        racing = b;
        second.is_released = false;
        perform(b, &c);
        finish_second(b);
        if (!second.outcome)
                fail_msg("%s: the second: %s", c.name, rv_json_get_string(second.problem, "detail", "no detail"));
        assert_false(json_is_true(json_object_get(second.outcome, "replayed")));
        expect_number(b, "replayed", json_is_true(json_object_get(b->outcome, "replayed")), 1);
        expect_text(b, "run_id", b->run_id, rv_json_get_string(second.outcome, "run_id", ""));
        expect_number(b, "the number of starts", b->calls.n_starts, 1);
        expect_kinds(b, "decision outcome idempotent_replay");
        forget_second();
        b->core.backends[0].backend = &rv_fake_backend;
}

/* ---- The log fails ---- */

static void fill_disk(struct bench *b)
{
        struct rlimit limit = { .rlim_max = RLIM_INFINITY };
        struct stat st = { 0 };

        (void)stat(in_state(&b->tmp, SEGMENT), &st);
        limit.rlim_cur = (rlim_t)st.st_size + 50;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void fill_at_go(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        if (call == RV_FAKE_GO)
                fill_disk(ctx);
}

/* The bytes that are kept are those of the answer that went out, which says that it is not recorded. */
static void unrecorded(void **state)
{
        const struct case_ c = { .name = "unrecorded", .request = PLAIN_WITH(KEY), .script = { .steps = bad, .n_steps = RV_N_ELEMENTS(bad), .call = fill_at_go } };
        struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct bench *b = *state;
        char sha256[RV_SHA256_HEX_SIZE];

        perform(b, &c);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        expect_number(b, "recorded", json_is_true(json_object_get(b->outcome, "recorded")), 0);
        assert_int_equal(rv_read_file_at(AT_FDCWD, stored(b), 1 << 20, &text), 0);
        rv_sha256_hex(text.data, text.size, sha256);
        expect_text(b, "the stored bytes' digest", sha256, b->outcome_sha256);
}

static void replay_is_not_recorded(void **state)
{
        const struct case_ c = { .name = "a replay without a log", .request = PLAIN_WITH(KEY), .script = SCRIPT(good) };
        struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
        struct bench *b = *state;

        perform(b, &c);
        fill_disk(b);
        perform(b, &c);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_non_null(b->problem);
        expect_number(b, "status", json_integer_value(json_object_get(b->problem, "status")), 503);
        expect_kinds(b, "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ON_BENCH(given_again),
                cmocka_unit_test(taken_or_free),
                ON_BENCH(another_request),
                ON_BENCH(scopes),
                ON_BENCH(no_key),
                ON_BENCH(lost_bytes),
                ON_BENCH(forged_bytes),
                ON_BENCH(index_is_gone),
                ON_BENCH(the_second_waits),
                ON_BENCH(the_second_runs_instead),
                ON_BENCH(the_second_does_not_wait),
                ON_BENCH(another_request_in_flight),
                ON_BENCH(the_wait_is_cancelled),
                ON_BENCH(both_found_it_free),
                ON_BENCH(unrecorded),
                ON_BENCH(replay_is_not_recorded),
        };

        signal(SIGXFSZ, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
