#include "run/run_private.h"

#include "policy/decide.h"
#include "policy/verdict.h"

#include <stdio.h>
#include <string.h>

#define FACTS_BYTES_MAX ((size_t)1 << 20)

/*
 * What facts hold besides names of variables and the tenant's labels is bounded by the request's own bounds, well
 * below this; and a text of those at most doubles in JSON, as none has control characters.
 */
#define HARMLESS_BYTES ((size_t)256 << 10)

static size_t count_texts(const struct rv_run *run)
{
        size_t n = 0;

        for (size_t i = 0; i < run->tenant->labels.n_items; i++)
                n += strlen(run->tenant->labels.items[i].name) + strlen(run->tenant->labels.items[i].value);
        for (size_t i = 0; i < run->request->n_env; i++)
                n += strlen(run->request->env[i].name);
        return n;
}

/* A denial that says so, in place of a policy's. */
static json_t *make_verdict(size_t n)
{
        char message[128];
        struct rv_finding f = { .section = "packages", .code = "package_denied", .rule = "closure_too_large", .item = "", .path = "", .message = message, .file = "" };
        struct rv_verdict v;
        json_t *verdict = NULL;

        snprintf(message, sizeof(message), "what policy would have to judge has %zu bytes, and at most %zu are recorded", n, FACTS_BYTES_MAX);
        rv_verdict_begin(&v);
        rv_verdict_deny(&v, &f);
        rv_verdict_set(&v, "idempotency", json_pack("{s:b}", "require_key", 0), &f);
        rv_verdict_set(&v, "backend", json_pack("{s:s, s:s}", "effect", "deny", "use", ""), &f);
        (void)rv_verdict_end(&v, &verdict);
        rv_verdict_fini(&v);
        return verdict;
}

/* What can be recorded: no policy can judge by it, so nobody takes it for all there was. */
static json_t *make_brief(const struct rv_request *q, size_t n)
{
        return json_pack("{s:s, s:I, s:{s:s, s:I, s:I}}", "stage", "requested", "bytes_left_out", (json_int_t)n, "request", "network_mode",
                         rv_network_mode_name(q->network_mode), "timeout_s", (json_int_t)q->timeout_s, "memory_mib", (json_int_t)q->memory_mib);
}

int rv__run_bound_facts(struct rv_run *run)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        json_t *brief;
        int r;

        if (count_texts(run) <= HARMLESS_BYTES)
                return 0;
        r = rv_json_canonical(run->facts, &text);
        if (r < 0 || text.size <= FACTS_BYTES_MAX)
                return rv_trace(r);
        brief = make_brief(run->request, text.size);
        run->verdict = make_verdict(text.size);
        if (!brief || !run->verdict) {
                json_decref(brief);
                return rv_raise(-ENOMEM);
        }
        json_decref(run->facts);
        run->facts = brief;
        return 1;
}
