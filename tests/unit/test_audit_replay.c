/* Decisions evaluated again: each class, and what can be asked for. */
#include "test_audit_replay.h"

/* ---- One record of each kind ---- */

static void set_text(json_t *body, const char *member, const char *text)
{
        json_object_set_new(body, member, json_string(text));
}

static void plain(json_t *body)
{
        (void)body;
}

static void other_effect(json_t *body)
{
        set_text(json_object_get(body, "verdict"), "effect", "deny");
}

static void other_line(json_t *body)
{
        json_object_set_new(json_object_get(json_object_get(body, "verdict"), "backend"), "line", json_integer(77));
}

static void other_lua(json_t *body)
{
        set_text(json_object_get(body, "engine"), "lua", "Lua 5.4.99");
}

static void other_limits(json_t *body)
{
        json_object_set_new(json_object_get(json_object_get(body, "engine"), "limits"), "item_instructions", json_integer(1));
}

static void other_release(json_t *body)
{
        set_text(json_object_get(body, "engine"), "reeve", "99.0");
}

static void without_bundle(json_t *body)
{
        json_object_set_new(body, "verdict", rv_policy_verdict_error("gone", "", 0));
        set_text(body, "bundle", "");
}

static void bundle_not_there(json_t *body)
{
        set_text(body, "bundle", "00000000000000000000000000000000000000000000000000000000000000aa");
}

static void bundle_no_name(json_t *body)
{
        set_text(body, "bundle", "../../bundle");
}

static void redacted_facts(json_t *body)
{
        json_object_set_new(json_object_get(json_object_get(body, "facts"), "request"), "principal", json_pack("{s:s}", "redacted",
                            "hmac-sha256:0000000000000000000000000000000000000000000000000000000000000000"));
}

static void withheld_verdict(json_t *body)
{
        json_object_set_new(json_object_get(body, "verdict"), "reason", json_pack("{s:s}", "redacted", "withheld"));
}

/* The same bytes inside a text are only a text. */
static void looks_redacted(json_t *body)
{
        set_text(body, "trace_id", "{\"redacted\":\"withheld\"}");
}

static void met_memory(json_t *body)
{
        json_t *verdict = rv_policy_verdict_error("the policy uses more than 8 MiB", "policy.lua", 1);

        json_object_set_new(body, "verdict", verdict);
}

static void without_facts(json_t *body)
{
        json_object_del(body, "facts");
}

static void facts_are_too_large(json_t *body)
{
        json_object_set_new(body, "facts", json_pack("{s:s, s:i, s:{}}", "stage", "resolved", "bytes_left_out", 2000000, "request"));
}

static void facts_are_none(json_t *body)
{
        json_object_del(json_object_get(body, "facts"), "packages");
}

static const struct {
        const char *name;
        void (*change)(json_t *body);
        const char *class;
} kinds[] = {
        { "as it was", plain, "same" }, { "another effect", other_effect, "diff" }, { "another line", other_line, "diff" },
        { "another Lua", other_lua, "engine" }, { "other limits", other_limits, "engine" }, { "another release of reeve", other_release, "same" },
        { "no bundle", without_bundle, "no_bundle" }, { "a bundle that is not there", bundle_not_there, "bundle" }, { "no digest", bundle_no_name, "bundle" },
        { "redacted facts", redacted_facts, "redacted" }, { "a withheld part of the verdict", withheld_verdict, "redacted" },
        { "a text that looks redacted", looks_redacted, "same" }, { "memory", met_memory, "budget" }, { "no facts", without_facts, "error" },
        { "facts that are none", facts_are_none, "error" }, { "facts that were too large", facts_are_too_large, "too_large" },
};

static const char *class_of(const struct rv_replay_tally *t)
{
        if (t->n_decisions != 1)
                return "not one";
        for (size_t i = 0; i < RV_REPLAY_REASON_MAX_; i++)
                if (t->unreplayable[i].n)
                        return rv_replay_reason_words[i];
        return t->same.n ? "same" : t->diff.n ? "diff" : t->error.n ? "error" : "none";
}

