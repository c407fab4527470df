/*
 * The guard of replay: the same policy and the same facts give the same verdict bytes, in another process (another
 * hash seed, other addresses) and with the members of the facts in another order. Judged are the policies of this tree,
 * those that fuzzing keeps, and some hundred made by its grammar, each on several facts.
 *
 * Called with --digests SEED it prints a digest for each decision, members shuffled by SEED (0: as they are).
 */
#include "test_policy_util.h"

#include "../fuzz/policy_grammar.h"
#include "base/fd.h"
#include "base/hash.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define N_GRAMMAR 200
#define POLICY_BYTES 16384

static const char *const requests[] = {
        PLAIN_REQUEST,
        "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"six==1.16.0\",\"attrs>=1\",\"numpy[x,y]==1.26.4\"],\"env\":{\"B\":\"1\",\"A\":\"2\"}}",
        "{\"language\":\"javascript\",\"source\":\"1\",\"packages\":[\"lodash@^4\",\"@scope/x@1.2.3\"],\"network\":{\"mode\":\"domains\",\"domains\":[\"b.example.com\",\"a.example.com\"]},\"idempotency_key\":\"k\"}",
        "{\"language\":\"python\",\"source\":\"1\",\"network\":{\"mode\":\"any\"},\"timeout_s\":300,\"memory_mib\":2048}",
};

/* Policies that look for what could differ. */
static const char *const policies[] = {
        ALLOW_ALL,
        "local s = '' local t = { z = 1, y = 2, x = 3, [3] = 4, [1] = 5 } for k, v in pairs(t) do s = s .. tostring(k) .. v end "
        "return policy { packages = { rule { id = 'a', when = function() error(s) end, deny = 'x' }, default = 'allow' }, " ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}",
        "return policy { packages = { rule { id = 'a', when = function(p, r) local s = '' for k, v in pairs(r.tenant.labels) do s = s .. k .. v end error(s) end, deny = 'x' }, "
        "default = 'allow' }, network = { rule { id = 'n', when = function(n, r) local s = '' for k in pairs(r) do s = s .. k end error(s) end, deny = 'x' }, default = 'allow' }, "
        ALLOW_IDEMPOTENCY ALLOW_BACKEND "}",
        "return policy { packages = { rule { id = 'a', when = function(p, r) return p == r or p.extras == r.env_names end, deny = 'same' }, default = 'allow' }, "
        ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}",
        "local last return policy { packages = { rule { id = 'a', when = function(p, r) local is = last == p last = p return is end, deny = 'again' }, default = 'allow' }, "
        ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}",
        "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return policy { packages = { rule { id = 'a', when = function() return f(100000) > 0 end, deny = 'x' }, "
        "default = 'allow' }, " ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}",
        "return policy { packages = { rule { id = 'a', when = function() while true do end end, deny = 'x' }, default = 'allow' }, " ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}",
        "return policy { packages = { rule { id = 'a', when = function() local t = {} for i = 1, 1000 do t[i] = string.rep('x', 100000) .. i end return true end, deny = 'x' }, default = 'allow' }, "
        ALLOW_NETWORK ALLOW_IDEMPOTENCY ALLOW_BACKEND "}",
};

/* ---- Shuffling ---- */

static uint64_t next_random(uint64_t *seed)
{
        *seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = *seed;

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static json_t *shuffled(const json_t *value, uint64_t *seed)
{
        const char *names[64];
        json_t *copy, *child;
        const char *name;
        size_t n = 0, i;

        if (json_is_array(value)) {
                copy = json_array();
                json_array_foreach((json_t *)value, i, child)
                        json_array_append_new(copy, shuffled(child, seed));
                return copy;
        }
        if (!json_is_object(value))
                return json_deep_copy(value);
        copy = json_object();
        json_object_foreach((json_t *)value, name, child)
                names[n++] = name;
        for (i = n; i > 1; i--) {
                size_t k = next_random(seed) % i;
                const char *other = names[k];

                names[k] = names[i - 1];
                names[i - 1] = other;
        }
        for (i = 0; i < n; i++)
                json_object_set_new(copy, names[i], shuffled(json_object_get(value, names[i]), seed));
        return copy;
}

/* ---- Decisions ---- */

struct deciding {
        json_t *facts[RV_N_ELEMENTS(requests) + 1];
        struct rv_buf *out;
        uint64_t n;
};

static json_t *resolved_of(json_t *facts)
{
        json_t *package;
        size_t i;

        json_array_foreach(json_object_get(facts, "packages"), i, package) {
                json_object_set_new(package, "stage", json_string("resolved"));
                json_object_set_new(package, "version", json_string("1.16.0"));
                json_object_set_new(package, "age_days", json_integer((json_int_t)i * 5));
                json_object_set_new(package, "license", json_string(""));
        }
        return facts;
}

static void decide(struct deciding *d, const struct rv_bundle *bundle)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(d->facts); i++) {
                json_t *verdict = NULL;
                char hex[65];

                rv_require(rv_policy_decide(bundle, d->facts[i], &verdict) == 0);
                rv_require(rv_json_canonical_sha256(verdict, hex) == 0);
                rv_buf_printf(d->out, "%s\n", hex);
                json_decref(verdict);
                d->n++;
        }
}

