#include "request/pyreq.h"

#include "base/buf.h"
#include "request/pep440.h"

#include <string.h>

#define FAIL(fault, code, ...) rv_fault_set(fault, RV_FAULT_##code, __VA_ARGS__)
#define HINT "name==version or name>=version"

struct cursor {
        const char *text;
        size_t n, at;
        struct rv_fault *fault;
};

static int peek(const struct cursor *c)
{
        return c->at < c->n ? (uint8_t)c->text[c->at] : -1;
}

static void skip_space(struct cursor *c)
{
        while (peek(c) == ' ' || peek(c) == '\t')
                c->at++;
}

static bool is_alnum(int c)
{
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* PEP 508, identifier: letters, digits and [-_.] within. Returns its size, 0 if none begins here. */
static size_t identifier_size(const struct cursor *c)
{
        size_t end = c->at, last = c->at;

        if (!is_alnum(peek(c)))
                return 0;
        for (; end < c->n && (is_alnum((uint8_t)c->text[end]) || memchr("-_.", c->text[end], 3)); end++)
                if (is_alnum((uint8_t)c->text[end]))
                        last = end;
        return last + 1 - c->at;
}

/* PEP 503: lower case, each run of [-_.] one "-". */
static char *dup_canonical(const char *text, size_t n)
{
        char *name = malloc(n + 1);
        size_t size = 0;

        if (!name)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                char ch = text[i];

                if (is_alnum((uint8_t)ch))
                        name[size++] = ch >= 'A' && ch <= 'Z' ? (char)(ch | 0x20) : ch;
                else if (name[size - 1] != '-')   /* an identifier begins with a letter or digit */
                        name[size++] = '-';
        }
        name[size] = 0;
        return name;
}

