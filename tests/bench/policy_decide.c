/*
 * What one decision costs: facts, a fresh state, the bundle compiled and run, the verdict written.
 *
 *     policy_decide [BUNDLE_DIR]    (default: the bundle that is compiled in)
 *
 * Prints the median and the 99th percentile in microseconds of rv_policy_decide() alone, and of the facts.
 */
#include "base/clock.h"
#include "policy/decide.h"
#include "policy/facts.h"

#include <stdio.h>
#include <string.h>

#define N_ROUNDS 5000

static uint64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static void print(const char *what, uint64_t *ns)
{
        qsort(ns, N_ROUNDS, sizeof(*ns), compare);
        printf("%-34s median %6.1f us   p99 %6.1f us\n", what, (double)ns[N_ROUNDS / 2] / 1e3, (double)ns[N_ROUNDS * 99 / 100] / 1e3);
}

static int measure(const struct rv_bundle *bundle, const char *what, const char *request_text)
{
        static uint64_t facts_ns[N_ROUNDS], decide_ns[N_ROUNDS];
        struct rv_facts_tenant tenant = { "local", NULL };
        struct rv_request *request = NULL;
        struct rv_problem *problem = NULL;

        if (rv_request_parse(request_text, strlen(request_text), &request, &problem) != 0)
                return 1;
        for (size_t i = 0; i < N_ROUNDS; i++) {
                json_t *facts = NULL, *verdict = NULL;
                uint64_t t[3];

                t[0] = now_ns();
                if (rv_facts_build(request, &tenant, NULL, 1750000000, &facts) < 0)
                        return 1;
                t[1] = now_ns();
                if (rv_policy_decide(bundle, facts, &verdict) < 0)
                        return 1;
                t[2] = now_ns();
                facts_ns[i] = t[1] - t[0];
                decide_ns[i] = t[2] - t[1];
                json_decref(facts);
                json_decref(verdict);
        }
        printf("%s\n", what);
        print("  facts", facts_ns);
        print("  decide", decide_ns);
        rv_request_free(request);
        return 0;
}

int main(int argc, char **argv)
{
        static const char small[] = "{\"language\":\"python\",\"source\":\"print(1)\"}";
        static const char big[] = "{\"language\":\"python\",\"source\":\"print(1)\",\"packages\":[\"a1==1\",\"a2==1\",\"a3==1\",\"a4==1\","
                "\"a5>=1\",\"a6==1\",\"a7==1\",\"a8==1\",\"a9==1\",\"b1==1\"],\"network\":{\"mode\":\"domains\",\"domains\":[\"a.example\","
                "\"b.example\",\"c.example\",\"d.example\",\"e.example\"]},\"idempotency_key\":\"k\"}";
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = NULL;
        struct rv_error err = { 0 };
        int r = argc > 1 ? rv_bundle_load(argv[1], &bundle, &err) : rv_bundle_builtin(&bundle);

        if (r < 0) {
                fprintf(stderr, "policy_decide: %s\n", err.message);
                return 1;
        }
        return measure(bundle, "no packages, no network", small) || measure(bundle, "10 packages, 5 domains", big);
}
