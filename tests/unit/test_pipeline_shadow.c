/*
 * A shadow judges every request and decides nothing: both verdicts are in the record, and the run is what it would
 * have been without it, whatever the shadow does.
 */
#include "test_pipeline.h"

#include "run/run_private.h"

static const struct rv_observation ok = { .started = RV_STARTED_YES, .has_wait_status = 1, .is_teardown_complete = 1 };

static const struct rv_fake_step whole_run[] = {
        { .kind = RV_FAKE_HELD },
        { .kind = RV_FAKE_STARTED },
        { .kind = RV_FAKE_ENDED },
        { .kind = RV_FAKE_OBSERVE, .seen = &ok },
};

#define ALLOW "return policy { packages = { default = 'allow' }, network = { default = 'allow' }, idempotency = { default = 'none' }, backend = { default = 'tenant' } }"
#define DENY "return policy { packages = { default = 'allow' }, network = { default = 'deny' }, idempotency = { default = 'none' }, backend = { default = 'tenant' } }"
#define LIMIT "return policy { packages = { default = 'allow' }, network = { default = 'allow' }, idempotency = { default = 'none' }, backend = { default = 'other' }, " \
        "limits = { timeout_s = { max = 1 } } }"
#define LOOP "return policy { packages = { default = 'allow' }, network = { rule { id = 'loop', when = function() while true do end end, allow = true }, default = 'allow' }, " \
        "idempotency = { default = 'none' }, backend = { default = 'tenant' } }"

static const json_t *shadow_of(const struct bench *b)
{
        return json_object_get(json_array_get(b->records, 0), "shadow");
}

static void expect_digest(const struct bench *b, const json_t *shadow)
{
        char hex[65];

        assert_int_equal(rv_json_canonical_sha256(json_object_get(shadow, "verdict"), hex), 0);
        expect_text(b, "the shadow's digest", rv_json_get_string(shadow, "verdict_sha256", ""), hex);
}

static void decides_nothing(void **state)
{
        static const struct {
                const char *name, *policy, *effect, *code;
        } shadows[] = {
                { "a shadow that allows", ALLOW, "allow", "ok" },     { "a shadow that denies", DENY, "deny", "network_denied" },
                { "a shadow that lowers a limit", LIMIT, "allow", "ok" }, { "a shadow that fails", "error('x')", "deny", "policy_error" },
                { "a shadow without an end", LOOP, "deny", "policy_error" }, { "a shadow that is no Lua", "(", "deny", "policy_error" },
        };
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(shadows); i++) {
                _cleanup_(rv_bundle_freep) struct rv_bundle *shadow = load_bundle(b, "shadow", shadows[i].policy);
                const struct case_ c = {
                        .name = shadows[i].name, .shadow = shadow, .script = { .steps = whole_run, .n_steps = 4 }
                };

                perform(b, &c);
                expect_kinds(b, "decision outcome");
                expect_text(b, "code", reason_of(b, "code"), "ok");
                expect_number(b, "timeout_s", json_integer_value(json_object_get(json_object_get(b->outcome, "limits"), "timeout_s")), 30);
                expect_text(b, "the shadow's bundle", rv_json_get_string(shadow_of(b), "bundle", ""), rv_bundle_digest(shadow));
                expect_text(b, "the shadow's effect", rv_json_get_string(json_object_get(shadow_of(b), "verdict"), "effect", ""), shadows[i].effect);
                expect_text(b, "the shadow's code", rv_json_get_string(json_object_get(shadow_of(b), "verdict"), "code", ""), shadows[i].code);
                expect_text(b, "the effect", rv_json_get_string(json_object_get(json_array_get(b->records, 0), "verdict"), "effect", ""), "allow");
                expect_digest(b, shadow_of(b));
        }
}

/* Refused runs have it too, and those that policy could not judge. */
static void refused_too(void **state)
{
        struct bench *b = *state;
        _cleanup_(rv_bundle_freep) struct rv_bundle *allow = load_bundle(b, "shadow", ALLOW),
                                                    *deny = load_bundle(b, "enforced", DENY);
        const struct case_ cases[] = {
                { .name = "denied, the shadow allows", .bundle = deny, .shadow = allow },
                { .name = "no bundle, the shadow allows", .bundle_error = "gone", .shadow = allow },
                { .name = "above the ceiling", .tenant = "offline", .request = PLAIN_WITH("\"network\":{\"mode\":\"any\"}"), .shadow = allow },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                perform(b, &cases[i]);
                expect_text(b, "status", rv_json_get_string(b->outcome, "status", ""), "blocked");
                expect_text(b, "the shadow's effect", rv_json_get_string(json_object_get(shadow_of(b), "verdict"), "effect", ""), "allow");
        }
}

static void cannot_be_loaded(void **state)
{
        const struct case_ c = { .name = "no shadow", .shadow_error = "policy.lua: it is gone", .script = { .steps = whole_run, .n_steps = 4 } };
        const struct case_ none = { .name = "none asked for", .shadow_error = "", .script = { .steps = whole_run, .n_steps = 4 } };
        struct bench *b = *state;

        perform(b, &c);
        expect_text(b, "code", reason_of(b, "code"), "ok");
        expect_text(b, "the shadow's bundle", rv_json_get_string(shadow_of(b), "bundle", "none"), "");
        expect_text(b, "the shadow's error", rv_json_get_string(shadow_of(b), "error", ""), "policy.lua: it is gone");
        perform(b, &none);
        assert_null(shadow_of(b));
}

/* What the pipeline does where a shadow's verdict makes the record too long: there is none so long in this build. */
static void verdict_is_dropped(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:{s:s, s:{s:s}}, s:i}", "shadow", "bundle", "abc", "verdict", "effect", "allow", "x", 1);

        (void)state;
        assert_int_equal(rv__record_shadow_digest(body), 0);
        assert_true(rv__record_drop_shadow(body));
        assert_string_equal(rv_json_get_string(json_object_get(body, "shadow"), "bundle", ""), "abc");
        assert_non_null(strstr(rv_json_get_string(json_object_get(body, "shadow"), "error", ""), "does not fit"));
        assert_null(json_object_get(json_object_get(body, "shadow"), "verdict"));
        assert_false(rv__record_drop_shadow(body));
        assert_int_equal(json_object_size(body), 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = { ON_BENCH(decides_nothing), ON_BENCH(refused_too),
                ON_BENCH(cannot_be_loaded), cmocka_unit_test(verdict_is_dropped) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
