#include "run/packages.h"
#include "run/run_private.h"

#include "base/clock.h"
#include "base/text.h"
#include "package/closure.h"
#include "package/drivers.h"
#include "package/lock.h"
#include "package/runtime_identity.h"
#include "policy/obligations.h"

#include <stdio.h>
#include <string.h>

/*
 * The phase `resolve`: from what was asked for to a lock. One that is held is used for as long as it may be; else a job has
 * the package manager find versions, and the thread makes sure of them.
 */

#define QUEUE_POLL_MS 15
#define JOB_MEMORY_MIB 2048
#define JOB_TIMEOUT_MAX_S 300
#define CODE_NO_TOOL "ENOTOOL"

static bool is_all_pinned(const struct rv_run *run)
{
        for (size_t i = 0; i < run->request->n_packages; i++)
                if (!run->request->packages[i].is_pinned)
                        return false;
        return true;
}

static enum rv_step fail_for_memory(struct rv_run *run)
{
        return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it looked for packages");
}

/* ---- What is known ---- */

static json_t *make_requested(const struct rv_run *run)
{
        json_t *list = json_array();

        for (size_t i = 0; i < run->request->n_packages; i++)
                json_array_append_new(list, json_string(run->request->packages[i].requested));
        return list;
}

/* All that another resolution of the same would depend on, but for what the registry has at the time. */
static int make_key(struct rv_run *run, const struct rv_registry *registry)
{
        struct rv_run_packages *p = &run->packages;
        char fingerprint[RV_SHA256_HEX_SIZE], runtime[RV_SHA256_HEX_SIZE];
        _cleanup_(rv_json_unrefp) json_t *key = NULL;

        rv_registry_fingerprint(registry, fingerprint);
        rv_runtime_identity(rv_config_runtime(run->core->config, run->tenant->runtime), run->request->language,
                run->core->runtime_digest, runtime);
        key = json_pack("{s:s, s:o, s:O, s:s, s:s, s:s}", "language", rv_language_name(run->request->language), "packages", make_requested(run),
                        "obligations", p->obligations, "registry", fingerprint, "runtime", runtime, "resolver", run->core->config->packages.resolver);
        return key ? rv_trace(rv_json_canonical_sha256(key, p->key)) : rv_raise(-ENOMEM);
}

int rv__resolve_take_lock(struct rv_run *run, json_t *take_lock)
{
        struct rv_run_packages *p = &run->packages;

        json_decref(p->lock);
        p->lock = take_lock;
        return rv_trace(rv_lock_digest(p->lock, p->digest));
}

/* 1: it is used; 0: there is none that may be; -errno. */
static int use_held(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        uint64_t ttl_us = run->core->config->packages.resolve_ttl_ms * 1000, resolved_us, now_us = rv_now_us();
        json_t *lock;
        struct rv_error err = { 0 };
        int r;

        r = rv_store_lock_find(run->core->store, p->key, &lock, &resolved_us, &err);
        if (r == RV_STORE_E_ABSENT && err.message[0])
                run->core->host->log(run->core->host->ctx, RV_LOG_WARNING, err.message);
        if (r)
                return r < 0 ? rv_trace(r) : 0;
        if (!rv__build_has_all(run, lock)) {
                json_decref(lock);      /* nowhere else is what was built for it */
                return 0;
        }
        if (is_all_pinned(run) || (resolved_us <= now_us && now_us - resolved_us < ttl_us)) {
                r = rv__resolve_take_lock(run, lock);
                return r < 0 ? rv_trace(r) : 1;
        }
        json_decref(p->stale_lock);
        p->stale_lock = lock;
        return 0;
}

/* What cannot be: no registry, no backend, nothing to find packages with. */
enum rv_step rv__resolve_refuse_to_begin(struct rv_run *run, const char *why)
{
        return rv__run_refuse(run, RV_CODE_BACKEND_DENIED, RV_PHASE_RESOLVE, why, json_pack("{s:s, s:[s]}", "backend", run->backend->name, "missing", "packages"));
}

/* ---- The job ---- */

static int put_text(void *ctx, const void *data, size_t n)
{
        struct rv_buf *text = ctx;

        if (text->size + n > RV_CLOSURE_BYTES_MAX)
                return rv_raise(-EFBIG);
        return rv_trace(rv_buf_append(text, data, n));
}