static int compare_strings(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_extra(struct rv_package *p, const char *text, size_t n)
{
        char **extras = reallocarray(p->extras, p->n_extras + 1, sizeof(*extras));

        if (!extras)
                return rv_raise(-ENOMEM);
        p->extras = extras;
        extras[p->n_extras] = dup_canonical(text, n);
        if (!extras[p->n_extras])
                return rv_raise(-ENOMEM);
        p->n_extras++;
        return 0;
}

static void sort_extras(struct rv_package *p)
{
        size_t kept = 0;

        if (p->n_extras == 0)
                return;
        qsort(p->extras, p->n_extras, sizeof(*p->extras), compare_strings);
        for (size_t i = 1; i < p->n_extras; i++) {
                if (strcmp(p->extras[kept], p->extras[i]) == 0)
                        free(p->extras[i]);
                else
                        p->extras[++kept] = p->extras[i];
        }
        p->n_extras = kept + 1;
}

/* '[' wsp* (identifier (wsp* ',' wsp* identifier)*)? wsp* ']' */
static int parse_extras(struct cursor *c, struct rv_package *p)
{
        int r;

        skip_space(c);
        if (peek(c) != '[')
                return 0;
        c->at++;
        skip_space(c);
        while (p->n_extras > 0 || peek(c) != ']') {
                size_t size = identifier_size(c);

                if (size == 0)
                        return FAIL(c->fault, PATTERN, "extras are names between brackets, with commas: name[one,two]");
                r = add_extra(p, c->text + c->at, size);
                if (r < 0)
                        return rv_trace(r);
                c->at += size;
                skip_space(c);
                if (peek(c) != ',')
                        break;
                c->at++;
                skip_space(c);
        }
        if (peek(c) != ']')
                return FAIL(c->fault, PATTERN, "the extras of a package end in a closing bracket: name[one,two]");
        c->at++;
        sort_extras(p);
        return 0;
}

/* What stands where a version clause or the end was expected: the likely mistake, by its first characters. */
static int judge_rest(const struct cursor *c, bool has_clauses)
{
        char quote[RV_FAULT_QUOTE_SIZE];
        size_t n = c->n - c->at;
        const char *rest = c->text + c->at;

        if (rest[0] == ';')
                return FAIL(c->fault, UNSUPPORTED, "environment markers (\";\") are not taken: ask only for what this run needs");
        if (rest[0] == '@')
                return FAIL(c->fault, UNSUPPORTED, "\"@\" begins a URL, which is not taken; a pin is written name==version");
        if (rest[0] == '#')
                return FAIL(c->fault, PATTERN, "comments are not taken");
        if (rest[0] == '-' && n >= 2 && rest[1] == '-')
                return FAIL(c->fault, UNSUPPORTED, "options of an installer are not taken");
        if (rest[0] == '/')
                return FAIL(c->fault, UNSUPPORTED, "a path is not taken: packages come from the registry, as " HINT);
        if (has_clauses)
                return FAIL(c->fault, PATTERN, "%s cannot follow a version; clauses are joined by commas: >=2,<3",
                            rv_fault_quote(rest, n, quote));
        if (rest[0] == '=' && (n < 2 || rest[1] != '='))
                return FAIL(c->fault, PATTERN, "a single \"=\" is no operator: write == for one version, >= for a lower bound");
        if (rest[0] == '^')
                return FAIL(c->fault, PATTERN, "\"^\" is no operator of Python's: write name>=1.4,<2 or name~=1.4");
        return FAIL(c->fault, PATTERN, "%s cannot follow the name; write " HINT, rv_fault_quote(rest, n, quote));
}

/* version_one (wsp* ',' version_one)* (wsp* ',')? ; stops at what is none of it. */
static int parse_clauses(struct cursor *c, struct rv_buf *constraint, size_t *ret_n, bool *ret_is_exact)
{
        size_t n = 0;
        bool is_exact = true;

        for (;;) {
                struct rv_pep440_clause clause;

                skip_space(c);
                if (peek(c) < 0 || !memchr("=!<>~", peek(c), 5))
                        break;
                if (peek(c) == '=' && (c->n - c->at < 2 || c->text[c->at + 1] != '='))
                        return judge_rest(c, false);
                if (rv_pep440_parse_clause(c->text, c->n, c->at, &clause, c->fault))
                        return RV_PYREQ_E_INVALID;
                rv_buf_printf(constraint, "%s%s%.*s", n ? "," : "", clause.operator, (int)clause.version_bytes,
                              c->text + clause.version_at);
                c->at = clause.end;
                is_exact = is_exact && clause.is_exact;
                n++;
                skip_space(c);
                if (peek(c) != ',')
                        break;
                c->at++;
        }
        *ret_n = n;
        *ret_is_exact = is_exact && n == 1;
        return rv_buf_error(constraint);
}

static int parse_specifier(struct cursor *c, struct rv_package *p)
{
        _cleanup_(rv_buf_fini) struct rv_buf constraint = { 0 };
        bool has_parenthesis;
        size_t n_clauses = 0;
        int r;

        skip_space(c);
        has_parenthesis = peek(c) == '(';
        if (has_parenthesis)
                c->at++;
        r = parse_clauses(c, &constraint, &n_clauses, &p->is_pinned);
        if (r)
                return r < 0 ? rv_trace(r) : r;
        if (has_parenthesis) {
                if (peek(c) != ')')
                        return FAIL(c->fault, PATTERN, "the clauses between parentheses end in a closing one: name (>=1,<2)");
                c->at++;
                skip_space(c);
        }
        if (peek(c) >= 0)
                return judge_rest(c, n_clauses > 0);
        if (n_clauses == 0)
                return FAIL(c->fault, MISSING, "a version constraint is wanted: write %.80s>=0 for any version, or pin it as %.80s==1.2.3",
                            p->name, p->name);
        if (rv_package_is_archive(constraint.data, constraint.size))
                return FAIL(c->fault, UNSUPPORTED, "a version that ends as an archive's file name does is not taken");
        p->constraint = rv_buf_take(&constraint, NULL);
        return p->constraint ? 0 : rv_raise(-ENOMEM);
}

static int parse(struct cursor *c, struct rv_package *p)
{
        size_t size = identifier_size(c);
        char quote[RV_FAULT_QUOTE_SIZE];
        int r;

        if (size == 0)
                return FAIL(c->fault, PATTERN, "a Python requirement begins with a name of letters, digits, \"-\", \"_\", \".\", not with %s",
                            rv_fault_quote(c->text, c->n, quote));
        p->requested = strndup(c->text, c->n);
        p->name = dup_canonical(c->text, size);
        if (!p->requested || !p->name)
                return rv_raise(-ENOMEM);
        c->at += size;
        if (peek(c) == '-' || peek(c) == '_' || peek(c) == '.')
                return FAIL(c->fault, PATTERN, "a package's name ends in a letter or a digit");
        r = parse_extras(c, p);
        return r ? r : parse_specifier(c, p);
}

int rv_pyreq_parse(const char *text, size_t n, struct rv_package *ret, struct rv_fault *fault)
{
        struct rv_package p = { 0 };
        struct cursor c = { .text = text, .n = n, .fault = fault };
        int r;

        if (rv_package_check_text(text, n, fault))
                return RV_PYREQ_E_INVALID;
        skip_space(&c);
        for (c.text += c.at, c.n -= c.at, c.at = 0; c.text[c.n - 1] == ' ' || c.text[c.n - 1] == '\t'; )
                c.n--;
        if (rv_package_check_location(c.text, c.n, HINT, fault))
                return RV_PYREQ_E_INVALID;
        r = parse(&c, &p);
        if (r) {
                rv_package_fini(&p);
                return r < 0 ? rv_trace(r) : RV_PYREQ_E_INVALID;
        }
        *ret = p;
        return 0;
}
