/*
 * The pipeline where a run is turned away before anything is started: rejected requests, policy's denials,
 * the tenant's ceiling, a bundle that is not there, a backend that is not there or cannot.
 */
#include "test_pipeline.h"

#define ALLOW_PACKAGES "packages = { default = 'allow' }, "
#define ALLOW_NETWORK "network = { default = 'allow' }, "
#define ALLOW_IDEMPOTENCY "idempotency = { default = 'none' }, "
#define ALLOW_BACKEND "backend = { default = 'tenant' }, "

#define DOMAINS "\"network\":{\"mode\":\"domains\",\"domains\":[\"b.example.com\",\"a.example.com\"]}"
#define ANY "\"network\":{\"mode\":\"any\"}"

/* Nothing that is refused reaches a backend. */
static void expect_nothing_started(const struct bench *b)
{
        expect_number(b, "the number of starts", b->calls.n_starts, 0);
        expect_number(b, "output", (long long)(b->live[0].size + b->live[1].size), 0);
        if (!b->outcome)
                return;
        expect_text(b, "started", rv_json_get_string(b->outcome, "started", ""), "no");
        expect_text(b, "status", rv_json_get_string(b->outcome, "status", ""), "blocked");
        expect_number(b, "exit status", b->exit_status, 126);
        expect_number(b, "repeat_safe", json_is_true(json_object_get(b->outcome, "repeat_safe")), 1);
}

/* ---- Rejected ---- */

static const struct {
        const char *name, *request;
        const char *faults;         /* "pointer code" of each, joined by "; " */
        const char *recorded;       /* the same in the log, where names that a caller made up are left out; NULL: alike */
} rejected[] = {
        { "no JSON", "{", " syntax", NULL },
        { "empty", "", " syntax", NULL },
        { "an array", "[]", " type", NULL },
        { "all at once", "{\"language\":\"perl\",\"source\":\"\",\"timeout_s\":0,\"extra\":1}",
          "/language unsupported; /source length; /timeout_s range; /extra unknown",
          " unknown; /language unsupported; /source length; /timeout_s range" },
        { "secrets in a rejected request", PLAIN_WITH("\"env\":{\"TOKEN\":\"ENV-SECRET\",\"REEVE_X\":\"SECRET\"},\"stdin\":\"STDIN-SECRET\",\"timeout_s\":301"),
          "/env/REEVE_X pattern; /timeout_s range", "/env pattern; /timeout_s range" },
        { "a secret in the wrong place", PLAIN_WITH("\"env\":{\"TOKEN=ENV-SECRET\":\"\"}"), "/env/TOKEN=ENV-SECRET pattern", "/env pattern" },
};

/* Sorted, since the order of faults is another module's business. */
static int compare_words(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void join_sorted(char **words, size_t n, char *ret, size_t size)
{
        qsort(words, n, sizeof(*words), compare_words);
        *ret = 0;
        for (size_t i = 0; i < n; i++)
                snprintf(ret + strlen(ret), size - strlen(ret), "%s%s", i ? "; " : "", words[i]);
}

static void list_faults(const json_t *errors, char *ret, size_t size)
{
        char texts[8][128], *words[8];
        json_t *fault;
        size_t i, n = 0;

        json_array_foreach(errors, i, fault) {
                if (n == RV_N_ELEMENTS(words))
                        break;
                snprintf(texts[n], sizeof(texts[n]), "%s %s", rv_json_get_string(fault, "pointer", "?"), rv_json_get_string(fault, "code", "?"));
                words[n] = texts[n];
                n++;
        }
        join_sorted(words, n, ret, size);
}

static void sort_list(const char *list, char *ret, size_t size)
{
        char copy[512], *words[8];
        size_t n = 1;

        snprintf(copy, sizeof(copy), "%s", list);
        words[0] = copy;
        for (char *p = strstr(copy, "; "); p && n < RV_N_ELEMENTS(words); p = strstr(p, "; ")) {
                *p = 0;
                words[n++] = p += 2;
        }
        join_sorted(words, n, ret, size);
}

static void rejected_requests(void **state)
{
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(rejected); i++) {
                struct case_ c = { .name = rejected[i].name, .request = rejected[i].request };
                char seen[512], expected[512], hmac[65];
                const json_t *record;

                perform(b, &c);
                expect_nothing_started(b);
                if (!b->problem)
                        fail_msg("%s: no problem", c.name);
                expect_text(b, "schema", rv_json_get_string(b->problem, "schema", ""), "reeve.problem/1");
                expect_number(b, "status", json_integer_value(json_object_get(b->problem, "status")), 422);
                sort_list(rejected[i].faults, expected, sizeof(expected));
                list_faults(json_object_get(b->problem, "errors"), seen, sizeof(seen));
                expect_text(b, "errors", seen, expected);
                expect_kinds(b, "rejected");
                record = json_array_get(b->records, 0);
                list_faults(json_object_get(record, "errors"), seen, sizeof(seen));
                if (rejected[i].recorded)
                        sort_list(rejected[i].recorded, expected, sizeof(expected));
                expect_text(b, "the record's errors", seen, expected);
                rv_log_hmac(b->core.log, c.request, strlen(c.request), hmac);
                expect_text(b, "the record's request", rv_json_get_string(json_object_get(record, "request"), "hmac_sha256", ""), hmac);
                expect_number(b, "the record has a decision_id", json_object_get(record, "decision_id") != NULL, 0);
                expect_number(b, "the record has a run_id", (long long)strlen(rv_json_get_string(record, "run_id", "")), 32);
        }
}

