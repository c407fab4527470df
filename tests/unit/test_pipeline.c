/*
 * The pipeline from the request's text to the answer, over a backend that plays scripts: every outcome of a
 * run that was let through, each with its steps by timers and all at once, and what is recorded of it.
 */
#include "test_pipeline.h"

#include <sys/wait.h>

#define EXITED(code) ((code) << 8)
#define SEEN .is_teardown_complete = 1, .memory_limit_bytes = 512 << 20
#define OUT_OF_MEMORY .n_oom_kills = 1, .is_memory_limit_reached = 1, SEEN
#define ENDED_WITH(status) { .started = RV_STARTED_YES, .has_wait_status = 1, .wait_status = (status), .wall_us = 1234, SEEN }

static const struct rv_observation
        ok = ENDED_WITH(0), exit_7 = ENDED_WITH(EXITED(7)), segv = ENDED_WITH(SIGSEGV), sigkill = ENDED_WITH(SIGKILL),
        killed = { .started = RV_STARTED_YES, .was_stopped = 1, SEEN },
        killed_held = { .started = RV_STARTED_NO, .was_stopped = 1, SEEN },
        killed_unknown = { .started = RV_STARTED_UNKNOWN, .was_stopped = 1, SEEN },
        over_memory = { .started = RV_STARTED_YES, .was_stopped = 1, OUT_OF_MEMORY },
        over_memory_exit_0 = { .started = RV_STARTED_YES, .has_wait_status = 1, OUT_OF_MEMORY },
        host_memory = { .started = RV_STARTED_YES, .has_wait_status = 1, .wait_status = SIGKILL, .n_oom_kills = 1 },
        lost = { .started = RV_STARTED_YES, .fault = RV_BACKEND_FAULT_LOST, .fault_step = "watch the run",
                 .fault_text = "the spawner ended unexpectedly", .is_teardown_complete = 0 },
        lost_unknown = { .started = RV_STARTED_UNKNOWN, .fault = RV_BACKEND_FAULT_LOST },
        lost_before = { .started = RV_STARTED_NO, .fault = RV_BACKEND_FAULT_LOST, .fault_text = "the spawner ended unexpectedly" },
        no_setup = { .started = RV_STARTED_NO, .fault = RV_BACKEND_FAULT_SETUP, .fault_errno = EPERM, .fault_step = "mount /proc",
                     .fault_text = "cannot mount /proc: Operation not permitted; see reeve doctor", .is_teardown_complete = 1 },
        no_runtime = { .started = RV_STARTED_NO, .fault = RV_BACKEND_FAULT_RUNTIME, .fault_errno = ENOENT, .fault_step = "find the interpreter",
                       .fault_text = "no python interpreter for runtime host: /usr/bin/python3: No such file or directory", .is_teardown_complete = 1 },
        no_capability = { .started = RV_STARTED_NO, .fault = RV_BACKEND_FAULT_CAPABILITY, .fault_errno = EROFS, .fault_step = "memory",
                          .fault_text = "cannot write the limit memory.limit_in_bytes: Read-only file system", .is_teardown_complete = 1 };

#define HELD { .kind = RV_FAKE_HELD }
#define STARTED { .kind = RV_FAKE_STARTED }
#define ENDED { .kind = RV_FAKE_ENDED }
#define SAY(text) { .kind = RV_FAKE_OUTPUT, .data = (text), .n_bytes = sizeof(text) - 1 }
#define TELL(text) { .kind = RV_FAKE_OUTPUT, .stream = RV_STREAM_STDERR, .data = (text), .n_bytes = sizeof(text) - 1 }
#define OBSERVE(o) { .kind = RV_FAKE_OBSERVE, .seen = &(o) }
#define OBSERVE_WITH(o, text) { .kind = RV_FAKE_OBSERVE, .seen = &(o), .result = (text) }
#define FLOOD(to, n) { .kind = RV_FAKE_OUTPUT, .stream = (to), .data = mebibyte, .n_bytes = sizeof(mebibyte), .n_times = (n) }
#define TEST { .kind = RV_FAKE_CALL }
#define STEPS(...) .steps = (const struct rv_fake_step[]){ __VA_ARGS__ }, \
                   .n_steps = sizeof((const struct rv_fake_step[]){ __VA_ARGS__ }) / sizeof(struct rv_fake_step)

