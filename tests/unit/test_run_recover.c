/* The outcome that whoever comes next writes for a run whose reeve died. */
#include "run/recover.h"

#include "audit/live.h"
#include "run/outcome_read.h"

#include "test_audit_common.h"

#define ID "0123456789abcdef0123456789abcdef"

/* A reeve that writes this decision, and a second one of it (or NULL), leaves that outcome (or NULL) and dies. */
static void decide_twice_and_die(void **state, const char *decision, const char *second, const char *left)
{
        struct rv_error err = { 0 };
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                _cleanup_(rv_json_unrefp) json_t *body = json_loads(decision, 0, NULL);
                _cleanup_(rv_json_unrefp) json_t *outcome = left ? json_loads(left, 0, NULL) : NULL;
                _cleanup_(rv_json_unrefp) json_t *next = second ? json_loads(second, 0, NULL) : NULL;
                struct rv_log *log = open_log(state);

                if (!body || (second && !next) || (left && !outcome) || rv_log_enlist(log, &err) != 0 || rv_log_append(log, "decision", body, NULL, &err) != 0 ||
                    (next && rv_log_append(log, "decision", next, NULL, &err) != 0))
                        _exit(1);
                _exit(outcome && rv_log_leave(log, outcome) != 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void decide_and_die(void **state, const char *decision, const char *left)
{
        decide_twice_and_die(state, decision, NULL, left);
}

/* All records afterwards. */
static json_t *recover(void **state, int want)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_error err = { 0 };
        int r;

        assert_int_equal(rv_log_enlist(log, &err), 0);
        r = rv_run_recover(log, &err);
        if (r != want)
                fail_msg("%d, %s", r, err.message);
        return read_log(state);
}

#define OWN "\"decision_id\":\"" ID "\",\"run_id\":\"r1\",\"tenant\":\"t\""
#define FACTS(mode) ",\"facts\":{\"request\":{\"network_mode\":\"" mode "\",\"timeout_s\":30,\"memory_mib\":512}}"
#define ALLOW ",\"verdict\":{\"effect\":\"allow\",\"code\":\"ok\",\"limits\":{\"timeout_s\":10}}"
#define DENY(code) ",\"verdict\":{\"effect\":\"deny\",\"code\":\"" code "\",\"reason\":{\"message\":\"no\"}}"

/* There is one if the decision says that the run had network access; what it reached is known if it never started. */
static void expect_network(const char *name, const json_t *network, const char *mode, const char *started)
{
        bool has_network = mode && strncmp(mode, "network_mode\":\"none\"", 20) != 0;

        if (json_is_object(network) != has_network || json_is_array(json_object_get(network, "contacts")) != has_network ||
            json_is_array(json_object_get(network, "denials")) != has_network ||
            json_is_true(json_object_get(network, "is_lost")) != (has_network && strcmp(started, "no") != 0))
                fail_msg("%s: the record's network", name);
}

static void outcomes(void **state)
{
        static const struct {
                const char *name, *decision, *status, *code, *started;
        } rows[] = {
                { "without a network", "{" OWN FACTS("none") ALLOW "}", "failed", "backend_lost", "unknown" },
                { "with a network", "{" OWN FACTS("any") ALLOW "}", "outcome_unknown", "backend_lost", "unknown" },
                { "with domains", "{" OWN FACTS("domains") ALLOW "}", "outcome_unknown", "backend_lost", "unknown" },
                { "no facts on record", "{" OWN "}", "outcome_unknown", "backend_lost", "unknown" },
                { "denied a package", "{" OWN FACTS("any") DENY("package_denied") "}", "blocked", "package_denied", "no" },
                { "denied the network", "{" OWN FACTS("any") DENY("network_denied") "}", "blocked", "network_denied", "no" },
                { "no key", "{" OWN FACTS("any") DENY("idempotency_required") "}", "blocked", "idempotency_required", "no" },
                { "a policy that failed", "{" OWN FACTS("none") DENY("policy_error") "}", "blocked", "policy_error", "no" },
                { "a code that this reeve does not know", "{" OWN FACTS("none") DENY("later") "}", "blocked", "policy_error", "no" },
                { "refused by a ceiling", "{" OWN FACTS("any") ALLOW ",\"refused\":\"network_denied\"}", "blocked", "network_denied", "no" },
                { "refused by the plan", "{" OWN FACTS("none") ALLOW ",\"refused\":\"backend_denied\"}", "blocked", "backend_denied", "no" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_json_unrefp) json_t *records = NULL;
                const json_t *o;

                decide_and_die(state, rows[i].decision, NULL);
                records = recover(state, 1);
                o = json_array_get(records, json_array_size(records) - 1);
                assert_int_equal(json_array_size(records), 2);
                if (strcmp(rv_json_get_string(o, "kind", ""), "outcome") || strcmp(rv_json_get_string(o, "status", ""), rows[i].status) ||
                    strcmp(rv_json_get_string(o, "code", ""), rows[i].code) || strcmp(rv_json_get_string(o, "started", ""), rows[i].started) ||
                    strcmp(rv_json_get_string(o, "run_id", ""), "r1") || strcmp(rv_json_get_string(o, "tenant", ""), "t") ||
                    strcmp(rv_json_get_string(o, "decision_id", ""), ID) || !json_is_true(json_object_get(o, "recovered")) ||
                    strlen(rv_json_get_string(o, "outcome_sha256", "")) != 64) {
                        _cleanup_(rv_freep) char *text = json_dumps(o, 0);

                        fail_msg("%s: %s", rows[i].name, text);
                }
                expect_network(rows[i].name, json_object_get(o, "network"), strstr(rows[i].decision, "network_mode"), rows[i].started);
                tmp_remove(state);
                assert_int_equal(tmp_make(state), 0);
        }
}

/* Two decisions of one run, or one of two that are due. */
static void stages(void **state)
{
#define WITH(stage, mode, packages) ",\"stage\":\"" stage "\",\"facts\":{\"packages\":[" packages "],\"request\":{\"network_mode\":\"" mode "\",\"timeout_s\":30,\"memory_mib\":512}}"
#define JUDGED(effect, code) ",\"verdict\":{\"effect\":\"" effect "\",\"code\":\"" code "\",\"reason\":{\"message\":\"no\"}}"
#define SIX "{\"name\":\"six\"}"
        static const struct {
                const char *name, *first, *second, *status, *code, *started;
        } rows[] = {
                { "packages, and never resolved", "{" OWN WITH("requested", "any", SIX) ALLOW "}", NULL, "failed", "backend_lost", "no" },
                { "their names hidden", "{" OWN ",\"stage\":\"requested\",\"facts\":{\"packages\":{\"redacted\":\"withheld\"},\"request\":{\"network_mode\":\"any\",\"package_count\":1}}" ALLOW "}", NULL, "failed", "backend_lost", "no" },
                { "no packages", "{" OWN WITH("requested", "any", "") ALLOW "}", NULL, "outcome_unknown", "backend_lost", "unknown" },
                { "resolved and allowed", "{" OWN WITH("requested", "any", SIX) ALLOW "}", "{" OWN WITH("resolved", "any", SIX) JUDGED("allow", "ok") "}", "outcome_unknown", "backend_lost", "unknown" },
                { "resolved and denied", "{" OWN WITH("requested", "any", SIX) ALLOW "}", "{" OWN WITH("resolved", "any", SIX) JUDGED("deny", "package_denied") "}", "blocked", "package_denied", "no" },
                { "resolved, and refused by the core", "{" OWN WITH("requested", "any", SIX) ALLOW "}", "{" OWN WITH("resolved", "any", SIX) JUDGED("allow", "ok") ",\"refused\":\"package_install_failed\"}", "failed", "package_install_failed", "no" },
                { "a fact that was not to be had", "{" OWN WITH("requested", "any", SIX) ALLOW "}", "{" OWN WITH("resolved", "any", SIX) JUDGED("deny", "policy_error") ",\"refused\":\"package_unavailable\"}", "failed", "package_unavailable", "no" },
                { "not resolved, and refused", "{" OWN WITH("requested", "any", SIX) ALLOW ",\"refused\":\"package_unavailable\"}", NULL, "failed", "package_unavailable", "no" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_json_unrefp) json_t *records = NULL;
                const json_t *o;

                decide_twice_and_die(state, rows[i].first, rows[i].second, NULL);
                records = recover(state, 1);
                o = json_array_get(records, json_array_size(records) - 1);
                if (strcmp(rv_json_get_string(o, "kind", ""), "outcome") || strcmp(rv_json_get_string(o, "status", ""), rows[i].status) ||
                    strcmp(rv_json_get_string(o, "code", ""), rows[i].code) || strcmp(rv_json_get_string(o, "started", ""), rows[i].started))
                        fail_msg("%s: %s %s, started %s", rows[i].name, rv_json_get_string(o, "status", ""), rv_json_get_string(o, "code", ""), rv_json_get_string(o, "started", ""));
                tmp_remove(state);
                assert_int_equal(tmp_make(state), 0);
        }
}

/* The answer that went out unrecorded -> what is written for it. */
static void left_outcomes(void **state)
{
#define SHA "\"outcome_sha256\":\"aa\""
        static const struct {
                const char *name, *left, *code;
        } rows[] = {
                { "as it was", "{" OWN "," SHA ",\"status\":\"completed\",\"code\":\"ok\",\"started\":\"yes\"}", "ok" },
                { "of another run", "{\"decision_id\":\"" ID "\",\"run_id\":\"r2\",\"tenant\":\"t\"," SHA ",\"status\":\"completed\",\"code\":\"ok\",\"started\":\"yes\"}", "backend_lost" },
                { "not whole", "{" OWN "," SHA ",\"status\":\"completed\",\"code\":\"ok\"}", "backend_lost" },
                { "with what the log adds", "{" OWN "," SHA ",\"status\":\"completed\",\"code\":\"ok\",\"started\":\"yes\",\"seq\":1}", "backend_lost" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_json_unrefp) json_t *records = NULL;

                decide_and_die(state, "{" OWN FACTS("none") ALLOW "}", rows[i].left);
                records = recover(state, 1);
                assert_int_equal(json_array_size(records), 3);
                if (strcmp(member(records, 1, "kind"), "gap") || strcmp(member(records, 1, "cause"), "outcome_not_written") ||
                    strcmp(member(records, 1, "run_id"), "r1") || strcmp(member(records, 2, "kind"), "outcome") ||
                    strcmp(member(records, 2, "code"), rows[i].code) || !json_is_true(json_object_get(json_array_get(records, 2), "recovered")))
                        fail_msg("%s: %s, %s, %s", rows[i].name, member(records, 1, "kind"), member(records, 2, "kind"), member(records, 2, "code"));
                if (!strcmp(rows[i].code, "ok"))
                        assert_string_equal(member(records, 2, "outcome_sha256"), "aa");
                tmp_remove(state);
                assert_int_equal(tmp_make(state), 0);
        }
}

#define KEY ",\"key\":{\"hmac_sha256\":\"aa\",\"fingerprint\":\"bb\",\"bytes\":1}"

/* Whoever waits for a run with a key is given the outcome that is written here: its bytes are there, before the record. */
static void stored_outcomes(void **state)
{
        static const struct {
                const char *name, *decision;
                bool is_stored;
        } rows[] = {
                { "with a key", "{" OWN KEY FACTS("none") ALLOW "}", true },
                { "with a key and a second stage that has none", "{" OWN KEY FACTS("none") ALLOW "}", true },
                { "with a key and a network", "{" OWN KEY FACTS("any") ALLOW "}", true },
                { "without a key", "{" OWN FACTS("none") ALLOW "}", false },
                { "denied", "{" OWN KEY FACTS("none") DENY("package_denied") "}", false },
                { "refused", "{" OWN KEY FACTS("none") ALLOW ",\"refused\":\"backend_denied\"}", false },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_outcome_kept_freep) struct rv_outcome_kept *kept = NULL;
                _cleanup_(rv_json_unrefp) json_t *records = NULL;
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                char sha256[RV_SHA256_HEX_SIZE];
                int r;

                decide_twice_and_die(state, rows[i].decision, strstr(rows[i].name, "second stage") ? "{" OWN ",\"stage\":\"resolved\"" FACTS("none") JUDGED("allow", "ok") "}" : NULL, NULL);
                records = recover(state, 1);
                r = rv_read_file_at(AT_FDCWD, in_state(state, "outcomes/" ID), 1 << 20, &text);
                if (r != (rows[i].is_stored ? 0 : -ENOENT))
                        fail_msg("%s: %d", rows[i].name, r);
                if (rows[i].is_stored) {
                        rv_sha256_hex(text.data, text.size, sha256);
                        assert_string_equal(sha256, member(records, (unsigned)json_array_size(records) - 1, "outcome_sha256"));
                        assert_int_equal(rv_outcome_read(text.data, text.size, &kept), 0);
                        assert_int_equal(kept->outcome.reason.code, RV_CODE_BACKEND_LOST);
                        assert_string_equal(kept->outcome.run_id, "r1");
                }
                tmp_remove(state);
                assert_int_equal(tmp_make(state), 0);
        }
}

/* Who it was for is carried over. */
static void context(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *records = NULL;

        decide_and_die(state, "{" OWN ",\"principal\":\"p\",\"request_id\":\"q\",\"trace_id\":\"x\"" FACTS("none") ALLOW "}", NULL);
        records = recover(state, 1);
        assert_string_equal(member(records, 1, "principal"), "p");
        assert_string_equal(member(records, 1, "request_id"), "q");
        assert_string_equal(member(records, 1, "trace_id"), "x");
        assert_null(json_object_get(json_array_get(records, 1), "stdout_bytes"));
}

static void nothing(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_error err = { 0 };

        assert_int_equal(rv_log_enlist(log, &err), 0);
        assert_int_equal(rv_run_recover(log, &err), 0);
        assert_int_equal(access(in_state(state, SEGMENT), F_OK), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(outcomes),
                TMP(stages),
                TMP(left_outcomes),
                TMP(stored_outcomes),
                TMP(context),
                TMP(nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