/* ---- Policy ---- */

static const struct {
        const char *name, *policy, *more;
        const char *code, *rule, *item, *path;
        const char *denials;        /* "section/rule/item" of each, in order */
} denied[] = {
        { "a package", "packages = { rule { id = 'no-six', match = { name = 'six' }, deny = 'no six' }, default = 'allow' }, "
          ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND, "\"packages\":[\"six>=1\",\"attrs>=0\"]",
          "package_denied", "no-six", "six", "/packages/0", "packages/no-six/six" },
        { "a domain", ALLOW_PACKAGES "network = { rule { id = 'only-b', match = { domain = 'b.example.com' }, allow = true }, default = 'deny' }, "
          ALLOW_IDEMPOTENCY ALLOW_BACKEND, DOMAINS, "network_denied", "default", "a.example.com", "/network/domains/1",
          "network/default/a.example.com" },
        { "no key", ALLOW_PACKAGES ALLOW_NETWORK "idempotency = { rule { id = 'keyed', match = { mode = 'any' }, require_key = true }, default = 'none' }, "
          ALLOW_BACKEND, ANY, "idempotency_required", "keyed", "", "/idempotency_key", "idempotency/keyed/" },
        { "the backend", ALLOW_PACKAGES ALLOW_NETWORK ALLOW_IDEMPOTENCY
          "backend = { rule { id = 'closed', match = { mode = 'none' }, deny = 'closed today' }, default = 'tenant' }, ", "\"timeout_s\":5",
          "backend_denied", "closed", "", "", "backend/closed/" },
        { "a limit", ALLOW_PACKAGES ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "limits = { memory_mib = { deny_above = 256 } }, ",
          "\"memory_mib\":257", "limit_denied", "deny_above", "memory_mib", "/memory_mib", "limits/deny_above/memory_mib" },
        { "everything: the first section gives the reason",
          "packages = { default = 'deny' }, network = { default = 'deny' }, idempotency = { default = 'require_key' }, "
          "backend = { rule { id = 'none', when = function() return true end, deny = 'no' }, default = 'tenant' }, limits = { timeout_s = { deny_above = 2 } }, ",
          "\"packages\":[\"six>=1\"]," ANY, "package_denied", "default", "six", "/packages/0",
          "packages/default/six network/default/ idempotency/default/ backend/none/ limits/deny_above/timeout_s" },
        { "an error in a rule", ALLOW_PACKAGES ALLOW_NETWORK ALLOW_IDEMPOTENCY
          "backend = { rule { id = 'broken', when = function() error('oops') end, use = 'fake' }, default = 'tenant' }, ", "\"timeout_s\":5",
          "policy_error", "broken", "", "", "backend/broken/" },
};

static void list_denials(const json_t *denials, char *ret, size_t size)
{
        json_t *denial;
        size_t i;

        *ret = 0;
        json_array_foreach(denials, i, denial)
                snprintf(ret + strlen(ret), size - strlen(ret), "%s%s/%s/%s", i ? " " : "", rv_json_get_string(denial, "section", "?"),
                        rv_json_get_string(denial, "rule", "?"), rv_json_get_string(denial, "item", "?"));
}