static char mebibyte[1 << 20];

/* ---- What tests do in the middle of a run ---- */

static void cancel(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        struct bench *b = ctx;

        if (call == RV_FAKE_STEP)
                rv_run_stop(b->run, RV_STOP_CANCELLED);
}

static void shut_down(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        struct bench *b = ctx;

        if (call == RV_FAKE_STEP)
                rv_run_stop(b->run, RV_STOP_SHUTDOWN);
}

/* The first reason stays. */
static void cancel_then_shut_down(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        cancel(ctx, call, plan);
        shut_down(ctx, call, plan);
}

#define IN_DOMAINS PLAIN_WITH("\"network\":{\"mode\":\"domains\",\"domains\":[\"example.com\"]}")
#define ONE_SECOND PLAIN_WITH("\"timeout_s\":1")
#define NETWORK_ONE_SECOND PLAIN_WITH("\"timeout_s\":1,\"network\":{\"mode\":\"any\"}")

enum { BY_TIMERS = 1, AT_ONCE = 2, BOTH = 3 };

static const struct {
        struct case_ c;
        const char *code, *status, *started, *phase;
        int exit_status;
        unsigned n_stops;
        enum rv_stop why;
        int ways;               /* a call before start() returned cannot stop a run that has no handle */
} outcomes[] = {
        { { .name = "completed", .script = { STEPS(HELD, STARTED, SAY("hello\n"), ENDED, OBSERVE(ok)) } },
          "ok", "completed", "yes", "run", 0, 0, 0, BOTH },
        { { .name = "completed although nobody told of held, started or ended", .script = { STEPS(OBSERVE(ok)) } },
          "ok", "completed", "yes", "run", 0, 0, 0, BOTH },
        { { .name = "released late", .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)), .release_ms = 60, .is_unclean = 1 } },
          "ok", "completed", "yes", "run", 0, 0, 0, BOTH },
        { { .name = "exit_nonzero", .script = { STEPS(HELD, STARTED, TELL("no\n"), ENDED, OBSERVE(exit_7)) } },
          "exit_nonzero", "failed", "yes", "run", 7, 0, 0, BOTH },
        { { .name = "signal", .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(segv)) } },
          "signal", "failed", "yes", "run", 128 + SIGSEGV, 0, 0, BOTH },
        { { .name = "a SIGKILL that nobody can account for", .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(sigkill)) } },
          "signal", "failed", "yes", "run", 137, 0, 0, BOTH },
        { { .name = "the same with network access", .request = IN_DOMAINS, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(sigkill)) } },
          "signal", "outcome_unknown", "yes", "run", 120, 0, 0, BOTH },
        { { .name = "timeout in run", .request = ONE_SECOND, .script = { STEPS(HELD, STARTED), .on_stop = &killed } },
          "timeout", "failed", "yes", "run", 124, 1, RV_STOP_TIMEOUT, BOTH },
        { { .name = "timeout with network access", .request = NETWORK_ONE_SECOND, .script = { STEPS(HELD, STARTED), .on_stop = &killed } },
          "timeout", "outcome_unknown", "yes", "run", 120, 1, RV_STOP_TIMEOUT, AT_ONCE },
        { { .name = "timeout, but PID 1 had reaped it", .request = ONE_SECOND, .script = { STEPS(HELD, STARTED), .on_stop = &exit_7 } },
          "exit_nonzero", "failed", "yes", "run", 7, 1, RV_STOP_TIMEOUT, AT_ONCE },
        { { .name = "timeout, stop() ignored, ended by itself", .request = ONE_SECOND,
            .script = { STEPS(HELD, STARTED, { .kind = RV_FAKE_OBSERVE, .seen = &ok, .after_ms = 1100 }) } },
          "ok", "completed", "yes", "run", 0, 1, RV_STOP_TIMEOUT, BY_TIMERS },
        { { .name = "timeout in start, held", .start_ms = 40, .script = { STEPS(HELD), .on_stop = &killed_held, .stop_ms = 20 } },
          "timeout", "failed", "no", "start", 125, 1, RV_STOP_TIMEOUT, BOTH },
        { { .name = "timeout in start, not even held", .start_ms = 40, .script = { .on_stop = &killed_held } },
          "timeout", "failed", "no", "start", 125, 1, RV_STOP_TIMEOUT, BOTH },
        { { .name = "timeout in start, may have started", .start_ms = 40, .script = { STEPS(HELD), .on_stop = &killed_unknown } },
          "timeout", "failed", "unknown", "start", 124, 1, RV_STOP_TIMEOUT, BOTH },
        { { .name = "the same with network access", .request = IN_DOMAINS, .start_ms = 40, .script = { STEPS(HELD), .on_stop = &killed_unknown } },
          "timeout", "outcome_unknown", "unknown", "start", 120, 1, RV_STOP_TIMEOUT, BOTH },
        { { .name = "memory_limit", .script = { STEPS(HELD, STARTED, OBSERVE(over_memory)) } },
          "memory_limit", "failed", "yes", "run", 137, 0, 0, BOTH },
        { { .name = "memory_limit although it exited with 0", .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(over_memory_exit_0)) } },
          "memory_limit", "failed", "yes", "run", 137, 0, 0, BOTH },
        { { .name = "out of memory, but not its own", .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(host_memory)) } },
          "backend_lost", "failed", "yes", "run", 125, 0, 0, BOTH },
        { { .name = "output_limit on stdout",
            .script = { STEPS(HELD, STARTED, FLOOD(RV_STREAM_STDOUT, 64), SAY("."), SAY("and more before it is dead")),
                        .on_stop = &killed, .stop_ms = 5 } },
          "output_limit", "failed", "yes", "run", 123, 1, RV_STOP_OUTPUT_LIMIT, BOTH },
        { { .name = "output_limit on stderr",
            .script = { STEPS(HELD, STARTED, FLOOD(RV_STREAM_STDERR, 65)), .on_stop = &killed } },
          "output_limit", "failed", "yes", "run", 123, 1, RV_STOP_OUTPUT_LIMIT, BOTH },
        { { .name = "exactly at the ceiling",
            .script = { STEPS(HELD, STARTED, FLOOD(RV_STREAM_STDOUT, 64), ENDED, OBSERVE(ok)), .on_stop = &killed } },
          "ok", "completed", "yes", "run", 0, 0, 0, BOTH },
        { { .name = "cancelled before held", .script = { STEPS(TEST, HELD, STARTED, OBSERVE(ok)), .on_stop = &killed_held, .call = cancel } },
          "cancelled", "failed", "no", "start", 130, 1, RV_STOP_CANCELLED, BY_TIMERS },
        { { .name = "cancelled while held", .script = { STEPS(HELD, TEST, STARTED, OBSERVE(ok)), .on_stop = &killed_held, .call = cancel } },
          "cancelled", "failed", "no", "start", 130, 1, RV_STOP_CANCELLED, BY_TIMERS },
        { { .name = "cancelled while running", .script = { STEPS(HELD, STARTED, SAY("a"), TEST, SAY("b"), OBSERVE(ok)), .on_stop = &killed, .call = cancel } },
          "cancelled", "failed", "yes", "run", 130, 1, RV_STOP_CANCELLED, BOTH },
        { { .name = "cancelled with network access", .request = IN_DOMAINS,
            .script = { STEPS(HELD, STARTED, TEST, OBSERVE(ok)), .on_stop = &killed, .call = cancel } },
          "cancelled", "outcome_unknown", "yes", "run", 120, 1, RV_STOP_CANCELLED, BOTH },
        { { .name = "cancelled when it had ended", .script = { STEPS(HELD, STARTED, ENDED, TEST, OBSERVE(exit_7)), .call = cancel } },
          "exit_nonzero", "failed", "yes", "run", 7, 1, RV_STOP_CANCELLED, BOTH },
        { { .name = "cancelled twice", .script = { STEPS(HELD, STARTED, TEST, TEST), .on_stop = &killed, .call = cancel, .stop_ms = 30 } },
          "cancelled", "failed", "yes", "run", 130, 1, RV_STOP_CANCELLED, BOTH },
        { { .name = "shutdown while held", .script = { STEPS(HELD, TEST), .on_stop = &killed_held, .call = shut_down } },
          "shutdown", "failed", "no", "start", 143, 1, RV_STOP_SHUTDOWN, BY_TIMERS },
        { { .name = "shutdown while running", .script = { STEPS(HELD, STARTED, TEST), .on_stop = &killed, .call = shut_down } },
          "shutdown", "failed", "yes", "run", 143, 1, RV_STOP_SHUTDOWN, BOTH },
        { { .name = "the first reason stays", .script = { STEPS(HELD, STARTED, TEST), .on_stop = &killed, .call = cancel_then_shut_down, .stop_ms = 10 } },
          "cancelled", "failed", "yes", "run", 130, 1, RV_STOP_CANCELLED, BOTH },
        { { .name = "backend_lost while running", .script = { STEPS(HELD, STARTED, SAY("kept\n"), OBSERVE(lost)) } },
          "backend_lost", "failed", "yes", "run", 125, 0, 0, BOTH },
        { { .name = "the same with network access", .request = IN_DOMAINS, .script = { STEPS(HELD, STARTED, OBSERVE(lost)) } },
          "backend_lost", "outcome_unknown", "yes", "run", 120, 0, 0, BOTH },
        { { .name = "backend_lost, may have started", .request = IN_DOMAINS, .script = { STEPS(HELD, OBSERVE(lost_unknown)) } },
          "backend_lost", "outcome_unknown", "unknown", "run", 120, 0, 0, BOTH },
        { { .name = "backend_lost before the start", .script = { STEPS(OBSERVE(lost_before)) } },
          "backend_lost", "failed", "no", "start", 125, 0, 0, BOTH },
        { { .name = "backend_failed", .script = { STEPS(OBSERVE(no_setup)) } },
          "backend_failed", "failed", "no", "start", 125, 0, 0, BOTH },
        { { .name = "backend_failed when it was held", .script = { STEPS(HELD, OBSERVE(no_setup)) } },
          "backend_failed", "failed", "no", "start", 125, 0, 0, BOTH },
        { { .name = "start() fails", .script = { .start_error = EMFILE } },
          "backend_failed", "failed", "no", "start", 125, 0, 0, BOTH },
        { { .name = "runtime_unavailable", .script = { STEPS(OBSERVE(no_runtime)) } },
          "runtime_unavailable", "failed", "no", "start", 125, 0, 0, BOTH },
        { { .name = "a capability found missing by trying", .script = { STEPS(OBSERVE(no_capability)) } },
          "backend_denied", "blocked", "no", "plan", 126, 0, 0, BOTH },
};

