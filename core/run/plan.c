#include "run/run_private.h"

#include <stdio.h>
#include <string.h>

/* From a verdict that allows to an immutable plan, or to a refusal that names what cannot be enforced. */

static uint32_t effective(const struct rv_run *run, const char *name, uint32_t asked)
{
        json_int_t limit = json_integer_value(json_object_get(json_object_get(run->granted, "limits"), name));

        return limit > 0 && limit < asked ? (uint32_t)limit : asked;
}

static const char *choose_backend(const struct rv_run *run)
{
        const char *use = rv_json_get_string(json_object_get(run->granted, "backend"), "use", "tenant");

        if (strcmp(use, "tenant"))
                return use;
        return run->input.backend ? run->input.backend : run->tenant->backend;
}

/* Of an image what it is, told by who has the privilege to read it; of a directory what the configuration says. */
static const char *runtime_digest(const struct rv_run *run)
{
        const struct rv_config_runtime *runtime = rv_config_runtime(run->core->config, run->tenant->runtime);

        if (!runtime)
                return NULL;
        return runtime == run->core->runtime && run->core->runtime_digest ? run->core->runtime_digest : runtime->digest;
}

const char *rv__run_find_backend(struct rv_run *run)
{
        const char *name = choose_backend(run);

        for (size_t i = 0; i < run->core->n_backends && !run->backend; i++)
                if (!strcmp(run->core->backends[i].backend->name, name)) {
                        run->backend = run->core->backends[i].backend;
                        run->backend_state = run->core->backends[i].state;
                }
        return name;
}

static int fill_plan(struct rv_run *run)
{
        const struct rv_request *q = run->request;
        const struct rv_config *config = run->core->config;

        run->plan_env = calloc(q->n_env ? q->n_env : 1, sizeof(*run->plan_env));
        if (!run->plan_env)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < q->n_env; i++)
                run->plan_env[i] = (struct rv_plan_env){ q->env[i].name, q->env[i].value };
        run->plan = (struct rv_plan){
                .struct_size = sizeof(run->plan),
                .tenant = run->tenant->name,
                .runtime = run->tenant->runtime,
                .runtime_digest = runtime_digest(run),
                .language = q->language == RV_LANGUAGE_PYTHON ? RV_PLAN_PYTHON : RV_PLAN_JAVASCRIPT,
                .network = (uint32_t)q->network_mode,
                .timeout_s = run->outcome.timeout_s,
                .memory_mib = run->outcome.memory_mib,
                .pids = config->limits.pids,
                .cpus_milli = config->limits.cpus_milli,
                .source = q->source,
                .source_bytes = q->source_bytes,
                .stdin_data = q->stdin_data,
                .stdin_bytes = q->stdin_bytes,
                .env = run->plan_env,
                .n_env = q->n_env,
                .idempotency_key = q->idempotency_key,
                .collect_ms = (uint32_t)config->phases.collect_ms,
                .teardown_ms = (uint32_t)config->phases.teardown_ms,
                .layer = run->packages.digest[0] ? run->packages.digest : NULL,
        };
        memcpy(run->plan.run_id, run->run_id, sizeof(run->plan.run_id));
        return 0;
}

static const char *const capability_names[RV_CAPABILITY_MAX_] = {
#define X(name, text) #name,
        RV_CAPABILITIES(X)
#undef X
};

/* Which capability a plan cannot do without. */
static bool is_needed(const struct rv_plan *plan, enum rv_capability c)
{
        switch (c) {
        case RV_CAPABILITY_cpus:
                return plan->cpus_milli != 0;
        case RV_CAPABILITY_network_none:
        case RV_CAPABILITY_network_registries:
        case RV_CAPABILITY_network_domains:
        case RV_CAPABILITY_network_any:
                return plan->network == (uint32_t)(c - RV_CAPABILITY_network_none);
        case RV_CAPABILITY_landlock:        /* reported, never required */
        case RV_CAPABILITY_private_uid:     /* may be approximate */
                return false;
        default:
                return true;
        }
}

/* detail.missing: the capabilities' names; the message has the first one's reason. */
static enum rv_step refuse_missing(struct rv_run *run, const char *backend, json_t *take_missing, const char *reason)
{
        char message[RV_REASON_SIZE];

