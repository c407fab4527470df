/*
 * The pipeline of a run with network: what the gate is told, when the program is let go, what of the gate's report
 * becomes part of the outcome and of its record, and what becomes of the run when the gate does not do its part.
 */
#include "test_pipeline.h"

#include "run/classify.h"

#define EXITED(code) ((code) << 8)
#define SEEN .is_teardown_complete = 1, .memory_limit_bytes = 512 << 20
static const struct rv_observation
        ok = { .started = RV_STARTED_YES, .has_wait_status = 1, .wall_us = 1234, SEEN },
        exit_1 = { .started = RV_STARTED_YES, .has_wait_status = 1, .wait_status = EXITED(1), SEEN },
        killed = { .started = RV_STARTED_YES, .was_stopped = 1, SEEN },
        killed_held = { .started = RV_STARTED_NO, .was_stopped = 1, SEEN };

#define HELD { .kind = RV_FAKE_HELD }
#define STARTED { .kind = RV_FAKE_STARTED }
#define ENDED { .kind = RV_FAKE_ENDED }
#define OBSERVE(o) { .kind = RV_FAKE_OBSERVE, .seen = &(o) }
#define TEST { .kind = RV_FAKE_CALL }
#define STEPS(...) .steps = (const struct rv_fake_step[]){ __VA_ARGS__ }, \
                   .n_steps = sizeof((const struct rv_fake_step[]){ __VA_ARGS__ }) / sizeof(struct rv_fake_step)

#define DOMAINS PLAIN_WITH("\"network\":{\"mode\":\"domains\",\"domains\":[\"b.example.com\",\"a.example.com\"]}")
#define ANY PLAIN_WITH("\"network\":{\"mode\":\"any\"}")
#define ANY_ONE_SECOND PLAIN_WITH("\"timeout_s\":1,\"network\":{\"mode\":\"any\"}")

static void gate_dies(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        struct bench *b = ctx;

        (void)plan;
        if (call != RV_FAKE_STEP)
                return;
        fake_gate_close(&b->gate);
        rv_gate_client_lose(b->core.gate, "the gate was ended by signal 9");
}

static void cancel(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        struct bench *b = ctx;

        (void)plan;
        if (call == RV_FAKE_STEP)
                rv_run_stop(b->run, RV_STOP_CANCELLED);
}

static const struct {
        struct case_ c;
        enum fake_gate_mood at_add, at_remove;
        const char *status, *code, *started, *cause;
        unsigned n_goes, n_adds, n_removes;
        bool has_evidence, is_evidence_lost, is_retryable;
} rows[] = {
        { { .name = "completed", .request = ANY, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } }, 0, 0,
          "completed", "ok", "yes", "", 1, 1, 1, true, false, false },
        { { .name = "failed by itself", .request = DOMAINS, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(exit_1)) } }, 0, 0,
          "failed", "exit_nonzero", "yes", "", 1, 1, 1, true, false, false },
        { { .name = "out of time", .request = ANY_ONE_SECOND, .script = { STEPS(HELD, STARTED), .on_stop = &killed } }, 0, 0,
          "outcome_unknown", "timeout", "yes", "", 1, 1, 1, true, false, false },
        { { .name = "cancelled", .request = ANY, .script = { STEPS(HELD, STARTED, TEST), .on_stop = &killed, .call = cancel } }, 0, 0,
          "outcome_unknown", "cancelled", "yes", "", 1, 1, 1, true, false, false },
        { { .name = "without network", .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } }, 0, 0,
          "completed", "ok", "yes", "", 1, 0, 0, false, false, false },

        { { .name = "the gate refuses", .request = ANY, .script = { STEPS(HELD, STARTED), .on_stop = &killed_held } }, FAKE_GATE_REFUSES, 0,
          "failed", "backend_failed", "no", "", 0, 1, 0, false, false, false },
        { { .name = "the gate dies before the start", .request = ANY, .script = { STEPS(HELD, STARTED), .on_stop = &killed_held } }, FAKE_GATE_HANGS_UP, 0,
          "failed", "backend_lost", "no", RV_CAUSE_GATE, 0, 1, 0, false, false, true },
        { { .name = "the gate says nothing", .request = ANY, .start_ms = 60, .script = { STEPS(HELD, STARTED), .on_stop = &killed_held } }, FAKE_GATE_MUTE, 0,
          "failed", "timeout", "no", "", 0, 1, 1, false, true, true },
        { { .name = "cancelled while it waits for the gate", .request = ANY,
            .script = { STEPS(HELD, TEST, STARTED), .on_stop = &killed_held, .call = cancel } }, FAKE_GATE_MUTE, 0,
          "failed", "cancelled", "no", "", 0, 1, 1, false, true, false },
        { { .name = "the backend has no sockets", .request = ANY, .start_ms = 60,
            .script = { STEPS(HELD, STARTED), .on_stop = &killed_held, .has_no_network = 1 } }, 0, 0,
          "failed", "timeout", "no", "", 0, 0, 0, false, false, true },

        { { .name = "the gate dies while the program runs", .request = ANY, .script = { STEPS(HELD, STARTED, TEST), .on_stop = &killed, .call = gate_dies } }, 0, 0,
          "outcome_unknown", "backend_lost", "yes", RV_CAUSE_GATE, 1, 1, 0, false, true, false },
        { { .name = "the gate dies when the program is over", .request = ANY, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } }, 0, FAKE_GATE_HANGS_UP,
          "completed", "ok", "yes", "", 1, 1, 1, false, true, false },
        { { .name = "the gate does not report", .request = ANY, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } }, 0, FAKE_GATE_MUTE,
          "completed", "ok", "yes", "", 1, 1, 1, false, true, false },
        { { .name = "the gate's report is none", .request = ANY, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } }, 0, FAKE_GATE_TALKS,
          "completed", "ok", "yes", "", 1, 1, 1, false, true, false },
};

