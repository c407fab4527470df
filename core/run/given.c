#include "run/packages.h"
#include "run/run_private.h"

#include "package/lock.h"
#include "package/lock_match.h"

#include <stdio.h>

/* A lock that came with the request. It pins artifacts; what policy judges them by is never taken from it. */

static enum rv_step fail_for_memory(struct rv_run *run)
{
        return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it looked at the lock that was given");
}

/* A layer of it was made of what reeve found out: 1, that is taken; 0: there is none; -errno. */
static int use_layer_facts(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        _cleanup_(rv_json_unrefp) json_t *known = NULL;
        json_t *lock;
        int r = rv_lock_digest(run->input.lock, p->digest);

        if (r == 0)
                r = rv_store_layer_lock(run->core->store, p->digest, &known);
        if (r == RV_STORE_E_ABSENT)
                return 0;
        if (r == 0)
                r = rv_acquire_take_facts(run->input.lock, known, &lock);
        if (r == 0)
                r = rv__resolve_take_lock(run, lock);
        return r < 0 ? rv_trace(r) : 1;
}

/* One that the caller gave: exactly its artifacts, if it is for what is asked for. What they are is found out first. */
enum rv_step rv__resolve_given(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        struct rv_package_failure f = { .code = RV_PACKAGE_UNAVAILABLE, .cause = "conflict" };
        struct rv_error err = { 0 };
        char text[RV_LOCK_FAULT_SIZE];
        const char *why = rv_lock_find_fault(
                run->input.lock, run->request, rv_config_runtime(run->core->config, run->tenant->runtime), text);
        int r;

        if (why) {
                snprintf(f.message, sizeof(f.message), "the lock that was given cannot be used: %s; make another (reeve package lock)", why);
                return rv__packages_refuse(run, &f, RV_PHASE_RESOLVE);
        }
        r = use_layer_facts(run);
        if (r)
                return r < 0 ? fail_for_memory(run) : RV_STEP_NEXT;
        if (!rv__packages_registry(run, true))
                return rv__resolve_refuse_to_begin(run, rv__run_no_registry(run));
        if (rv__packages_open_artifacts(run, &err) < 0)
                return rv__run_fail(run, 503, "the package store cannot be used", err.message);
        rv__packages_say(run, "fetching and reading the packages of the lock");
        p->work.what = RV_WORK_GIVEN_LOCK;
        json_decref(p->work.lock);
        p->work.lock = json_incref((json_t *)run->input.lock);
        return rv__packages_work(run);
}