static void each_class(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = make_bundle(state, POLICY("", "", "", ""));
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        for (size_t i = 0; i < RV_N_ELEMENTS(kinds); i++) {
                json_t *body = make_decision(bundle, SIX, "local");
                char id[33];

                snprintf(id, sizeof(id), "%s", rv_json_get_string(body, "decision_id", ""));
                kinds[i].change(body);
                if (json_object_get(body, "facts"))
                        append_decision(log, body);
                else
                        append(log, "decision", body);
                _cleanup_(rv_replay_freep) struct rv_replay_result *r = replay(
                        state, (struct rv_replay_input){ .from_seq = i, .to_seq = i ? i : UINT64_MAX });

                if (strcmp(class_of(&r->enforced), kinds[i].class) != 0)
                        fail_msg("%s: %s, not %s", kinds[i].name, class_of(&r->enforced), kinds[i].class);
                assert_int_equal(r->n_corrupt, 0);
                if (r->enforced.diff.n)
                        assert_string_equal(r->enforced.diff.examples[0].decision_id, id);
        }
}

static void differences_name_fields(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = make_bundle(state, POLICY("", "", "", ""));
        _cleanup_(rv_replay_freep) struct rv_replay_result *r = NULL;
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        for (int i = 0; i < RV_REPLAY_DIFFERENCES + 5; i++) {
                json_t *body = make_decision(bundle, SIX, "local");

                other_effect(body);
                other_line(body);
                append_decision(log, body);
        }
        r = replay(state, (struct rv_replay_input){ 0 });
        assert_int_equal(r->enforced.diff.n, RV_REPLAY_DIFFERENCES + 5);
        assert_int_equal(r->enforced.diff.n_examples, RV_REPLAY_EXAMPLES);
        assert_int_equal(r->n_differences, RV_REPLAY_DIFFERENCES);
        assert_string_equal(r->differences[0].fields, "/backend/line /effect");
        assert_string_equal(r->differences[0].bundle, rv_bundle_digest(bundle));
        assert_string_equal(r->differences[0].tenant, "local");
        assert_int_equal(r->differences[3].seq, 3);
}

/* A digest that does not fit what stands there is damage, whatever the verdict. */
static void digests_are_checked(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = make_bundle(state, POLICY("", "", "", ""));
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        static const char *const members[] = { "context_sha256", "verdict_sha256" };

        for (size_t i = 0; i < 4; i++) {
                json_t *body = make_decision(bundle, SMALL, "local");
                _cleanup_(rv_replay_freep) struct rv_replay_result *r = NULL;

                set_digests(body);
                if (i < 2)
                        set_text(body, members[i], "0000000000000000000000000000000000000000000000000000000000000000");
                else if (i == 2)
                        set_text(json_object_get(body, "verdict"), "code", "package_denied");
                else
                        json_object_set_new(json_object_get(json_object_get(body, "facts"), "request"), "now", json_integer(1));
                append(log, "decision", body);
                r = replay(state, (struct rv_replay_input){ .from_seq = i });
                assert_int_equal(r->n_corrupt, 1);
                assert_int_equal(r->enforced.n_decisions, 0);
                if (!strstr(r->corrupt, members[i % 3 ? 1 : 0]))
                        fail_msg("%zu: %s", i, r->corrupt);
                assert_non_null(strstr(r->corrupt, "00000000000000000000.jsonl, byte "));
        }
}

/* A copy under a digest's name that is another bundle is not taken. */
static void bundles_are_checked(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = make_bundle(state, POLICY("", "", "", ""));
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        char path[600];
        _cleanup_(rv_replay_freep) struct rv_replay_result *r = NULL;

        append_decision(log, make_decision(bundle, SMALL, "local"));
        snprintf(path, sizeof(path), "%s/%s/policy.lua", in_state(state, "bundles"), rv_bundle_digest(bundle));
        assert_int_equal(rv_write_file(path, "return 1", 8, 0600, false), 0);
        r = replay(state, (struct rv_replay_input){ 0 });
        assert_int_equal(r->enforced.unreplayable[RV_REPLAY_BUNDLE].n, 1);
}

/* ---- What is asked for ---- */

