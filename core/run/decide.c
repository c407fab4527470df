#include "run/run_private.h"

#include "base/clock.h"
#include "policy/decide.h"
#include "policy/facts.h"

#include <stdio.h>
#include <string.h>

static json_t *make_labels(const struct rv_config_tenant *tenant)
{
        json_t *labels = json_object();

        for (size_t i = 0; labels && i < tenant->labels.n_items; i++)
                json_object_set_new(labels, tenant->labels.items[i].name, json_string(tenant->labels.items[i].value));
        return labels;
}

static int make_facts(struct rv_run *run)
{
        _cleanup_(rv_json_unrefp) json_t *labels = make_labels(run->tenant);
        struct rv_facts_tenant tenant = { .name = run->tenant->name, .labels = labels };

        return rv_facts_build(
                run->request, &tenant, run->input.principal, (int64_t)(rv_now_us() / 1000000), &run->facts);
}

/* {section, rule, item, message, file, line}, as policy's own denials are. */
static json_t *make_ceiling_denial(const struct rv_run *run, char message[256])
{
        snprintf(message, 256, "tenant %s may have network mode %s at most; it is set by tenants.%s.network", run->tenant->name,
                 run->tenant->network, run->tenant->name);
        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "section", "network", "rule", "tenant", "item",
                         rv_network_mode_name(run->request->network_mode), "message", message, "file", "", "line", 0);
}

/* reason.detail: the denied item that gives the reason, and all denials. */
static json_t *make_detail(const json_t *reason, json_t *take_denials)
{
        json_t *detail = json_object();

        for (size_t i = 0; i < 3; i++) {
                static const char *const names[] = { "rule", "item", "path" };
                json_t *value = json_object_get(reason, names[i]);

                if (value)
                        json_object_set(detail, names[i], value);
        }
        json_object_set_new(detail, "denials", take_denials);
        return detail;
}

/*
 * The tenant's ceiling is the operator's, not policy's: it joins the denials where the network section would
 * stand, and gives the reason unless a package was denied before it, or policy could not be evaluated.
 */
static enum rv_step apply_ceiling(struct rv_run *run)
{
        const char *code = rv_json_get_string(run->verdict, "code", "");
        json_t *denials = json_copy(json_object_get(run->verdict, "denials")), *denial, *reason;
        char message[256];
        size_t at = 0, i;

        json_array_foreach(json_object_get(run->verdict, "denials"), i, denial)
                if (!strcmp(rv_json_get_string(denial, "section", ""), "packages"))
                        at = i + 1;
        denial = make_ceiling_denial(run, message);
        json_array_insert_new(denials, at, denial);
        if (!strcmp(code, "package_denied") || !strcmp(code, "policy_error")) {
                enum rv_code parsed = RV_CODE_POLICY_ERROR;

                (void)rv_code_parse(code, &parsed);
                reason = json_object_get(run->verdict, "reason");
                return rv__run_refuse(run, parsed, RV_PHASE_DECIDE, rv_json_get_string(reason, "message", ""), make_detail(reason, denials));
        }
        reason = json_copy(denial);
        json_object_set_new(reason, "path", json_string("/network/mode"));
        rv__run_refuse(run, RV_CODE_NETWORK_DENIED, RV_PHASE_DECIDE, message, make_detail(reason, denials));
        json_decref(reason);
        return RV_STEP_CLASSIFY;
}

enum rv_step rv__run_refuse_by_policy(struct rv_run *run)
{
        const json_t *reason = json_object_get(run->verdict, "reason");
        enum rv_code code = RV_CODE_POLICY_ERROR;

        (void)rv_code_parse(rv_json_get_string(run->verdict, "code", ""), &code);
        return rv__run_refuse(run, code, RV_PHASE_DECIDE, rv_json_get_string(reason, "message", "policy denied the run"),
                              make_detail(reason, json_incref(json_object_get(run->verdict, "denials"))));
}

/*
 * Past its budget a verdict that allows is not used. What counts is the time that judging took, not how long a
 * busy machine kept it waiting; a denial stands whatever it took, as a replay would give it again.
 */
static bool is_late(const struct rv_run *run, uint64_t start_us)
{
        uint64_t budget_us = (run->core->config->phases.decide_ms + run->request->n_packages) * 1000;

        return rv_clock_us(CLOCK_THREAD_CPUTIME_ID) - start_us > budget_us;
}

enum rv_step rv__run_decide(struct rv_run *run)
{
        uint64_t start_us = rv_clock_us(CLOCK_THREAD_CPUTIME_ID);
        struct rv_error err = { 0 };
        enum rv_step step = RV_STEP_NEXT;
        bool is_over_ceiling;
        int r;

        r = make_facts(run);
        if (r == 0 && run->input.build_for)
                r = rv__build_facts(run);
        if (r == 0)
                r = rv__run_bound_facts(run);
        if (r == 0 && run->input.bundle)
                r = rv_policy_decide(run->input.bundle, run->facts, &run->verdict);
        else if (r == 0)
                run->verdict = rv_policy_verdict_error(run->input.bundle_error ? run->input.bundle_error : "no bundle is loaded", "", 0);
        if (r < 0 || !run->verdict)
                return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it evaluated the policy");
        run->has_decision_id = true;
        run->granted = json_incref(run->verdict);

        is_over_ceiling = (int)run->request->network_mode > rv_network_mode_parse(run->tenant->network);
        if (is_over_ceiling) {
                step = apply_ceiling(run);
        } else if (!rv_policy_verdict_is_allow(run->verdict)) {
                step = rv__run_refuse_by_policy(run);
        } else if (is_late(run, start_us)) {
                run->evidence.stop = RV_STOP_TIMEOUT;
                run->evidence.stop_phase = RV_PHASE_DECIDE;
                run->evidence.stop_limit_ms = (uint32_t)run->core->config->phases.decide_ms;
                step = RV_STEP_CLASSIFY;
        }
        rv__run_judge_shadow(run);       /* when all is decided, and its time is not counted */
        /* That of a run without packages is written with its plan; one with them claims its key before they are looked for. */
        if (step == RV_STEP_NEXT && !run->request->n_packages)
                return step;
        r = rv__record_decision(run, &err);
        if (r == RV__RUN_CLAIM_E_TAKEN)
                return rv__run_again(run);
        return r < 0 ? rv__run_fail(run, 503, "the audit log cannot be written", err.message) : step;
}
