#include "policy/facts_bound.h"

#include "policy/facts.h"
#include "policy/verdict.h"

#include <stdio.h>

/* A denial that says so, in place of a policy's. */
static json_t *make_verdict(bool is_resolved, const char *message)
{
        struct rv_finding f = { .section = "packages", .code = "package_denied", .rule = "closure_too_large", .item = "", .path = "", .message = message, .file = "" };
        struct rv_verdict v;
        json_t *verdict = NULL;

        if (is_resolved)
                rv_verdict_begin_packages(&v);
        else
                rv_verdict_begin(&v);
        rv_verdict_deny(&v, &f);
        if (!is_resolved) {
                rv_verdict_set(&v, "idempotency", json_pack("{s:b}", "require_key", 0), &f);
                rv_verdict_set(&v, "backend", json_pack("{s:s, s:s}", "effect", "deny", "use", ""), &f);
        }
        (void)rv_verdict_end(&v, &verdict);
        rv_verdict_fini(&v);
        return verdict;
}

/* What can be recorded: no policy can judge by it, so nobody takes it for all there was. */
static json_t *make_brief(const json_t *facts, size_t n_bytes)
{
        static const char *const names[] = { "network_mode", "timeout_s", "memory_mib" };
        json_t *request = json_object(), *brief;

        for (size_t i = 0; i < RV_N_ELEMENTS(names) && request; i++) {
                json_t *value = json_object_get(json_object_get(facts, "request"), names[i]);

                if (value && json_object_set(request, names[i], value) < 0)
                        request = (json_decref(request), NULL);
        }
        brief = json_pack("{s:s, s:I, s:o}", "stage", rv_facts_is_resolved(facts) ? "resolved" : "requested", "bytes_left_out", (json_int_t)n_bytes,
                "request", request);
        if (brief && rv_facts_is_resolved(facts) &&
            json_object_set_new(brief, "packages_left_out", json_integer((json_int_t)json_array_size(json_object_get(facts, "packages")))) < 0)
                brief = (json_decref(brief), NULL);
        return brief;
}

int rv_facts_bound(const json_t *facts, json_t **ret_brief, json_t **ret_verdict)
{
        size_t n_packages = json_array_size(json_object_get(facts, "packages"));
        _cleanup_(rv_json_unrefp) json_t *brief = NULL, *verdict = NULL;
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char message[160];
        int r;

        r = rv_json_canonical(facts, &text);
        if (r < 0 || (text.size <= RV_FACTS_BYTES_MAX && n_packages <= RV_FACTS_PACKAGES_MAX))
                return rv_trace(r);
        if (n_packages > RV_FACTS_PACKAGES_MAX)
                snprintf(message, sizeof(message), "what was asked for comes to %zu packages, and at most %d are judged", n_packages, RV_FACTS_PACKAGES_MAX);
        else
                snprintf(message, sizeof(message), "what policy would have to judge has %zu bytes, and at most %zu are recorded", text.size, RV_FACTS_BYTES_MAX);
        brief = make_brief(facts, text.size);
        verdict = make_verdict(rv_facts_is_resolved(facts), message);
        if (!brief || !verdict)
                return rv_raise(-ENOMEM);
        *ret_brief = rv_take(&brief);
        *ret_verdict = rv_take(&verdict);
        return 1;
}
