#include "policy/version.h"

#include <string.h>
#include <strings.h>

struct cursor {
        const char *p, *end;
};

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

enum rv_version_order rv_version_order_for(const char *language)
{
        return strcmp(language, "javascript") == 0 ? RV_VERSION_SEMVER : RV_VERSION_PEP440;
}

static char peek(const struct cursor *c)
{
        return c->p < c->end ? *c->p : 0;
}

static void skip_blanks(struct cursor *c)
{
        while (peek(c) == ' ' || peek(c) == '\t')
                c->p++;
}

static bool take_char(struct cursor *c, char wanted)
{
        if (peek(c) != wanted || c->p == c->end)
                return false;
        c->p++;
        return true;
}

/* Digits of any length: they are compared as text, so that no date or build number overflows. */
static bool take_number(struct cursor *c, struct rv_version_span *ret)
{
        const char *start = c->p;

        while (is_digit(peek(c)))
                c->p++;
        if (c->p == start)
                return false;
        while (start < c->p - 1 && *start == '0')
                start++;
        *ret = (struct rv_version_span){ start, (size_t)(c->p - start) };
        return true;
}

static bool take_word(struct cursor *c, const char *word)
{
        size_t n = strlen(word);

        if ((size_t)(c->end - c->p) < n || strncasecmp(c->p, word, n) != 0)
                return false;
        c->p += n;
        return true;
}

static bool take_segments(struct cursor *c, struct rv_version *v)
{
        do {
                if (v->n_segments == RV_VERSION_SEGMENTS_MAX || !take_number(c, &v->segments[v->n_segments]))
                        return false;
                v->n_segments++;
        } while (c->p + 1 < c->end && *c->p == '.' && is_digit(c->p[1]) && take_char(c, '.'));
        return true;
}

static void take_separator(struct cursor *c)
{
        if (peek(c) == '.' || peek(c) == '-' || peek(c) == '_')
                c->p++;
}

/* One suffix `[-_.]? WORD [-_.]? [number]`; without it the cursor stays. An absent number is 0. */
static bool take_suffix(struct cursor *c, const char *const *words, size_t *ret_word,
        struct rv_version_span *ret_number)
{
        struct cursor at = *c;

        take_separator(&at);
        for (size_t i = 0; words[i]; i++) {
                struct cursor after;

                if (!take_word(&at, words[i]))
                        continue;
                after = at;
                take_separator(&after);
                if (take_number(&after, ret_number))
                        at = after;
                else
                        *ret_number = (struct rv_version_span){ "0", 1 };
                *ret_word = i;
                *c = at;
                return true;
        }
        return false;
}

/* PEP 440's local label: letters and digits in groups joined by one of [-_.]. */
static bool take_local(struct cursor *c, struct rv_version *v)
{
        const char *start = c->p;

        for (;;) {
                const char *group = c->p;

                while (is_digit(peek(c)) || is_letter(peek(c)))
                        c->p++;
                if (c->p == group)
                        return false;
                if (peek(c) != '.' && peek(c) != '-' && peek(c) != '_')
                        break;
                c->p++;
        }
        v->build = (struct rv_version_span){ start, (size_t)(c->p - start) };
        return true;
}

/* PEP 440, appendix B, with the spellings that its normalisation accepts. */
static int parse_pep440(struct cursor *c, struct rv_version *v)
{
        /* Longer words first: `a` is the beginning of `alpha`. */
        static const char *const pre_words[] = { "alpha", "beta", "preview", "pre", "rc", "a", "b", "c", NULL };
        static const char pre_kinds[] = "abrrrabr";
        static const char *const post_words[] = { "post", "rev", "r", NULL };
        static const char *const dev_words[] = { "dev", NULL };
        struct rv_version_span number;
        size_t word;

        take_word(c, "v");
        if (!take_segments(c, v))
                return -EINVAL;
        if (peek(c) == '!' && v->n_segments == 1) {
                c->p++;
                v->epoch = v->segments[0];
                v->n_segments = 0;
                if (!take_segments(c, v))
                        return -EINVAL;
        }
        if (take_suffix(c, pre_words, &word, &v->pre))
                v->pre_kind = pre_kinds[word];
        if (take_suffix(c, post_words, &word, &number)) {
                v->post = number;
                v->has_post = true;
        } else if (c->p + 1 < c->end && c->p[0] == '-' && is_digit(c->p[1])) {
                c->p++;
                v->has_post = take_number(c, &v->post);
        }
        v->has_dev = take_suffix(c, dev_words, &word, &v->dev);
        if (take_char(c, '+') && !take_local(c, v))
                return -EINVAL;
        return c->p == c->end ? 0 : -EINVAL;
}