static void check_outcome(struct bench *b, size_t i)
{
        expect_text(b, "code", reason_of(b, "code"), outcomes[i].code);
        expect_text(b, "status", rv_json_get_string(b->outcome, "status", ""), outcomes[i].status);
        expect_text(b, "started", rv_json_get_string(b->outcome, "started", ""), outcomes[i].started);
        expect_text(b, "phase", reason_of(b, "phase"), outcomes[i].phase);
        expect_number(b, "exit status", b->exit_status, outcomes[i].exit_status);
        expect_number(b, "the number of stops", b->calls.n_stops, outcomes[i].n_stops);
        expect_number(b, "the reason given to stop()", b->calls.why, outcomes[i].why);
        expect_text(b, "backend.name", rv_json_get_string(json_object_get(b->outcome, "backend"), "name", ""), "fake");
}

static void every_outcome(void **state)
{
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(outcomes); i++) {
                if (outcomes[i].ways & BY_TIMERS) {
                        perform(b, &outcomes[i].c);
                        check_outcome(b, i);
                }
                if (outcomes[i].ways & AT_ONCE) {
                        perform(b, at_once(&outcomes[i].c));
                        check_outcome(b, i);
                }
        }
}

static void every_outcome_freed_at_once(void **state)
{
        struct bench *b = *state;

        b->is_free_in_released = true;
        for (size_t i = 0; i < RV_N_ELEMENTS(outcomes); i++) {
                if (outcomes[i].c.request)
                        continue;               /* the slow ones add nothing here */
                perform(b, outcomes[i].ways & AT_ONCE ? at_once(&outcomes[i].c) : &outcomes[i].c);
                check_outcome(b, i);
        }
}

