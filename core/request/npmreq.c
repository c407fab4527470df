#include "request/npmrange.h"

#include <string.h>
#include <strings.h>

#define FAIL(fault, code, ...) rv_fault_set(fault, RV_FAULT_##code, __VA_ARGS__)
#define HINT "name@range, such as left-pad@^1.3.0"
#define NAME_MAX_CHARACTERS 214

static bool is_space(char c)
{
        return c == ' ' || c == '\t';
}

/* One part of a name: the scope behind its "@", or the name proper. */
static int check_part(const char *text, size_t n, const char *what, struct rv_fault *fault)
{
        char quote[RV_FAULT_QUOTE_SIZE];

        if (n == 0)
                return FAIL(fault, PATTERN, "the %s of the package is empty: write " HINT, what);
        if (text[0] == '.')
                return FAIL(fault, PATTERN, "the %s of a package cannot begin with a period", what);
        for (size_t i = 0; i < n; i++) {
                char c = text[i];

                if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.')
                        continue;
                if (c >= 'A' && c <= 'Z')
                        return FAIL(fault, PATTERN, "npm names are written in lower case: %s is not",
                                    rv_fault_quote(text, n, quote));
                return FAIL(fault, PATTERN, "an npm name holds lower-case letters, digits, \"-\", \"_\", \".\" only: %s does not",
                            rv_fault_quote(text, n, quote));
        }
        return 0;
}

/*
 * The rules of validate-npm-package-name for new packages. Within a scope a leading "_" or "-" is allowed, as
 * there are such packages.
 */
static int check_name(const char *name, size_t n, struct rv_fault *fault)
{
        const char *proper = name;
        size_t n_proper = n;

        if (n > NAME_MAX_CHARACTERS)
                return FAIL(fault, LENGTH, "an npm name has at most %d characters", NAME_MAX_CHARACTERS);
        if (name[0] == '@') {
                const char *slash = memchr(name, '/', n);

                if (!slash)
                        return FAIL(fault, PATTERN, "a scope is followed by \"/\" and a name: write @scope/name@range");
                if (check_part(name + 1, (size_t)(slash - name) - 1, "scope", fault))
                        return RV_NPMREQ_E_INVALID;
                proper = slash + 1;
                n_proper = n - (size_t)(proper - name);
        } else if (name[0] == '_' || name[0] == '-') {
                return FAIL(fault, PATTERN, "an npm name cannot begin with \"%c\"", name[0]);
        }
        if (check_part(proper, n_proper, "name", fault))
                return RV_NPMREQ_E_INVALID;
        if ((n_proper == 12 && memcmp(proper, "node_modules", 12) == 0) ||
            (n_proper == 11 && memcmp(proper, "favicon.ico", 11) == 0))
                return FAIL(fault, PATTERN, "npm allows no package of this name");
        return 0;
}

static bool begins(const char *text, size_t n, const char *prefix)
{
        return n >= strlen(prefix) && strncasecmp(text, prefix, strlen(prefix)) == 0;
}