/* Identifiers joined by dots; a numeric one of a pre-release has no leading zero (SemVer 2.0.0, 9 and 10). */
static bool take_identifiers(struct cursor *c, bool is_pre, struct rv_version_span *ret)
{
        const char *start = c->p;

        do {
                const char *begin = c->p;
                bool is_numeric = true;

                for (; is_digit(peek(c)) || is_letter(peek(c)) || peek(c) == '-'; c->p++)
                        is_numeric = is_numeric && is_digit(*c->p);
                if (c->p == begin || (is_pre && is_numeric && *begin == '0' && c->p - begin > 1))
                        return false;
        } while (take_char(c, '.'));
        *ret = (struct rv_version_span){ start, (size_t)(c->p - start) };
        return true;
}

static int parse_semver(struct cursor *c, struct rv_version *v)
{
        take_word(c, "v");
        if (!take_segments(c, v) || v->n_segments > 3)
                return -EINVAL;
        if (take_char(c, '-')) {
                if (v->n_segments < 3 || !take_identifiers(c, true, &v->pre))
                        return -EINVAL;
                v->pre_kind = 's';
        }
        if (take_char(c, '+') && (v->n_segments < 3 || !take_identifiers(c, false, &v->build)))
                return -EINVAL;
        return c->p == c->end ? 0 : -EINVAL;
}

int rv_version_parse(enum rv_version_order order, const char *text, size_t n, struct rv_version *ret)
{
        struct rv_version v = { .order = order };
        struct cursor c = { text, text + n };
        int r;

        if (n > RV_VERSION_SIZE_MAX)
                return rv_raise(-EINVAL);
        skip_blanks(&c);
        while (c.end > c.p && (c.end[-1] == ' ' || c.end[-1] == '\t'))
                c.end--;
        r = order == RV_VERSION_SEMVER ? parse_semver(&c, &v) : parse_pep440(&c, &v);
        if (r < 0)
                return rv_raise(r);
        *ret = v;
        return 0;
}

static int compare_numbers(struct rv_version_span a, struct rv_version_span b)
{
        /* An absent number is zero; a zero written out is one byte, so that absent and "0" must be made equal. */
        if (a.n == 0)
                a = (struct rv_version_span){ "0", 1 };
        if (b.n == 0)
                b = (struct rv_version_span){ "0", 1 };
        if (a.n != b.n)
                return a.n < b.n ? -1 : 1;
        return memcmp(a.text, b.text, a.n);
}

static int compare_segments(const struct rv_version *a, const struct rv_version *b, size_t n)
{
        static const struct rv_version_span none;
        int r = compare_numbers(a->epoch, b->epoch);

        for (size_t i = 0; i < n && r == 0; i++)
                r = compare_numbers(i < a->n_segments ? a->segments[i] : none, i < b->n_segments ? b->segments[i]
                        : none);
        return r;
}

/* The next identifier of a dotted span. */
static struct rv_version_span next_part(struct rv_version_span *rest, const char *separators)
{
        struct rv_version_span part = { rest->text, 0 };

        while (part.n < rest->n && !strchr(separators, part.text[part.n]))
                part.n++;
        rest->text += part.n;
        rest->n -= part.n;
        if (rest->n) {
                rest->text++;
                rest->n--;
        }
        return part;
}

