/*
 * test_audit_replay.h - logs with decisions in them, for the tests of replay
 *
 * Decisions are made by the evaluator and recorded as the pipeline does, unless a test changes the record before its
 * digests are made, or after. One thread.
 */
#pragma once

#include "audit/replay.h"
#include "policy/decide.h"
#include "policy/facts.h"
#include "policy/provenance.h"

#include "test_audit_common.h"

#define POLICY(packages, network, idempotency, backend) \
        "return policy { packages = { " packages " default = 'allow' }, network = { " network " default = 'allow' }, idempotency = { " idempotency " default = 'none' }, " \
        "backend = { " backend " default = 'tenant' } }\n"
#define SMALL "{\"language\":\"python\",\"source\":\"1\"}"
#define DOMAINS "{\"language\":\"python\",\"source\":\"1\",\"network\":{\"mode\":\"domains\",\"domains\":[\"a.example\",\"b.example\"]}}"
#define SIX "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"six==1.16.0\",\"attrs>=1\"]}"

/* A bundle of one policy.lua, kept by its digest in the state directory. */
static inline struct rv_bundle *make_bundle(void **state, const char *policy)
{
        struct rv_bundle *bundle = NULL;
        struct rv_error err = { 0 };
        char path[512], kept[512];

        snprintf(path, sizeof(path), "%s", tmp_path(state, "bundle"));
        (void)mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s", tmp_path(state, "bundle/policy.lua"));
        assert_int_equal(rv_write_file(path, policy, strlen(policy), 0600, false), 0);
        snprintf(path, sizeof(path), "%s", tmp_path(state, "bundle"));
        if (rv_bundle_load(path, &bundle, &err) < 0)
                fail_msg("%s", err.message);
        snprintf(kept, sizeof(kept), "%s", in_state(state, "bundles"));
        assert_int_equal(rv_bundle_keep(bundle, kept), 0);
        return bundle;
}

static inline json_t *make_facts(const char *request_text, const char *tenant_name)
{
        struct rv_facts_tenant tenant = { tenant_name, NULL };
        struct rv_request *request = NULL;
        struct rv_problem *problem = NULL;
        json_t *facts = NULL;

        assert_int_equal(rv_request_parse(request_text, strlen(request_text), &request, &problem), 0);
        assert_int_equal(rv_facts_build(request, &tenant, "", 1750000000, &facts), 0);
        rv_request_free(request);
        return facts;
}

/* The body of a decision record, without its digests. */
static inline json_t *make_decision(const struct rv_bundle *bundle, const char *request, const char *tenant)
{
        static unsigned n;
        json_t *facts = make_facts(request, tenant), *verdict = NULL, *body;
        char id[33];

        assert_int_equal(rv_policy_decide(bundle, facts, &verdict), 0);
        snprintf(id, sizeof(id), "%032x", ++n);
        body = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "decision_id", id, "run_id", id, "tenant", tenant, "stage", "requested", "bundle",
                         rv_bundle_digest(bundle), "engine", rv_policy_engine(), "facts", facts, "verdict", verdict);
        assert_non_null(body);
        return body;
}

/* The body of the second decision of the run of @first: what @lock_text says comes of its packages. */
static inline json_t *make_resolved(const json_t *first, const struct rv_bundle *bundle, const char *lock_text)
{
        json_t *body = json_deep_copy(first), *lock = json_loads(lock_text, 0, NULL), *facts = NULL, *verdict = NULL;

        assert_non_null(lock);
        assert_int_equal(rv_facts_resolve(json_object_get(first, "facts"), lock, 1750000060, &facts), 0);
        assert_int_equal(rv_policy_decide(bundle, facts, &verdict), 0);
        json_object_set_new(body, "stage", json_string("resolved"));
        json_object_set_new(body, "facts", facts);
        json_object_set_new(body, "verdict", verdict);
        json_object_del(body, "shadow");
        json_decref(lock);
        return body;
}

static inline void set_digests(json_t *body)
{
        _cleanup_(rv_json_unrefp) json_t *context = json_pack("{s:O, s:O, s:O}", "facts", json_object_get(body, "facts"), "bundle", json_object_get(body, "bundle"),
                                                              "limits", json_object_get(json_object_get(body, "engine"), "limits"));
        json_t *shadow = json_object_get(body, "shadow");
        char hex[65];

        assert_int_equal(rv_json_canonical_sha256(context, hex), 0);
        json_object_set_new(body, "context_sha256", json_string(hex));
        assert_int_equal(rv_json_canonical_sha256(json_object_get(body, "verdict"), hex), 0);
        json_object_set_new(body, "verdict_sha256", json_string(hex));
        if (!json_object_get(shadow, "verdict"))
                return;
        assert_int_equal(rv_json_canonical_sha256(json_object_get(shadow, "verdict"), hex), 0);
        json_object_set_new(shadow, "verdict_sha256", json_string(hex));
}

static inline void append(struct rv_log *log, const char *kind, json_t *take_body)
{
        struct rv_error err = { 0 };

        if (rv_log_append(log, kind, take_body, NULL, &err) < 0)
                fail_msg("%s", err.message);
        json_decref(take_body);
}

static inline void append_decision(struct rv_log *log, json_t *take_body)
{
        set_digests(take_body);
        append(log, "decision", take_body);
}

/* Replays the log of the state; @input has what is asked for besides. */
static inline struct rv_replay_result *replay(void **state, struct rv_replay_input input)
{
        struct rv_replay_result *result = NULL;
        struct rv_segments segments;
        struct rv_error err = { 0 };
        int dir_fd = open(in_state(state, "audit"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(rv_segments_open(dir_fd, "audit", &segments, &err), 0);
        input.segments = &segments;
        input.bundles_fd = open(in_state(state, "bundles"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        input.to_seq = input.to_seq ? input.to_seq : UINT64_MAX;
        input.to_us = input.to_us ? input.to_us : UINT64_MAX;
        input.jobs = input.jobs ? input.jobs : 1;
        if (rv_replay(&input, &result, &err) < 0)
                fail_msg("%s", err.message);
        rv_segments_fini(&segments);
        rv_close(input.bundles_fd);
        close(dir_fd);
        return result;
}