/* ---- What the outcome says besides ---- */

static json_t *stream_of(const struct bench *b, const char *name)
{
        return json_object_get(b->outcome, name);
}

static void output_is_kept_and_passed_on(void **state)
{
        const struct case_ c = { .name = "output", .script = {
                STEPS(HELD, STARTED, SAY("one \xc3"), TELL("err"), SAY("\xa4 two"), SAY("\xff"), ENDED, SAY(" late"), OBSERVE(exit_7)) } };
        struct bench *b = *state;

        perform(b, &c);
        expect_text(b, "stdout", rv_json_get_string(stream_of(b, "stdout"), "text", ""), "one \xc3\xa4 two\xef\xbf\xbd late");
        expect_number(b, "stdout.characters", json_integer_value(json_object_get(stream_of(b, "stdout"), "characters")), 15);
        expect_number(b, "stdout.bytes", json_integer_value(json_object_get(stream_of(b, "stdout"), "bytes")), 16);
        expect_number(b, "stdout.invalid_utf8", json_is_true(json_object_get(stream_of(b, "stdout"), "invalid_utf8")), 1);
        expect_text(b, "stderr", rv_json_get_string(stream_of(b, "stderr"), "text", ""), "err");
        expect_text(b, "what was passed on", b->live[0].data, "one \xc3\xa4 two\xff late");
        expect_text(b, "what was passed on of stderr", b->live[1].data, "err");
        expect_number(b, "the record's stdout_bytes",
                json_integer_value(json_object_get(json_array_get(b->records, 1), "stdout_bytes")), 16);
}

