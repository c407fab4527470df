/*
 * What is recorded of every way a request can end: one rejection, or one decision and one outcome that points back
 * to it, with digests of what stands there; and the same where records hide values.
 */
#include "audit/redact.h"
#include "test_pipeline.h"

#include "audit/live.h"
#include "run/recover.h"

static const struct rv_observation
        ok = { .started = RV_STARTED_YES, .has_wait_status = 1, .is_teardown_complete = 1 },
        exit_3 = { .started = RV_STARTED_YES, .has_wait_status = 1, .wait_status = 3 << 8, .is_teardown_complete = 1 },
        crash = { .started = RV_STARTED_YES, .has_wait_status = 1, .wait_status = SIGSEGV, .is_teardown_complete = 1 },
        killed = { .started = RV_STARTED_YES, .was_stopped = 1, .is_teardown_complete = 1 },
        killed_held = { .started = RV_STARTED_NO, .was_stopped = 1, .is_teardown_complete = 1 },
        memory = { .started = RV_STARTED_YES,
                .was_stopped = 1,
                .n_oom_kills = 1,
                .is_memory_limit_reached = 1,
                .memory_limit_bytes = 1,
                .is_teardown_complete = 1 },
        lost = { .started = RV_STARTED_UNKNOWN, .fault = RV_BACKEND_FAULT_LOST },
        no_setup = { .started = RV_STARTED_NO,
                .fault = RV_BACKEND_FAULT_SETUP,
                .fault_errno = EPERM,
                .fault_step = "mount",
                .fault_text = "no" },
        no_runtime = { .started = RV_STARTED_NO,
                .fault = RV_BACKEND_FAULT_RUNTIME,
                .fault_errno = ENOENT,
                .fault_step = "find",
                .fault_text = "no" };

static void stop(struct bench *b, enum rv_fake_call call, enum rv_stop why)
{
        if (call == RV_FAKE_STEP)
                rv_run_stop(b->run, why);
}

static void cancel(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        stop(ctx, call, RV_STOP_CANCELLED);
}

static void shut_down(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        stop(ctx, call, RV_STOP_SHUTDOWN);
}

#define RULES(packages, network, idempotency, backend, more) \
        "return policy { packages = { default = '" packages "' }, network = { default = '" network "' }, idempotency = { default = '" \
        idempotency "' }, backend = { " backend " default = 'tenant' }, " more " }"
#define ANY "\"network\":{\"mode\":\"any\"}"
#define SEES(o) .steps = (const struct rv_fake_step[]){ { .kind = RV_FAKE_HELD }, { .kind = RV_FAKE_STARTED }, { .kind = RV_FAKE_ENDED }, \
                { .kind = RV_FAKE_OBSERVE, .seen = &(o) } }, .n_steps = 4
#define FAILS(o) .steps = (const struct rv_fake_step[]){ { .kind = RV_FAKE_OBSERVE, .seen = &(o) } }, .n_steps = 1
#define WAITS .steps = (const struct rv_fake_step[]){ { .kind = RV_FAKE_HELD }, { .kind = RV_FAKE_CALL } }, .n_steps = 2
#define RUNS .steps = (const struct rv_fake_step[]){ { .kind = RV_FAKE_HELD }, { .kind = RV_FAKE_STARTED }, { .kind = RV_FAKE_CALL } }, .n_steps = 3