static void check_denials(const struct bench *b, const char *expected)
{
        const json_t *denials = json_object_get(detail_of(b), "denials");
        char seen[512];
        json_t *denial;
        size_t i;

        list_denials(denials, seen, sizeof(seen));
        expect_text(b, "detail.denials", seen, expected);
        json_array_foreach(denials, i, denial)
                expect_number(b, "the members of a denial", (long long)json_object_size(denial), 6);
}

static void denied_by_policy(void **state)
{
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(denied); i++) {
                char policy[1024], request[512];
                struct case_ c = { .name = denied[i].name, .request = request };
                struct rv_bundle *bundle;

                snprintf(policy, sizeof(policy), "return policy { %s }", denied[i].policy);
                snprintf(request, sizeof(request), "{\"language\":\"python\",\"source\":\"" SOURCE_TEXT "\",%s}", denied[i].more);
                c.bundle = bundle = load_bundle(b, denied[i].name, policy);
                perform(b, &c);
                expect_nothing_started(b);
                expect_text(b, "code", reason_of(b, "code"), denied[i].code);
                expect_text(b, "phase", reason_of(b, "phase"), "decide");
                expect_text(b, "detail.rule", rv_json_get_string(detail_of(b), "rule", ""), denied[i].rule);
                expect_text(b, "detail.item", rv_json_get_string(detail_of(b), "item", ""), denied[i].item);
                expect_text(b, "detail.path", rv_json_get_string(detail_of(b), "path", ""), denied[i].path);
                check_denials(b, denied[i].denials);
                expect_text(b, "the record's verdict", rv_json_get_string(json_object_get(json_array_get(b->records, 0), "verdict"), "code", ""),
                        denied[i].code);
                rv_bundle_free(bundle);
        }
}

static void the_strict_bundle(void **state)
{
        struct case_ c = { .name = "strict, unpinned", .request = PLAIN_WITH("\"packages\":[\"six>=1\"]") };
        struct bench *b = *state;
        struct rv_bundle *strict = NULL;
        struct rv_error err = { 0 };

        if (rv_bundle_load(SOURCE_ROOT "/policies/strict", &strict, &err) != 0)
                fail_msg("%s", err.message);
        c.bundle = strict;
        perform(b, &c);
        expect_nothing_started(b);
        expect_text(b, "code", reason_of(b, "code"), "package_denied");
        expect_text(b, "detail.rule", rv_json_get_string(detail_of(b), "rule", ""), "pins-only");
        c = (struct case_){ .name = "strict, no key", .request = PLAIN_WITH(DOMAINS), .bundle = strict };
        perform(b, &c);
        expect_text(b, "code", reason_of(b, "code"), "idempotency_required");
        rv_bundle_free(strict);
}

static void no_bundle(void **state)
{
        const struct case_ c = { .name = "a bundle that cannot be loaded", .bundle_error = "policy.lua: no such file" };
        struct bench *b = *state;

        perform(b, &c);
        expect_nothing_started(b);
        expect_text(b, "code", reason_of(b, "code"), "policy_error");
        expect_text(b, "phase", reason_of(b, "phase"), "decide");
        if (!strstr(reason_of(b, "message"), "policy.lua: no such file"))
                fail_msg("%s: the message does not say why: %s", c.name, reason_of(b, "message"));
        expect_number(b, "limits.timeout_s", json_integer_value(json_object_get(json_object_get(b->outcome, "limits"), "timeout_s")), 30);
}

/* A verdict that comes too late is not used. */
static void late_decision(void **state)
{
        const struct case_ c = { .name = "decide budget" };
        struct bench *b = *state;

        b->config->phases.decide_ms = 0;
        perform(b, &c);
        expect_number(b, "the number of starts", b->calls.n_starts, 0);
        expect_text(b, "code", reason_of(b, "code"), "timeout");
        expect_text(b, "phase", reason_of(b, "phase"), "decide");
        expect_text(b, "started", rv_json_get_string(b->outcome, "started", ""), "no");
        expect_number(b, "exit status", b->exit_status, 125);
}

/* ---- The tenant's ceiling ---- */

#define NO_SIX "packages = { rule { id = 'no-six', match = { name = 'six' }, deny = 'no six' }, default = 'allow' }, "