static void filters(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = make_bundle(state, POLICY("", "", "", ""));
        _cleanup_(rv_json_unrefp) json_t *records = NULL;
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        uint64_t times[6];

        for (int i = 0; i < 6; i++) {
                append_decision(log, make_decision(bundle, SMALL, i % 2 ? "b" : "a"));
                usleep(2000);
        }
        append_text(log, "rejected", 10);
        records = read_log(state);
        for (size_t i = 0; i < 6; i++)
                times[i] = (uint64_t)json_integer_value(json_object_get(json_array_get(records, i), "time_us"));
        const struct {
                struct rv_replay_input input;
                uint64_t n, oldest, newest;
        } cases[] = {
                { { 0 }, 6, times[0], times[5] },
                { { .from_seq = 2 }, 4, times[2], times[5] },
                { { .from_seq = 2, .to_seq = 3 }, 2, times[2], times[3] },
                { { .to_seq = 1 }, 2, times[0], times[1] },
                { { .from_us = times[1] }, 5, times[1], times[5] },
                { { .from_us = times[1], .to_us = times[4] }, 4, times[1], times[4] },
                { { .tenant = "b" }, 3, times[1], times[5] },
                { { .tenant = "b", .from_seq = 2, .to_seq = 4 }, 1, times[3], times[3] },
                { { .tenant = "nobody" }, 0, 0, 0 },
                { { .from_seq = 100 }, 0, 0, 0 },
        };
        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                _cleanup_(rv_replay_freep) struct rv_replay_result *r = replay(state, cases[i].input);

                if (r->enforced.n_decisions != cases[i].n || r->enforced.same.n != cases[i].n ||
                        r->oldest_us != cases[i].oldest || r->newest_us != cases[i].newest)
                        fail_msg("case %zu: %llu decisions", i, (unsigned long long)r->enforced.n_decisions);
        }
}

static bool is_same_count(const struct rv_replay_count *a, const struct rv_replay_count *b)
{
        return memcmp(a, b, sizeof(*a)) == 0;
}

static void expect_same(const struct rv_replay_result *a, const struct rv_replay_result *b)
{
        assert_int_equal(a->n_records, b->n_records);
        assert_int_equal(a->enforced.n_decisions, b->enforced.n_decisions);
        assert_true(is_same_count(&a->enforced.same, &b->enforced.same));
        assert_int_equal(a->n_changed, b->n_changed);
        assert_int_equal(a->n_groups, b->n_groups);
        for (size_t i = 0; i < a->n_groups; i++) {
                assert_string_equal(a->groups[i].tenant, b->groups[i].tenant);
                assert_string_equal(a->groups[i].rule_now, b->groups[i].rule_now);
                assert_true(is_same_count(&a->groups[i].count, &b->groups[i].count));
        }
}

/* Several stretches and several segments: whatever the number of threads, the same comes out. */
static void threads_change_nothing(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = make_bundle(state, POLICY("", "", "", ""));
        _cleanup_(rv_bundle_freep) struct rv_bundle *strict = make_bundle(state, POLICY("", "rule { id = 'b', match = { domain = 'b.example' }, deny = 'x' },", "", ""));
        static const char *const requests[] = { SMALL, DOMAINS, SIX };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_replay_freep) struct rv_replay_result *one = NULL;
        char padding[8000];

        memset(padding, 'x', sizeof(padding) - 1);
        padding[sizeof(padding) - 1] = 0;
        for (unsigned i = 0; i < 1500; i++) {
                json_t *body = make_decision(bundle, requests[i % 3], i % 7 ? "a" : "b");

                set_text(body, "trace_id", padding + (i * 37) % 4000);
                append_decision(log, body);
        }
        one = replay(state, (struct rv_replay_input){ .candidate = strict });
        assert_int_equal(one->enforced.n_decisions, 1500);
        assert_int_equal(one->changes[RV_CHANGE_NARROW].n, 500);
        assert_int_equal(one->n_groups, 4);
        for (unsigned jobs = 2; jobs < 6; jobs++) {
                _cleanup_(rv_replay_freep) struct rv_replay_result *r = replay(
                        state, (struct rv_replay_input){ .candidate = strict, .jobs = jobs });

                expect_same(one, r);
        }
}

/* ---- Candidates ---- */

