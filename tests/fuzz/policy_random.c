/*
 * Policies by the grammar, without libFuzzer: `policy_random N` tries the first N, `policy_random N SEED` one. So
 * every build, also one that is not slowed down by sanitizers, holds evaluations to their time.
 */
#include "fuzz.h"
#include "policy_grammar.h"

#define TEXT_BYTES 8192

static void try_one(uint64_t seed, bool is_shown)
{
        char text[TEXT_BYTES];
        size_t n = grammar_make(GRAMMAR_POLICY, seed, text, sizeof(text));
        uint8_t *exact = malloc(n ? n : 1);

        FUZZ_CHECK(exact);
        memcpy(exact, text, n);
        if (is_shown)
                fwrite(text, 1, n, stdout);
        fprintf(stderr, is_shown ? "seed %llu\n" : "", (unsigned long long)seed);
        LLVMFuzzerTestOneInput(exact, n);
        free(exact);
}

int main(int argc, char **argv)
{
        unsigned long long n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;

        if (argc > 2)
                try_one(strtoull(argv[2], NULL, 10), true);
        for (unsigned long long seed = 1; argc <= 2 && seed <= n; seed++)
                try_one(seed, false);
        printf("%llu policies judged\n", argc > 2 ? 1 : n);
        return 0;
}