/* [A-Za-z] and then what a URL needs no escape for: what npm takes for a distribution tag. */
static bool looks_like_tag(const char *text, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char c = text[i];

                if (!((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && (i == 0 || !memchr("0123456789-_.~!'()*", c, 19)))
                        return false;
        }
        return n > 0;
}

/* The range of a package is text[0..n), trimmed and not empty. */
static int check_range(const char *text, size_t n, bool *ret_is_pinned, struct rv_fault *fault)
{
        struct rv_fault syntax;

        if (n == 6 && memcmp(text, "latest", 6) == 0) {
                *ret_is_pinned = false;
                return 0;
        }
        if (rv_npmrange_check(text, n, ret_is_pinned, NULL, &syntax) == 0) {
                if (rv_package_is_archive(text, n))
                        return FAIL(fault, UNSUPPORTED, "a version that ends as an archive's file name does is not taken");
                return 0;
        }
        if (begins(text, n, "npm:"))
                return FAIL(fault, UNSUPPORTED, "aliases (npm:) are not taken: name the package itself");
        if (begins(text, n, "workspace:") || begins(text, n, "catalog:"))
                return FAIL(fault, UNSUPPORTED, "workspace references are not taken: write a range of versions");
        /* In a range "~" begins a path only before a slash. */
        if (!(text[0] == '~' && (n == 1 || text[1] != '/')) && rv_package_check_location(text, n, HINT, fault))
                return RV_NPMREQ_E_INVALID;
        if (memchr(text, '/', n))
                return FAIL(fault, UNSUPPORTED, "a path or a user/repository is not taken: packages come from the registry, as " HINT);
        if (looks_like_tag(text, n))
                return FAIL(fault, UNSUPPORTED, "of the distribution tags only \"latest\" is taken: write a range of versions");
        if (fault)
                *fault = syntax;
        return RV_NPMREQ_E_INVALID;
}

/* No "@" behind the first character: a bare name, or no name at all. */
static int judge_bare(const char *text, size_t n, struct rv_fault *fault)
{
        size_t size = strcspn(text, "=<>~^! \t");

        if (rv_package_check_location(text, n, HINT, fault))
                return RV_NPMREQ_E_INVALID;
        if (text[0] != '@' && memchr(text, '/', n))
                return FAIL(fault, UNSUPPORTED, "a path or a user/repository is not taken: packages come from the registry, as " HINT);
        if (size < n && size > 0)
                return FAIL(fault, PATTERN, "\"@\" stands between an npm name and its range: write " HINT);
        if (check_name(text, n, fault))
                return RV_NPMREQ_E_INVALID;
        return FAIL(fault, MISSING, "a version range is wanted: write %.80s@* for any version, or pin it as %.80s@1.2.3", text, text);
}

/* Spaces within become one each. */
static char *dup_range(const char *text, size_t n)
{
        char *range = malloc(n + 1);
        size_t size = 0;

        if (!range)
                return NULL;
        for (size_t i = 0; i < n; i++)
                if (!is_space(text[i]))
                        range[size++] = text[i];
                else if (range[size - 1] != ' ')   /* the text does not begin with one */
                        range[size++] = ' ';
        range[size] = 0;
        return range;
}

/* @text is trimmed, NUL-terminated and not empty. */
static int parse(const char *text, struct rv_package *p, struct rv_fault *fault)
{
        const char *at = strchr(text + 1, '@'), *range;
        size_t n = strlen(text), n_name, n_range;

        if (!at)
                return judge_bare(text, n, fault);
        n_name = (size_t)(at - text);
        if (memmem(text, n_name, ":", 1) && rv_package_check_location(text, n, HINT, fault))
                return RV_NPMREQ_E_INVALID;
        if (begins(text, n, "git@"))   /* git@host:user/repository */
                if (memchr(at, ':', n - n_name))
                        return FAIL(fault, UNSUPPORTED, "a version control reference is not taken: packages come from the registry, as " HINT);
        if (text[0] != '@' && (memchr(text, '/', n_name) || text[0] == '.' || text[0] == '~'))
                return FAIL(fault, UNSUPPORTED, "a path or a user/repository is not taken: packages come from the registry, as " HINT);
        if (check_name(text, n_name, fault))
                return RV_NPMREQ_E_INVALID;
        for (range = at + 1; is_space(*range); )
                range++;
        n_range = strlen(range);
        p->name = strndup(text, n_name);
        if (!p->name)
                return rv_raise(-ENOMEM);
        if (n_range == 0)
                return FAIL(fault, MISSING, "a version range is wanted behind the \"@\": write %.80s@* for any version", p->name);
        if (check_range(range, n_range, &p->is_pinned, fault))
                return RV_NPMREQ_E_INVALID;
        p->constraint = dup_range(range, n_range);
        return p->constraint ? 0 : rv_raise(-ENOMEM);
}

int rv_npmreq_parse(const char *text, size_t n, struct rv_package *ret, struct rv_fault *fault)
{
        struct rv_package p = { 0 };
        int r;

        if (rv_package_check_text(text, n, fault))
                return RV_NPMREQ_E_INVALID;
        while (is_space(text[0]))
                text++, n--;
        while (is_space(text[n - 1]))
                n--;
        p.requested = strndup(text, n);
        if (!p.requested)
                return rv_raise(-ENOMEM);
        r = parse(p.requested, &p, fault);
        if (r) {
                rv_package_fini(&p);
                return r < 0 ? rv_trace(r) : RV_NPMREQ_E_INVALID;
        }
        *ret = p;
        return 0;
}