static void results(void **state)
{
        static const struct {
                const char *name, *text, *value;
                bool has_note;
        } rows[] = {
                { "none", NULL, "null", false },
                { "an object", " {\"a\": [1, 2.5]} ", "{\"a\":[1,2.5]}", false },
                { "no JSON", "{", "null", true },
        };
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const struct rv_fake_step steps[] = { HELD, STARTED, ENDED, OBSERVE_WITH(exit_7, rows[i].text) };
                const struct case_ c = { .name = rows[i].name, .script = { .steps = steps, .n_steps = 4 } };
                _cleanup_(rv_freep) char *text = NULL;

                perform(b, &c);
                text = json_dumps(json_object_get(b->outcome, "result"), JSON_COMPACT | JSON_ENCODE_ANY);
                expect_text(b, "result", text, rows[i].value);
                expect_number(b, "a note", json_is_string(json_object_get(b->outcome, "result_note")), rows[i].has_note);
        }
}

/* What was not executed can have left no result: what lies there is not looked at, but closed. */
static void a_result_without_a_start(void **state)
{
        const struct case_ c = { .name = "a result without a start", .script = {
                STEPS({ .kind = RV_FAKE_OBSERVE, .seen = &no_setup, .result = "1" }) } };
        struct bench *b = *state;

        perform(b, &c);
        expect_number(b, "result is null", json_is_null(json_object_get(b->outcome, "result")), 1);
}

static void details(void **state)
{
        const struct case_ lost_case = { .name = "lost", .script = { STEPS(HELD, STARTED, OBSERVE(lost)) } };
        const struct case_ runtime_case = { .name = "no runtime", .script = { STEPS(OBSERVE(no_runtime)) } };
        const struct case_ limit_case = { .name = "start budget", .start_ms = 150, .script = { STEPS(HELD), .on_stop = &killed_held } };
        const struct case_ missing_case = { .name = "capability", .script = { STEPS(OBSERVE(no_capability)) } };
        struct bench *b = *state;

        perform(b, &lost_case);
        expect_text(b, "detail.cause", rv_json_get_string(detail_of(b), "cause", ""), "watcher_lost");
        expect_text(b, "backend.teardown", rv_json_get_string(json_object_get(b->outcome, "backend"), "teardown", ""), "incomplete");
        perform(b, &runtime_case);
        expect_text(b, "detail.path", rv_json_get_string(detail_of(b), "path", ""), "/usr/bin/python3");
        expect_text(b, "backend.teardown", rv_json_get_string(json_object_get(b->outcome, "backend"), "teardown", ""), "complete");
        perform(b, &limit_case);
        expect_number(b, "detail.limit_ms", json_integer_value(json_object_get(detail_of(b), "limit_ms")), 150);
        expect_number(b, "retryable", json_is_true(json_object_get(json_object_get(b->outcome, "reason"), "retryable")), 1);
        perform(b, &missing_case);
        expect_text(b, "detail.missing", json_string_value(json_array_get(json_object_get(detail_of(b), "missing"), 0)), "memory");
}

/* ---- What the backend is given ---- */