static const struct {
        struct case_ c;
        const char *policy;
        const char *code;        /* of the outcome; "" for a rejection */
        const char *refused;     /* in the decision; NULL: nothing */
} ends[] = {
        { { .name = "no JSON", .request = "{" }, NULL, "", NULL },
        { { .name = "out of bounds", .request = PLAIN_WITH("\"timeout_s\":301") }, NULL, "", NULL },
        { { .name = "not UTF-8", .request = "{\"language\":\"\xff\"}" }, NULL, "", NULL },
        { { .name = "a package denied", .request = PLAIN_WITH("\"packages\":[\"six>=1\"]") }, RULES("deny", "allow", "none", "", ""), "package_denied", NULL },
        { { .name = "the network denied", .request = PLAIN_WITH(ANY) }, RULES("allow", "deny", "none", "", ""), "network_denied", NULL },
        { { .name = "no key" }, RULES("allow", "allow", "require_key", "", ""), "idempotency_required", NULL },
        { { .name = "the backend denied" }, RULES("allow", "allow", "none", "rule { id = 'r', match = { mode = 'none' }, deny = 'no' },", ""), "backend_denied", NULL },
        { { .name = "a limit denied" }, RULES("allow", "allow", "none", "", "limits = { timeout_s = { deny_above = 1 } }"), "limit_denied", NULL },
        { { .name = "everything denied", .request = PLAIN_WITH("\"packages\":[\"six>=1\"]," ANY) },
          RULES("deny", "deny", "require_key", "", "limits = { timeout_s = { deny_above = 1 } }"), "package_denied", NULL },
        { { .name = "a rule that fails" }, RULES("allow", "allow", "none", "rule { id = 'r', when = function() error('x') end, use = 'fake' },", ""), "policy_error", NULL },
        { { .name = "a policy that does not load" }, "return 1", "policy_error", NULL },
        { { .name = "no bundle", .bundle_error = "gone" }, NULL, "policy_error", NULL },
        { { .name = "the tenant's ceiling", .tenant = "offline", .request = PLAIN_WITH(ANY) }, NULL, "network_denied", "network_denied" },
        { { .name = "an unknown backend", .tenant = "nowhere" }, NULL, "backend_denied", "backend_denied" },
        { { .name = "an unknown backend by policy" }, RULES("allow", "allow", "none", "rule { id = 'r', match = { mode = 'none' }, use = 'moon' },", ""),
          "backend_denied", "backend_denied" },
        /* What allowed them was on record before anybody looked for them. */
        { { .name = "packages that cannot be had", .request = PLAIN_WITH("\"packages\":[\"six>=1\"]") }, NULL, "backend_denied", NULL },
        { { .name = "packages, and no backend", .tenant = "nowhere", .request = PLAIN_WITH("\"packages\":[\"six>=1\"]") }, NULL, "backend_denied", NULL },
        { { .name = "no start", .script = { .start_error = EAGAIN } }, NULL, "backend_failed", NULL },
        { { .name = "no sandbox", .script = { FAILS(no_setup) } }, NULL, "backend_failed", NULL },
        { { .name = "no runtime", .script = { FAILS(no_runtime) } }, NULL, "runtime_unavailable", NULL },
        { { .name = "past the start's budget", .start_ms = 100, .script = { .on_stop = &killed_held } }, NULL, "timeout", NULL },
        { { .name = "cancelled before it started", .script = { WAITS, .on_stop = &killed_held, .call = cancel } }, NULL, "cancelled", NULL },
        { { .name = "cancelled", .script = { RUNS, .on_stop = &killed, .call = cancel } }, NULL, "cancelled", NULL },
        { { .name = "shut down", .script = { RUNS, .on_stop = &killed, .call = shut_down } }, NULL, "shutdown", NULL },
        { { .name = "cancelled with a network", .request = PLAIN_WITH(ANY), .script = { RUNS, .on_stop = &killed, .call = cancel } }, NULL, "cancelled", NULL },
        { { .name = "completed", .script = { SEES(ok) } }, NULL, "ok", NULL },
        { { .name = "exit status 3", .script = { SEES(exit_3) } }, NULL, "exit_nonzero", NULL },
        { { .name = "a signal", .script = { SEES(crash) } }, NULL, "signal", NULL },
        { { .name = "out of memory", .script = { SEES(memory) } }, NULL, "memory_limit", NULL },
        { { .name = "lost", .script = { SEES(lost) } }, NULL, "backend_lost", NULL },
        { { .name = "lost with a network", .request = PLAIN_WITH(ANY), .script = { SEES(lost) } }, NULL, "backend_lost", NULL },
        { { .name = "timed out", .request = PLAIN_WITH("\"timeout_s\":1"), .script = { RUNS, .on_stop = &killed } }, NULL, "timeout", NULL },
};

/* From the record alone, as an auditor would. */
static void check_digests(const struct bench *b, const json_t *decision)
{
        _cleanup_(rv_json_unrefp) json_t *context = NULL;
        char hex[RV_SHA256_HEX_SIZE];

        context = json_pack("{s:O, s:O, s:O}", "facts", json_object_get(decision, "facts"), "bundle", json_object_get(decision, "bundle"), "limits",
                            json_object_get(json_object_get(decision, "engine"), "limits"));
        assert_int_equal(rv_json_canonical_sha256(context, hex), 0);
        expect_text(b, "context_sha256", rv_json_get_string(decision, "context_sha256", ""), hex);
        assert_int_equal(rv_json_canonical_sha256(json_object_get(decision, "verdict"), hex), 0);
        expect_text(b, "verdict_sha256", rv_json_get_string(decision, "verdict_sha256", ""), hex);
}