static void decide_lua(struct deciding *d, const char *text, size_t n)
{
        struct rv_bundle_file file = { "policy.lua", text, n, NULL };
        struct rv_bundle bundle = { .files = &file, .n_files = 1 };

        decide(d, &bundle);
}

static int is_input(const struct dirent *e)
{
        return e->d_name[0] != '.';
}

static void decide_corpus(struct deciding *d)
{
        static const char place[] = SOURCE_ROOT "/tests/fuzz/corpus/policy";
        struct dirent **entries;
        int n = scandir(place, &entries, is_input, alphasort);

        rv_require(n > 10);
        for (int i = 0; i < n; i++) {
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                char path[1024];

                snprintf(path, sizeof(path), "%s/%s", place, entries[i]->d_name);
                if (rv_read_file_at(AT_FDCWD, path, RV_BUNDLE_LUA_SIZE_MAX, &text) == 0 &&
                        rv_buf_reserve(&text, 1) == 0)
                        decide_lua(d, text.data, text.size);
                free(entries[i]);
        }
        free(entries);
}

static void decide_all(uint64_t seed, struct rv_buf *out, uint64_t *ret_n)
{
        static const char *const bundles[] = { SOURCE_ROOT "/policies/default", SOURCE_ROOT "/policies/strict" };
        static char text[POLICY_BYTES + 1];
        struct deciding d = { .out = out };

        for (size_t i = 0; i <= RV_N_ELEMENTS(requests); i++) {
                json_t *facts = i < RV_N_ELEMENTS(requests) ? facts_for(requests[i])
                                                            : resolved_of(facts_for(requests[1]));

                d.facts[i] = seed ? shuffled(facts, &seed) : json_incref(facts);
                json_decref(facts);
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(bundles); i++) {
                _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = NULL;

                rv_require(rv_bundle_load(bundles[i], &bundle, NULL) == 0);
                decide(&d, bundle);
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(policies); i++)
                decide_lua(&d, policies[i], strlen(policies[i]));
        decide_corpus(&d);
        for (uint64_t i = 0; i < N_GRAMMAR; i++)
                decide_lua(&d, text, grammar_make(GRAMMAR_POLICY, i, text, POLICY_BYTES));
        for (size_t i = 0; i < RV_N_ELEMENTS(d.facts); i++)
                json_decref(d.facts[i]);
        *ret_n = d.n;
}

/* ---- In another process ---- */

static void run_other(const char *seed, struct rv_buf *out)
{
        char command[4200], self[4096];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        FILE *f;
        char line[128];

        assert_true(n > 0);
        self[n] = 0;
        snprintf(command, sizeof(command), "'%s' --digests %s", self, seed);
        f = popen(command, "r");
        assert_non_null(f);
        while (fgets(line, sizeof(line), f))
                rv_buf_puts(out, line);
        assert_int_equal(pclose(f), 0);
}

static void same_everywhere(void **state)
{
        static const char *const seeds[] = { "0", "77" };
        _cleanup_(rv_buf_fini) struct rv_buf here = { 0 };
        uint64_t n = 0;

        (void)state;
        decide_all(0, &here, &n);
        assert_true(n > 5 * N_GRAMMAR);
        for (size_t i = 0; i < RV_N_ELEMENTS(seeds); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf there = { 0 };

                run_other(seeds[i], &there);
                assert_int_equal(there.size, here.size);
                for (size_t k = 0; k < here.size; k += 65)
                        if (memcmp(here.data + k, there.data + k, 65) != 0)
                                fail_msg("seed %s: decision %zu came out different", seeds[i], k / 65);
        }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(same_everywhere) };

        if (argc == 3 && strcmp(argv[1], "--digests") == 0) {
                _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
                uint64_t n;

                decide_all(strtoull(argv[2], NULL, 10), &out, &n);
                return rv_write_all(STDOUT_FILENO, out.data, out.size) < 0;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