static void expect_evidence(const struct bench *b, const json_t *network, const char *what, bool is_there)
{
        const json_t *contacts = json_object_get(network, "contacts"), *denials = json_object_get(network, "denials");

        expect_number(b, what, json_is_array(contacts) == json_is_object(network), 1);
        expect_number(b, what, (long long)json_array_size(contacts), is_there);
        expect_number(b, what, (long long)json_array_size(denials), is_there);
        expect_number(b, what, json_integer_value(json_object_get(network, "more_denials")), is_there ? 4 : 0);
        if (!is_there)
                return;
        expect_text(b, what, rv_json_get_string(json_array_get(contacts, 0), "name", ""), "a.example.com");
        expect_number(b, what, json_integer_value(json_object_get(json_array_get(denials, 0), "count")), 3);
}

static void every_row(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const struct case_ *c = &rows[i].c;
                bool has_network = c->request != NULL;
                const json_t *record;
                struct bench *b;

                assert_int_equal(bench_make(state), 0);
                b = *state;
                b->gate.at_add = rows[i].at_add;
                b->gate.at_remove = rows[i].at_remove;
                perform(b, c);
                expect_text(b, "status", rv_json_get_string(b->outcome, "status", ""), rows[i].status);
                expect_text(b, "code", reason_of(b, "code"), rows[i].code);
                expect_text(b, "started", rv_json_get_string(b->outcome, "started", ""), rows[i].started);
                expect_text(b, "cause", rv_json_get_string(detail_of(b), "cause", ""), rows[i].cause);
                expect_number(b, "retryable", json_is_true(json_object_get(json_object_get(b->outcome, "reason"), "retryable")), rows[i].is_retryable);
                expect_number(b, "repeat_safe", json_is_true(json_object_get(b->outcome, "repeat_safe")), !has_network || !strcmp(rows[i].started, "no"));
                expect_number(b, "go()", b->calls.n_goes, rows[i].n_goes);
                expect_number(b, "ADD", b->gate.n_adds, rows[i].n_adds);
                expect_number(b, "REMOVE", b->gate.n_removes, rows[i].n_removes);
                expect_evidence(b, json_object_get(b->outcome, "network"), "the outcome's network", rows[i].has_evidence);
                record = json_object_get(json_array_get(b->records, 1), "network");
                expect_number(b, "the record has a network", record != NULL, has_network);
                expect_evidence(b, record, "the record's network", rows[i].has_evidence);
                expect_number(b, "is_lost", json_is_true(json_object_get(record, "is_lost")), rows[i].is_evidence_lost);
                bench_remove(state);
        }
}

/* What the gate is told, member by member. */
static void expect_member(const struct bench *b, const json_t *rules, const char *name, const char *expected)
{
        char *text = json_dumps(json_object_get(rules, name), JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);

        expect_text(b, name, text, expected);
        free(text);
}