static int64_t cutoff_of(const struct rv_run *run)
{
        const json_t *age = json_object_get(run->packages.obligations, "newest_published_s");

        return json_is_integer(age) ? (int64_t)(rv_now_us() / 1000000) - json_integer_value(age) : -1;
}

static const char *tool_of(const struct rv_run *run)
{
        if (run->request->language == RV_LANGUAGE_JAVASCRIPT)
                return "npm";
        if (strcmp(run->core->config->packages.resolver, "uv") == 0)
                return "uv";    /* where it is not, prepare_job() says so: another is not what was asked for */
        return !run->packages.has_no_uv && rv_config_uv(run->core->config) ? "uv" : "pip";
}

static char *make_job(const struct rv_run *run)
{
        const struct rv_run_packages *p = &run->packages;
        int64_t cutoff_s = cutoff_of(run);
        const char *tool = tool_of(run);
        json_t *pins = json_object_get(p->obligations, "pins");
        _cleanup_(rv_json_unrefp) json_t *job = json_pack(
                "{s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "language", rv_language_name(run->request->language), "packages", make_requested(run), "pins",
                pins ? json_incref(pins) : json_object(), "exclude", p->exclude ? json_incref(p->exclude) : json_object(), "newest_published",
                cutoff_s >= 0 ? json_integer(cutoff_s) : json_null(), "tool", tool, "uv",
                strcmp(tool, "uv") == 0 ? json_string(RV_PLAN_UV_FILE) : json_null(), "wheel_data", rv__build_wheels(run));

        return job ? json_dumps(job, JSON_COMPACT) : NULL;
}

enum rv_step rv__resolve_start_job(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        const struct rv_driver *driver = rv_driver_get(RV_DRIVER_RESOLVE, run->request->language);
        _cleanup_(rv_freep) char *input = make_job(run);
        uint64_t now_us = rv_boot_us(), left_s = p->deadline_us > now_us ? (p->deadline_us - now_us) / 1000000 + 1 : 1;
        struct rv_job_spec spec = {
                .language = run->request->language,
                .network_mode = RV_NETWORK_REGISTRIES,
                .source = driver->text,
                .source_bytes = driver->size,
                .input = input,
                .input_bytes = input ? strlen(input) : 0,
                .env = p->env.env,
                .n_env = p->env.n_env,
                .ca = p->env.ca.data,
                .ca_bytes = p->env.ca.size,
                .timeout_s = (uint32_t)RV_MIN(left_s, (uint64_t)JOB_TIMEOUT_MAX_S),
                .memory_mib = JOB_MEMORY_MIB,
                .sink = { put_text, &p->text, false },
        };
        struct rv_error err = { 0 };

        p->text.size = 0;
        rv__packages_say(run, "%s finds versions", tool_of(run));
        if (rv__packages_open_artifacts(run, &err) < 0)
                return rv__run_fail(run, 503, "the package store cannot be used", err.message);
        if (!input || rv__job_start(run, &spec) < 0)
                return fail_for_memory(run);
        if (run->request->language == RV_LANGUAGE_PYTHON && !p->n_rounds && !p->n_excludes && cutoff_of(run) < 0)
                rv__packages_guess(run);
        p->step = RV_PACKAGES_JOB;
        return rv__packages_wait(run, UINT64_MAX);
}

static enum rv_step begin(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        const struct rv_registry *registry;
        enum rv_step step = rv__run_check_backend(run, rv__run_find_backend(run));
        int r;

        rv__packages_begin(run, run->core->config->phases.resolve_ms);
        if (step != RV_STEP_NEXT || !run->core->store)
                return step != RV_STEP_NEXT ? step : rv__resolve_refuse_to_begin(run, "this reeve has no package store");
        if (!p->obligations && rv_policy_obligations(run->granted, &p->obligations) < 0)
                return fail_for_memory(run);
        if (run->input.lock)
                return rv__resolve_given(run);
        registry = rv__packages_registry(run, false);
        if (!registry)
                return rv__resolve_refuse_to_begin(run, rv__run_no_registry(run));
        if (make_key(run, registry) < 0)
                return fail_for_memory(run);
        r = use_held(run);
        if (r)
                return r < 0 ? fail_for_memory(run) : RV_STEP_NEXT;
        p->step = RV_PACKAGES_QUEUE;
        return rv__run_resolve(run);
}