static void check_end(struct bench *b, const char *code, const char *refused)
{
        const json_t *first = json_array_get(b->records, 0);

        if (!*code) {
                expect_kinds(b, "rejected");
                expect_number(b, "the record's status", json_integer_value(json_object_get(first, "status")), 422);
                expect_number(b, "the answer's status", json_integer_value(json_object_get(b->problem, "status")), 422);
                return;
        }
        expect_kinds(b, "decision outcome");
        expect_text(b, "code", reason_of(b, "code"), code);
        expect_text(b, "stage", rv_json_get_string(first, "stage", ""), "requested");
        expect_text(b, "refused", rv_json_get_string(first, "refused", "nothing"), refused ? refused : "nothing");
        check_digests(b, first);
}

static void perform_end(struct bench *b, size_t i)
{
        static struct case_ c;  /* the bench names it in its messages */
        struct rv_bundle *bundle = NULL;
        char name[32];

        c = ends[i].c;
        snprintf(name, sizeof(name), "policy-%zu", i);
        if (ends[i].policy)
                c.bundle = bundle = load_bundle(b, name, ends[i].policy);
        perform(b, &c);         /* which looks whether the records fit together and fit the answer */
        rv_bundle_free(bundle);
}

static void every_end(void **state)
{
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(ends); i++) {
                perform_end(b, i);
                check_end(b, ends[i].code, ends[i].refused);
        }
}

/* A verdict that came too late is not used, but stands in the record. */
static void a_late_decision(void **state)
{
        const struct case_ c = { .name = "past the budget for deciding" };
        struct bench *b = *state;

        b->config->phases.decide_ms = 0;
        perform(b, &c);
        check_end(b, "timeout", "timeout");
}

/* ---- Bounds of facts ---- */

static void add_labels(struct bench *b, struct rv_config_tenant *tenant, size_t n_bytes)
{
        struct rv_config_pair *pair = rv_arena_array(&b->config->arena, 1, sizeof(*pair));
        char *text = malloc(n_bytes + 1);

        memset(text, 'x', n_bytes);
        text[n_bytes] = 0;
        *pair = (struct rv_config_pair){ "long", rv_arena_strdup(&b->config->arena, text) };
        tenant->labels = (struct rv_config_pairs){ pair, 1 };
        free(text);
}

static void facts_that_are_too_large(void **state)
{
        const struct case_ c = { .name = "large facts", .script = { SEES(ok) } };
        struct bench *b = *state;
        struct rv_config_tenant *tenant = (struct rv_config_tenant *)rv_config_tenant(b->config, "local");
        const json_t *decision;

        add_labels(b, tenant, 1000000);
        perform(b, &c);
        check_end(b, "ok", NULL);
        add_labels(b, tenant, (1 << 20) - 100);
        perform(b, &c);
        check_end(b, "package_denied", NULL);
        expect_text(b, "detail.rule", rv_json_get_string(detail_of(b), "rule", ""), "closure_too_large");
        expect_number(b, "the number of starts", b->calls.n_starts, 0);
        decision = json_array_get(b->records, 0);
        expect_number(b, "facts.bytes_left_out", json_integer_value(json_object_get(json_object_get(decision, "facts"), "bytes_left_out")) > 1 << 20, 1);
}

/* ---- Where records hide values ---- */

static const char *const hidden[] = {
        "/tenant", "/principal", "/request_id", "/facts/request/principal", "/facts/request/tenant/labels/team", "/facts/packages/*", "/facts/network/*/domain",
        "/env/*/name", "/verdict/denials",
};

/* All that differs from run to run. */
static json_t *comparable(const json_t *outcome)
{
        json_t *copy = json_deep_copy(outcome);
        static const char *const changing[] = { "run_id", "decision_id", "timings_ms", "usage" };

        for (size_t i = 0; i < RV_N_ELEMENTS(changing); i++)
                json_object_del(copy, changing[i]);
        return copy;
}

