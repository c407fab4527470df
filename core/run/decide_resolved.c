#include "run/run_private.h"

#include "base/clock.h"
#include "policy/decide.h"
#include "policy/facts.h"
#include "policy/obligations.h"

#include <stdio.h>
#include <string.h>

/*
 * The phase `decide`, a second time: what would be installed, every package of it. What was decided beside packages
 * stands. A closure that does not satisfy what a rule obliges to is looked for again, with that; if it still does not, it
 * is denied.
 */

#define ROUNDS_MAX 4

static int make_facts(struct rv_run *run)
{
        json_t *facts;
        int r;

        if (!run->packages.requested_facts)
                run->packages.requested_facts = json_incref(run->facts);
        r = rv_facts_resolve(
                run->packages.requested_facts, run->packages.lock, (int64_t)(rv_now_us() / 1000000), &facts);
        if (r < 0)
                return rv_trace(r);
        json_decref(run->facts);
        run->facts = facts;
        json_decref(run->verdict);
        run->verdict = NULL;
        return rv_trace(rv__run_bound_facts(run));
}

/* A fact that policy reads and nobody can tell is never an allow, and no fault of the policy either. */
static enum rv_step refuse_lacking(struct rv_run *run, const struct rv_policy_notes *notes)
{
        char message[RV_REASON_SIZE];
        json_t *detail = json_pack("{s:s, s:s, s:s}", "cause", "registry_invalid", "package",
                                   notes->lacking_package ? notes->lacking_package : "", "fact", notes->lacking);

        snprintf(message, sizeof(message), "policy reads %s of %s %s, and the registry does not tell it; use a registry that does, or a rule that does without",
                 notes->lacking, notes->lacking_package ? notes->lacking_package : "a package", notes->lacking_version ? notes->lacking_version : "");
        rv__run_refuse(run, RV_CODE_PACKAGE_UNAVAILABLE, RV_PHASE_RESOLVE, message, detail);
        run->outcome.reason.is_retryable = true;
        return RV_STEP_CLASSIFY;
}

/* Does policy demand what was not asked of the resolver yet? Then it is asked for now. */
static int join_obligations(struct rv_run *run, const json_t *verdict, bool *ret_is_new)
{
        _cleanup_(rv_json_unrefp) json_t *more = NULL;
        int r = rv_policy_obligations(verdict, &more);

        return r < 0 ? rv_trace(r) : rv_trace(rv_policy_obligations_join(run->packages.obligations, more, ret_is_new));
}

static bool is_late(const struct rv_run *run, uint64_t start_us)
{
        uint64_t budget_us = (run->core->config->phases.decide_ms + json_array_size(json_object_get(run->facts, "packages"))) * 1000;

        return rv_clock_us(CLOCK_THREAD_CPUTIME_ID) - start_us > budget_us;
}

int rv__packages_find_again(struct rv_run *run, const json_t *verdict)
{
        bool is_new = false;
        int r;

        if (!rv_policy_verdict_is_of_obligations(verdict) || run->input.lock)
                return 0;
        r = join_obligations(run, verdict, &is_new);
        if (r < 0 || !is_new || ++run->packages.n_rounds >= ROUNDS_MAX)
                return rv_trace(r);
        rv__packages_forget(run);
        return 1;
}

static enum rv_step judge(struct rv_run *run, const struct rv_policy_notes *notes, uint64_t start_us)
{
        int r = rv__packages_find_again(run, run->verdict);

        if (r < 0)
                return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it judged packages");
        if (r > 0)
                return RV_STEP_RESOLVE;
        if (strcmp(rv_policy_verdict_code(run->verdict), "policy_error") == 0 && notes->lacking)
                return refuse_lacking(run, notes);
        if (!rv_policy_verdict_is_allow(run->verdict))
                return rv__run_refuse_by_policy(run);
        if (is_late(run, start_us)) {
                run->evidence.stop = RV_STOP_TIMEOUT;
                run->evidence.stop_phase = RV_PHASE_DECIDE;
                run->evidence.stop_limit_ms = (uint32_t)run->core->config->phases.decide_ms;
                return RV_STEP_CLASSIFY;
        }
        return RV_STEP_NEXT;
}

enum rv_step rv__run_decide_resolved(struct rv_run *run)
{
        uint64_t start_us = rv_clock_us(CLOCK_THREAD_CPUTIME_ID);
        struct rv_policy_notes notes = { 0 };
        struct rv_error err = { 0 };
        enum rv_step step;
        int r;

        if (!run->request->n_packages)
                return RV_STEP_NEXT;
        r = make_facts(run);
        if (r == 0)
                r = rv_policy_decide_noting(run->input.bundle, run->facts, &notes, &run->verdict);
        if (r < 0 || !run->verdict)
                return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it evaluated the policy");
        step = judge(run, &notes, start_us);
        if (step == RV_STEP_RESOLVE || step == RV_STEP_ANSWER)
                return step;
        rv__run_judge_shadow(run);
        if (step == RV_STEP_NEXT)
                return step;            /* the record is written with the plan */
        r = rv__record_decision(run, &err);
        return r < 0 ? rv__run_fail(run, 503, "the audit log cannot be written", err.message) : step;
}