/* At these a resolver finds its own sandbox. */
static const char *find_own_host(const struct rv_registry *r)
{
        for (size_t i = 0; r && !r->proxy.host && i < r->n_hosts; i++) {
                const char *host = r->hosts[i].host;
                bool is_address = host[strspn(host, "0123456789.")] == 0 && !r->hosts[i].is_learned;

                if ((is_address && strncmp(host, "127.", 4) == 0) || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0)
                        return host;
        }
        return NULL;
}

static enum rv_step refuse_for_tool(struct rv_run *run, const char *why)
{
        struct rv_package_failure f = { .code = "runtime_unavailable", .cause = "no_package_manager" };

        rv_text_copy(f.message, sizeof(f.message), why);
        return rv__packages_refuse(run, &f, RV_PHASE_RESOLVE);
}

static enum rv_step prepare_job(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        const struct rv_config_runtime *runtime = rv_config_runtime(run->core->config, run->tenant->runtime);
        const struct rv_registry *registry = rv__packages_registry(run, true);
        struct rv_error err = { 0 };

        if (run->request->language == RV_LANGUAGE_PYTHON && strcmp(tool_of(run), "uv") == 0 && !rv_config_uv(run->core->config)) {
                rv_error_set(&err, -ENOENT, "uv is to find packages (packages.resolver), and %.200s cannot be executed: install it there, or name another by packages.uv",
                             run->core->config->packages.uv ? run->core->config->packages.uv : "/usr/bin/uv");
                return refuse_for_tool(run, err.message);
        }
        if (run->manifest.capabilities[RV_CAPABILITY_network_registries].grade == RV_GRADE_ABSENT)
                return rv__resolve_refuse_to_begin(
                        run, run->manifest.capabilities[RV_CAPABILITY_network_registries].reason);
        if (registry && registry->proxy_fault)
                rv_error_set(&err, -EINVAL, "the proxy for the %s registry cannot be used: %s; set registries.%s.proxy to another", rv_language_name(registry->language),
                             registry->proxy_fault, rv_language_name(registry->language));
        if (!err.code && find_own_host(registry))
                rv_error_set(&err, -EINVAL,
                        "the %s registry is at %s, which within a sandbox is the sandbox itself: use a name in registries.%s, and give it that address in egress.resolve",
                        rv_language_name(registry->language), find_own_host(registry),
                        rv_language_name(registry->language));
        rv_registry_tools_fini(&p->env);
        if (!registry || err.code || rv_registry_resolver_env(registry, runtime ? runtime->root : "host", &p->env, &err) < 0)
                return rv__resolve_refuse_to_begin(run, registry ? err.message : "the registry has no address");
        return registry->has_files || p->work.pages ? rv__resolve_start_job(run) : rv__resolve_learn(run);
}

/* Who asks for the same at the same time waits for the one who is first, and finds the lock held. */
static enum rv_step queue(struct rv_run *run)
{
        int r = rv__packages_claim(run, run->packages.key);

        if (r == RV_STORE_E_TAKEN) {
                rv__packages_say(run, "waiting for another run that looks for the same packages");
                return rv__packages_wait(run, QUEUE_POLL_MS);
        }
        if (r < 0)
                return rv__run_fail(run, 503, "the package store cannot be used", strerror(-r));
        r = use_held(run);
        if (r < 0)
                return fail_for_memory(run);
        if (r > 0) {
                rv__packages_unclaim(run);
                return RV_STEP_NEXT;
        }
        return prepare_job(run);
}

/* ---- What it said ---- */

static enum rv_step refuse_job(struct rv_run *run, const char *why)
{
        struct rv_package_failure f = {
                .code = RV_PACKAGE_RESOLVER_CODE, .cause = RV_PACKAGE_RESOLVER_FAILED, .is_retryable = true
        };

        snprintf(f.message, sizeof(f.message), "looking for packages failed: %.400s", why);
        return rv__packages_refuse(run, &f, RV_PHASE_RESOLVE);
}