static const struct {
        const char *name, *before, *now, *request, *changes, *group;
} candidates[] = {
        { "the same", POLICY("", "", "", ""), POLICY("", "", "", ""), SIX, "", "" },
        { "other lines only", POLICY("", "", "", ""), "-- a remark\n" POLICY("", "", "", ""), SIX, "", "" },
        { "allowed by another rule", POLICY("", "", "", ""), POLICY("rule { id = 'x', match = {}, allow = true },", "", "", ""), SIX, "", "" },
        { "a package denied", POLICY("", "", "", ""), POLICY("rule { id = 'six', match = { name = 'six' }, deny = 'x' },", "", "", ""), SIX, "deny", "packages: default (ok) -> six (package_denied)" },
        { "and allowed", POLICY("rule { id = 'six', match = { name = 'six' }, deny = 'x' },", "", "", ""), POLICY("", "", "", ""), SIX, "allow", "packages: six (package_denied) -> default (ok)" },
        { "for another reason", POLICY("rule { id = 'a', match = { name = 'six' }, deny = 'x' },", "", "", ""), POLICY("rule { id = 'b', match = { name = 'six' }, deny = 'x' },", "", "", ""),
          SIX, "other", "packages: a (package_denied) -> b (package_denied)" },
        { "with other words", POLICY("rule { id = 'a', match = { name = 'six' }, deny = 'x' },", "", "", ""), POLICY("rule { id = 'a', match = { name = 'six' }, deny = 'y' },", "", "", ""), SIX, "", "" },
        { "one domain more", POLICY("", "rule { id = 'b', match = { domain = 'b.example' }, deny = 'x' },", "", ""), POLICY("", "", "", ""), DOMAINS, "allow widen", "network: b (network_denied) -> default (ok)" },
        { "one more of two denied", POLICY("", "rule { id = 'all', match = { mode = 'domains' }, deny = 'x' },", "", ""), POLICY("", "rule { id = 'b', match = { domain = 'b.example' }, deny = 'x' },", "", ""), DOMAINS, "widen",
          "network: all () -> default ()" },
        { "no ports any more", POLICY("", "rule { id = 'p', match = { domain = 'b.example' }, ports = { 443 }, allow = true },", "", ""), POLICY("", "", "", ""), DOMAINS, "widen",
          "network: p () -> default ()" },
        { "another port", POLICY("", "rule { id = 'p', match = { domain = 'b.example' }, ports = { 443 }, allow = true },", "", ""),
          POLICY("", "rule { id = 'q', match = { domain = 'b.example' }, ports = { 80, 443 }, allow = true },", "", ""), DOMAINS, "widen",
          "network: p () -> q ()" },
        { "mode none is no access", POLICY("", "rule { id = 'n', match = { mode = 'none' }, deny = 'x' },", "", ""), POLICY("", "", "", ""), SMALL, "allow", "network: n (network_denied) -> default (ok)" },
        { "a backend", POLICY("", "", "", ""), POLICY("", "", "", "rule { id = 'vm', match = {}, use = 'microvm' },"), SMALL, "backend", "backend: default (tenant) -> vm (microvm)" },
        { "a backend denied", POLICY("", "", "", ""), POLICY("", "", "", "rule { id = 'no', match = {}, deny = 'x' },"), SMALL, "deny", "backend: default (ok) -> no (backend_denied)" },
        { "a key, no longer", POLICY("", "", "rule { id = 'key', match = {}, require_key = true },", ""), POLICY("", "", "", ""), DOMAINS, "allow key", "idempotency: key (idempotency_required) -> default (ok)" },
        { "a key, now", POLICY("", "", "", ""), POLICY("", "", "rule { id = 'key', match = {}, require_key = true },", ""), DOMAINS, "deny key_asked", "idempotency: default (ok) -> key (idempotency_required)" },
        { "a limit", POLICY("", "", "", ""), "return policy { packages = { default = 'allow' }, network = { default = 'allow' }, idempotency = { default = 'none' }, backend = { default = 'tenant' }, limits = { timeout_s = { max = 5 } } }",
          SMALL, "limit_lowered", "limits: timeout_s (30) -> timeout_s (5)" },
        { "a limit's denial", POLICY("", "", "", ""), "return policy { packages = { default = 'allow' }, network = { default = 'allow' }, idempotency = { default = 'none' }, backend = { default = 'tenant' }, limits = { timeout_s = { deny_above = 5 } } }",
          SMALL, "deny", "limits:  (ok) -> deny_above (limit_denied)" },
        { "a candidate that fails", POLICY("", "", "", ""), "error('x')", SMALL, "deny", "policy:  (ok) -> ? (policy_error)" },
        { "a fact that is not known yet", POLICY("", "", "", ""), POLICY("rule { id = 'young', when = function(p) return p.age_days < 7 end, deny = 'x' },", "", "", ""), SIX, "needs_new_evidence", "" },
        { "both wait for it", POLICY("rule { id = 'young', when = function(p) return p.age_days < 7 end, deny = 'x' },", "", "", ""),
          POLICY("rule { id = 'young', when = function(p) return p.age_days < 9 end, deny = 'x' },", "", "", ""), SIX, "", "" },
        { "a denial that needs no more", POLICY("", "", "", ""), POLICY("rule { id = 'six', match = { name = 'six' }, deny = 'x' }, rule { id = 'young', when = function(p) return p.age_days < 7 end, deny = 'x' },", "", "", ""), SIX, "deny",
          "packages: default (ok) -> six (package_denied)" },
};

