#include "package/diagnose_private.h"

#include <stdio.h>
#include <string.h>

/*
 * How the tool ended, for when nothing else explains that it did not find packages: each that was asked for can be had by
 * itself. Either the tool looked and found that they do not go together, or it is the tool that failed.
 */

#define EXCERPT_SIZE 280

/* With this status uv and pip end when there is no solution; after any other fault of theirs with another. */
#define PYTHON_NO_SOLUTION 1

/* npm's codes for the same, and that of a closure that is not for this platform (closure.c). */
static bool is_verdict_of_npm(const char *code)
{
        static const char *const codes[] = {
                "ERESOLVE", "ETARGET", "ENOVERSIONS", "E404", "EOVERRIDE", "EBADENGINE", "EBADPLATFORM", "EINVALIDPACKAGENAME", "EINVALIDTAGNAME"
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(codes); i++)
                if (strcmp(codes[i], code) == 0)
                        return true;
        return false;
}

static bool is_verdict(const struct rv_package_trouble *t)
{
        const char *code = rv_json_get_string(t->closure, "code", "");

        if (t->source->registry->language == RV_LANGUAGE_JAVASCRIPT)
                return is_verdict_of_npm(code);
        if (*code)
                return strcmp(code, "EPLATFORM") == 0 || strcmp(code, "EURL") == 0 || strcmp(code, "EBADPLATFORM") == 0;
        return json_integer_value(json_object_get(t->closure, "exit")) == PYTHON_NO_SOLUTION;
}

void rv__diagnose_end(const struct rv_package_trouble *t, struct rv__finding *f)
{
        char names[160] = "", words[EXCERPT_SIZE];
        size_t used = 0;

        if (f->cause != RV_PACKAGE_CAUSE_NONE)
                return;
        rv__diagnose_excerpt(rv_json_get_string(t->closure, "text", ""), words, sizeof(words));
        if (t->closure && !is_verdict(t)) {
                const char *tool = rv_json_get_string(json_object_get(t->closure, "tool"), "name", "the package manager");

                rv__find(f, RV_PACKAGE_CAUSE_CONFLICT, "", "%.20s failed, and neither the registry nor what was asked for explains it; try again, and if it stays so see packages in the configuration%s%s",
                        tool, *words ? "; it says: " : "", words);
                f->is_of_resolver = true;
                return;
        }
        for (size_t i = 0; i < t->n_packages && used < sizeof(names); i++)
                used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", t->packages[i].requested);
        rv__find(f, RV_PACKAGE_CAUSE_CONFLICT, t->packages[0].name, "%s cannot be installed with all that %s: no versions satisfy everything at once%s%s", names,
                t->n_packages > 1 ? "they need" : "it needs", *words ? "; the tool says: " : "", words);
}