static const struct {
        const char *name, *tenant, *policy, *more;
        const char *code, *rule, *item, *denials;
} ceilings[] = {
        { "any, where none is the most", "offline", ALLOW_PACKAGES ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND, ANY,
          "network_denied", "tenant", "any", "network/tenant/any" },
        { "any, where domains is the most", "named", ALLOW_PACKAGES ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND, ANY,
          "network_denied", "tenant", "any", "network/tenant/any" },
        { "a package denied before it", "offline", NO_SIX ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND, "\"packages\":[\"six>=1\"]," ANY,
          "package_denied", "no-six", "six", "packages/no-six/six network/tenant/any" },
        { "policy's own denials after it", "offline",
          ALLOW_PACKAGES "network = { default = 'deny' }, idempotency = { default = 'require_key' }, " ALLOW_BACKEND, ANY,
          "network_denied", "tenant", "any", "network/tenant/any network/default/ idempotency/default/" },
        { "between the others", "offline", NO_SIX "network = { default = 'allow' }, idempotency = { default = 'require_key' }, " ALLOW_BACKEND,
          "\"packages\":[\"six>=1\",\"attrs>=0\"]," ANY,
          "package_denied", "no-six", "six", "packages/no-six/six network/tenant/any idempotency/default/" },
};

static void the_ceiling(void **state)
{
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(ceilings); i++) {
                char policy[1024], request[512];
                struct case_ c = { .name = ceilings[i].name, .tenant = ceilings[i].tenant, .request = request };
                struct rv_bundle *bundle;

                snprintf(policy, sizeof(policy), "return policy { %s }", ceilings[i].policy);
                snprintf(request, sizeof(request), "{\"language\":\"python\",\"source\":\"" SOURCE_TEXT "\",%s}", ceilings[i].more);
                c.bundle = bundle = load_bundle(b, ceilings[i].name, policy);
                perform(b, &c);
                expect_nothing_started(b);
                expect_text(b, "code", reason_of(b, "code"), ceilings[i].code);
                expect_text(b, "detail.rule", rv_json_get_string(detail_of(b), "rule", ""), ceilings[i].rule);
                expect_text(b, "detail.item", rv_json_get_string(detail_of(b), "item", ""), ceilings[i].item);
                check_denials(b, ceilings[i].denials);
                if (!strcmp(ceilings[i].rule, "tenant")) {
                        expect_text(b, "detail.path", rv_json_get_string(detail_of(b), "path", ""), "/network/mode");
                        expect_text(b, "the record's refusal", rv_json_get_string(json_array_get(b->records, 0), "refused", ""), "network_denied");
                }
                rv_bundle_free(bundle);
        }
}

static void at_the_ceiling(void **state)
{
        static const struct rv_observation ok = { .started = RV_STARTED_YES, .has_wait_status = 1 };
        const struct rv_fake_step steps[] = { { .kind = RV_FAKE_STARTED }, { .kind = RV_FAKE_OBSERVE, .seen = &ok } };
        const struct case_ c = { .name = "domains, where domains is the most", .tenant = "named", .request = PLAIN_WITH(DOMAINS),
                                 .script = { .steps = steps, .n_steps = 2 } };
        struct bench *b = *state;

        perform(b, &c);
        expect_text(b, "code", reason_of(b, "code"), "ok");
}

/* An unusable bundle is the reason even above the ceiling, as no section was judged. */
static void no_bundle_above_the_ceiling(void **state)
{
        const struct case_ c = { .name = "no bundle, above the ceiling", .tenant = "offline", .request = PLAIN_WITH(ANY), .bundle_error = "it is gone" };
        struct bench *b = *state;

        perform(b, &c);
        expect_nothing_started(b);
        expect_text(b, "code", reason_of(b, "code"), "policy_error");
}

/* ---- The backend ---- */

static struct rv_manifest manifest_without(enum rv_capability first, enum rv_capability last)
{
        struct rv_manifest m = { .struct_size = sizeof(m), .is_usable = 1, .isolation = "vm-tcg" };

        for (int i = 0; i < RV_CAPABILITY_MAX_; i++) {
                m.capabilities[i].grade = i >= (int)first && i <= (int)last ? RV_GRADE_ABSENT : RV_GRADE_ENFORCED;
                if (m.capabilities[i].grade == RV_GRADE_ABSENT)
                        snprintf(m.capabilities[i].reason, RV_REASON_SIZE, "reason %d", i);
        }
        return m;
}