static bool is_number(struct rv_version_span s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!is_digit(s.text[i]))
                        return false;
        return true;
}

static struct rv_version_span without_zeros(struct rv_version_span s)
{
        while (s.n > 1 && *s.text == '0')
                s = (struct rv_version_span){ s.text + 1, s.n - 1 };
        return s;
}

/*
 * Both ecosystems compare lists of identifiers part by part, a longer list above its beginning; they differ
 * in whether a number is below a word (SemVer 11.4.3) or above it (PEP 440, local labels, where letters are
 * also equal in either case).
 */
static int compare_parts(struct rv_version_span a, struct rv_version_span b, bool is_local)
{
        const char *separators = is_local ? ".-_" : ".";

        while (a.n && b.n) {
                struct rv_version_span x = next_part(&a, separators), y = next_part(&b, separators);
                bool is_x = is_number(x), is_y = is_number(y);
                int r;

                if (is_x != is_y)
                        return is_x == is_local ? 1 : -1;
                if (is_x) {
                        r = compare_numbers(without_zeros(x), without_zeros(y));
                } else {
                        size_t n = RV_MIN(x.n, y.n);

                        r = is_local ? strncasecmp(x.text, y.text, n) : memcmp(x.text, y.text, n);
                        if (r == 0 && x.n != y.n)
                                r = x.n < y.n ? -1 : 1;
                }
                if (r)
                        return r;
        }
        return a.n ? 1 : b.n ? -1 : 0;
}

/* Where a version stands among those with its release: dev-only, then a, b, rc, then the release. */
static int pre_rank(const struct rv_version *v)
{
        if (v->pre_kind)
                return v->pre_kind == 'a' ? 1 : v->pre_kind == 'b' ? 2 : 3;
        return v->has_dev && !v->has_post ? 0 : 4;
}

static int compare_suffixes(const struct rv_version *a, const struct rv_version *b)
{
        int r = pre_rank(a) - pre_rank(b);

        if (r == 0)
                r = compare_numbers(a->pre, b->pre);
        if (r == 0)
                r = (int)a->has_post - (int)b->has_post;
        if (r == 0)
                r = compare_numbers(a->post, b->post);
        if (r == 0)
                r = (int)b->has_dev - (int)a->has_dev;
        if (r == 0)
                r = compare_numbers(a->dev, b->dev);
        return r;
}

/* Everything but the build. */
static int compare_public(const struct rv_version *a, const struct rv_version *b)
{
        int r = compare_segments(a, b, RV_MAX(a->n_segments, b->n_segments));

        if (r)
                return r;
        if (a->order == RV_VERSION_PEP440)
                return compare_suffixes(a, b);
        if (!a->pre_kind || !b->pre_kind)
                return (int)!a->pre_kind - (int)!b->pre_kind;
        return compare_parts(a->pre, b->pre, false);
}

int rv_version_compare(const struct rv_version *a, const struct rv_version *b)
{
        int r = compare_public(a, b);

        /* SemVer 10: build metadata has no place in the order. */
        return r || a->order == RV_VERSION_SEMVER ? r : compare_parts(a->build, b->build, true);
}

enum operation { OP_EQUAL, OP_NOT_EQUAL, OP_BELOW, OP_BELOW_EQUAL, OP_ABOVE, OP_ABOVE_EQUAL, OP_COMPATIBLE, OP_TILDE,
        OP_CARET };

static enum operation take_operation(struct cursor *c)
{
        /* Longer ones first. */
        static const struct {
                const char *text;
                enum operation operation;
        } table[] = {
                { "===", OP_EQUAL }, { "==", OP_EQUAL }, { "!=", OP_NOT_EQUAL }, { "~=", OP_COMPATIBLE }, { "<=", OP_BELOW_EQUAL },
                { ">=", OP_ABOVE_EQUAL }, { "<", OP_BELOW }, { ">", OP_ABOVE }, { "=", OP_EQUAL }, { "~", OP_TILDE },
                { "^", OP_CARET },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++)
                if (take_word(c, table[i].text))
                        return table[i].operation;
        return OP_EQUAL;
}

