#include "package/closure_private.h"

#include <string.h>

/* A version of which the last parts may be left out or be an x: `1`, `1.x`, `1.2.3-rc.1`. */
struct partial {
        struct rv_version low;     /* zeros where nothing is said */
        size_t n_numbers;          /* 0: any version */
};

static struct rv_version_span segment(const struct rv_version *v, size_t i)
{
        static const struct rv_version_span zero = { "0", 1 };

        return i < v->n_segments ? v->segments[i] : zero;
}

/* The first @n numbers of two versions, as strcmp(). */
static int compare_numbers(const struct rv_version *a, const struct rv_version *b, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                struct rv_version_span x = segment(a, i), y = segment(b, i);
                int r = x.n != y.n ? (x.n < y.n ? -1 : 1) : memcmp(x.text, y.text, x.n);

                if (r)
                        return r;
        }
        return 0;
}

static bool is_x(char c)
{
        return c == 'x' || c == 'X' || c == '*';
}

/* Reads a partial of @n bytes. */
static bool read_partial(const char *text, size_t n, struct partial *ret)
{
        size_t concrete = 0, at = 0;

        *ret = (struct partial){ .low = { .order = RV_VERSION_SEMVER } };
        if (n && (text[0] == 'v' || text[0] == 'V'))
                text++, n--;
        for (size_t i = 0; i < 3 && at < n && !is_x(text[at]); i++) {
                size_t digits = strspn(text + at, "0123456789");

                if (digits == 0)
                        return false;
                at += digits;
                concrete = at;
                ret->n_numbers++;
                if (at == n || text[at] != '.')
                        break;
                at++;
        }
        if (ret->n_numbers == 3)
                concrete = n;
        return ret->n_numbers == 0 || rv_version_parse(RV_VERSION_SEMVER, text, concrete, &ret->low) == 0;
}

/* How many numbers `^` holds fast: up to the first that is not zero. */
static size_t held_by_caret(const struct partial *p)
{
        for (size_t i = 0; i < p->n_numbers; i++)
                if (segment(&p->low, i).text[0] != '0')
                        return i + 1;
        return p->n_numbers;
}

static bool compares(const char *operator, const struct partial *p, const struct rv_version *v)
{
        int order = rv_version_compare(v, &p->low), numbers = compare_numbers(v, &p->low, p->n_numbers);
        bool is_whole = p->n_numbers == 3;

        if (strcmp(operator, "<") == 0)
                return p->n_numbers && (is_whole ? order : numbers) < 0;
        if (strcmp(operator, ">") == 0)
                return p->n_numbers && (is_whole ? order : numbers) > 0;
        if (p->n_numbers == 0)
                return true;
        if (strcmp(operator, "<=") == 0)
                return (is_whole ? order : numbers) <= 0;
        if (strcmp(operator, ">=") == 0)
                return order >= 0;
        if (strcmp(operator, "~") == 0)
                return order >= 0 && compare_numbers(v, &p->low, RV_MIN(p->n_numbers, (size_t)2)) == 0;
        if (strcmp(operator, "^") == 0)
                return order >= 0 && compare_numbers(v, &p->low, held_by_caret(p)) == 0;
        return is_whole ? order == 0 : order >= 0 && numbers == 0;
}

static const char *take_operator(const char **at, const char *end)
{
        static const char *const operators[] = { ">=", "<=", "~>", ">", "<", "=", "~", "^" };

        for (size_t i = 0; i < RV_N_ELEMENTS(operators); i++) {
                size_t n = strlen(operators[i]);

                if ((size_t)(end - *at) >= n && strncmp(*at, operators[i], n) == 0) {
                        *at += n;
                        return strcmp(operators[i], "~>") == 0 ? "~" : operators[i];
                }
        }
        return "=";
}

static void skip_blanks(const char **at, const char *end)
{
        while (*at < end && (**at == ' ' || **at == '\t'))
                ++*at;
}

/* Comparators with blanks between them, all of which must hold; or "A - B". */
static bool set_has(const char *at, const char *end, const struct rv_version *v)
{
        struct partial p;

        for (skip_blanks(&at, end); at < end; skip_blanks(&at, end)) {
                const char *operator = take_operator(&at, end), *start, *after;
                bool is_hyphen;

                skip_blanks(&at, end);
                start = at;
                while (at < end && *at != ' ' && *at != '\t')
                        at++;
                after = at;
                skip_blanks(&after, end);
                is_hyphen = after + 1 < end && after > at && after[0] == '-' && (after[1] == ' ' || after[1] == '\t');
                if (!read_partial(start, (size_t)(at - start), &p) || !compares(is_hyphen ? ">=" : operator, &p, v))
                        return false;
                if (is_hyphen) {
                        at = after + 1;
                        skip_blanks(&at, end);
                        return read_partial(at, strcspn(at, " \t|"), &p) && compares("<=", &p, v);
                }
        }
        return true;
}

bool rv__npm_satisfies(const char *range, const struct rv_version *version)
{
        if (strcmp(range, "latest") == 0)
                return true;
        for (;;) {
                const char *bars = strstr(range, "||"), *end = bars ? bars : range + strlen(range);

                if (set_has(range, end, version))
                        return true;
                if (!bars)
                        return false;
                range = bars + 2;
        }
}
