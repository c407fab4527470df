#include "request/pep440.h"

#include <string.h>
#include <strings.h>

#define FAIL(fault, ...) rv_fault_set(fault, RV_FAULT_PATTERN, __VA_ARGS__)

struct version {
        size_t n_release;
        bool has_wildcard, has_local;
};

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
        return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool is_separator(char c)
{
        return c == '.' || c == '-' || c == '_';
}

static size_t skip_digits(const char *text, size_t n, size_t at)
{
        while (at < n && is_digit(text[at]))
                at++;
        return at;
}

/*
 * [-_.]? word [-_.]? digits*, or where it is not there, nothing. A separator without digits behind it is left
 * alone: it may begin the next part.
 */
static size_t skip_part(const char *text, size_t n, size_t at, const char *const words[])
{
        size_t i = at < n && is_separator(text[at]) ? at + 1 : at, digits;

        for (; *words; words++) {
                size_t length = strlen(*words);

                if (n - i < length || strncasecmp(text + i, *words, length) != 0)
                        continue;
                i += length;
                digits = i < n && is_separator(text[i]) ? i + 1 : i;
                return digits < n && is_digit(text[digits]) ? skip_digits(text, n, digits) : i;
        }
        return at;
}

static size_t skip_post(const char *text, size_t n, size_t at)
{
        static const char *const words[] = { "post", "rev", "r", NULL };

        if (n - at >= 2 && text[at] == '-' && is_digit(text[at + 1]))
                return skip_digits(text, n, at + 1);
        return skip_part(text, n, at, words);
}

/* "+" then letters and digits, in parts joined by one separator each. */
static size_t skip_local(const char *text, size_t n, size_t at)
{
        size_t i = at;

        do {
                size_t start = ++i;

                while (i < n && is_alnum(text[i]))
                        i++;
                if (i == start)
                        return start == at + 1 ? at : start - 1;   /* nothing behind the plus, or the separator */
        } while (i < n && is_separator(text[i]));
        return i;
}

/* The regular expression of PEP 440, appendix B. Returns the end, or @at if no version begins there. */
static size_t skip_version(const char *text, size_t n, size_t at, struct version *v)
{
        static const char *const pre[] = { "alpha", "a", "beta", "b", "preview", "pre", "c", "rc", NULL };
        static const char *const dev[] = { "dev", NULL };
        size_t i = at, end;

        if (i < n && (text[i] | 0x20) == 'v')
                i++;
        end = skip_digits(text, n, i);
        if (end == i)
                return at;
        if (end < n && text[end] == '!') {
                i = end + 1;
                end = skip_digits(text, n, i);
                if (end == i)
                        return at;
        }
        for (v->n_release = 1; n - end >= 2 && text[end] == '.' && is_digit(text[end + 1]); v->n_release++)
                end = skip_digits(text, n, end + 1);
        if (n - end >= 2 && text[end] == '.' && text[end + 1] == '*') {
                v->has_wildcard = true;
                return end + 2;
        }
        end = skip_part(text, n, end, pre);
        end = skip_post(text, n, end);
        end = skip_part(text, n, end, dev);
        if (end < n && text[end] == '+') {
                i = skip_local(text, n, end);
                v->has_local = i > end;
                end = i;
        }
        return end;
}

/* PEP 508: letterOrDigit | '-' | '_' | '.' | '*' | '+' | '!'; see the header for '*'. */
static size_t skip_arbitrary(const char *text, size_t n, size_t at)
{
        while (at < n && (is_alnum(text[at]) || is_separator(text[at]) || text[at] == '+' || text[at] == '!'))
                at++;
        return at;
}

static const char *find_operator(const char *text, size_t n, size_t at)
{
        static const char *const operators[] = { "===", "==", "~=", "!=", "<=", ">=", "<", ">" };

        for (size_t i = 0; i < RV_N_ELEMENTS(operators); i++) {
                size_t length = strlen(operators[i]);

                if (n - at >= length && memcmp(text + at, operators[i], length) == 0)
                        return operators[i];
        }
        return NULL;
}

static int check_version(const char *operator, const struct version *v, struct rv_fault *fault)
{
        bool is_equality = strcmp(operator, "==") == 0 || strcmp(operator, "!=") == 0;

        if (v->has_wildcard && !is_equality)
                return FAIL(fault, "\".*\" goes with == and != only, not with %s", operator);
        if (v->has_local && !is_equality)
                return FAIL(fault, "a local version (\"+...\") goes with == and != only, not with %s", operator);
        if (strcmp(operator, "~=") == 0 && v->n_release < 2)
                return FAIL(fault, "~= needs two release numbers or more, such as ~=1.4");
        return 0;
}

int rv_pep440_parse_clause(const char *text, size_t n, size_t at, struct rv_pep440_clause *ret, struct rv_fault *fault)
{
        const char *operator = find_operator(text, n, at);
        struct version v = { 0 };
        size_t start, end;
        char quote[RV_FAULT_QUOTE_SIZE];
        bool is_arbitrary;

        if (!operator)
                return FAIL(fault, "a version clause begins with one of == != >= <= > < ~= ===, not with %s",
                            rv_fault_quote(text + at, n - at, quote));
        is_arbitrary = strcmp(operator, "===") == 0;
        start = at + strlen(operator);
        while (start < n && (text[start] == ' ' || text[start] == '\t'))
                start++;
        end = is_arbitrary ? skip_arbitrary(text, n, start) : skip_version(text, n, start, &v);
        if (end == start)
                return FAIL(fault, "a version (PEP 440), such as 1.26.4, must follow %s, not %s", operator,
                            rv_fault_quote(text + start, n - start, quote));
        if (check_version(operator, &v, fault))
                return RV_PEP440_E_INVALID;
        *ret = (struct rv_pep440_clause){
                .operator = operator,
                .version_at = start,
                .version_bytes = end - start,
                .end = end,
                .is_exact = is_arbitrary || (strcmp(operator, "==") == 0 && !v.has_wildcard),
        };
        return 0;
}
