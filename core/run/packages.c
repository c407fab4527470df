#include "run/packages.h"
#include "run/run_private.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/remove.h"
#include "package/runtime_identity.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/* What the phases that have to do with packages share: their budget, their end, and the thread that does what blocks. */

#define POLL_MS 20
#define PAGES_TTL_MS (UINT64_C(10) * 60 * 1000)         /* how old a registry's page may be */

void rv__packages_init(struct rv_run *run)
{
        run->packages = (struct rv_run_packages){
                .claim_fd = -EBADF, .use_fd = -EBADF, .artifacts_fd = -EBADF, .result_fd = -EBADF, .frames_fd = -EBADF
        };
}

/* ---- What is held while others wait ---- */

int rv__packages_claim(struct rv_run *run, const char *digest)
{
        struct rv_run_packages *p = &run->packages;
        struct rv_error err = { 0 };
        int r;

        r = rv_store_claim(run->core->store, digest, &p->claim_fd, &err);
        if (r == 0)
                memcpy(p->claimed, digest, sizeof(p->claimed));
        return r < 0 ? rv_trace(r) : r;
}

void rv__packages_unclaim(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;

        if (p->claim_fd >= 0)
                p->claim_fd = rv_store_claim_end(run->core->store, p->claimed, p->claim_fd);
}