static const struct {
        const char *name;
        enum rv_capability first, last;     /* absent */
        const char *more;
        const char *missing;                /* "" where the run goes on */
} capabilities[] = {
        { "no network none", RV_CAPABILITY_network_none, RV_CAPABILITY_network_none, "\"timeout_s\":5", "network_none" },
        { "no networks, none asked for", RV_CAPABILITY_network_registries, RV_CAPABILITY_network_any, "\"timeout_s\":5", "" },
        { "registries", RV_CAPABILITY_network_registries, RV_CAPABILITY_network_any, "\"network\":{\"mode\":\"registries\"}", "network_registries" },
        { "domains", RV_CAPABILITY_network_registries, RV_CAPABILITY_network_any, DOMAINS, "network_domains" },
        { "any", RV_CAPABILITY_network_registries, RV_CAPABILITY_network_any, ANY, "network_any" },
        { "memory", RV_CAPABILITY_memory, RV_CAPABILITY_memory, "\"timeout_s\":5", "memory" },
        { "pids", RV_CAPABILITY_pids, RV_CAPABILITY_pids, "\"timeout_s\":5", "pids" },
        { "cpus, without a quota", RV_CAPABILITY_cpus, RV_CAPABILITY_cpus, "\"timeout_s\":5", "" },
        { "files", RV_CAPABILITY_files, RV_CAPABILITY_files, "\"timeout_s\":5", "files" },
        { "timeout", RV_CAPABILITY_timeout, RV_CAPABILITY_timeout, "\"timeout_s\":5", "timeout" },
        { "private uid is not required", RV_CAPABILITY_private_uid, RV_CAPABILITY_private_uid, "\"timeout_s\":5", "" },
        { "syscall filter", RV_CAPABILITY_syscall_filter, RV_CAPABILITY_syscall_filter, "\"timeout_s\":5", "syscall_filter" },
        { "landlock is not required", RV_CAPABILITY_landlock, RV_CAPABILITY_landlock, "\"timeout_s\":5", "" },
        { "several: each is named", RV_CAPABILITY_memory, RV_CAPABILITY_network_any, ANY,
          "memory pids files timeout syscall_filter network_any" },
};

static void list_missing(const struct bench *b, char *ret, size_t size)
{
        json_t *name;
        size_t i;

        *ret = 0;
        json_array_foreach(json_object_get(detail_of(b), "missing"), i, name)
                snprintf(ret + strlen(ret), size - strlen(ret), "%s%s", i ? " " : "", json_string_value(name));
}

static void expect_refused_by_plan(const struct bench *b, const char *missing)
{
        char seen[256];

        expect_nothing_started(b);
        expect_text(b, "code", reason_of(b, "code"), "backend_denied");
        expect_text(b, "phase", reason_of(b, "phase"), "plan");
        list_missing(b, seen, sizeof(seen));
        expect_text(b, "detail.missing", seen, missing);
        expect_text(b, "the record's refusal", rv_json_get_string(json_array_get(b->records, 0), "refused", ""), "backend_denied");
}

static void missing_capabilities(void **state)
{
        static const struct rv_observation ok = { .started = RV_STARTED_YES, .has_wait_status = 1 };
        static const struct rv_fake_step steps[] = { { .kind = RV_FAKE_STARTED },
                { .kind = RV_FAKE_OBSERVE, .seen = &ok } };
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(capabilities); i++) {
                struct rv_manifest m = manifest_without(capabilities[i].first, capabilities[i].last);
                char request[512], reason[32];
                struct case_ c = { .name = capabilities[i].name, .request = request,
                                   .script = { .steps = steps, .n_steps = 2, .manifest = &m } };

                snprintf(request, sizeof(request), "{\"language\":\"python\",\"source\":\"" SOURCE_TEXT "\",%s}", capabilities[i].more);
                perform(b, &c);
                if (!*capabilities[i].missing) {
                        expect_text(b, "code", reason_of(b, "code"), "ok");
                        continue;
                }
                expect_refused_by_plan(b, capabilities[i].missing);
                expect_text(b, "detail.backend", rv_json_get_string(detail_of(b), "backend", ""), "fake");
                expect_text(b, "backend.isolation", rv_json_get_string(json_object_get(b->outcome, "backend"), "isolation", ""), "vm-tcg");
                snprintf(reason, sizeof(reason), "reason %d", (int)capabilities[i].first);
                if (!strstr(capabilities[i].name, "any") && !strstr(capabilities[i].name, "domains") &&
                    !strstr(reason_of(b, "message"), reason))
                        fail_msg("%s: the message does not give the reason: %s", c.name, reason_of(b, "message"));
        }
}

static void a_quota_needs_cpus(void **state)
{
        struct rv_manifest m = manifest_without(RV_CAPABILITY_cpus, RV_CAPABILITY_cpus);
        const struct case_ c = { .name = "a quota", .script = { .manifest = &m } };
        struct bench *b = *state;

        b->config->limits.cpus_milli = 1500;
        perform(b, &c);
        expect_refused_by_plan(b, "cpus");
}

