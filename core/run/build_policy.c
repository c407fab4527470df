#include "run/build.h"
#include "run/run_private.h"

#include "base/clock.h"
#include "policy/decide.h"
#include "policy/facts.h"
#include "policy/obligations.h"

#include <stdio.h>
#include <string.h>

/* May a package be built from its source? It is judged before a line of it runs, as if it stood in the lock already. */

static enum rv_step fail_for_memory(struct rv_run *run)
{
        return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it judged a package");
}

static const char *name_of(const struct rv_run *run)
{
        return rv_json_get_string(run->packages.work.source, "name", "");
}

static const struct rv_package *find_asked(const struct rv_run *run, const char *name)
{
        for (size_t i = 0; i < run->request->n_packages; i++)
                if (strcmp(run->request->packages[i].name, name) == 0)
                        return &run->request->packages[i];
        return NULL;
}

/* As policy would judge it in the lock, of what is known before: the artifact is the source archive. */
static json_t *make_lock(const struct rv_run *run)
{
        const json_t *source = run->packages.work.source, *sha256 = json_object_get(source, "sha256");
        const struct rv_package *asked = find_asked(run, name_of(run));

        return json_pack("{s:s, s:[{s:O, s:O, s:s, s:s, s:b, s:s, s:[], s:O, s:b, s:b, s:O*, s:O*, s:o*, s:[O]}]}", "language", "python", "packages", "name",
                         json_object_get(source, "name"), "version", json_object_get(source, "version"), "kind", "built", "license", "", "direct", asked != NULL,
                         "requested", asked ? asked->requested : "", "extras", "yanked", json_object_get(source, "yanked"), "install_script", 1, "registry_hash", 0,
                         "published_at", json_object_get(source, "published_at"), "size_bytes", json_object_get(source, "size_bytes"), "hash",
                         sha256 ? json_sprintf("sha256:%s", json_string_value(sha256)) : NULL, "path", json_object_get(source, "name"));
}

/* Denied by a rule, and not for want of leave to be built. */
static enum rv_step refuse_denied(struct rv_run *run, json_t *facts, json_t *verdict)
{
        struct rv_error err = { 0 };
        enum rv_step step;

        if (!run->packages.requested_facts)
                run->packages.requested_facts = json_incref(run->facts);
        json_decref(run->facts);
        json_decref(run->verdict);
        run->facts = json_incref(facts);
        run->verdict = json_incref(verdict);
        step = rv__run_refuse_by_policy(run);
        rv__run_judge_shadow(run);
        return rv__record_decision(run, &err) < 0 ? rv__run_fail(run, 503, "the audit log cannot be written", err.message) : step;
}

/*
 * It is not to be built: for want of leave, which is as if there were no source; or it would be found again, with what policy
 * obliges to. A fact that nobody tells may be told later.
 */
static enum rv_step refuse_verdict(
        struct rv_run *run, json_t *facts, json_t *verdict, const struct rv_policy_notes *notes)
{
        struct rv_package_failure *f = &run->packages.work.failure;
        size_t n = strlen(f->message);
        int r = notes->lacking ? 0 : rv__packages_find_again(run, verdict);

        if (r)
                return r < 0 ? fail_for_memory(run) : RV_STEP_RESOLVE;
        if (notes->lacking) {
                f->is_retryable = true;
                snprintf(f->message + n, sizeof(f->message) - n, "; policy reads %s of it, which the registry does not tell", notes->lacking);
        }
        return notes->lacking || rv_policy_verdict_is_of_obligations(verdict)
                ? rv__packages_refuse(run, f, RV_PHASE_RESOLVE)
                : refuse_denied(run, facts, verdict);
}

enum rv_step rv__build_consider(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        _cleanup_(rv_json_unrefp) json_t *lock = make_lock(run), *facts = NULL, *verdict = NULL;
        struct rv_package_failure f = { .code = RV_PACKAGE_INSTALL_FAILED, .cause = "build_failed" };
        struct rv_policy_notes notes = { 0 };
        int r = lock ? rv_facts_resolve(p->requested_facts ? p->requested_facts : run->facts, lock,
                               (int64_t)(rv_now_us() / 1000000), &facts)
                     : rv_raise(-ENOMEM);

        if (r == 0)
                r = rv_policy_decide_noting(run->input.bundle, facts, &notes, &verdict);
        if (r < 0 || !verdict)
                return fail_for_memory(run);
        if (!rv_policy_verdict_is_allow(verdict))
                return refuse_verdict(run, facts, verdict, &notes);
        if (json_array_size(p->build.built) >= RV_SOURCE_BUILDS_MAX) {
                snprintf(f.package, sizeof(f.package), "%s", name_of(run));
                snprintf(f.message, sizeof(f.message), "%s has to be built from its source, and as many others were built for this run as may be", name_of(run));
                return rv__packages_refuse(run, &f, RV_PHASE_RESOLVE);
        }
        rv__packages_say(run, "fetching the source of %s", name_of(run));
        p->work.what = RV_WORK_SOURCE;
        return rv__packages_work(run);
}