static void answers_do_not_change(void **state)
{
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(ends); i++) {
                _cleanup_(rv_json_unrefp) json_t *plain = NULL, *redacted = NULL, *problem = NULL;

                assert_int_equal(rv_log_set_redaction(b->core.log, NULL, 0), 0);
                perform_end(b, i);
                plain = comparable(b->outcome);
                problem = json_incref(b->problem);
                assert_int_equal(rv_log_set_redaction(b->core.log, hidden, RV_N_ELEMENTS(hidden)), 0);
                perform_end(b, i);
                redacted = comparable(b->outcome);
                check_end(b, ends[i].code, ends[i].refused);
                if (b->outcome ? !json_equal(plain, redacted) : !json_equal(problem, b->problem))
                        fail_msg("%s: the answer is another one", ends[i].c.name);
                for (size_t k = 0; k < json_array_size(b->records); k++)
                        expect_number(b, "the tenant is hidden", rv_log_is_commitment(json_object_get(json_array_get(b->records, k), "tenant")), 1);
        }
}

static void what_is_hidden_is_nowhere(void **state)
{
        static const char *const secrets[] = { "alice", "req-1", "blue", "mallory-pkg", "mallory_pkg", "hidden.example", "MALLORY_ENV", "local" };
        struct case_ c = { .name = "hidden", .request = PLAIN_WITH("\"packages\":[\"Mallory_Pkg>=1\"],\"env\":{\"MALLORY_ENV\":\"x\"},"
                                "\"network\":{\"mode\":\"domains\",\"domains\":[\"hidden.example\",\"a.example\"]}") };
        struct bench *b = *state;
        struct rv_bundle *bundle = load_bundle(b, "talks", "return policy { packages = { rule { id = 'one', match = { name = 'mallory-pkg' }, "
                "deny = 'team blue may not have mallory-pkg' }, default = 'allow' }, network = { default = 'deny' }, "
                "idempotency = { default = 'none' }, backend = { default = 'tenant' } }");

        assert_int_equal(rv_log_set_redaction(b->core.log, hidden, RV_N_ELEMENTS(hidden)), 0);
        c.bundle = bundle;
        perform(b, &c);
        check_end(b, "package_denied", NULL);
        expect_text(b, "the answer's item", rv_json_get_string(detail_of(b), "item", ""), "mallory-pkg");
        expect_text(b, "the answer's tenant", rv_json_get_string(b->outcome, "tenant", ""), "local");
        for (size_t i = 0; i < RV_N_ELEMENTS(secrets); i++)
                expect_no_secret(b, secrets[i]);
        rv_bundle_free(bundle);
}

/* A reeve that dies between its decision and its outcome, which hide whose it was. */
static void recovered(void **state)
{
        const struct case_ c = { .name = "dies", .request = PLAIN_WITH(ANY), .script = { SEES(ok) } };
        struct bench *b = *state;
        _cleanup_(rv_log_closep) struct rv_log *next = NULL;
        _cleanup_(rv_json_unrefp) json_t *all = NULL;
        json_t *decision, *outcome;
        struct rv_error err = { 0 };

        assert_int_equal(rv_log_set_redaction(b->core.log, hidden, RV_N_ELEMENTS(hidden)), 0);
        fail_sync_at = 2;       /* of the outcome: it is left to the next reeve, and the decision stays owed */
        perform(b, &c);
        rv_log_close(rv_take(&b->core.log));
        next = open_log(&b->tmp);
        assert_int_equal(rv_log_set_redaction(next, hidden, RV_N_ELEMENTS(hidden)), 0);
        assert_int_equal(rv_log_enlist(next, NULL), 0);
        if (rv_run_recover(next, &err) < 0)
                fail_msg("%s", err.message);
        expect_no_secret(b, "alice");
        all = read_log(&b->tmp);
        decision = json_array_get(all, 0);
        outcome = json_array_get(all, json_array_size(all) - 1);
        expect_text(b, "the last record", rv_json_get_string(outcome, "kind", ""), "outcome");
        expect_number(b, "the same tenant", json_equal(json_object_get(decision, "tenant"), json_object_get(outcome, "tenant")), 1);
        expect_number(b, "a hidden principal", rv_log_is_commitment(json_object_get(outcome, "principal")), 1);
        b->core.log = rv_take(&next);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ON_BENCH(every_end),
                ON_BENCH(a_late_decision),
                ON_BENCH(facts_that_are_too_large),
                ON_BENCH(answers_do_not_change),
                ON_BENCH(what_is_hidden_is_nowhere),
                ON_BENCH(recovered),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
