/*
 * A line of a log that was found, replayed: whatever it holds, it is counted once, as one thing, and what is told of it
 * can be shown to a person. An input is one byte, which says whether a candidate judges, and the line.
 */
#include "fuzz.h"

#include "audit/replay_pair.h"
#include "audit/replay_private.h"
#include "policy/bundle_files.h"

static const char *const candidate_policy =
        "return policy { packages = { rule { id = 'six', match = { name = 'six' }, deny = 'x' }, default = 'allow' }, network = { default = 'deny' }, "
        "idempotency = { default = 'require_key' }, backend = { default = 'other' }, limits = { timeout_s = { max = 5 } } }";

static uint64_t sum(const struct rv_replay_tally *t)
{
        return t->same.n + t->diff.n + t->error.n + rv_replay_n_unreplayable(t);
}

static void check_result(const struct rv_replay_result *r)
{
        FUZZ_CHECK(r->n_records == 1);
        FUZZ_CHECK(sum(&r->enforced) == r->enforced.n_decisions && sum(&r->shadow) == r->shadow.n_decisions);
        FUZZ_CHECK(r->enforced.n_decisions <= 1 && r->shadow.n_decisions <= r->enforced.n_decisions);
        FUZZ_CHECK(r->enforced.n_decisions + r->n_corrupt <= 2 && r->n_corrupt <= 1);
        FUZZ_CHECK(r->n_changed <= r->n_compared && r->n_compared <= 1);
        FUZZ_CHECK(!r->n_corrupt || *r->corrupt);
        FUZZ_CHECK(r->n_differences == r->enforced.diff.n + r->shadow.diff.n);
        for (unsigned i = 0; i < r->n_differences; i++)
                FUZZ_CHECK(*r->differences[i].fields);
        for (size_t i = 0; i < r->n_groups; i++)
                FUZZ_CHECK(r->groups[i].count.n == 1 && r->groups[i].tenant && r->groups[i].rule_now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct rv_lines where = { .segment = "00000000000000000000.jsonl" };
        struct rv_bundle_file lua = { "policy.lua", candidate_policy, strlen(candidate_policy), NULL };
        struct rv_bundle candidate = { .files = &lua, .n_files = 1 };
        struct rv_replay_input input = { .bundles_fd = -EBADF, .to_seq = UINT64_MAX, .to_us = UINT64_MAX, .jobs = 1 };
        struct fuzz_cursor in = { data, size };
        struct rv_replay_worker *w = malloc(sizeof(*w));
        struct rv_replay_result *result = calloc(1, sizeof(*result)), *whole = calloc(1, sizeof(*whole));

        if (fuzz_byte(&in) & 1)
                input.candidate = &candidate;
        FUZZ_CHECK(w && result && whole && rv_replay_worker_init(w, &input) == 0);
        FUZZ_CHECK(rv_replay_line(w, (const char *)in.data, in.size, &where, result) == 0);
        FUZZ_CHECK(rv_replay_merge(whole, result) == 0 && rv_replay_stages_end(whole) == 0);
        check_result(whole);
        rv_replay_worker_fini(w);
        free(w);
        rv_replay_free(result);
        rv_replay_free(whole);
        return 0;
}