        if (!run->manifest.is_usable)
                snprintf(message, sizeof(message), "backend %s cannot be used: %s", backend, reason);
        else
                snprintf(message, sizeof(message), "backend %s cannot enforce %s: %s", backend,
                         json_string_value(json_array_get(take_missing, 0)), reason);
        return rv__run_refuse(run, RV_CODE_BACKEND_DENIED, RV_PHASE_PLAN, message, json_pack("{s:s, s:o}", "backend", backend, "missing", take_missing));
}

const char *rv__run_no_registry(const struct rv_run *run)
{
        return run->request->language == RV_LANGUAGE_PYTHON ? "no package index is known for python; set registries.python.index"
                                                            : "no package registry is known for javascript; set registries.javascript.index";
}

/* Returns why a run in network mode registries cannot have that; NULL: it can, and its package manager is in the plan. */
static const char *plan_registry(struct rv_run *run, struct rv_error *err)
{
        struct rv_registry *registry = run->core->registries[run->request->language];
        const struct rv_config_runtime *runtime = rv_config_runtime(run->core->config, run->plan.runtime);

        if (registry && run->core->complete_registry)
                run->core->complete_registry(run->core->registry_arg, registry);
        if (!registry || !registry->n_hosts)
                return rv__run_no_registry(run);
        if (registry->proxy_fault) {
                rv_error_set(err, -EINVAL, "the proxy for the %s registry cannot be used: %s; set registries.%s.proxy to another", rv_language_name(registry->language),
                             registry->proxy_fault, rv_language_name(registry->language));
                return err->message;
        }
        if (rv_registry_tools_make(registry, runtime ? runtime->root : "host", &run->tools, err) < 0)
                return err->message;
        run->plan.tool_env = run->tools.env;
        run->plan.n_tool_env = run->tools.n_env;
        run->plan.ca = run->tools.ca.data;
        run->plan.ca_bytes = run->tools.ca.size;
        return NULL;
}

static enum rv_step check_capabilities(struct rv_run *run)
{
        json_t *missing = json_array();
        const char *reason = NULL;
        struct rv_error err = { 0 };

        for (int i = 0; i < RV_CAPABILITY_MAX_; i++) {
                if (!is_needed(&run->plan, i) || run->manifest.capabilities[i].grade != RV_GRADE_ABSENT)
                        continue;
                json_array_append_new(missing, json_string(capability_names[i]));
                if (!reason)
                        reason = run->manifest.capabilities[i].reason;
        }
        if (!reason && run->request->network_mode == RV_NETWORK_REGISTRIES) {
                reason = plan_registry(run, &err);
                if (reason)
                        json_array_append_new(missing, json_string("network_registries"));
        }
        if (reason)
                return refuse_missing(run, run->backend->name, missing, reason);
        json_decref(missing);
        return RV_STEP_NEXT;
}

static enum rv_step refuse_unknown(struct rv_run *run, const char *name)
{
        char message[RV_REASON_SIZE];
        size_t n;

        n = (size_t)snprintf(message, sizeof(message), "this reeve has no backend %s; it has:", name);
        for (size_t i = 0; i < run->core->n_backends && n < sizeof(message); i++)
                n += (size_t)snprintf(message + n, sizeof(message) - n, " %s", run->core->backends[i].backend->name);
        return rv__run_refuse(run, RV_CODE_BACKEND_DENIED, RV_PHASE_PLAN, message,
                              json_pack("{s:s, s:[s]}", "backend", name, "missing", "backend"));
}

enum rv_step rv__run_check_backend(struct rv_run *run, const char *name)
{
        if (!run->backend)
                return refuse_unknown(run, name);
        run->backend->can(run->backend_state, &run->manifest);
        return run->manifest.is_usable ? RV_STEP_NEXT : refuse_missing(run, run->backend->name, json_pack("[s]", "backend"), run->manifest.reason);
}

enum rv_step rv__run_plan(struct rv_run *run)
{
        const char *name = rv__run_find_backend(run);
        enum rv_step step;
        struct rv_error err = { 0 };
        int r;

        run->outcome.timeout_s = effective(run, "timeout_s", rv__build_timeout(run));
        run->outcome.memory_mib = effective(run, "memory_mib", run->request->memory_mib);
        if (fill_plan(run) < 0)
                return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it planned the run");
        step = rv__run_check_backend(run, name);
        if (step == RV_STEP_NEXT)
                step = check_capabilities(run);
        r = rv__record_decision(run, &err);
        if (r == RV__RUN_CLAIM_E_TAKEN)
                return rv__run_again(run);
        return r < 0 ? rv__run_fail(run, 503, "the audit log cannot be written", err.message) : step;
}