static void use_config(struct bench *b, const char *more)
{
        struct rv_config *config = NULL;
        struct rv_error err = { 0 };
        char text[2048];
        int n = snprintf(text, sizeof(text), "state_dir: %s/state\ntenants: {local: {backend: fake}}\n%s", b->dir, more);

        if (rv_config_parse(text, (size_t)n, "/bench.yaml", &config, &err) != 0)
                fail_msg("%s", err.message);
        rv_config_free(b->config);
        b->config = config;
        b->core.config = config;
}

static void the_rules(void **state)
{
        const struct case_ plain = { .name = "rules of a plain run", .request = DOMAINS, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } };
        const struct case_ configured = { .name = "rules of the configuration", .request = ANY, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } };
        struct bench *b = *state;
        json_t *rules;

        perform(b, &plain);
        rules = json_loads(b->gate.rules, JSON_REJECT_DUPLICATES, NULL);
        expect_number(b, "members", (long long)json_object_size(rules), 10);
        expect_member(b, rules, "mode", "\"domains\"");
        expect_member(b, rules, "domains", "[\"a.example.com\",\"b.example.com\"]");
        expect_member(b, rules, "ports", "null");
        expect_member(b, rules, "original", "\"tproxy\"");
        expect_member(b, rules, "listen_port", "1");
        expect_member(b, rules, "resolve", "{}");
        expect_member(b, rules, "deny", "[]");
        expect_member(b, rules, "registries", "[]");
        expect_member(b, rules, "proxy", "null");
        expect_member(b, rules, "limits", "{\"bytes\":0,\"connections\":256,\"connections_per_s\":100,\"dns_per_s\":200,\"idle_ms\":120000,\"names\":4096}");
        json_decref(rules);

        use_config(b, "egress:\n"
                      "  resolve: {API.example.test.: 127.0.0.5}\n"
                      "  deny: [bad.example.com, 192.0.2.0/24]\n"
                      "  limits: {connections: 2, connections_per_s: 3, bytes: 1MiB, idle: 5s, names: 6, dns_per_s: 7}\n");
        perform(b, &configured);
        rules = json_loads(b->gate.rules, JSON_REJECT_DUPLICATES, NULL);
        expect_member(b, rules, "mode", "\"any\"");
        expect_member(b, rules, "domains", "[]");
        expect_member(b, rules, "resolve", "{\"api.example.test\":\"127.0.0.5\"}");
        expect_member(b, rules, "deny", "[\"bad.example.com\",\"192.0.2.0/24\"]");
        expect_member(b, rules, "limits", "{\"bytes\":1048576,\"connections\":2,\"connections_per_s\":3,\"dns_per_s\":7,\"idle_ms\":5000,\"names\":6}");
        json_decref(rules);
}

static unsigned n_completed;

static void complete(void *arg, struct rv_registry *registry)
{
        assert_ptr_equal(arg, &n_completed);
        n_completed++;
        (void)rv_registry_add_url(registry, "https://files.example:8443/", NULL);
        registry->hosts[1].is_learned = true;
}

#define REGISTRIES PLAIN_WITH("\"network\":{\"mode\":\"registries\"}")

static void registries(void **state)
{
        const struct case_ known = { .name = "a registry that is known", .request = REGISTRIES, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } };
        const struct case_ other = { .name = "another mode", .request = ANY, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } };
        const struct case_ denied = { .name = "over the ceiling", .request = REGISTRIES, .tenant = "offline" };
        const struct case_ unknown = { .name = "no registry", .request = REGISTRIES };
        struct rv_registry *registry = calloc(1, sizeof(*registry));
        struct bench *b = *state;
        json_t *rules;

        n_completed = 0;
        assert_int_equal(rv_registry_add_url(registry, "https://registry.example/simple", &registry->index), 0);
        registry->proxy = (struct rv_registry_host){ .host = "proxy.example", .port = 3128 };
        b->core.registries[RV_LANGUAGE_PYTHON] = registry;
        b->core.complete_registry = complete;
        b->core.registry_arg = &n_completed;

        perform(b, &denied);
        expect_text(b, "code", reason_of(b, "code"), "network_denied");
        expect_number(b, "questions for a run that is denied", n_completed, 0);
        perform(b, &other);
        rules = json_loads(b->gate.rules, 0, NULL);
        expect_member(b, rules, "registries", "[]");
        expect_member(b, rules, "proxy", "null");
        json_decref(rules);
        expect_number(b, "questions for another mode", n_completed, 0);
        perform(b, &known);
        expect_number(b, "questions", n_completed, 1);
        rules = json_loads(b->gate.rules, 0, NULL);
        expect_member(b, rules, "mode", "\"registries\"");
        expect_member(b, rules, "registries", "[{\"host\":\"registry.example\",\"port\":443},{\"host\":\"files.example\",\"is_learned\":true,\"port\":8443}]");
        expect_member(b, rules, "proxy", "{\"host\":\"proxy.example\",\"port\":3128}");
        json_decref(rules);

        b->core.registries[RV_LANGUAGE_PYTHON] = NULL;
        perform(b, &unknown);
        expect_text(b, "code", reason_of(b, "code"), "backend_denied");
        expect_text(b, "message", reason_of(b, "message"), "backend fake cannot enforce network_registries: no package index is known for python; set registries.python.index");
        expect_text(b, "missing", json_string_value(json_array_get(json_object_get(detail_of(b), "missing"), 0)), "network_registries");
        rv_registry_free(registry);
}

