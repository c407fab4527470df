#include "request/npmrange.h"

#include <string.h>

#define FAIL(c, ...) rv_fault_set((c)->fault, RV_FAULT_PATTERN, __VA_ARGS__)
#define SAFE_INTEGER_MAX 9007199254740991u   /* 2^53 - 1, as node-semver bounds the numbers of a version */

struct cursor {
        const char *text;
        size_t n, at;
        struct rv_fault *fault;
};

/* A version of which the last parts may be left out or be an x. */
struct partial {
        unsigned n_parts, n_numbers;   /* parts written; numbers before the first x */
};

static int peek(const struct cursor *c)
{
        return c->at < c->n ? (uint8_t)c->text[c->at] : -1;
}

static int peek_at(const struct cursor *c, size_t offset)
{
        return c->n - c->at > offset ? (uint8_t)c->text[c->at + offset] : -1;
}

static bool is_digit(int c)
{
        return c >= '0' && c <= '9';
}

static bool is_identifier(int c)
{
        return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-';
}

static bool is_x(int c)
{
        return c == 'x' || c == 'X' || c == '*';
}

static bool is_space(int c)
{
        return c == ' ' || c == '\t';
}

static size_t skip_space(struct cursor *c)
{
        size_t start = c->at;

        while (is_space(peek(c)))
                c->at++;
        return c->at - start;
}

static int fail_here(struct cursor *c, const char *expected)
{
        char quote[RV_FAULT_QUOTE_SIZE];

        if (c->at == c->n)
                return FAIL(c, "the range ends where %s was expected", expected);
        return FAIL(c, "%s stands in the range where %s was expected", rv_fault_quote(c->text + c->at, c->n - c->at, quote),
                    expected);
}

/* nr ::= '0' | ['1'-'9'] ( ['0'-'9'] ) * */
static int parse_number(struct cursor *c)
{
        size_t start = c->at;
        uint64_t value = 0;

        while (is_digit(peek(c))) {
                if (value <= SAFE_INTEGER_MAX)
                        value = value * 10 + (uint64_t)(peek(c) - '0');
                c->at++;
        }
        if (value > SAFE_INTEGER_MAX)
                return FAIL(c, "a number of a version is at most 9007199254740991");
        if (c->text[start] == '0' && c->at - start > 1)
                return FAIL(c, "a number of a version has no leading zero");
        return 0;
}

/* parts ::= part ( '.' part ) * ; numeric parts of a pre-release have no leading zero, those of a build may. */
static int parse_identifiers(struct cursor *c, bool is_build)
{
        do {
                size_t start = ++c->at, n_digits = 0;   /* past '-', '+' or '.' */

                for (; is_identifier(peek(c)); c->at++)
                        n_digits += is_digit(peek(c));
                if (c->at == start)
                        return fail_here(c, is_build ? "build metadata" : "a pre-release");
                if (!is_build && n_digits > 1 && n_digits == c->at - start && c->text[start] == '0')
                        return FAIL(c, "a number of a pre-release has no leading zero");
        } while (peek(c) == '.');
        return 0;
}

/* partial ::= xr ( '.' xr ( '.' xr qualifier ? )? )? ; qualifier ::= ( '-' pre )? ( '+' build )? */
static int parse_partial(struct cursor *c, struct partial *ret)
{
        struct partial p = { 0 };
        int r;

        if (peek(c) == 'v' && (is_digit(peek_at(c, 1)) || is_x(peek_at(c, 1))))
                c->at++;
        for (;;) {
                if (is_x(peek(c))) {
                        c->at++;
                } else if (!is_digit(peek(c))) {
                        return fail_here(c, "a version");
                } else if (p.n_numbers < p.n_parts) {
                        return FAIL(c, "a number cannot follow an x in a version: write 1.x, not 1.x.3");
                } else {
                        p.n_numbers++;
                        r = parse_number(c);
                        if (r)
                                return r;
                }
                if (++p.n_parts == 3 || peek(c) != '.')
                        break;
                c->at++;
        }
        if (p.n_parts == 3 && peek(c) == '-') {
                r = parse_identifiers(c, false);
                if (r)
                        return r;
        }
        if (p.n_parts == 3 && peek(c) == '+') {
                r = parse_identifiers(c, true);
                if (r)
                        return r;
        }
        *ret = p;
        return 0;
}

static bool is_at_end_of_range(const struct cursor *c)
{
        return c->at == c->n || peek(c) == '|';
}

/* '<' | '>' | '<=' | '>=' | '=' | '~' | '~>' | '^', or nothing. Returns whether it is nothing or '='. */
static bool skip_operator(struct cursor *c)
{
        int first = peek(c);

        if (first == '^' || first == '=') {
                c->at++;
        } else if (first == '~') {
                c->at += peek_at(c, 1) == '>' ? 2 : 1;
        } else if (first == '<' || first == '>') {
                c->at += peek_at(c, 1) == '=' ? 2 : 1;
        } else {
                return true;
        }
        skip_space(c);
        return first == '=';
}

/* " - partial" behind a partial: the range is a hyphen range. Looks only, where it is none. */
static bool skip_hyphen(struct cursor *c)
{
        size_t start = c->at;

        if (skip_space(c) > 0 && peek(c) == '-' && is_space(peek_at(c, 1))) {
                c->at++;
                skip_space(c);
                return true;
        }
        c->at = start;
        return false;
}

/* range ::= hyphen | simple ( ' ' simple ) * | '' */
static int parse_range(struct cursor *c, bool *ret_is_pinned)
{
        unsigned n_simple = 0;
        bool is_pinned = false;

        for (skip_space(c); !is_at_end_of_range(c); n_simple++) {
                struct partial p;
                size_t start = c->at;
                bool is_equality = skip_operator(c), has_operator = c->at > start;
                int r = parse_partial(c, &p);

                if (r)
                        return r;
                is_pinned = n_simple == 0 && is_equality && p.n_numbers == 3;
                if (n_simple == 0 && !has_operator && skip_hyphen(c)) {
                        r = parse_partial(c, &p);
                        if (r)
                                return r;
                        is_pinned = false;
                        skip_space(c);
                        if (!is_at_end_of_range(c))
                                return fail_here(c, "\"||\" or the end");
                        break;
                }
                if (skip_space(c) == 0 && !is_at_end_of_range(c))
                        return fail_here(c, peek(c) == ',' ? "a space (npm joins comparators by spaces: >=1 <3)" :
                                                             "a space or \"||\"");
        }
        *ret_is_pinned = is_pinned;
        return 0;
}

int rv_npmrange_check(const char *text, size_t n, bool *ret_is_pinned, size_t *ret_at, struct rv_fault *fault)
{
        struct cursor c = { .text = text, .n = n, .fault = fault };
        bool is_pinned = false, is_single = true;
        int r;

        for (;;) {
                r = parse_range(&c, &is_pinned);
                if (r == 0 && c.at < c.n && peek_at(&c, 1) != '|')
                        r = fail_here(&c, "\"||\"");
                if (r) {
                        if (ret_at)
                                *ret_at = c.at;
                        return RV_NPMREQ_E_INVALID;
                }
                if (c.at == c.n)
                        break;
                c.at += 2;
                is_single = false;
        }
        if (ret_is_pinned)
                *ret_is_pinned = is_pinned && is_single;
        return 0;
}