static int explain(struct rv_run *run, json_t *take_closure)
{
        struct rv_packages_work *w = &run->packages.work;
        const struct rv_network_evidence *seen = &run->job->network.evidence;

        json_decref(w->closure);
        json_decref(w->contacts);
        json_decref(w->denials);
        w->what = RV_WORK_EXPLAIN;
        w->closure = take_closure;
        w->contacts = json_incref(seen->contacts);
        w->denials = json_incref(seen->denials);
        w->packages = run->request->packages;
        w->n_packages = run->request->n_packages;
        w->cutoff_s = cutoff_of(run);
        w->is_for_build = run->input.build_for != NULL;
        return 0;
}

static enum rv_step refuse_closure(struct rv_run *run, const json_t *refusal)
{
        struct rv_package_failure f = { .code = RV_PACKAGE_INSTALL_FAILED,
                .cause = strcmp(rv_json_get_string(refusal, "cause", ""), "name_mismatch") == 0 ? "name_mismatch" : "unsafe_archive" };

        snprintf(f.package, sizeof(f.package), "%s", rv_json_get_string(refusal, "package", ""));
        snprintf(f.message, sizeof(f.message), "%s", rv_json_get_string(refusal, "text", ""));
        return rv__packages_refuse(run, &f, RV_PHASE_RESOLVE);
}

static enum rv_step refuse_size(struct rv_run *run, const json_t *closure)
{
        char message[200];

        snprintf(message, sizeof(message), "what was asked for comes to %lld packages, and at most %d are judged", (long long)json_integer_value(json_object_get(closure, "n_packages")),
                 RV_CLOSURE_PACKAGES_MAX);
        return rv__run_refuse(run, RV_CODE_PACKAGE_DENIED, RV_PHASE_RESOLVE, message, json_pack("{s:s, s:s, s:[]}", "rule", "closure_too_large", "item", "", "denials"));
}

static enum rv_step look_at_closure(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        json_t *closure = NULL;
        struct rv_error err = { 0 };
        bool has_no_tool;
        enum rv_step step;
        int r;

        r = rv_closure_read(run->request->language, p->text.data ? p->text.data : "", p->text.size, run->request->packages, run->request->n_packages, &closure, &err);
        if (r == -ENOMEM)
                return fail_for_memory(run);
        if (r < 0)
                return refuse_job(run, err.message);
        has_no_tool = r == RV_CLOSURE_E_FAILED && strcmp(rv_json_get_string(closure, "code", ""), CODE_NO_TOOL) == 0;
        if (has_no_tool && !p->has_no_uv && strcmp(tool_of(run), "uv") == 0 && strcmp(run->core->config->packages.resolver, "uv") != 0) {
                json_decref(closure);
                p->has_no_uv = true;    /* it does not run on this runtime: pip does */
                rv__job_free(run);
                return rv__resolve_start_job(run);
        }
        if (r == RV_CLOSURE_E_REFUSED || r == RV_CLOSURE_E_TOO_LARGE) {
                step = r == RV_CLOSURE_E_REFUSED ? refuse_closure(run, closure) : refuse_size(run, closure);
                json_decref(closure);
                return step;
        }
        if (has_no_tool) {
                rv_error_set(&err, -ENOENT, "runtime %s has nothing to find packages with: %.300s; install it there", run->tenant->runtime, rv_json_get_string(closure, "text", ""));
                json_decref(closure);
                return refuse_for_tool(run, err.message);
        }
        json_decref(p->work.lock);
        p->work.lock = NULL;
        if (r == RV_CLOSURE_E_FAILED) {
                rv__packages_say(run, "finding out why there are none");
                explain(run, closure);
        } else {
                p->work.what = RV_WORK_NEW_LOCK;
                json_decref(p->work.closure);
                p->work.closure = closure;
                p->work.cutoff_s = cutoff_of(run);
                rv__packages_say(run, "fetching and reading %zu packages", json_array_size(json_object_get(closure, "packages")));
                p->work.knows_cutoff = strcmp(tool_of(run), "pip") != 0;
        }
        rv__job_free(run);
        return rv__packages_work(run);
}

static enum rv_step look_at_job(struct rv_run *run)
{
        char why[RV_REASON_SIZE];
        const char *fault = rv__job_fault(run, why);
        enum rv_step step;

        if (!fault)
                return look_at_closure(run);
        step = refuse_job(run, fault);
        rv__job_free(run);
        return step;
}