/* How many leading numbers `~` and `^` hold fast, as npm counts them. */
static size_t held_segments(enum operation operation, const struct rv_version *v)
{
        if (operation == OP_COMPATIBLE)
                return v->n_segments - 1;
        if (operation == OP_TILDE)
                return RV_MIN(v->n_segments, (size_t)2);
        for (size_t i = 0; i < v->n_segments; i++)
                if (v->segments[i].n != 1 || v->segments[i].text[0] != '0')
                        return i + 1;
        return v->n_segments;
}

static bool compares(enum operation operation, const struct rv_version *v, const struct rv_version *wanted)
{
        int r = wanted->build.n ? rv_version_compare(v, wanted) : compare_public(v, wanted);

        if (wanted->build.n && r == 0 && v->order == RV_VERSION_SEMVER)
                r = compare_parts(v->build, wanted->build, false);
        switch (operation) {
        case OP_EQUAL: return r == 0;
        case OP_NOT_EQUAL: return r != 0;
        case OP_BELOW: return r < 0;
        case OP_BELOW_EQUAL: return r <= 0;
        case OP_ABOVE: return r > 0;
        case OP_ABOVE_EQUAL: return r >= 0;
        case OP_COMPATIBLE:
        case OP_TILDE:
        case OP_CARET:
                break;
        }
        return r >= 0 && compare_segments(v, wanted, held_segments(operation, wanted)) == 0;
}

/* One comparator, whose text ends at a blank, a comma, a bar or the end. */
static int comparator_has(enum rv_version_order order, struct cursor *c, const struct rv_version *v)
{
        enum operation operation;
        struct rv_version wanted;
        const char *start;
        bool is_prefix;
        size_t n;

        if (take_char(c, '*'))
                return c->p == c->end || strchr(" \t,|", *c->p) ? 1 : -EINVAL;
        operation = take_operation(c);
        skip_blanks(c);
        start = c->p;
        while (c->p < c->end && !strchr(" \t,|", *c->p))
                c->p++;
        n = (size_t)(c->p - start);
        is_prefix = n > 2 && start[n - 2] == '.' && start[n - 1] == '*';
        if (is_prefix && operation != OP_EQUAL && operation != OP_NOT_EQUAL)
                return -EINVAL;
        if (rv_version_parse(order, start, is_prefix ? n - 2 : n, &wanted) < 0)
                return -EINVAL;
        if (is_prefix && (wanted.pre_kind || wanted.has_post || wanted.has_dev || wanted.build.n))
                return -EINVAL;
        if (operation == OP_COMPATIBLE && wanted.n_segments < 2)
                return -EINVAL;
        if (!v)
                return 1;
        if (is_prefix)
                return (compare_segments(v, &wanted, wanted.n_segments) == 0) == (operation == OP_EQUAL);
        return compares(operation, v, &wanted);
}

int rv_version_set_has(enum rv_version_order order, const char *set, size_t n_set, const struct rv_version *version)
{
        struct cursor c = { set, set + n_set };
        bool is_in = false;

        if (n_set > RV_VERSION_SET_SIZE_MAX || memchr(set, 0, n_set))
                return rv_raise(-EINVAL);
        do {
                bool has_all = true;

                skip_blanks(&c);
                do {
                        int r = comparator_has(order, &c, version);

                        if (r < 0)
                                return rv_raise(r);
                        has_all = has_all && r;
                        skip_blanks(&c);
                        if (take_char(&c, ','))
                                skip_blanks(&c);
                        else if (c.p == c.end || *c.p == '|')
                                break;
                } while (true);
                is_in = is_in || has_all;
        } while (take_word(&c, "||"));
        return c.p == c.end ? is_in : rv_raise(-EINVAL);
}