static void approximate_will_do(void **state)
{
        static const struct rv_observation ok = { .started = RV_STARTED_YES, .has_wait_status = 1 };
        const struct rv_fake_step steps[] = { { .kind = RV_FAKE_STARTED }, { .kind = RV_FAKE_OBSERVE, .seen = &ok } };
        struct rv_manifest m = manifest_without(RV_CAPABILITY_MAX_, RV_CAPABILITY_MAX_);
        const struct case_ c = { .name = "approximate", .script = { .steps = steps, .n_steps = 2, .manifest = &m } };
        struct bench *b = *state;

        for (int i = 0; i < RV_CAPABILITY_MAX_; i++)
                m.capabilities[i].grade = RV_GRADE_APPROXIMATE;
        perform(b, &c);
        expect_text(b, "code", reason_of(b, "code"), "ok");
}

static void a_backend_that_is_not_usable(void **state)
{
        struct rv_manifest m = manifest_without(RV_CAPABILITY_MAX_, RV_CAPABILITY_MAX_);
        const struct case_ c = { .name = "not usable", .script = { .manifest = &m } };
        struct bench *b = *state;

        m.is_usable = 0;
        snprintf(m.reason, sizeof(m.reason), "there is no moon; get one");
        perform(b, &c);
        expect_refused_by_plan(b, "backend");
        if (!strstr(reason_of(b, "message"), "there is no moon; get one"))
                fail_msg("%s: the message does not give the reason: %s", c.name, reason_of(b, "message"));
}

static const struct {
        const char *name, *tenant, *asked, *backend;   /* `backend`: policy's section */
        const char *unknown;                           /* "": the run goes on */
} choices[] = {
        { "the tenant's", "nowhere", NULL, "default = 'tenant'", "moonbase" },
        { "asked for", NULL, "submarine", "default = 'tenant'", "submarine" },
        { "asked for, which is there", "nowhere", "fake", "default = 'tenant'", "" },
        { "policy's is final", NULL, "fake", "default = 'tower'", "tower" },
        { "policy's is final, and there", "nowhere", "submarine", "default = 'fake'", "" },
        { "a rule's is final", "nowhere", "submarine", "rule { id = 'x', match = { mode = 'none' }, use = 'fake' }, default = 'tower'", "" },
};

static void choosing_a_backend(void **state)
{
        static const struct rv_observation ok = { .started = RV_STARTED_YES, .has_wait_status = 1 };
        static const struct rv_fake_step steps[] = { { .kind = RV_FAKE_STARTED },
                { .kind = RV_FAKE_OBSERVE, .seen = &ok } };
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(choices); i++) {
                char policy[512];
                struct case_ c = { .name = choices[i].name, .tenant = choices[i].tenant, .backend = choices[i].asked,
                                   .script = { .steps = steps, .n_steps = 2 } };
                struct rv_bundle *bundle;

                snprintf(policy, sizeof(policy), "return policy { " ALLOW_PACKAGES ALLOW_NETWORK ALLOW_IDEMPOTENCY "backend = { %s } }", choices[i].backend);
                c.bundle = bundle = load_bundle(b, choices[i].name, policy);
                perform(b, &c);
                if (*choices[i].unknown) {
                        expect_refused_by_plan(b, "backend");
                        expect_text(b, "detail.backend", rv_json_get_string(detail_of(b), "backend", ""), choices[i].unknown);
                        if (!strstr(reason_of(b, "message"), "it has: fake"))
                                fail_msg("%s: the message does not say what there is: %s", c.name, reason_of(b, "message"));
                } else {
                        expect_text(b, "code", reason_of(b, "code"), "ok");
                }
                rv_bundle_free(bundle);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ON_BENCH(rejected_requests),
                ON_BENCH(denied_by_policy),
                ON_BENCH(the_strict_bundle),
                ON_BENCH(no_bundle),
                ON_BENCH(late_decision),
                ON_BENCH(the_ceiling),
                ON_BENCH(at_the_ceiling),
                ON_BENCH(no_bundle_above_the_ceiling),
                ON_BENCH(missing_capabilities),
                ON_BENCH(a_quota_needs_cpus),
                ON_BENCH(approximate_will_do),
                ON_BENCH(a_backend_that_is_not_usable),
                ON_BENCH(choosing_a_backend),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
