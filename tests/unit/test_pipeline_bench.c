/* The bench of the pipeline's tests: see test_pipeline.h. */
#include "test_pipeline.h"

#include "audit/live.h"
#include "run/outcome_read.h"
#include "run/recover.h"

unsigned n_syncs, fail_sync_at;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
        if (++n_syncs == fail_sync_at) {
                errno = EIO;
                return -1;
        }
        return __real_fdatasync(fd);
}

/* ---- One reeve ---- */

static const char config_text[] =
        "state_dir: %s/state\n"
        "limits: {pids: 77}\n"
        "phases: {decide: 5s, teardown: 700ms, collect: 300ms}\n"
        "tenants:\n"
        "  local: {backend: fake, labels: {team: blue}}\n"
        "  offline: {backend: fake, network: none}\n"
        "  named: {backend: fake, network: domains}\n"
        "  nowhere: {backend: moonbase}\n";

static struct rv_config *make_config(struct bench *b)
{
        struct rv_config *config = NULL;
        struct rv_error err = { 0 };
        char text[1024];
        int n = snprintf(text, sizeof(text), config_text, b->dir);

        if (rv_config_parse(text, (size_t)n, "/bench.yaml", &config, &err) != 0)
                fail_msg("%s", err.message);
        return config;
}

int bench_make(void **state)
{
        struct bench *b = calloc(1, sizeof(*b));
        int fd;

        if (!b || tmp_make(&b->tmp) != 0)
                return -1;
        b->dir = b->tmp;
        n_syncs = fail_sync_at = 0;
        alarm(50);      /* a run that never ends must not hang the tests */
        b->config = make_config(b);
        assert_int_equal(rv_bundle_builtin(&b->bundle), 0);
        assert_int_equal(rv_loop_init(&b->loop), 0);
        rv_core_fill_host(&b->loop.host);
        b->core = (struct rv_core){ .config = b->config, .host = &b->loop.host, .log = open_log(&b->tmp) };
        assert_int_equal(rv_log_enlist(b->core.log, NULL), 0);
        assert_int_equal(rv_run_recover(b->core.log, NULL), 0);
        assert_int_equal(rv_core_add_backend(&b->core, &rv_fake_backend), 0);
        b->backend_state = b->core.backends[0].state;
        assert_int_equal(rv_gate_client_new(&b->loop.host, &b->core.gate), 0);
        fake_gate_open(&b->gate, &b->loop.host, &fd);
        rv_gate_client_serve(b->core.gate, fd);
        *state = b;
        return 0;
}

static void forget(struct bench *b)
{
        json_decref(b->outcome);
        json_decref(b->problem);
        json_decref(b->records);
        b->outcome = b->problem = b->records = NULL;
        rv_buf_fini(&b->live[0]);
        rv_buf_fini(&b->live[1]);
        b->run_id[0] = b->outcome_sha256[0] = 0;
        b->n_answers = b->n_releases = b->n_syncs_at_go = b->n_runs_at_go = 0;
        b->is_decided_at_go = false;
        b->exit_status = -1;
}

int bench_remove(void **state)
{
        struct bench *b = *state;

        alarm(0);
        forget(b);
        rv_core_fini(&b->core);
        rv_gate_client_free(b->core.gate);
        fake_gate_close(&b->gate);
        rv_loop_fini(&b->loop);
        rv_log_close(b->core.log);
        rv_bundle_free(b->bundle);
        rv_config_free(b->config);
        tmp_remove(&b->tmp);
        free(b);
        return 0;
}