static void check_plan(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        struct bench *b = ctx;

        if (call != RV_FAKE_GO)
                return;
        expect_text(b, "plan.tenant", plan->tenant, "local");
        expect_text(b, "plan.runtime", plan->runtime, "host");
        expect_number(b, "plan.language", plan->language, RV_PLAN_JAVASCRIPT);
        expect_number(b, "plan.network", plan->network, RV_PLAN_NETWORK_DOMAINS);
        expect_number(b, "plan.timeout_s", plan->timeout_s, 7);          /* lowered by policy */
        expect_number(b, "plan.memory_mib", plan->memory_mib, 200);      /* below what policy allows */
        expect_number(b, "plan.pids", plan->pids, 77);
        expect_number(b, "plan.cpus_milli", plan->cpus_milli, 0);
        expect_number(b, "plan.teardown_ms", plan->teardown_ms, 700);
        expect_number(b, "plan.collect_ms", plan->collect_ms, 300);
        expect_number(b, "plan.source_bytes", (long long)plan->source_bytes, 6);
        expect_number(b, "plan.source", memcmp(plan->source, "var a\n", 6), 0);
        expect_number(b, "plan.stdin_bytes", (long long)plan->stdin_bytes, 5);
        expect_number(b, "plan.stdin", memcmp(plan->stdin_data, "in\0\xc3\xa4", 5), 0);
        expect_number(b, "plan.n_env", (long long)plan->n_env, 2);
        expect_text(b, "plan.env[0]", plan->env[0].name, "A");
        expect_text(b, "plan.env[1]", plan->env[1].name, "B");
        expect_text(b, "plan.env[1]", plan->env[1].value, "b=1");
        expect_text(b, "plan.idempotency_key", plan->idempotency_key, "k 1");
        expect_number(b, "plan.run_id", (long long)strspn(plan->run_id, "0123456789abcdef"), 32);
}

static void the_plan(void **state)
{
        struct case_ c = { .name = "plan", .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)), .call = check_plan },
                           .request = "{\"language\":\"javascript\",\"source\":\"var a\\n\",\"timeout_s\":9,\"memory_mib\":200,"
                                      "\"env\":{\"B\":\"b=1\",\"A\":\"\"},\"stdin\":\"in\\u0000\\u00e4\",\"idempotency_key\":\"k 1\","
                                      "\"network\":{\"mode\":\"domains\",\"domains\":[\"b.example\",\"a.example\"]}}" };
        struct bench *b = *state;
        struct rv_bundle *bundle = load_bundle(b, "lowers", "return policy { packages = { default = 'allow' }, network = { default = 'allow' }, "
                "idempotency = { default = 'none' }, backend = { default = 'tenant' }, limits = { timeout_s = { max = 7 }, memory_mib = { max = 300 } } }");

        c.bundle = bundle;
        perform(b, &c);
        expect_number(b, "go() was called", b->calls.n_goes, 1);
        expect_number(b, "limits.timeout_s", json_integer_value(json_object_get(json_object_get(b->outcome, "limits"), "timeout_s")), 7);
        expect_number(b, "limits.memory_mib", json_integer_value(json_object_get(json_object_get(b->outcome, "limits"), "memory_mib")), 200);
        expect_number(b, "repeat_safe", json_is_true(json_object_get(b->outcome, "repeat_safe")), 0);
        rv_bundle_free(bundle);
}

/* ---- What is recorded, and what is not ---- */

