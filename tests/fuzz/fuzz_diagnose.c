/*
 * What a tool says when it fails, and what is asked of versions. The names that are taken from it are canonical, few,
 * and nothing else; the excerpt is one line without addresses and paths. The first byte says which language; what
 * follows is the tool's text, and up to the first newline a constraint, a space, and a version.
 */
#include "fuzz.h"

#include "package/diagnose_private.h"
#include "policy/constraint.h"
#include "request/npmrange.h"
#include "request/pyreq.h"

static void check_hints(enum rv_language language, const char *text)
{
        struct rv__hint hints[RV__HINTS_MAX];
        size_t n = rv__diagnose_words(language, text, hints);

        FUZZ_CHECK(n <= RV__HINTS_MAX);
        for (size_t i = 0; i < n; i++) {
                struct rv_package p;
                char whole[600];
                int r;

                snprintf(whole, sizeof(whole), language == RV_LANGUAGE_PYTHON ? "%s%s" : "%s@%s", hints[i].name,
                        *hints[i].constraint ? hints[i].constraint : language == RV_LANGUAGE_PYTHON ? ">=0" : "*");
                r = language == RV_LANGUAGE_PYTHON ? rv_pyreq_parse(whole, strlen(whole), &p, NULL)
                                                   : rv_npmreq_parse(whole, strlen(whole), &p, NULL);
                FUZZ_CHECK(r == 0, "%s", whole);
                FUZZ_CHECK(strcmp(p.name, hints[i].name) == 0, "%s", whole);
                rv_package_fini(&p);
        }
}

static void check_excerpt(const char *text)
{
        char excerpt[200];

        rv__diagnose_excerpt(text, excerpt, sizeof(excerpt));
        FUZZ_CHECK(!*excerpt || fuzz_is_line(excerpt));
        FUZZ_CHECK(!strstr(excerpt, "//") && !strstr(excerpt, " /"), "%s", excerpt);
}

/* A version's normal form is the same version, and satisfies what the version satisfies. */
static void check_constraint(enum rv_version_order order, char *line)
{
        char *space = strrchr(line, ' '), normal[RV_VERSION_SIZE_MAX + 16];
        struct rv_version v, w;
        int r;

        if (!space)
                return;
        *space++ = 0;
        if (rv_version_parse(order, space, strlen(space), &v) < 0)
                return;
        FUZZ_CHECK(rv_version_write(&v, normal, sizeof(normal)) == 0 && rv_version_parse(order, normal, strlen(normal), &w) == 0, "%s", space);
        FUZZ_CHECK(rv_version_compare(&v, &w) == 0, "%s %s", space, normal);
        r = rv_constraint_has(line, space, &v);
        FUZZ_CHECK(r == 0 || r == 1 || r == -EINVAL || (r == RV_CONSTRAINT_PRE && rv_version_is_pre(&v)));
        FUZZ_CHECK(strstr(line, "===") || rv_constraint_has(line, normal, &w) == r, "%s: %s", line, space);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        enum rv_language language = size && data[0] & 1 ? RV_LANGUAGE_JAVASCRIPT : RV_LANGUAGE_PYTHON;
        char *text = size ? strndup((const char *)data + 1, size - 1) : NULL;

        if (!text)
                return 0;
        check_hints(language, text);
        check_excerpt(text);
        text[strcspn(text, "\n")] = 0;
        if (strlen(text) < 500)
                check_constraint(language == RV_LANGUAGE_PYTHON ? RV_VERSION_PEP440 : RV_VERSION_SEMVER, text);
        free(text);
        return 0;
}
