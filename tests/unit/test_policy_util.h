/*
 * test_policy_util.h - bundles out of text and verdicts out of bundles, for the tests of core/policy
 *
 * Everything is static and lives for one test; failures are cmocka's, with the row's name in the message.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/bundle_files.h"
#include "policy/decide.h"
#include "policy/facts.h"

#define UNUSED __attribute__((unused))

/* The sections that a test of something else needs, each with the answer that lets all pass. */
#define ALLOW_PACKAGES "packages = { default = 'allow' }, "
#define ALLOW_NETWORK "network = { default = 'allow' }, "
#define ALLOW_IDEMPOTENCY "idempotency = { default = 'none' }, "
#define ALLOW_BACKEND "backend = { default = 'tenant' }, "
#define ALLOW_ALL "return policy { " ALLOW_PACKAGES ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}"

#define PLAIN_REQUEST "{\"language\":\"python\",\"source\":\"print(1)\"}"

static UNUSED json_t *facts_for(const char *request_text)
{
        struct rv_facts_tenant tenant = { "local", NULL };
        struct rv_request *request = NULL;
        struct rv_problem *problem = NULL;
        json_t *labels = json_pack("{s:s}", "team", "blue"), *facts = NULL;

        tenant.labels = labels;
        if (rv_request_parse(request_text, strlen(request_text), &request, &problem) != 0)
                fail_msg("a test's request is refused: %s", request_text);
        assert_int_equal(rv_facts_build(request, &tenant, "alice", 1750000000, &facts), 0);
        rv_request_free(request);
        json_decref(labels);
        return facts;
}

/* A verdict on @request_text by a bundle of @n files, which are sorted by path. */
static UNUSED json_t *decide_files(const struct rv_bundle_file *files, size_t n, const char *request_text)
{
        struct rv_bundle bundle = { .files = files, .n_files = n };
        json_t *facts = facts_for(request_text), *verdict = NULL;

        assert_int_equal(rv_policy_decide(&bundle, facts, &verdict), 0);
        json_decref(facts);
        return verdict;
}

static UNUSED json_t *decide_text(const char *policy, const char *request_text)
{
        struct rv_bundle_file file = { "policy.lua", policy, strlen(policy), NULL };

        return decide_files(&file, 1, request_text);
}

/* Runs @snippet while loading, before a policy that allows all. */
static UNUSED json_t *decide_snippet(const char *snippet)
{
        size_t n = strlen(snippet) + sizeof(ALLOW_ALL) + 1;
        char *text = malloc(n);
        json_t *verdict;

        assert_non_null(text);
        snprintf(text, n, "%s\n%s", snippet, ALLOW_ALL);
        verdict = decide_text(text, PLAIN_REQUEST);
        free(text);
        return verdict;
}

static UNUSED const char *reason_of(const json_t *verdict, const char *member)
{
        return rv_json_get_string(json_object_get(verdict, "reason"), member, "");
}

static UNUSED int reason_line(const json_t *verdict)
{
        return (int)json_integer_value(json_object_get(json_object_get(verdict, "reason"), "line"));
}

/* Takes @verdict. Expects an allow (@message NULL) or a policy_error whose message has @message in it. */
static UNUSED void expect_outcome(const char *name, json_t *verdict, const char *message)
{
        const char *code = rv_policy_verdict_code(verdict), *said = reason_of(verdict, "message");

        if (!message && strcmp(code, "ok") != 0)
                fail_msg("%s: %s: %s", name, code, said);
        if (message && (strcmp(code, "policy_error") != 0 || !strstr(said, message)))
                fail_msg("%s: wanted '%s', got %s: %s", name, message, code, said);
        if (message && (strcmp(reason_of(verdict, "file"), "policy.lua") != 0 || reason_line(verdict) < 1))
                fail_msg("%s: no place: %s:%d", name, reason_of(verdict, "file"), reason_line(verdict));
        json_decref(verdict);
}