static void no_secret_is_recorded(void **state)
{
        const struct case_ c = { .name = "secrets", .script = { STEPS(HELD, STARTED, SAY("OUTPUT-SECRET"), ENDED, OBSERVE(ok)) },
                .request = "{\"language\":\"python\",\"source\":\"SOURCE-SECRET\",\"env\":{\"TOKEN\":\"ENV-SECRET\"},"
                           "\"stdin\":\"STDIN-SECRET\",\"idempotency_key\":\"KEY-SECRET\"}" };
        struct bench *b = *state;
        const json_t *decision;
        char hmac[65], sha256[RV_SHA256_HEX_SIZE];

        perform(b, &c);         /* looks for SECRET in the log */
        decision = json_array_get(b->records, 0);
        rv_sha256_hex("SOURCE-SECRET", 13, sha256);
        expect_text(b, "source", rv_json_get_string(json_object_get(decision, "source"), "sha256", ""), sha256);
        rv_log_hmac(b->core.log, "[\"local\",\"alice\",\"KEY-SECRET\"]", 30, hmac);
        expect_text(b, "key", rv_json_get_string(json_object_get(decision, "key"), "hmac_sha256", ""), hmac);
        rv_log_hmac(b->core.log, "STDIN-SECRET", 12, hmac);
        expect_text(b, "stdin", rv_json_get_string(json_object_get(decision, "stdin"), "hmac_sha256", ""), hmac);
        rv_log_hmac(b->core.log, "ENV-SECRET", 10, hmac);
        expect_text(b, "env", rv_json_get_string(json_array_get(json_object_get(decision, "env"), 0), "hmac_sha256", ""), hmac);
        expect_number(b, "env[0].bytes", json_integer_value(json_object_get(json_array_get(json_object_get(decision, "env"), 0), "bytes")), 10);
        expect_text(b, "principal", rv_json_get_string(decision, "principal", ""), "alice");
        expect_text(b, "request_id", rv_json_get_string(decision, "request_id", ""), "req-1");
        expect_text(b, "trace_id", rv_json_get_string(decision, "trace_id", ""), "trace-1");
        expect_text(b, "stage", rv_json_get_string(decision, "stage", ""), "requested");
        expect_text(b, "bundle", rv_json_get_string(decision, "bundle", ""), rv_bundle_digest(b->bundle));
        for (size_t i = 0; i < 3; i++) {
                static const char *const digests[] = { "context_sha256", "verdict_sha256", "plan_sha256" };

                expect_number(b, digests[i], (long long)strlen(rv_json_get_string(decision, digests[i], "")), 64);
        }
}

/* Two runs at once on one loop: each has its own answer and its own records. */
struct twin {
        struct bench *b;
        struct rv_run *run;
        char run_id[64];
        unsigned n_answers, n_releases;
};

static unsigned n_twins_over;

static void twin_answered(void *ctx, struct rv_run *run)
{
        struct twin *t = ctx;

        t->n_answers++;
        snprintf(t->run_id, sizeof(t->run_id), "%s", rv_run_outcome(run)->run_id);
}

static void twin_released(void *ctx, struct rv_run *run)
{
        struct twin *t = ctx;

        t->n_releases++;
        rv_run_free(run);
        if (++n_twins_over == 2)
                rv_loop_stop(&t->b->loop);
}

static void two_at_once(void **state)
{
        const struct rv_fake_script script = { STEPS(HELD, STARTED, SAY("x"), ENDED, OBSERVE(ok)), .release_ms = 3 };
        struct bench *b = *state;
        struct twin twins[2] = { { .b = b }, { .b = b } };
        _cleanup_(rv_json_unrefp) json_t *records = NULL;

        n_twins_over = 0;
        rv_fake_play(b->backend_state, &script);
        for (size_t i = 0; i < 2; i++) {
                struct rv_run_input input = { .tenant = "local", .bundle = b->bundle, .text = PLAIN, .text_bytes = strlen(PLAIN),
                                              .ctx = &twins[i], .answered = twin_answered, .released = twin_released };

                assert_int_equal(rv_run_start(&b->core, &input, &twins[i].run), 0);
        }
        rv_loop_run(&b->loop);
        records = read_log(&b->tmp);
        assert_int_equal(json_array_size(records), 4);
        for (size_t i = 0; i < 2; i++) {
                unsigned n = 0;

                assert_int_equal(twins[i].n_answers, 1);
                assert_int_equal(twins[i].n_releases, 1);
                for (size_t j = 0; j < 4; j++)
                        n += !strcmp(member(records, j, "run_id"), twins[i].run_id);
                assert_int_equal(n, 2);
        }
        assert_string_not_equal(twins[0].run_id, twins[1].run_id);
        assert_null(rv_fake_calls(b->backend_state)->broken_rule);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ON_BENCH(every_outcome),
                ON_BENCH(every_outcome_freed_at_once),
                ON_BENCH(output_is_kept_and_passed_on),
                ON_BENCH(results),
                ON_BENCH(a_result_without_a_start),
                ON_BENCH(details),
                ON_BENCH(the_plan),
                ON_BENCH(no_secret_is_recorded),
                ON_BENCH(two_at_once),
        };

        memset(mebibyte, 'x', sizeof(mebibyte));
        return cmocka_run_group_tests(tests, NULL, NULL);
}
