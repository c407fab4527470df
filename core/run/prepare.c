#include "run/packages.h"
#include "run/run_private.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/test_point.h"
#include "package/lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The phase `prepare`: the layer of the lock is there, or it is built: by the first of all who want it, while the others
 * wait for it. What builds it is a helper that the spawner starts; here it is only told what to build of what.
 */

#define QUEUE_POLL_MS 15
#define RESULT_BYTES_MAX ((size_t)64 << 10)

static enum rv_step fail_for_memory(struct rv_run *run)
{
        return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it made the package layer");
}

/* What was decided is on record also if it comes to nothing. */
static enum rv_step refuse(struct rv_run *run, const struct rv_package_failure *f)
{
        struct rv_error err = { 0 };

        if (rv__record_decision(run, &err) < 0)
                return rv__run_fail(run, 503, "the audit log cannot be written", err.message);
        return rv__packages_refuse(run, f, RV_PHASE_PREPARE);
}

static enum rv_step refuse_build(struct rv_run *run, const char *why, bool is_retryable)
{
        struct rv_package_failure f = { .code = RV_PACKAGE_INSTALL_FAILED, .cause = "build_failed", .is_retryable = is_retryable };

        snprintf(f.message, sizeof(f.message), "the package layer cannot be made: %.440s", why);
        return refuse(run, &f);
}

static enum rv_step end(struct rv_run *run)
{
        struct rv_error err = { 0 };
        enum rv_step step = rv__packages_end(run, RV_PHASE_PREPARE);

        if (step != RV_STEP_CLASSIFY)
                return step;
        if (rv__record_decision(run, &err) < 0)
                return rv__run_fail(run, 503, "the audit log cannot be written", err.message);
        return step;
}

/* The layer is used from here on: nobody removes it. */
static int use_layer(struct rv_run *run, bool *ret_is_there, struct rv_error *err)
{
        struct rv_run_packages *p = &run->packages;
        int r;

        rv_close(p->use_fd);
        p->use_fd = -EBADF;
        r = rv_store_layer_use(run->core->store, p->digest, &p->use_fd, err);
        if (r < 0)
                return rv_trace(r);
        *ret_is_there = rv_store_layer_is_there(run->core->store, p->digest);
        return 0;
}

static enum rv_step finish(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        json_t *lock = rv_lock_public(p->lock);

        rv__run_clear_timer(run);
        rv__packages_unclaim(run);
        rv__packages_close_artifacts(run);
        json_decref(p->report);
        p->report = json_pack("{s:o, s:b, s:o?}", "layer", json_sprintf("sha256:%s", p->digest), "stale", (int)p->is_stale, "lock", lock);
        return lock && p->report ? RV_STEP_NEXT : fail_for_memory(run);
}

/* ---- The build ---- */

static json_t *make_packages(const json_t *lock)
{
        json_t *list = json_array(), *package;
        size_t i;

        json_array_foreach(json_object_get(lock, "packages"), i, package) {
                char file[RV_ACQUIRE_FILE_SIZE];
                json_t *at = json_object_get(package, "at"), *entry;

                rv_acquire_file(i, file);
                entry = json_pack("{s:s, s:O, s:O, s:s, s:O}", "file", file, "name", json_object_get(package, "name"), "version",
                                  json_object_get(package, "version"), "sha256", rv_json_get_string(package, "hash", "sha256:") + 7, "file_name", json_object_get(package, "file"));
                if (at)
                        json_object_set(entry, "at", at);
                json_array_append_new(list, entry);
        }
        return list;
}

int rv__packages_make_memory(const char *name, const char *text, size_t n, int *ret_fd)
{
        _cleanup_(rv_closep) int fd = memfd_create(name, MFD_CLOEXEC);
        int r = fd < 0 ? rv_raise(-errno) : rv_write_all(fd, text, n);

        if (r < 0)
                return rv_trace(r);
        if (lseek(fd, 0, SEEK_SET) < 0)
                return rv_raise(-errno);
        *ret_fd = rv_take_fd(&fd);
        return 0;
}

static int make_job(const json_t *lock, int *ret_fd)
{
        _cleanup_(rv_json_unrefp) json_t *job = json_pack("{s:O, s:O, s:o}", "language", json_object_get(lock, "language"), "runtime",
                                                          json_object_get(lock, "runtime"), "packages", make_packages(lock));
        _cleanup_(rv_freep) char *text = job ? json_dumps(job, JSON_COMPACT) : NULL;

        return text ? rv_trace(rv__packages_make_memory("reeve-build", text, strlen(text), ret_fd)) : rv_raise(-ENOMEM);
}

static int make_lock(const json_t *lock, int *ret_fd)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int r = rv_lock_write(lock, &text);

        return r < 0 ? rv_trace(r) : rv_trace(rv__packages_make_memory("reeve-lock", text.data, text.size, ret_fd));
}

static void on_built(void *arg, const struct rv_spawn_event *event)
{
        struct rv_run *run = arg;
        struct rv_run_packages *p = &run->packages;

        p->is_building = false;
        p->build_errno = event->kind == RV_SPAWN_LOST ? EPIPE : event->fault_errno;
        snprintf(p->build_fault, sizeof(p->build_fault), "%s", event->fault_text);
        rv__run_go_on(run);
}

