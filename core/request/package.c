#include "request/package.h"

#include <string.h>
#include <strings.h>

void rv_package_fini(struct rv_package *p)
{
        for (size_t i = 0; i < p->n_extras; i++)
                free(p->extras[i]);
        free(p->extras);
        free(p->name);
        free(p->requested);
        free(p->constraint);
        *p = (struct rv_package){ 0 };
}

int rv_package_compare(const void *pa, const void *pb)
{
        const struct rv_package *a = pa, *b = pb;
        int r = strcmp(a->name, b->name);

        return r ? r : strcmp(a->requested, b->requested);
}

int rv_package_check_text(const char *text, size_t n, struct rv_fault *fault)
{
        size_t first = n;

        for (size_t i = 0; i < n; i++) {
                uint8_t c = (uint8_t)text[i];

                if (c >= 0x80)
                        return rv_fault_set(fault, RV_FAULT_PATTERN, "a package string is ASCII; byte %zu is not", i);
                if ((c < 0x20 && c != '\t') || c == 0x7f)
                        return rv_fault_set(fault, RV_FAULT_PATTERN,
                                            "byte %zu is the control character \\%03u: write one package a string, on one line",
                                            i, c);
                if (first == n && c != ' ' && c != '\t')
                        first = i;
        }
        if (first == n)
                return rv_fault_set(fault, RV_FAULT_PATTERN, "a package string must name a package");
        if (text[first] == '-')
                return rv_fault_set(fault, RV_FAULT_UNSUPPORTED,
                                    "options of an installer are not taken: name a package and its version");
        return 0;
}

static bool begins(const char *text, size_t n, const char *prefix)
{
        size_t length = strlen(prefix);

        return n >= length && strncasecmp(text, prefix, length) == 0;
}

static bool ends(const char *text, size_t n, const char *suffix)
{
        size_t length = strlen(suffix);

        return n >= length && strncasecmp(text + n - length, suffix, length) == 0;
}

/* RFC 3986: scheme ":" … with the two-part schemes of version control ("git+https:"). */
static bool has_scheme(const char *text, size_t n)
{
        size_t i = 0;

        while (i < n && ((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z'))
                i++;
        if (i == 0)
                return false;
        while (i < n && (((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z') || (text[i] >= '0' && text[i] <= '9') ||
                         text[i] == '+' || text[i] == '-' || text[i] == '.'))
                i++;
        return i < n && text[i] == ':';
}

bool rv_package_is_archive(const char *text, size_t n)
{
        static const char *const archives[] = { ".whl", ".egg", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar", ".zip" };

        for (size_t i = 0; i < RV_N_ELEMENTS(archives); i++)
                if (ends(text, n, archives[i]))
                        return true;
        return false;
}

int rv_package_check_location(const char *text, size_t n, const char *hint, struct rv_fault *fault)
{
        static const char *const vcs[] = { "git+", "git:", "git@", "hg+", "svn+", "bzr+", "ssh:", "github:", "gitlab:",
                                           "bitbucket:", "gist:" };
        const char *kind = NULL;

        for (size_t i = 0; i < RV_N_ELEMENTS(vcs) && !kind; i++)
                if (begins(text, n, vcs[i]))
                        kind = "a version control reference";
        if (!kind && (begins(text, n, "file:") || begins(text, n, "link:") || begins(text, n, "portal:")))
                kind = "a path";
        if (!kind && (has_scheme(text, n) || memmem(text, n, "://", 3)))
                kind = "a URL or a protocol of a package manager";
        if (!kind && (text[0] == '.' || text[0] == '/' || text[0] == '~' || memchr(text, '\\', n)))
                kind = "a path";
        if (!kind && memmem(text, n, "${", 2))
                kind = "a reference to an environment variable";
        if (!kind && rv_package_is_archive(text, n))
                kind = "an archive's file name";
        if (!kind)
                return 0;
        return rv_fault_set(fault, RV_FAULT_UNSUPPORTED, "%s is not taken: packages come from the registry, as %s", kind, hint);
}