/* ---- What the thread found ---- */

static enum rv_step take_new_lock(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        struct rv_error err = { 0 };
        int layer_fd = -EBADF, r = rv__exclude_take(run);

        if (r < 0)
                return fail_for_memory(run);
        if (r > 0)
                return rv__resolve_start_job(run);
        if (rv__resolve_take_lock(run, rv_take(&p->work.lock)) < 0)
                return fail_for_memory(run);
        /* The layer is this run's to make before others see the lock: it has the artifacts at hand, and they would fetch them. */
        (void)rv_store_claim(run->core->store, p->digest, &layer_fd, NULL);
        if (rv_store_lock_keep(run->core->store, p->key, p->lock, rv_now_us(), &err) < 0)
                run->core->host->log(run->core->host->ctx, RV_LOG_WARNING, err.message);
        rv__packages_unclaim(run);
        if (layer_fd >= 0) {
                p->claim_fd = layer_fd;
                memcpy(p->claimed, p->digest, sizeof(p->claimed));
        }
        return RV_STEP_NEXT;
}

/* To another lock than the one that was being made, whose artifacts are not this one's. */
static enum rv_step fall_back(struct rv_run *run, json_t *take_lock)
{
        rv__packages_unclaim(run);
        rv__packages_close_artifacts(run);
        return rv__resolve_take_lock(run, take_lock) < 0 ? fail_for_memory(run) : RV_STEP_NEXT;
}

static enum rv_step look_at_work(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;

        rv__run_clear_timer(run);
        if (p->work.what == RV_WORK_LEARN)
                return rv__resolve_take_learned(run);       /* a failure shows in what comes next, and is looked into there */
        if (p->work.r == 0 && p->work.what == RV_WORK_GIVEN_LOCK)
                return rv__resolve_take_lock(run, rv_take(&p->work.lock)) < 0 ? fail_for_memory(run) : RV_STEP_NEXT;
        if (p->work.r == 0)
                return p->work.what == RV_WORK_NEW_LOCK ? take_new_lock(run) : rv__build_worked(run);
        if (p->work.r == RV_ACQUIRE_E_FAILED && p->stale_lock &&
                (!strcmp(p->work.failure.cause, "registry_unreachable") || !strcmp(p->work.failure.cause, "registry_error"))) {
                p->is_stale = true;
                return fall_back(run, rv_take(&p->stale_lock));
        }
        /* Without the versions that were left out there is nothing to be had: then policy says why not with them. */
        if (p->work.r == RV_ACQUIRE_E_FAILED && p->work.what == RV_WORK_EXPLAIN && p->spare_lock &&
                !p->work.failure.is_retryable)
                return fall_back(run, rv_take(&p->spare_lock));
        if (p->work.r == RV_ACQUIRE_E_FAILED && p->work.what == RV_WORK_EXPLAIN && p->work.source)
                return rv__build_consider(run);
        if (p->work.r == RV_ACQUIRE_E_FAILED)
                return rv__packages_refuse(run, &p->work.failure, RV_PHASE_RESOLVE);
        if (p->work.r == -ENOMEM)
                return fail_for_memory(run);
        return refuse_job(run, p->work.err.message[0] ? p->work.err.message : strerror(-p->work.r));
}

enum rv_step rv__run_resolve(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;

        if (!run->request->n_packages)
                return RV_STEP_NEXT;
        if (p->step != RV_PACKAGES_BEGIN && rv__packages_is_ending(run))
                return rv__packages_end(run, RV_PHASE_RESOLVE);
        switch (p->step) {
        case RV_PACKAGES_BEGIN:
                return begin(run);
        case RV_PACKAGES_QUEUE:
                return queue(run);
        case RV_PACKAGES_JOB:
                return run->is_job_over && rv__packages_end_guess(run) ? look_at_job(run) : RV_STEP_WAIT;
        case RV_PACKAGES_WORK:
                return p->is_working ? RV_STEP_WAIT : look_at_work(run);
        case RV_PACKAGES_ASK:
        case RV_PACKAGES_SOURCE:
                return rv__build_look(run);
        case RV_PACKAGES_BUILD:
                break;
        }
        rv_check(!"a step of another phase");
        return fail_for_memory(run);
}
