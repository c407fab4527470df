/* Replay of runs with packages: two decisions of one run. */
#include "test_audit_replay.h"

#define ATTRS(members) "{\"name\":\"attrs\",\"direct\":true,\"requested\":\"attrs>=1\",\"version\":\"23.1.0\",\"kind\":\"wheel\",\"path\":[\"attrs\"]" members "}"
#define SIX_ITEM "{\"name\":\"six\",\"direct\":true,\"requested\":\"six==1.16.0\",\"version\":\"1.16.0\",\"kind\":\"wheel\",\"published_at\":1600000000,\"license\":\"MIT\",\"path\":[\"six\"]}"
#define LOCK_OF(members) "{\"language\":\"python\",\"packages\":[" ATTRS(members) "," SIX_ITEM "]}"
#define OLD LOCK_OF(",\"published_at\":1700000000,\"license\":\"MIT\"")
#define YOUNG LOCK_OF(",\"published_at\":1749999000,\"license\":\"MIT\"")
#define UNDATED LOCK_OF(",\"license\":\"MIT\"")

#define ALL POLICY("", "", "", "")
#define NO_ATTRS POLICY("rule { id = 'attrs', match = { name = 'attrs' }, deny = 'x' },", "", "", "")
#define NOT_AGAIN POLICY("rule { id = 'late', match = { name = 'attrs', stage = 'resolved' }, deny = 'x' },", "", "", "")
#define COOLDOWN POLICY("rule { id = 'young', when = function(p) return p.age_days < 7 end, deny = 'x' },", "", "", "")
#define OBLIGED POLICY("rule { id = 'old', match = {}, allow = true, newest_published = 'P7D' },", "", "", "")
#define NO_NETWORK POLICY("", "rule { id = 'net', match = {}, deny = 'x' },", "", "")
#define MODE_ANY "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"attrs>=1\"],\"network\":{\"mode\":\"any\"}}"

static const struct {
        const char *name, *before, *now, *lock;   /* lock NULL: it was never resolved */
        const char *changes, *group;
        unsigned n_compared, n_evidence;
} rows[] = {
        { "the same", ALL, ALL, OLD, "", "", 2, 0 },
        { "denied as resolved", ALL, COOLDOWN, YOUNG, "deny", "packages: default (ok) -> young (package_denied)", 2, 0 },
        { "what was undecided is decided by the other record", ALL, COOLDOWN, OLD, "", "", 2, 0 },
        { "no longer denied as resolved", COOLDOWN, ALL, YOUNG, "allow", "packages: young (package_denied) -> default (ok)", 2, 0 },
        { "denied as requested", ALL, NO_ATTRS, OLD, "deny", "packages: default (ok) -> attrs (package_denied)", 2, 0 },
        { "denied as requested, and was as resolved", COOLDOWN, NO_ATTRS, YOUNG, "other", "packages: young (package_denied) -> attrs (package_denied)", 2, 0 },
        { "denied as requested, and would as resolved", ALL, NO_ATTRS, YOUNG, "deny", "packages: default (ok) -> attrs (package_denied)", 2, 0 },
        { "denied by another rule as resolved", COOLDOWN, NOT_AGAIN, YOUNG, "other", "packages: young (package_denied) -> late (package_denied)", 2, 0 },
        { "denied for the network as requested", COOLDOWN, NO_NETWORK, YOUNG, "other", "network: young (package_denied) -> net (network_denied)", 2, 0 },
        { "never resolved, and the candidate would want to", ALL, COOLDOWN, NULL, "", "", 0, 1 },
        { "never resolved, and denied", ALL, NO_ATTRS, NULL, "deny", "packages: default (ok) -> attrs (package_denied)", 1, 0 },
        { "never resolved as it was denied", NO_ATTRS, ALL, NULL, "allow", "packages: attrs (package_denied) -> default (ok)", 1, 0 },
        { "never resolved as it was denied, and undecided now", NO_ATTRS, COOLDOWN, NULL, "", "", 0, 1 },
        { "a fact that was not to be had", ALL, COOLDOWN, UNDATED, "", "", 0, 2 },
        { "would be resolved otherwise", ALL, OBLIGED, YOUNG, "", "", 1, 1 },
        { "would be resolved as it was", ALL, OBLIGED, OLD, "", "", 2, 0 },
};

static void tells(const struct rv_replay_result *r, struct rv_buf *changes, struct rv_buf *group)
{
        for (size_t i = 0; i < RV_CHANGE_MAX_; i++)
                if (r->changes[i].n)
                        rv_buf_printf(changes, "%s%s%s", changes->size ? " " : "", rv_change_words[i], r->changes[i].n > 1 ? " twice" : "");
        if (r->n_groups)
                rv_buf_printf(group, "%s: %s (%s) -> %s (%s)", r->groups[0].section, r->groups[0].rule_before, r->groups[0].before, r->groups[0].rule_now, r->groups[0].now);
}