int rv__packages_open_artifacts(struct rv_run *run, struct rv_error *err)
{
        struct rv_run_packages *p = &run->packages;
        int dir_fd, r;

        rv__packages_close_artifacts(run);
        r = rv_store_artifacts(run->core->store, &dir_fd, err);
        if (r < 0)
                return rv_trace(r);
        rv_store_artifact_name(run->core->store, p->artifacts_name);
        if (mkdirat(dir_fd, p->artifacts_name, 0755) < 0 ||
                (p->artifacts_fd = openat(dir_fd, p->artifacts_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) <
                        0) {
                r = -errno;
                return rv_error_set(err, rv_raise(r), "cannot make a directory for what is downloaded: %s", strerror(-r));
        }
        return 0;
}

void rv__packages_close_artifacts(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        int dir_fd;

        if (p->artifacts_fd < 0)
                return;
        p->artifacts_fd = rv_close(p->artifacts_fd);
        if (rv_store_artifacts(run->core->store, &dir_fd, NULL) == 0)
                (void)rv_remove_tree_at(dir_fd, p->artifacts_name);
}

/* ---- Time ---- */

/* The loop counts from when it looked at its clock last, so that this may come before the budget is over: then once more. */
static void on_time(void *arg)
{
        struct rv_run *run = arg;

        if (run->phase >= RV_RUN_RESOLVE && run->phase <= RV_RUN_PREPARE && rv_boot_us() <= run->packages.deadline_us)
                rv__packages_wait(run, UINT64_MAX);
        rv__run_go_on(run);
}

void rv__packages_begin(struct rv_run *run, uint64_t budget_ms)
{
        run->packages.deadline_us = rv_boot_us() + budget_ms * 1000;
        run->packages.budget_ms = budget_ms;
}

enum rv_step rv__packages_wait(struct rv_run *run, uint64_t ms)
{
        uint64_t now_us = rv_boot_us(),
                 left_ms = run->packages.deadline_us > now_us ? (run->packages.deadline_us - now_us) / 1000 + 1
                                                              : POLL_MS;

        if (rv__run_set_timer(run, RV_MIN(ms, left_ms), on_time) < 0)
                rv__packages_stop(run, RV_STOP_SHUTDOWN);
        return RV_STEP_WAIT;
}

static bool is_under_way(const struct rv_run *run)
{
        const struct rv_run_packages *p = &run->packages;

        return p->is_working || p->is_guessing || p->is_building || (run->job && !run->is_job_over);
}

bool rv__packages_is_ending(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;

        if (!p->stop_why && rv_boot_us() > p->deadline_us)
                p->stop_why = RV_STOP_TIMEOUT;
        if (!p->stop_why)
                return false;
        p->stop = p->guess_stop = true;
        if (run->job && !run->is_job_over)
                rv_run_stop(run->job, RV_STOP_CANCELLED);
        if (p->is_building)
                run->core->layer_stop(run->core->layer_arg, p->build_id);
        return true;
}

enum rv_step rv__packages_end(struct rv_run *run, enum rv_phase phase)
{
        struct rv_run_packages *p = &run->packages;

        if (is_under_way(run))
                return RV_STEP_WAIT;
        rv__run_clear_timer(run);
        if (run->job)
                rv__job_free(run);
        run->evidence.stop = p->stop_why;
        run->evidence.stop_phase = phase;
        run->evidence.stop_limit_ms = p->stop_why == RV_STOP_TIMEOUT ? (uint32_t)p->budget_ms : 0;
        return RV_STEP_CLASSIFY;
}

void rv__packages_stop(struct rv_run *run, enum rv_stop why)
{
        if (run->phase < RV_RUN_RESOLVE || run->phase > RV_RUN_PREPARE || run->packages.stop_why)
                return;
        run->packages.stop_why = why;
        rv__run_go_on(run);
}

void rv__packages_say(struct rv_run *run, const char *fmt, ...)
{
        char text[160];
        va_list ap;

        if (!run->input.progress)
                return;
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        run->input.progress(run->input.ctx, text);
}

/* ---- The thread ---- */

static int find_pages(struct rv_packages_work *w)
{
        _cleanup_(rv_freep) const char **names = calloc(w->n_packages + 1, sizeof(*names));

        for (size_t i = 0; names && i < w->n_packages; i++)
                names[i] = w->packages[i].name;
        return names ? rv_trace(rv_metadata_get(&w->in.source, names, w->n_packages, &w->pages, &w->err))
                     : rv_raise(-ENOMEM);
}

/* Why there are none. */
static void explain(struct rv_packages_work *w)
{
        struct rv_package_trouble t = { .source = &w->in.source,
                .packages = w->packages,
                .n_packages = w->n_packages,
                .closure = w->closure,
                .obligations = w->obligations,
                .cutoff_s = w->cutoff_s,
                .dir_fd = w->in.dir_fd,
                .unpack_fd = w->in.unpack_fd,
                .contacts = w->contacts,
                .denials = w->denials,
                .built = w->in.built,
                .ret_source = w->is_for_build ? NULL : &w->source,
                .is_for_build = w->is_for_build };

        json_decref(w->source);
        w->source = NULL;
        w->r = rv_package_diagnose(&t, &w->failure, &w->err);
        if (w->r == 0)
                w->r = RV_ACQUIRE_E_FAILED;
}

/* What a lock that was given says of its packages is nobody's word. */
static void look_at_given(struct rv_packages_work *w)
{
        json_t *lock = NULL;

        w->r = rv_acquire_given(&w->in, w->lock, &lock, &w->failure, &w->err);
        json_decref(w->lock);
        w->lock = lock;
}

static void work(void *arg)
{
        struct rv_packages_work *w = &((struct rv_run *)arg)->packages.work;

        switch (w->what) {
        case RV_WORK_LEARN:
                w->r = find_pages(w);
                break;
        case RV_WORK_NEW_LOCK:
                w->r = rv_acquire(&w->in, w->closure, &w->lock, &w->failure, &w->err);
                if (w->r == 0)
                        w->r = rv__exclude_find(w);
                break;
        case RV_WORK_EXPLAIN:
                explain(w);
                break;
        case RV_WORK_HELD_LOCK:
                w->r = rv_acquire_locked(&w->in, w->lock, &w->failure, &w->err);
                break;
        case RV_WORK_GIVEN_LOCK:
                look_at_given(w);
                break;
        case RV_WORK_SOURCE:
                rv_buf_fini(&w->archive);
                w->r = rv_source_fetch(&w->in, w->source, &w->archive, &w->failure, &w->err);
                break;
        case RV_WORK_BUILT:
                w->r = rv_source_check_wheel(&w->in, w->source, &w->wheel, &w->failure, &w->err);
                break;
        }
}

static void on_worked(void *arg)
{
        struct rv_run *run = arg;

        run->packages.is_working = false;
        rv__run_go_on(run);
}

static void fill_input(const struct rv_run *run, const _Atomic bool *stop, struct rv_acquire *in)
{
        const struct rv_run_packages *p = &run->packages;

        *in = (struct rv_acquire){
                .source = { .registry = run->core->registries[run->request->language],
                        .config = run->core->config,
                        .helper_fd = run->core->fetch_fd,
                        .cache_dir_fd = rv_store_cache_fd(run->core->store),
                        .stop = stop,
                        .deadline_us = p->deadline_us,
                        .cache_ttl_ms = PAGES_TTL_MS },
                .language = run->request->language,
                .unpack_fd = run->core->unpack_fd,
                .dir_fd = p->artifacts_fd,
        };
}

/* ---- Beside the job ---- */

static void guess(void *arg)
{
        struct rv_run *run = arg;
        struct rv_run_packages *p = &run->packages;
        char release[RV_RUNTIME_RELEASE_SIZE], tag[80];
        struct utsname host = { 0 };

        (void)uname(&host);
        rv_runtime_release(rv_config_runtime(run->core->config, run->tenant->runtime), release);
        snprintf(tag, sizeof(tag), "cp%.1s%s-linux_%.32s", release, release[0] ? release + 2 : "", host.machine);
        rv_prefetch(&p->guess.source, p->guess.unpack_fd, p->guess.dir_fd, run->request->packages,
                run->request->n_packages, release[0] ? tag : NULL, &p->prefetched);
}

static void on_guessed(void *arg)
{
        struct rv_run *run = arg;

        run->packages.is_guessing = false;
        rv__run_go_on(run);
}

void rv__packages_guess(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;

        if (p->is_guessing)
                return;
        rv_prefetched_fini(&p->prefetched);
        fill_input(run, &p->guess_stop, &p->guess);
        p->guess_stop = false;
        p->is_guessing = run->core->work(run->core->work_arg, guess, on_guessed, run) == 0;
}

bool rv__packages_end_guess(struct rv_run *run)
{
        run->packages.guess_stop = true;
        return !run->packages.is_guessing;
}

enum rv_step rv__packages_work(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        struct rv_packages_work *w = &p->work;
        int r;

        fill_input(run, &p->stop, &w->in);
        w->in.prefetched = &p->prefetched;
        w->in.built_fd = rv_store_built_fd(run->core->store);
        w->in.built = p->build.built;
        w->obligations = p->obligations;
        w->failure = (struct rv_package_failure){ 0 };
        w->err = (struct rv_error){ 0 };
        w->r = 0;
        p->is_working = true;
        p->step = RV_PACKAGES_WORK;
        r = run->core->work(run->core->work_arg, work, on_worked, run);
        if (r == 0)
                return RV_STEP_WAIT;
        p->is_working = false;
        return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it looked for packages");
}

/* ---- The end ---- */

enum rv_step rv__packages_refuse(struct rv_run *run, const struct rv_package_failure *f, enum rv_phase phase)
{
        enum rv_code code = RV_CODE_PACKAGE_INSTALL_FAILED;
        json_t *detail = json_pack("{s:s}", "cause", f->cause);

        (void)rv_code_parse(f->code, &code);
        if (f->package[0])
                json_object_set_new(detail, "package", json_string(f->package));
        rv__run_refuse(run, code, phase, f->message, detail);
        run->outcome.reason.is_retryable = f->is_retryable;
        return RV_STEP_CLASSIFY;
}

struct rv_registry *rv__packages_registry(struct rv_run *run, bool is_whole)
{
        struct rv_registry *registry = run->core->registries[run->request->language];

        if (registry && run->core->complete_registry && (is_whole || !registry->index))
                run->core->complete_registry(run->core->registry_arg, registry);
        return registry && registry->n_hosts ? registry : NULL;
}

void rv__packages_forget(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;

        json_decref(p->lock);
        json_decref(p->report);
        p->lock = p->report = NULL;
        p->digest[0] = 0;
        p->is_stale = false;
        p->step = RV_PACKAGES_BEGIN;
        rv__packages_unclaim(run);
        rv__packages_close_artifacts(run);
}

void rv__packages_fini(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;

        rv__packages_forget(run);
        if (run->job)
                rv__job_free(run);
        json_decref(p->stale_lock);
        json_decref(p->requested_facts);
        json_decref(p->obligations);
        json_decref(p->exclude);
        json_decref(p->spare_lock);
        json_decref(p->work.closure);
        json_decref(p->work.lock);
        json_decref(p->work.contacts);
        json_decref(p->work.denials);
        rv_prefetched_fini(&p->prefetched);
        json_decref(p->work.source);
        rv_buf_fini(&p->work.archive);
        rv__build_fini(run);
        json_decref(p->build.built);
        rv_registry_tools_fini(&p->env);
        rv_buf_fini(&p->text);
        json_decref(p->work.unfit);
        json_decref(p->work.pages);
        rv_close(p->use_fd);
        rv_close(p->result_fd);
        rv_close(p->frames_fd);
}