int rv__packages_build(struct rv_run *run, enum rv_layer_action action, int job_fd, int lock_fd)
{
        struct rv_run_packages *p = &run->packages;
        int result[2], r;

        if (pipe2(result, O_CLOEXEC | O_NONBLOCK) < 0)
                return rv_raise(-errno);
        rv_close(p->result_fd);
        p->result_fd = result[0];
        p->is_building = true;
        r = run->core->layer(run->core->layer_arg,
                &(struct rv_layer_task){ .action = action,
                        .run_id = run->run_id,
                        .digest = p->digest,
                        .job_fd = job_fd,
                        .result_fd = result[1],
                        .artifacts_fd = p->artifacts_fd,
                        .lock_fd = lock_fd },
                on_built, run, &p->build_id);
        rv_close(result[1]);
        if (r < 0)
                p->is_building = false;
        return rv_trace(r);
}

static enum rv_step build(struct rv_run *run)
{
        _cleanup_(rv_closep) int job_fd = -EBADF;
        _cleanup_(rv_closep) int lock_fd = -EBADF;
        int r = make_job(run->packages.lock, &job_fd);

        if (r == 0)
                r = make_lock(run->packages.lock, &lock_fd);
        rv_test_point("before-build");
        rv__packages_say(run, "making the layer");
        if (r == 0)
                r = rv__packages_build(run, RV_LAYER_BUILD, job_fd, lock_fd);
        if (r < 0)
                return refuse_build(run, strerror(-r), true);
        run->packages.step = RV_PACKAGES_BUILD;
        return rv__packages_wait(run, UINT64_MAX);
}

/* The helper's own word goes before how it ended. */
static enum rv_step look_at_build(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_json_unrefp) json_t *result = NULL;
        struct rv_package_failure f = { 0 };
        const json_t *fault = NULL;

        if (!p->build_errno)
                return RV_STEP_NEXT;
        if (rv_read_fd(p->result_fd, RESULT_BYTES_MAX, &text) == 0 && text.size &&
                rv_json_read(text.data, text.size, 16, &result, NULL) == 0)
                fault = json_object_get(result, "fault");
        if (fault && rv_acquire_fault(fault, NULL, &f) == RV_ACQUIRE_E_FAILED) {
                if (!f.is_retryable)
                        rv_store_lock_drop(run->core->store, p->key);   /* the registry may have better ones by the next time */
                return refuse(run, &f);
        }
        return refuse_build(run, p->build_fault[0] ? p->build_fault : strerror(p->build_errno), true);
}

/* ---- */

/* With what the lock names at hand; of a lock that was held it has to be fetched first. */
static enum rv_step begin_build(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        struct rv_error err = { 0 };

        if (p->artifacts_fd >= 0)
                return build(run);
        if (!rv__packages_registry(run, true))
                return refuse_build(run, "the layer is not there any more, and no registry is known to fetch it from", false);
        if (rv__packages_open_artifacts(run, &err) < 0)
                return refuse_build(run, err.message, true);
        rv__packages_say(run, "fetching the packages of the lock");
        p->work.what = RV_WORK_HELD_LOCK;
        json_decref(p->work.lock);
        p->work.lock = json_incref(p->lock);
        return rv__packages_work(run);
}

static enum rv_step queue(struct rv_run *run)
{
        struct rv_error err = { 0 };
        bool is_there = false;
        bool is_claimed = run->packages.claim_fd >= 0 && strcmp(run->packages.claimed, run->packages.digest) == 0;
        int r = is_claimed ? 0 : rv__packages_claim(run, run->packages.digest);

        if (r == RV_STORE_E_TAKEN) {
                rv__packages_say(run, "waiting for another run that makes the same layer");
                return rv__packages_wait(run, QUEUE_POLL_MS);
        }
        if (r < 0 || use_layer(run, &is_there, &err) < 0)
                return rv__run_fail(run, 503, "the package store cannot be used", r < 0 ? strerror(-r) : err.message);
        return is_there ? finish(run) : begin_build(run);
}

static enum rv_step begin(struct rv_run *run)
{
        struct rv_error err = { 0 };
        bool is_there = false;

        rv__packages_begin(run, run->core->config->phases.prepare_ms);
        if (use_layer(run, &is_there, &err) < 0)
                return rv__run_fail(run, 503, "the package store cannot be used", err.message);
        if (is_there)
                return finish(run);
        run->packages.step = RV_PACKAGES_QUEUE;
        return queue(run);
}

static enum rv_step look_at_work(struct rv_run *run)
{
        const struct rv_packages_work *w = &run->packages.work;

        if (w->r == 0)
                return build(run);
        if (w->r == RV_ACQUIRE_E_FAILED)
                return refuse(run, &w->failure);
        return refuse_build(run, w->err.message[0] ? w->err.message : strerror(-w->r), true);
}

enum rv_step rv__run_prepare(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        enum rv_step step;

        if (!run->request->n_packages || !p->lock)
                return RV_STEP_NEXT;
        if (!p->is_preparing) {
                p->is_preparing = true;
                return begin(run);
        }
        if (rv__packages_is_ending(run))
                return end(run);
        switch (p->step) {
        case RV_PACKAGES_QUEUE:
                return queue(run);
        case RV_PACKAGES_WORK:
                return p->is_working ? RV_STEP_WAIT : look_at_work(run);
        default:
                break;
        }
        if (p->is_building)
                return RV_STEP_WAIT;
        step = look_at_build(run);
        return step == RV_STEP_NEXT ? finish(run) : step;
}