static void expect_row(size_t i, const struct rv_replay_result *r, unsigned n_decisions)
{
        _cleanup_(rv_buf_fini) struct rv_buf changes = { 0 }, group = { 0 };

        tells(r, &changes, &group);
        if (strcmp(changes.data ? changes.data : "", rows[i].changes) != 0)
                fail_msg("%s: %s", rows[i].name, changes.data ? changes.data : "no change");
        if (strcmp(group.data ? group.data : "", rows[i].group) != 0)
                fail_msg("%s: %s", rows[i].name, group.data ? group.data : "no group");
        if (r->enforced.n_decisions != n_decisions || r->n_compared != rows[i].n_compared ||
                r->enforced.unreplayable[RV_REPLAY_EVIDENCE].n != rows[i].n_evidence ||
                r->enforced.same.n != rows[i].n_compared)
                fail_msg("%s: %d decisions, %d compared, %d without evidence", rows[i].name, (int)r->enforced.n_decisions, (int)r->n_compared,
                         (int)r->enforced.unreplayable[RV_REPLAY_EVIDENCE].n);
        if (r->n_changed != (*rows[i].changes != 0) || r->n_groups != (*rows[i].changes != 0) || r->n_stages ||
                r->enforced.diff.n || r->n_corrupt)
                fail_msg("%s: counts", rows[i].name);
}

/* Each row by itself: with its own bundle, and with the candidate. */
static void runs(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        uint64_t seq = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_bundle_freep) struct rv_bundle *before = make_bundle(state, rows[i].before),
                                                            *now = make_bundle(state, rows[i].now);
                _cleanup_(rv_replay_freep) struct rv_replay_result *own = NULL, *candidate = NULL;
                json_t *first = make_decision(before, SIX, "local"), *second = rows[i].lock ? make_resolved(first, before, rows[i].lock) : NULL;
                unsigned n = second ? 2 : 1;

                append_decision(log, first);
                if (second)
                        append_decision(log, second);
                own = replay(state, (struct rv_replay_input){ .from_seq = seq });
                if (own->enforced.same.n != n || own->enforced.n_decisions != n)
                        fail_msg("%s: not the same by its own bundle", rows[i].name);
                candidate = replay(state, (struct rv_replay_input){ .from_seq = seq, .candidate = now });
                expect_row(i, candidate, n);
                seq += n;
        }
}

/* A run with network access: what else changes is told once, whatever the second stage. */
static void other_changes(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle
                *before = make_bundle(state, ALL),
                *now = make_bundle(state,
                        POLICY("rule { id = 'young', when = function(p) return p.age_days < 7 end, deny = 'x' },", "",
                                "", "rule { id = 'vm', match = {}, use = 'microvm' },"));
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_replay_freep) struct rv_replay_result *r = NULL;
        json_t *first = make_decision(before, MODE_ANY, "local"), *second = make_resolved(first, before, YOUNG);

        append_decision(log, first);
        append_decision(log, second);
        r = replay(state, (struct rv_replay_input){ .candidate = now });
        assert_int_equal(r->changes[RV_CHANGE_BACKEND].n, 1);
        assert_int_equal(r->changes[RV_CHANGE_DENY].n, 1);
        assert_int_equal(r->n_compared, 2);
        assert_int_equal(r->n_changed, 2);
}

/* Whether it would be allowed is not known, and the backend changes all the same. */
static void other_changes_of_one_never_resolved(void **state)
{
        static const struct {
                const char *now;
                unsigned n_denied, n_evidence;
        } cases[] = {
                { POLICY("rule { id = 'young', when = function(p) return p.age_days < 7 end, deny = 'x' },", "", "", "rule { id = 'vm', match = {}, use = 'microvm' },"), 0, 1 },
                { POLICY("rule { id = 'attrs', match = { name = 'attrs' }, deny = 'x' },", "", "", "rule { id = 'vm', match = {}, use = 'microvm' },"), 1, 0 },
        };
        _cleanup_(rv_bundle_freep) struct rv_bundle *before = make_bundle(state, ALL);
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        append_decision(log, make_decision(before, MODE_ANY, "local"));
        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                _cleanup_(rv_bundle_freep) struct rv_bundle *now = make_bundle(state, cases[i].now);
                _cleanup_(rv_replay_freep) struct rv_replay_result *r = replay(
                        state, (struct rv_replay_input){ .candidate = now });

                assert_int_equal(r->changes[RV_CHANGE_BACKEND].n, 1);
                assert_int_equal(r->changes[RV_CHANGE_DENY].n, cases[i].n_denied);
                assert_int_equal(r->enforced.unreplayable[RV_REPLAY_EVIDENCE].n, cases[i].n_evidence);
                assert_int_equal(r->n_compared, 1);
                assert_int_equal(r->n_changed, 1);
        }
}

