#include "run/run_private.h"

#include <string.h>

/* The phase `classify`: gathers the evidence, has classify.c judge it, fills in the outcome. */

static const struct rv_config_runtime *runtime_of(const struct rv_run *run)
{
        return rv_config_runtime(run->core->config, run->tenant->runtime);
}

static void judge(struct rv_run *run)
{
        struct rv_evidence *e = &run->evidence;
        const struct rv_config_runtime *runtime = runtime_of(run);

        e->has_network = run->request->network_mode != RV_NETWORK_NONE;
        e->timeout_s = run->outcome.timeout_s;
        e->memory_mib = run->outcome.memory_mib;
        e->interpreter_path = !runtime                         ? NULL
                : run->request->language == RV_LANGUAGE_PYTHON ? runtime->python
                                                               : runtime->javascript;
        e->observation = run->has_seen ? &run->seen : NULL;
        rv_require(rv_classify(e, &run->outcome.reason) == 0);
}

enum rv_step rv__run_classify(struct rv_run *run)
{
        struct rv_outcome *o = &run->outcome;

        if (!run->is_refused)
                judge(run);
        (void)rv_capture_finish(&run->out);
        (void)rv_capture_finish(&run->err);
        o->run_id = run->run_id;
        o->decision_id = run->decision_id;
        o->tenant = run->tenant->name;
        o->detail = run->detail;
        o->out = &run->out;
        o->err = &run->err;
        o->result = &run->result;
        if (!o->timeout_s) {
                o->timeout_s = run->request->timeout_s;
                o->memory_mib = run->request->memory_mib;
        }
        o->packages = run->packages.report;
        o->network_mode = rv_network_mode_name(run->request->network_mode);
        o->contacts = run->network.evidence.contacts;
        o->denials = run->network.evidence.denials;
        o->n_more_contacts = run->network.evidence.n_more_contacts;
        o->n_more_denials = run->network.evidence.n_more_denials;
        o->runtime_name = run->tenant->runtime;
        o->runtime_digest = run->plan.runtime_digest;
        o->backend_name = run->backend ? run->backend->name : NULL;
        o->backend_isolation = run->backend ? run->manifest.isolation : NULL;
        if (run->has_seen) {
                o->backend_start = "cold";
                o->backend_teardown = run->seen.is_teardown_complete ? "complete" : "incomplete";
                o->wall_us = run->seen.wall_us;
                o->cpu_us = run->seen.cpu_us;
                o->peak_memory_bytes = run->seen.peak_memory_bytes;
                o->peak_processes = run->seen.peak_processes;
        }
        return RV_STEP_NEXT;
}