static void candidate_tells(const struct rv_replay_result *r, struct rv_buf *changes, struct rv_buf *group)
{
        if (r->enforced.unreplayable[RV_REPLAY_EVIDENCE].n)
                rv_buf_puts(changes, "needs_new_evidence");
        for (size_t i = 0; i < RV_CHANGE_MAX_; i++)
                if (r->changes[i].n)
                        rv_buf_printf(changes, "%s%s", changes->size ? " " : "", rv_change_words[i]);
        if (r->n_groups)
                rv_buf_printf(group, "%s: %s (%s) -> %s (%s)", r->groups[0].section, r->groups[0].rule_before, r->groups[0].before, r->groups[0].rule_now, r->groups[0].now);
}

static void candidates_are_compared(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        for (size_t i = 0; i < RV_N_ELEMENTS(candidates); i++) {
                _cleanup_(rv_bundle_freep) struct rv_bundle *before = make_bundle(state, candidates[i].before),
                                                            *now = make_bundle(state, candidates[i].now);
                _cleanup_(rv_buf_fini) struct rv_buf changes = { 0 }, group = { 0 };
                _cleanup_(rv_replay_freep) struct rv_replay_result *r = NULL;

                append_decision(log, make_decision(before, candidates[i].request, "local"));
                r = replay(state, (struct rv_replay_input){ .from_seq = i, .candidate = now });
                candidate_tells(r, &changes, &group);
                if (strcmp(changes.data ? changes.data : "", candidates[i].changes) != 0)
                        fail_msg("%s: %s", candidates[i].name, changes.data ? changes.data : "no change");
                if (strchr(candidates[i].group, '?') ? !group.data : strcmp(group.data ? group.data : "", candidates[i].group) != 0)
                        fail_msg("%s: %s", candidates[i].name, group.data ? group.data : "no group");
                assert_int_equal(r->enforced.diff.n, 0);
                assert_int_equal(r->n_compared + r->enforced.unreplayable[RV_REPLAY_EVIDENCE].n, 1);
                assert_int_equal(r->n_changed, *candidates[i].group != 0);
        }
}

/* A fact that older facts lack is not taken for an error of the candidate's. */
static void missing_facts(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *before = make_bundle(state, POLICY("", "", "", ""));
        static const char *const policies[] = {
                POLICY("rule { id = 'x', when = function(p, r) return r.principal == 'x' end, deny = 'x' },", "", "", ""),
                POLICY("", "rule { id = 'x', match = { principal = 'x' }, deny = 'x' },", "", ""),
                POLICY("rule { id = 'x', when = function(p, r) return r.nonsense == 'x' end, deny = 'x' },", "", "", ""),
        };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        json_t *body = make_decision(before, SIX, "local");

        json_object_del(json_object_get(json_object_get(body, "facts"), "request"), "principal");
        append_decision(log, body);
        for (size_t i = 0; i < RV_N_ELEMENTS(policies); i++) {
                _cleanup_(rv_bundle_freep) struct rv_bundle *now = make_bundle(state, policies[i]);
                _cleanup_(rv_replay_freep) struct rv_replay_result *r = replay(
                        state, (struct rv_replay_input){ .candidate = now });

                assert_int_equal(r->enforced.unreplayable[RV_REPLAY_EVIDENCE].n, i < 2);
                assert_int_equal(r->changes[RV_CHANGE_DENY].n, i == 2);
        }
}

static void groups_are_bounded(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *before = make_bundle(state, POLICY("", "", "", ""));
        _cleanup_(rv_bundle_freep) struct rv_bundle *now = make_bundle(state, POLICY("rule { id = 'six', match = { name = 'six' }, deny = 'x' },", "", "", ""));
        _cleanup_(rv_replay_freep) struct rv_replay_result *r = NULL;
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        char tenant[32];

        for (int i = 0; i < RV_REPLAY_GROUPS_MAX + 10; i++) {
                snprintf(tenant, sizeof(tenant), "t%d", i);
                append_decision(log, make_decision(before, SIX, tenant));
        }
        append_decision(log, make_decision(before, SIX, "t0"));
        r = replay(state, (struct rv_replay_input){ .candidate = now });
        assert_int_equal(r->n_groups, RV_REPLAY_GROUPS_MAX);
        assert_int_equal(r->n_ungrouped, 10);
        assert_int_equal(r->groups[0].count.n, 2);
        assert_int_equal(r->changes[RV_CHANGE_DENY].n, RV_REPLAY_GROUPS_MAX + 11);
}

