/*
 * A lock, as facts and verdicts come of it: whatever JSON it is, what is taken gives facts of the table's names only, in
 * order, each with its pointers, path and evidence; and a verdict, twice the same bytes, in which nothing is allowed that
 * is not known or not satisfied.
 */
#include "fuzz.h"

#include "policy/bundle_files.h"
#include "policy/decide.h"
#include "policy/fact_names.h"
#include "policy/facts.h"
#include "policy/facts_bound.h"
#include "policy/obligations.h"

#define NOW 1750000000
#define WEEK_S (7 * 86400)

static const char policy[] =
        "return policy { packages = {\n"
        "rule { id = 'gpl', match = { license = 'GPL*' }, deny = 'x' },\n"
        "rule { id = 'big', when = function(p) return p.size_bytes > 1000 end, deny = 'x' },\n"
        "rule { id = 'six', match = { name = 'six' }, allow = true, pin = '1.16.0', require_hash = true },\n"
        "rule { id = 'idna', match = { name = 'i*' }, allow = true, allow_source_build = true },\n"
        "rule { id = 'all', match = { name = '*' }, allow = true, newest_published = 'P7D' },\n"
        "default = 'deny' }, network = { default = 'allow' }, idempotency = { default = 'none' }, backend = { default = 'tenant' } }\n";

static json_t *build_asked(void)
{
        static const char text[] = "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"six==1.16.0\",\"idna>=3\",\"requests>=2\"]}";
        struct rv_facts_tenant tenant = { "local", NULL };
        struct rv_request *q = NULL;
        struct rv_problem *problem = NULL;
        json_t *facts = NULL;

        FUZZ_CHECK(rv_request_parse(text, strlen(text), &q, &problem) == 0);
        FUZZ_CHECK(rv_facts_build(q, &tenant, "", NOW, &facts) == 0);
        rv_request_free(q);
        return facts;
}

static void check_facts(const json_t *facts, const json_t *lock)
{
        const json_t *packages = json_object_get(facts, "packages"), *pointers = json_object_get(facts, "pointers"), *item;
        size_t n = json_array_size(json_object_get(lock, "packages")), i;
        const char *before = "";

        FUZZ_CHECK(json_array_size(packages) == n && json_array_size(json_object_get(pointers, "packages")) == n &&
                   json_array_size(json_object_get(pointers, "paths")) == n &&
                   json_array_size(json_object_get(json_object_get(facts, "evidence"), "registry_hash")) == n);
        json_array_foreach((json_t *)packages, i, item) {
                const char *name = rv_json_get_string(item, "name", ""), *member;
                json_t *value;

                FUZZ_CHECK(*name && strcmp(before, name) <= 0 && json_array_size(json_array_get(json_object_get(pointers, "paths"), i)) > 0);
                before = name;
                json_object_foreach((json_t *)item, member, value)
                        FUZZ_CHECK(rv_fact_find(RV_FACTS_PACKAGE, member), "%s", member);
                FUZZ_CHECK(json_integer_value(json_object_get(item, "age_days")) >= 0);
                FUZZ_CHECK(!json_object_get(item, "published_at") == !json_object_get(item, "age_days"));
        }
}

static void check_verdict(const json_t *facts, const json_t *verdict, const struct rv_policy_notes *notes)
{
        const json_t *entries = json_object_get(verdict, "packages"), *entry;
        bool is_any_newest = false;
        size_t i;

        FUZZ_CHECK(json_object_size(verdict) == 5 && json_array_size(entries) == json_array_size(json_object_get(facts, "packages")));
        FUZZ_CHECK(!notes->lacking || !rv_policy_verdict_is_allow(verdict));
        json_array_foreach((json_t *)entries, i, entry)
                is_any_newest = is_any_newest || json_object_get(entry, "newest_published_s");
        json_array_foreach((json_t *)entries, i, entry) {
                const json_t *item = json_array_get(json_object_get(facts, "packages"), i), *published = json_object_get(item, "published_at");

                if (strcmp(rv_json_get_string(entry, "effect", ""), "allow") != 0)
                        continue;
                FUZZ_CHECK(json_is_string(json_object_get(item, "license")) && json_is_integer(json_object_get(item, "size_bytes")));
                FUZZ_CHECK(!is_any_newest ||
                        (json_is_integer(published) && NOW - json_integer_value(published) >= WEEK_S));
                FUZZ_CHECK(strcmp(rv_json_get_string(item, "kind", ""), "built") != 0 || *rv_json_get_string(item, "name", "") == 'i');
        }
}

static void check_lock(const json_t *asked, const json_t *lock)
{
        struct rv_bundle_file file = { "policy.lua", policy, sizeof(policy) - 1, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };
        _cleanup_(rv_json_unrefp) json_t *facts = NULL, *verdict = NULL, *again = NULL, *obligations = NULL;
        struct rv_policy_notes notes = { 0 };
        char first[65], second[65];
        int r = rv_facts_resolve(asked, lock, NOW, &facts);

        FUZZ_CHECK(r == 0 || r == -EINVAL, "%d", r);
        if (r < 0 || json_array_size(json_object_get(facts, "packages")) > 200)
                return;
        check_facts(facts, lock);
        /* A lock's numbers are within 2^53, its texts UTF-8: that is the reader's to see to. */
        if (rv_json_canonical_sha256(facts, first) < 0)
                return;
        FUZZ_CHECK(rv_policy_decide_noting(&bundle, facts, &notes, &verdict) == 0 &&
                rv_policy_decide(&bundle, facts, &again) == 0);
        FUZZ_CHECK(rv_json_canonical_sha256(verdict, first) == 0 && rv_json_canonical_sha256(again, second) == 0 &&
                strcmp(first, second) == 0);
        check_verdict(facts, verdict, &notes);
        FUZZ_CHECK(rv_policy_obligations(verdict, &obligations) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static json_t *asked;
        _cleanup_(rv_json_unrefp) json_t *lock = NULL;

        if (!asked)
                asked = build_asked();
        if (rv_json_read((const char *)data, size, 16, &lock, NULL) == 0)
                check_lock(asked, lock);
        return 0;
}