static const struct {
        const char *name, *network, *domains;
} obliged[] = {
        { "none", "default = 'allow'", "[\"a.example.com\",\"b.example.com\"]" },
        { "of one domain", "rule { id = 'a', match = { domain = 'a.example.com' }, ports = { 443, 8443 }, allow = true }, default = 'allow'", "[{\"name\":\"a.example.com\",\"ports\":[443,8443]},\"b.example.com\"]" },
        { "of both", "rule { id = 'a', match = { domain = 'a.example.com' }, ports = { 443, 8443 }, allow = true }, "
                     "rule { id = 'b', match = { domain = 'b.example.com' }, ports = { 80, 443 }, allow = true }, default = 'deny'", "[{\"name\":\"a.example.com\",\"ports\":[443,8443]},{\"name\":\"b.example.com\",\"ports\":[80,443]}]" },
};

static void ports_of_rules(void **state)
{
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(obliged); i++) {
                struct case_ c = { .name = obliged[i].name,
                        .request = DOMAINS,
                        .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } };
                struct rv_bundle *bundle;
                char policy[1024];
                json_t *rules;

                snprintf(policy, sizeof(policy), "return policy { packages = { default = 'allow' }, network = { %s }, "
                         "idempotency = { default = 'none' }, backend = { default = 'tenant' } }", obliged[i].network);
                bundle = load_bundle(b, "ports", policy);
                c.bundle = bundle;
                perform(b, &c);
                rules = json_loads(b->gate.rules, 0, NULL);
                expect_member(b, rules, "domains", obliged[i].domains);
                expect_member(b, rules, "ports", "null");
                json_decref(rules);
                rv_bundle_free(bundle);
        }
}

static void no_gate(void **state)
{
        const struct case_ c = { .name = "no gate was started", .request = ANY, .script = { STEPS(HELD, STARTED), .on_stop = &killed_held } };
        struct bench *b = *state;

        rv_gate_client_lose(b->core.gate, "the gate cannot be executed");
        perform(b, &c);
        expect_text(b, "code", reason_of(b, "code"), "backend_lost");
        expect_text(b, "message", reason_of(b, "message"), "what serves the run's network was lost: the gate cannot be executed");
        expect_number(b, "go()", b->calls.n_goes, 0);
}

/* Without a durable decision nothing is released, whatever the gate says, and the gate does not keep the run. */
static void no_log(void **state)
{
        const struct case_ c = { .name = "the log fails", .request = ANY, .script = { STEPS(HELD, STARTED), .on_stop = &killed_held } };
        struct bench *b = *state;

        fail_sync_at = 1;
        perform(b, &c);
        fail_sync_at = 0;
        expect_number(b, "a problem", b->problem != NULL, 1);
        expect_number(b, "go()", b->calls.n_goes, 0);
        rv_gate_client_free(b->core.gate);
        b->core.gate = NULL;
        while (b->gate.fd >= 0)
                rv_loop_run(&b->loop);
        expect_number(b, "ADD", b->gate.n_adds, 1);
        expect_number(b, "REMOVE", b->gate.n_removes, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(every_row), ON_BENCH(the_rules), ON_BENCH(registries),
                ON_BENCH(ports_of_rules), ON_BENCH(no_gate), ON_BENCH(no_log) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
