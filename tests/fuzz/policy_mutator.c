/*
 * How libFuzzer changes a policy: it makes a new one by the grammar, puts a part made by the grammar in the place of
 * a piece of the old one or between two, takes lines out or doubles them; and now and then changes bytes as it
 * always does, for what the grammar does not think of.
 */
#include "fuzz.h"
#include "policy_grammar.h"

static uint64_t next(uint64_t *random)
{
        *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return *random >> 33;
}

static bool is_break(uint8_t c)
{
        return c == ' ' || c == '\n' || c == '(' || c == ')' || c == ',';
}

/* A place behind a break at or after @at; the end if there is none. */
static size_t find_break(const uint8_t *data, size_t size, size_t at)
{
        while (at < size && !is_break(data[at]))
                at++;
        return at < size ? at + 1 : size;
}

/* Puts @n bytes in the place of data[from..to). */
static size_t replace(uint8_t *data, size_t size, size_t max_size, size_t from, size_t to, const void *text, size_t n)
{
        if (size - (to - from) + n > max_size)
                return size;
        memmove(data + from + n, data + to, size - to);
        memcpy(data + from, text, n);
        return size - (to - from) + n;
}

/* Takes a line out, or writes it twice. */
static size_t change_lines(uint8_t *data, size_t size, size_t max_size, uint64_t *random)
{
        size_t at = size ? next(random) % size : 0, from = at, to = at;
        char copy[512];

        while (from > 0 && data[from - 1] != '\n')
                from--;
        while (to < size && data[to] != '\n')
                to++;
        to += to < size;
        if (next(random) % 2 || to - from > sizeof(copy))
                return replace(data, size, max_size, from, to, "", 0);
        memcpy(copy, data + from, to - from);
        return replace(data, size, max_size, to, to, copy, to - from);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
        static char text[4096];
        uint64_t random = seed;
        size_t from, to, n;

        switch (next(&random) % 8) {
        case 0:
        case 1: return grammar_make(GRAMMAR_POLICY, next(&random), (char *)data, max_size);
        case 2: return change_lines(data, size, max_size, &random);
        case 3: return LLVMFuzzerMutate(data, size, max_size);
        default: break;
        }
        n = grammar_make(next(&random) % _GRAMMAR_PART_MAX, next(&random), text, sizeof(text));
        from = find_break(data, size, size ? next(&random) % size : 0);
        to = next(&random) % 2 ? from : find_break(data, size, from);
        return replace(data, size, max_size, from, to, text, n);
}
