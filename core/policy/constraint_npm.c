#include "policy/constraint_private.h"

#include "request/npmrange.h"

#include <string.h>

/* As node-semver's Range and Comparator: each range of a union becomes plain comparisons, all of which have to hold. */

struct number3 {
        uint64_t n[3];
        struct rv_version_span pre;
};

/* A version of which the last parts may be left out or be an x: `n_numbers` of them are there. */
struct partial {
        struct number3 v;
        unsigned n_numbers;
};

struct test {
        const struct number3 *v;     /* the version that is judged */
        bool has_all;                /* of the comparisons so far */
        bool names_pre;              /* one has a pre-release of the same three numbers */
};

static const struct rv_version_span lowest = { "0", 1 };     /* "-0": below every pre-release */

static int compare(const struct number3 *a, const struct number3 *b)
{
        struct rv_version x = { .order = RV_VERSION_SEMVER, .pre = a->pre, .pre_kind = a->pre.n ? 's' : 0 };
        struct rv_version y = { .order = RV_VERSION_SEMVER, .pre = b->pre, .pre_kind = b->pre.n ? 's' : 0 };

        for (int i = 0; i < 3; i++)
                if (a->n[i] != b->n[i])
                        return a->n[i] < b->n[i] ? -1 : 1;
        return rv_version_compare(&x, &y);
}

enum comparison { BELOW, BELOW_EQUAL, EQUAL, ABOVE_EQUAL, ABOVE };

static void add(struct test *t, enum comparison comparison, struct number3 bound)
{
        int r = compare(t->v, &bound);
        bool holds = comparison == BELOW    ? r < 0
                : comparison == BELOW_EQUAL ? r <= 0
                : comparison == EQUAL       ? r == 0
                : comparison == ABOVE_EQUAL ? r >= 0
                                            : r > 0;

        t->has_all = t->has_all && holds;
        if (bound.pre.n && memcmp(t->v->n, bound.n, sizeof(bound.n)) == 0)
                t->names_pre = true;
}

/* The first version past all that have the numbers before and at @place in common. */
static struct number3 past(const struct number3 *v, unsigned place)
{
        struct number3 next = { .pre = lowest };

        memcpy(next.n, v->n, sizeof(next.n[0]) * (place + 1));
        next.n[place]++;
        return next;
}

static void add_from(struct test *t, const struct partial *p)
{
        if (p->n_numbers)
                add(t, ABOVE_EQUAL, p->v);
}

static void add_x_range(struct test *t, const struct partial *p)
{
        if (p->n_numbers == 3) {
                add(t, EQUAL, p->v);
        } else if (p->n_numbers) {
                add(t, ABOVE_EQUAL, p->v);
                add(t, BELOW, past(&p->v, p->n_numbers - 1));
        }
}

static void add_tilde(struct test *t, const struct partial *p)
{
        add_from(t, p);
        if (p->n_numbers)
                add(t, BELOW, past(&p->v, p->n_numbers == 1 ? 0 : 1));
}

static void add_caret(struct test *t, const struct partial *p)
{
        unsigned place = 0;

        while (place + 1 < p->n_numbers && p->v.n[place] == 0)
                place++;
        add_from(t, p);
        if (p->n_numbers)
                add(t, BELOW, past(&p->v, place));
}

static void add_order(struct test *t, bool is_above, bool has_equal, const struct partial *p)
{
        struct number3 bound = p->v;

        if (p->n_numbers == 0) {
                t->has_all = t->has_all && has_equal;    /* above or below everything there is nothing */
        } else if (p->n_numbers == 3) {
                add(t, is_above ? (has_equal ? ABOVE_EQUAL : ABOVE) : has_equal ? BELOW_EQUAL : BELOW, bound);
        } else if (is_above) {
                if (!has_equal) {
                        bound = past(&p->v, p->n_numbers - 1);
                        bound.pre = (struct rv_version_span){ 0 };
                }
                add(t, ABOVE_EQUAL, bound);
        } else {
                bound.pre = lowest;
                add(t, BELOW, has_equal ? past(&p->v, p->n_numbers - 1) : bound);
        }
}

static void add_hyphen(struct test *t, const struct partial *from, const struct partial *to)
{
        add_from(t, from);
        if (to->n_numbers == 3)
                add(t, BELOW_EQUAL, to->v);
        else if (to->n_numbers)
                add(t, BELOW, past(&to->v, to->n_numbers - 1));
}

/* ---- The text, which is known to be a range ---- */

static const char *skip_blanks(const char *c)
{
        return c + strspn(c, " \t");
}

static const char *take_partial(const char *c, struct partial *ret)
{
        *ret = (struct partial){ 0 };
        c += *c == 'v';
        for (unsigned i = 0; i < 3; i++) {
                if (*c >= '0' && *c <= '9') {
                        ret->n_numbers++;
                        for (; *c >= '0' && *c <= '9'; c++)
                                ret->v.n[i] = ret->v.n[i] * 10 + (uint64_t)(*c - '0');
                } else {
                        c++;     /* x, X or * */
                }
                if (*c != '.')
                        break;
                c++;
        }
        if (*c == '-') {
                size_t n = strcspn(++c, "+ \t|");

                /* Behind an x it says nothing. */
                if (ret->n_numbers == 3)
                        ret->v.pre = (struct rv_version_span){ c, n };
                c += n;
        }
        return c + strcspn(c, " \t|");
}

static const char *take_simple(const char *c, struct test *t)
{
        const char *start = c;
        bool has_equal;
        struct partial p, to;

        c = skip_blanks(c + strspn(c, "<>=~^"));
        has_equal = start[0] && start[1] == '=';
        c = take_partial(c, &p);
        switch (*start) {
        case '<': add_order(t, false, has_equal, &p); return c;
        case '>': add_order(t, true, has_equal, &p); return c;
        case '~': add_tilde(t, &p); return c;
        case '^': add_caret(t, &p); return c;
        case '=': add_x_range(t, &p); return c;
        default: break;
        }
        start = skip_blanks(c);
        if (start > c && start[0] == '-' && (start[1] == ' ' || start[1] == '\t')) {
                c = take_partial(skip_blanks(start + 1), &to);
                add_hyphen(t, &p, &to);
        } else {
                add_x_range(t, &p);
        }
        return c;
}

static bool take_number(struct rv_version_span s, uint64_t *ret)
{
        uint64_t value = 0;

        for (size_t i = 0; i < s.n; i++)
                if (__builtin_mul_overflow(value, 10u, &value) ||
                        __builtin_add_overflow(value, (uint64_t)(s.text[i] - '0'), &value))
                        return false;
        *ret = value;
        return true;
}

int rv__constraint_npm(const char *constraint, const struct rv_version *version)
{
        struct number3 v = { .pre = version->pre_kind ? version->pre : (struct rv_version_span){ 0 } };
        const char *c = constraint;
        bool is_in = false;

        if (rv_npmrange_check(constraint, strlen(constraint), NULL, NULL, NULL))
                return rv_raise(-EINVAL);
        for (size_t i = 0; i < RV_MIN(version->n_segments, (size_t)3); i++)
                if (!take_number(version->segments[i], &v.n[i]))
                        return 0;        /* no version that npm takes */
        for (;;) {
                struct test t = { .v = &v, .has_all = true };

                for (c = skip_blanks(c); *c && *c != '|'; c = skip_blanks(c))
                        c = take_simple(c, &t);
                is_in = is_in || (t.has_all && (!v.pre.n || t.names_pre));
                if (!*c)
                        return is_in;
                c += 2;
        }
}