/* Others' records in between, and stages in any stretch: results do not follow the threads. */
static void far_apart(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *before = make_bundle(state, ALL),
                                                    *cooldown = make_bundle(state, COOLDOWN);
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        enum { RUNS = 300 };
        json_t *open[RUNS];

        for (unsigned i = 0; i < RUNS; i++) {
                open[i] = make_decision(before, SIX, "local");
                set_digests(open[i]);
                append(log, "decision", json_incref(open[i]));
                append_text(log, "config", 100);
        }
        for (unsigned i = 0; i < 400; i++)
                append_text(log, "config", 30000);
        for (unsigned i = 0; i < RUNS; i++) {
                if (i % 3 != 2)
                        append_decision(log, make_resolved(open[i], before, i % 3 ? YOUNG : OLD));
                json_decref(open[i]);
        }
        for (unsigned jobs = 1; jobs < 4; jobs++) {
                _cleanup_(rv_replay_freep) struct rv_replay_result *r = replay(
                        state, (struct rv_replay_input){ .candidate = cooldown, .jobs = jobs });

                assert_int_equal(r->enforced.n_decisions, RUNS + RUNS / 3 * 2);
                assert_int_equal(r->enforced.unreplayable[RV_REPLAY_EVIDENCE].n, RUNS / 3);
                assert_int_equal(r->enforced.same.n, RUNS / 3 * 4);
                assert_int_equal(r->changes[RV_CHANGE_DENY].n, RUNS / 3);
                assert_int_equal(r->n_changed, RUNS / 3);
                assert_int_equal(r->n_groups, 1);
                assert_int_equal(r->enforced.unreplayable[RV_REPLAY_EVIDENCE].examples[0].seq, 4);
        }
}

/* Only one of the two is in the time asked for. */
static void half_of_a_run(void **state)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *before = make_bundle(state, ALL),
                                                    *cooldown = make_bundle(state, COOLDOWN);
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_replay_freep) struct rv_replay_result *first_only = NULL, *second_only = NULL;
        json_t *first = make_decision(before, SIX, "local"), *second = make_resolved(first, before, YOUNG);

        append_decision(log, first);
        append_decision(log, second);
        first_only = replay(state, (struct rv_replay_input){ .candidate = cooldown, .to_seq = 1 });
        assert_int_equal(first_only->enforced.n_decisions, 2);
        second_only = replay(state, (struct rv_replay_input){ .candidate = cooldown, .from_seq = 1 });
        assert_int_equal(second_only->enforced.n_decisions, 1);
        assert_int_equal(second_only->changes[RV_CHANGE_DENY].n, 1);
}

/* A shadow's verdicts stand in both records. */
static void shadows_of_both(void **state)
{
        static const struct {
                const char *name, *enforced, *shadow, *lock, *changes;
        } cases[] = {
                { "the same", ALL, ALL, OLD, "" },
                { "the shadow denies as resolved", ALL, COOLDOWN, YOUNG, "deny" },
                { "the shadow denies as requested", ALL, NO_ATTRS, OLD, "deny" },
                { "the shadow denies as requested what is denied as resolved", COOLDOWN, NO_ATTRS, YOUNG, "other" },
                { "the shadow allows", COOLDOWN, ALL, YOUNG, "allow" },
        };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                _cleanup_(rv_bundle_freep) struct rv_bundle *enforced = make_bundle(state, cases[i].enforced),
                                                            *shadow = make_bundle(state, cases[i].shadow);
                _cleanup_(rv_buf_fini) struct rv_buf changes = { 0 }, group = { 0 };
                _cleanup_(rv_replay_freep) struct rv_replay_result *r = NULL;
                json_t *first = make_decision(enforced, SIX, "local"), *bodies[] = { first, make_resolved(first, enforced, cases[i].lock) };

                for (size_t k = 0; k < 2; k++) {
                        json_t *verdict = NULL;

                        assert_int_equal(rv_policy_decide(shadow, json_object_get(bodies[k], "facts"), &verdict), 0);
                        json_object_set_new(bodies[k], "shadow", json_pack("{s:s, s:o}", "bundle", rv_bundle_digest(shadow), "verdict", verdict));
                        append_decision(log, bodies[k]);
                }
                r = replay(state, (struct rv_replay_input){ .from_seq = 2 * i });
                tells(r, &changes, &group);
                if (strcmp(changes.data ? changes.data : "", cases[i].changes) != 0)
                        fail_msg("%s: %s", cases[i].name, changes.data ? changes.data : "no change");
                assert_int_equal(r->shadow.same.n, 2);
                assert_int_equal(r->enforced.same.n, 2);
                assert_int_equal(r->n_compared, 2);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(runs),
                TMP(other_changes),
                TMP(other_changes_of_one_never_resolved),
                TMP(far_apart),
                TMP(half_of_a_run),
                TMP(shadows_of_both),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
