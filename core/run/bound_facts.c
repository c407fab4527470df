#include "run/run_private.h"

#include "policy/facts.h"
#include "policy/facts_bound.h"

#include <string.h>

/*
 * What facts hold besides names of variables and the tenant's labels is, before packages are resolved, bounded by the
 * request's own bounds, well below the facts'; and a text of those at most doubles in JSON, as none has control
 * characters.
 */
#define HARMLESS_BYTES (RV_FACTS_BYTES_MAX / 4)

static size_t count_texts(const struct rv_run *run)
{
        size_t n = 0;

        for (size_t i = 0; i < run->tenant->labels.n_items; i++)
                n += strlen(run->tenant->labels.items[i].name) + strlen(run->tenant->labels.items[i].value);
        for (size_t i = 0; i < run->request->n_env; i++)
                n += strlen(run->request->env[i].name);
        return n;
}

/* Works on the facts of either stage. */
int rv__run_bound_facts(struct rv_run *run)
{
        json_t *brief = NULL, *verdict = NULL;
        int r;

        if (!rv_facts_is_resolved(run->facts) && count_texts(run) <= HARMLESS_BYTES)
                return 0;
        r = rv_facts_bound(run->facts, &brief, &verdict);
        if (r <= 0)
                return rv_trace(r);
        json_decref(run->facts);
        json_decref(run->verdict);
        run->facts = brief;
        run->verdict = verdict;
        return 1;
}