/* ---- Shadows ---- */

static json_t *with_shadow(json_t *body, const struct rv_bundle *shadow)
{
        json_t *verdict = NULL;

        assert_int_equal(rv_policy_decide(shadow, json_object_get(body, "facts"), &verdict), 0);
        json_object_set_new(body, "shadow", json_pack("{s:s, s:o}", "bundle", rv_bundle_digest(shadow), "verdict", verdict));
        return body;
}

static void shadows(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *enforced = make_bundle(state, POLICY("", "", "", ""));
        _cleanup_(rv_bundle_freep) struct rv_bundle *shadow = make_bundle(state, POLICY("rule { id = 'six', match = { name = 'six' }, deny = 'x' },", "", "", ""));
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_replay_freep) struct rv_replay_result *r = NULL, *candidate = NULL;
        json_t *body;

        append_decision(log, with_shadow(make_decision(enforced, SIX, "local"), shadow));
        append_decision(log, with_shadow(make_decision(enforced, SMALL, "local"), shadow));
        body = make_decision(enforced, SMALL, "local");
        json_object_set_new(body, "shadow", json_pack("{s:s, s:s}", "bundle", "", "error", "no such directory"));
        append_decision(log, body);
        body = with_shadow(make_decision(enforced, SIX, "local"), shadow);
        set_text(json_object_get(json_object_get(body, "shadow"), "verdict"), "effect", "allow");
        append_decision(log, body);
        body = with_shadow(make_decision(enforced, SIX, "local"), shadow);
        json_object_del(json_object_get(body, "shadow"), "bundle");
        append_decision(log, body);
        r = replay(state, (struct rv_replay_input){ 0 });
        assert_int_equal(r->enforced.same.n, 5);
        assert_int_equal(r->shadow.n_decisions, 5);
        assert_int_equal(r->shadow.same.n, 2);
        assert_int_equal(r->shadow.unreplayable[RV_REPLAY_NO_BUNDLE].n, 1);
        assert_int_equal(r->shadow.diff.n, 1);
        assert_int_equal(r->shadow.error.n, 1);
        assert_true(r->differences[0].is_shadow);
        assert_string_equal(r->differences[0].fields, "/effect");
        assert_int_equal(r->n_compared, 3);
        assert_int_equal(r->changes[RV_CHANGE_DENY].n, 1);
        candidate = replay(state, (struct rv_replay_input){ .candidate = shadow });
        assert_int_equal(candidate->shadow.n_decisions, 0);
        assert_int_equal(candidate->n_compared, 5);
        assert_int_equal(candidate->changes[RV_CHANGE_DENY].n, 3);
}

static void shadow_digest_is_checked(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = make_bundle(state, POLICY("", "", "", ""));
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        json_t *body = with_shadow(make_decision(bundle, SMALL, "local"), bundle);
        _cleanup_(rv_replay_freep) struct rv_replay_result *r = NULL;

        set_digests(body);
        set_text(json_object_get(json_object_get(body, "shadow"), "verdict"), "effect", "deny");
        append(log, "decision", body);
        r = replay(state, (struct rv_replay_input){ 0 });
        assert_int_equal(r->n_corrupt, 1);
        assert_non_null(strstr(r->corrupt, "shadow"));
}

/* ---- What is no record ---- */

static void damaged_lines(void **state)
{
        static const char *const lines[] = { "\n", "x\n", "{}\n", "{\"seq\":1,\"kind\":\"decision\"}\n", "{\"facts\":[\n", "[]\n" };
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = make_bundle(state, POLICY("", "", "", ""));
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_replay_freep) struct rv_replay_result *r = NULL;

        append_decision(log, make_decision(bundle, SMALL, "local"));
        for (size_t i = 0; i < RV_N_ELEMENTS(lines); i++)
                write_raw(state, SEGMENT, lines[i], strlen(lines[i]));
        r = replay(state, (struct rv_replay_input){ 0 });
        assert_int_equal(r->enforced.same.n, 1);
        assert_int_equal(r->n_records, 7);
        assert_int_equal(r->n_corrupt, 5);       /* {} is an object, and no decision */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(each_class),
                TMP(differences_name_fields),
                TMP(digests_are_checked),
                TMP(bundles_are_checked),
                TMP(filters),
                TMP(threads_change_nothing),
                TMP(candidates_are_compared),
                TMP(missing_facts),
                TMP(groups_are_bounded),
                TMP(shadows),
                TMP(shadow_digest_is_checked),
                TMP(damaged_lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