struct rv_bundle *load_bundle(struct bench *b, const char *name, const char *policy)
{
        struct rv_bundle *bundle = NULL;
        struct rv_error err = { 0 };
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", b->dir, name);
        assert_int_equal(rv_mkdir_p(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/%s/policy.lua", b->dir, name);
        assert_int_equal(rv_write_file(path, policy, strlen(policy), 0600, false), 0);
        snprintf(path, sizeof(path), "%s/%s", b->dir, name);
        if (rv_bundle_load(path, &bundle, &err) != 0)
                fail_msg("bundle %s: %s", name, err.message);
        return bundle;
}

/* ---- Expectations ---- */

void expect_text(const struct bench *b, const char *what, const char *seen, const char *expected)
{
        if (!seen || strcmp(seen, expected) != 0)
                fail_msg("%s: %s is \"%s\", not \"%s\" (the reason's message: \"%s\")", b->now->name, what, seen ? seen : "(none)",
                        expected, reason_of(b, "message"));
}

void expect_number(const struct bench *b, const char *what, long long seen, long long expected)
{
        if (seen != expected)
                fail_msg("%s: %s is %lld, not %lld", b->now->name, what, seen, expected);
}

const char *reason_of(const struct bench *b, const char *name)
{
        return rv_json_get_string(json_object_get(b->outcome, "reason"), name, "");
}

json_t *detail_of(const struct bench *b)
{
        return json_object_get(json_object_get(b->outcome, "reason"), "detail");
}

void expect_kinds(const struct bench *b, const char *expected)
{
        char kinds[256] = "";
        json_t *record;
        size_t i;

        json_array_foreach(b->records, i, record)
                snprintf(kinds + strlen(kinds), sizeof(kinds) - strlen(kinds), "%s%s", i ? " " : "",
                        rv_json_get_string(record, "kind", "?"));
        expect_text(b, "the list of records", kinds, expected);
}

void expect_no_secret(struct bench *b, const char *secret)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        if (access(in_state(&b->tmp, SEGMENT), F_OK) < 0)
                return;
        read_segment(&b->tmp, &text);
        if (memmem(text.data, text.size, secret, strlen(secret)))
                fail_msg("%s: \"%s\" is in the log", b->now->name, secret);
}

/* ---- One run ---- */

static void on_output(void *ctx, enum rv_stream stream, const void *data, size_t n)
{
        struct bench *b = ctx;

        if (b->live[stream].size < 1 << 20)
                rv_buf_append(&b->live[stream], data, n);
}

static int sink_buf(void *ctx, const void *data, size_t n)
{
        return rv_buf_append(ctx, data, n);
}

static void on_answered(void *ctx, struct rv_run *run)
{
        _cleanup_(rv_outcome_kept_freep) struct rv_outcome_kept *kept = NULL;
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        const struct rv_outcome *outcome = rv_run_outcome(run);
        const struct rv_problem *problem = rv_run_problem(run);
        struct bench *b = ctx;

        b->n_answers++;
        expect_number(b, "releases before the answer", b->n_releases, 0);
        if (!!outcome == !!problem)
                fail_msg("%s: the answer is not one of an outcome and a problem", b->now->name);
        if (problem) {
                b->problem = rv_problem_to_json(problem);
                return;
        }
        assert_int_equal(rv_outcome_write(outcome, sink_buf, &text), 0);
        expect_number(b, "reading the outcome back", rv_outcome_read(text.data, text.size, &kept), 0);
        b->outcome = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        assert_non_null(b->outcome);
        rv_outcome_sha256(outcome, b->outcome_sha256);
        b->exit_status = rv_outcome_exit_status(&outcome->reason);
        snprintf(b->run_id, sizeof(b->run_id), "%s", rv_json_get_string(b->outcome, "run_id", ""));
}

static void on_released(void *ctx, struct rv_run *run)
{
        struct bench *b = ctx;

        b->n_releases++;
        if (b->is_free_in_released) {
                rv_run_free(run);
                b->run = NULL;
        }
        if (b->is_in_loop)
                rv_loop_stop(&b->loop);
}

static size_t count_records(struct bench *b, const char *kind)
{
        _cleanup_(rv_json_unrefp) json_t *records = read_log(&b->tmp);
        json_t *record;
        size_t i, n = 0;

        json_array_foreach(records, i, record)
                n += !kind || !strcmp(rv_json_get_string(record, "kind", ""), kind);
        return n;
}

static unsigned n_decisions(const struct case_ *c)
{
        return c->n_decisions ? c->n_decisions : 1;
}

/* Stands between the backend and the case's own hook. */
static void on_call(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        struct bench *b = ctx;

        /* Jobs, before the run and after its answer, wait for no decision. */
        if (call == RV_FAKE_GO && !plan->is_resolver && !b->n_answers) {
                b->n_syncs_at_go = n_syncs;
                b->is_decided_at_go = count_records(b, NULL) == b->n_records_before + n_decisions(b->now) && count_records(b, "decision") > 0;
                b->n_runs_at_go++;
        }
        if (b->now->script.call)
                b->now->script.call(b, call, plan);
}

/* The records that a run added fit together and fit the answer. */
static void check_records(struct bench *b)
{
        _cleanup_(rv_json_unrefp) json_t *all = NULL;
        json_t *first, *last;

        b->records = json_array();
        /* Where a test took the segment away there is nothing to be read. */
        if (access(in_state(&b->tmp, SEGMENT), F_OK) < 0)
                return;
        all = read_log(&b->tmp);        /* checks seq and prev of every line */
        for (size_t i = b->n_records_before; i < json_array_size(all); i++)
                json_array_append(b->records, json_array_get(all, i));
        if (!b->outcome || !json_is_true(json_object_get(b->outcome, "recorded")))
                return;
        if (json_is_true(json_object_get(b->outcome, "replayed"))) {
                first = json_array_get(b->records, json_array_size(b->records) - 1);
                expect_text(b, "the last record", rv_json_get_string(first, "kind", ""), "idempotent_replay");
                expect_text(b, "the replay's run_id", rv_json_get_string(first, "run_id", ""), b->run_id);
                expect_text(b, "the replay's decision_id", rv_json_get_string(first, "decision_id", ""), rv_json_get_string(b->outcome, "decision_id", "none"));
                return;
        }
        if (b->now->has_company)
                return;
        expect_kinds(b, n_decisions(b->now) == 2 ? "decision decision outcome" : "decision outcome");
        first = json_array_get(b->records, 0);
        last = json_array_get(b->records, json_array_size(b->records) - 1);
        for (size_t i = 1; i < n_decisions(b->now); i++)
                expect_text(b, "the next decision's id", rv_json_get_string(json_array_get(b->records, i), "decision_id", ""),
                        rv_json_get_string(first, "decision_id", "none"));
        expect_text(b, "the decision's run_id", rv_json_get_string(first, "run_id", ""), b->run_id);
        expect_text(b, "the outcome's run_id", rv_json_get_string(last, "run_id", ""), b->run_id);
        expect_text(b, "the answer's decision_id", rv_json_get_string(b->outcome, "decision_id", ""),
                rv_json_get_string(first, "decision_id", "none"));
        expect_text(b, "the record's decision_id", rv_json_get_string(last, "decision_id", ""),
                rv_json_get_string(first, "decision_id", "none"));
        expect_text(b, "the record's status", rv_json_get_string(last, "status", ""), rv_json_get_string(b->outcome, "status", "none"));
        expect_text(b, "the record's code", rv_json_get_string(last, "code", ""), reason_of(b, "code"));
        expect_text(b, "the record's started", rv_json_get_string(last, "started", ""), rv_json_get_string(b->outcome, "started", "none"));
        expect_text(b, "the record's digest", rv_json_get_string(last, "outcome_sha256", ""), b->outcome_sha256);
}

void perform(struct bench *b, const struct case_ *c)
{
        const char *request = c->request ? c->request : PLAIN;
        struct rv_fake_script scripts[4];
        size_t n_scripts = 0;
        struct rv_run_input input = {
                .tenant = c->tenant ? c->tenant : "local",
                .bundle = c->bundle_error ? NULL : c->bundle ? c->bundle : b->bundle,
                .bundle_error = c->bundle_error,
                .shadow = c->shadow,
                .shadow_error = c->shadow_error,
                .backend = c->backend,
                .lock = c->lock,
                .principal = c->principal ? c->principal : "alice", .has_wait = c->has_wait, .wait_s = c->wait_s, .request_id = "req-1", .trace_id = "trace-1",
                .text = request, .text_bytes = strlen(request),
                .ctx = b, .output = on_output, .answered = on_answered, .released = on_released,
        };

        forget(b);
        b->now = c;
        b->config->phases.start_ms = c->start_ms ? c->start_ms : 20000;
        b->n_records_before = access(in_state(&b->tmp, SEGMENT), F_OK) < 0 ? 0 : count_records(b, NULL);
        n_syncs = 0;
        for (const struct rv_fake_script *s = &c->script; s; s = s->next) {
                assert_true(n_scripts < RV_N_ELEMENTS(scripts));
                scripts[n_scripts] = *s;
                scripts[n_scripts].call = on_call;
                scripts[n_scripts].ctx = b;
                if (n_scripts)
                        scripts[n_scripts - 1].next = &scripts[n_scripts];
                n_scripts++;
        }
        rv_fake_play(b->backend_state, scripts);
        assert_int_equal(rv_run_start(&b->core, &input, &b->run), 0);
        b->is_in_loop = !b->n_releases;
        if (b->is_in_loop)
                rv_loop_run(&b->loop);
        b->is_in_loop = false;
        expect_number(b, "the number of answers", b->n_answers, 1);
        expect_number(b, "the number of releases", b->n_releases, 1);
        rv_run_free(b->run);
        b->run = NULL;
        b->calls = *rv_fake_calls(b->backend_state);
        if (b->calls.broken_rule)
                fail_msg("%s: the core broke a rule of the backend's interface: %s", c->name, b->calls.broken_rule);
        if (!c->has_company)
                expect_number(b, "release() after start()", b->calls.n_releases, c->script.start_error ? 0 : b->calls.n_starts);
        if (b->n_runs_at_go && !c->has_company)
                expect_number(b, "a decision before go()", b->is_decided_at_go && b->n_syncs_at_go == 1 + c->n_store_syncs, 1);
        check_records(b);
        expect_no_secret(b, "SECRET");
}

const struct case_ *at_once(const struct case_ *c)
{
        static struct rv_fake_step steps[16];
        static struct case_ copy;
        static char name[128];

        copy = *c;
        snprintf(name, sizeof(name), "%s, at once", c->name);
        copy.name = name;
        assert_true(c->script.n_steps <= RV_N_ELEMENTS(steps));
        for (size_t i = 0; i < c->script.n_steps; i++) {
                steps[i] = c->script.steps[i];
                steps[i].after_ms = RV_FAKE_AT_ONCE;
        }
        copy.script.steps = steps;
        copy.script.stop_ms = copy.script.release_ms = RV_FAKE_AT_ONCE;
        return &copy;
}
