#include "run/build.h"
#include "run/run_private.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "package/drivers.h"
#include "package/lock.h"
#include "package/source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Within the phase `resolve`: a wheel of a package that the registry has as source alone. A job reads what its build needs;
 * then a run of its own, with that as its packages, builds it without network and without anything of the run's. That run
 * is judged and recorded as any other; of the run it has the facts beside packages, so that what was granted stands.
 */

#define ASK_TIMEOUT_S 30u
#define ASK_MEMORY_MIB 1024
#define BUILD_MEMORY_MIB 2048u
#define BUILD_TIMEOUT_MAX_S 300u
#define MARGIN_S 2u                     /* of the phase's budget, left to say that it was the build that took it */
#define ROUNDS_MAX 2                    /* a backend may say once that it needs more */
#define LINE_SIZE 320

static enum rv_step fail_for_memory(struct rv_run *run)
{
        return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it had a package built");
}

static uint32_t left_s(const struct rv_run *run)
{
        uint64_t now_us = rv_boot_us(), end_us = run->packages.deadline_us;
        uint64_t s = end_us > now_us ? (end_us - now_us) / 1000000 : 0;

        return s > MARGIN_S ? (uint32_t)RV_MIN(s - MARGIN_S, (uint64_t)BUILD_TIMEOUT_MAX_S) : 1;
}

static const char *name_of(const struct rv_run *run)
{
        return rv_json_get_string(run->packages.work.source, "name", "");
}

static const char *version_of(const struct rv_run *run)
{
        return rv_json_get_string(run->packages.work.source, "version", "");
}

static enum rv_step refuse(struct rv_run *run, const char *why)
{
        struct rv_package_failure f = { .code = RV_PACKAGE_INSTALL_FAILED, .cause = "build_failed" };

        snprintf(f.package, sizeof(f.package), "%s", name_of(run));
        snprintf(f.message, sizeof(f.message), "%.200s %.60s could not be built from its source: %.200s", name_of(run), version_of(run), why);
        rv__job_free(run);
        return rv__packages_refuse(run, &f, RV_PHASE_RESOLVE);
}

/* What a build wrote last to standard error, as one line that can be printed. */
static const char *last_line(const struct rv_run *job, char ret[LINE_SIZE])
{
        const char *text = job->err.text.data ? job->err.text.data : "", *end = text + job->err.text.size, *start;
        size_t n = 0;

        while (end > text && (unsigned char)end[-1] <= ' ')
                end--;
        start = end;
        while (start > text && start[-1] != '\n')
                start--;
        for (; start < end && n < LINE_SIZE - 1; start++)
                ret[n++] = *start >= ' ' && *start <= '~' ? *start : '?';
        ret[n] = 0;
        return ret;
}

/* ---- For the other phases ---- */

int rv__build_facts(struct rv_run *run)
{
        const struct rv_run *for_run = run->input.build_for;
        const json_t *theirs = for_run->packages.requested_facts ? for_run->packages.requested_facts : for_run->facts;
        static const char *const own[][2] = { { "pointers", "packages" }, { "request", "package_count" }, { "request", "source_sha256" },
                { "request", "source_characters" }, { "backend", "package_count" }, { "backend", "all_pinned" } };
        _cleanup_(rv_json_unrefp) json_t *facts = json_deep_copy(theirs);

        if (!facts || json_object_set(facts, "packages", json_object_get(run->facts, "packages")) < 0)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < RV_N_ELEMENTS(own); i++)
                if (json_object_set(json_object_get(facts, own[i][0]), own[i][1],
                            json_object_get(json_object_get(run->facts, own[i][0]), own[i][1])) < 0)
                        return rv_raise(-ENOMEM);
        json_decref(run->facts);
        run->facts = rv_take(&facts);
        return 0;
}

uint32_t rv__build_timeout(const struct rv_run *run)
{
        return run->input.build_for ? RV_MIN(run->request->timeout_s, left_s(run->input.build_for))
                                    : run->request->timeout_s;
}

bool rv__build_has_all(const struct rv_run *run, const json_t *lock)
{
        char digest[RV_SHA256_HEX_SIZE];
        const json_t *package;
        bool is_there = true;
        size_t i;

        json_array_foreach(json_object_get(lock, "packages"), i, package)
                if (strcmp(rv_json_get_string(package, "kind", ""), "built") == 0)
                        is_there = is_there && rv_store_built_is_there(run->core->store, rv_json_get_string(package, "hash", "sha256:") + 7);
        return is_there || (rv_lock_digest(lock, digest) == 0 && rv_store_layer_is_there(run->core->store, digest));
}

static json_t *read_wheel(const struct rv_run *run, const json_t *entry)
{
        _cleanup_(rv_buf_fini) struct rv_buf wheel = { 0 };
        _cleanup_(rv_freep) char *text = NULL;
        char name[RV_SHA256_HEX_SIZE + sizeof(".whl")];

        snprintf(name, sizeof(name), "%s.whl", rv_json_get_string(entry, "sha256", ""));
        if (rv_read_file_at(rv_store_built_fd(run->core->store), name, RV_SOURCE_BYTES_MAX, &wheel) < 0)
                return NULL;
        text = malloc(RV_BASE64_SIZE(wheel.size));
        if (!text)
                return NULL;
        rv_base64(wheel.data, wheel.size, text);
        return json_pack("{s:O, s:s}", "file", json_object_get(entry, "file"), "base64", text);
}

json_t *rv__build_wheels(const struct rv_run *run)
{
        json_t *list = json_array(), *entry, *wheel;
        size_t i;

        json_array_foreach(run->packages.build.built, i, entry) {
                wheel = read_wheel(run, entry);
                if (wheel)
                        json_array_append_new(list, wheel);
        }
        return list;
}

/* ---- What the build needs ---- */

static int make_input(struct rv_run *run, const char *what, struct rv_buf *ret)
{
        const struct rv_run_build *b = &run->packages.build;
        const struct rv_buf *archive = &run->packages.work.archive;
        _cleanup_(rv_json_unrefp) json_t *job = json_pack("{s:s, s:O, s:O, s:b}", "what", what, "archive", json_object_get(run->packages.work.source, "file"), "requires",
                                                          b->requires, "is_last", (int)(b->n_rounds >= ROUNDS_MAX));
        _cleanup_(rv_freep) char *text = job ? json_dumps(job, JSON_COMPACT) : NULL;

        if (!text)
                return rv_raise(-ENOMEM);
        rv_buf_puts(ret, text);
        rv_buf_putc(ret, '\n');
        return rv_trace(rv_buf_append(ret, archive->data ? archive->data : "", archive->size));
}

static int put_answer(void *ctx, const void *data, size_t n)
{
        struct rv_buf *text = ctx;

        if (text->size + n > RV_SOURCE_BYTES_MAX + RV_SOURCE_HEAD_MAX)
                return rv_raise(-EFBIG);
        return rv_trace(rv_buf_append(text, data, n));
}

static enum rv_step ask(struct rv_run *run)
{
        struct rv_run_build *b = &run->packages.build;
        const struct rv_driver *driver = rv_driver_get(RV_DRIVER_BUILD, RV_LANGUAGE_PYTHON);
        _cleanup_(rv_buf_fini) struct rv_buf input = { 0 };
        struct rv_job_spec spec = { .language = RV_LANGUAGE_PYTHON,
                .network_mode = RV_NETWORK_NONE,
                .source = driver->text,
                .source_bytes = driver->size,
                .memory_mib = ASK_MEMORY_MIB,
                .sink = { put_answer, &run->packages.text, false } };

        rv__build_fini(run);
        b->requires = json_array();
        b->n_rounds = 0;
        if (!b->requires || make_input(run, "ask", &input) < 0)
                return fail_for_memory(run);
        spec.input = input.data;
        spec.input_bytes = input.size;
        spec.timeout_s = RV_MIN(left_s(run), ASK_TIMEOUT_S);
        run->packages.text.size = 0;
        rv__packages_say(run, "looking what %s %s needs to be built", name_of(run), version_of(run));
        if (rv__job_start(run, &spec) < 0)
                return fail_for_memory(run);
        run->packages.step = RV_PACKAGES_ASK;
        return rv__packages_wait(run, UINT64_MAX);
}

/* ---- The build ---- */

static void on_progress(void *ctx, const char *text)
{
        rv__packages_say(ctx, "%s", text);
}

static void on_answered(void *ctx, struct rv_run *build)
{
        (void)ctx;
        (void)build;
}

static void on_output(void *ctx, enum rv_stream stream, const void *data, size_t n)
{
        struct rv_run *run = ctx;

        if (stream != RV_STREAM_STDOUT || run->job_sink.is_full || put_answer(&run->packages.text, data, n) == 0)
                return;
        run->job_sink.is_full = true;
        rv_run_stop(run->job, RV_STOP_OUTPUT_LIMIT);
}

static void on_released(void *ctx, struct rv_run *build)
{
        struct rv_run *run = ctx;

        (void)build;
        run->is_job_over = true;
        rv__run_go_on(run);
}

static json_t *make_request(struct rv_run *run)
{
        const struct rv_driver *driver = rv_driver_get(RV_DRIVER_BUILD, RV_LANGUAGE_PYTHON);

        return json_pack("{s:s, s:s%, s:O, s:i, s:i}", "language", "python", "source", driver->text, driver->size, "packages",
                         run->packages.build.requires, "timeout_s", (int)BUILD_TIMEOUT_MAX_S, "memory_mib", (int)BUILD_MEMORY_MIB);
}

static enum rv_step start(struct rv_run *run)
{
        struct rv_run_build *b = &run->packages.build;
        struct rv_run_input input = { .tenant = run->tenant->name,
                .bundle = run->input.bundle,
                .bundle_error = run->input.bundle_error,
                .shadow = run->input.shadow,
                .shadow_error = run->input.shadow_error,
                .backend = run->input.backend,
                .principal = run->input.principal,
                .request_id = run->input.request_id,
                .trace_id = run->input.trace_id,
                .build_for = run,
                .ctx = run,
                .output = on_output,
                .progress = on_progress,
                .answered = on_answered,
                .released = on_released };

        b->n_rounds++;
        json_decref(b->request);
        b->request = make_request(run);
        rv_buf_fini(&b->input);
        if (!b->request || make_input(run, "build", &b->input) < 0)
                return fail_for_memory(run);
        input.value = b->request;
        input.stdin_data = b->input.data;
        input.stdin_bytes = b->input.size;
        run->packages.text.size = 0;
        run->is_job_over = false;
        run->job_sink = (struct rv_job_sink){ 0 };
        run->packages.step = RV_PACKAGES_SOURCE;
        rv__packages_say(run, "building %s %s", name_of(run), version_of(run));
        if (rv_run_start(run->core, &input, &run->job) < 0)
                return fail_for_memory(run);
        return rv__packages_wait(run, UINT64_MAX);
}

static enum rv_step look_at_ask(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        struct rv_package_failure f = { 0 };
        char why[RV_REASON_SIZE], line[LINE_SIZE];
        const char *fault = rv__job_fault(run, why);
        int r;

        if (fault)
                return refuse(run, *last_line(run->job, line) ? line : fault);
        rv__job_free(run);
        r = rv_source_read_requires(p->text.data ? p->text.data : "", p->text.size, p->work.source, p->build.requires, &f);
        if (r == RV_ACQUIRE_E_FAILED)
                return rv__packages_refuse(run, &f, RV_PHASE_RESOLVE);
        if (r < 0)
                return fail_for_memory(run);
        return r ? refuse(run, "what it needs cannot be read") : start(run);
}

/* ---- What came of it ---- */

/* Of what it needs, or of policy: the same reason, of the run that it is for. A path leads on from the package. */
static enum rv_step pass_on(struct rv_run *run)
{
        const struct rv_run *build = run->job;
        const struct rv_classification *reason = &build->outcome.reason;
        json_t *detail = build->detail ? json_deep_copy(build->detail) : NULL, *path = json_object_get(detail, "path");
        bool is_retryable = reason->is_retryable;
        enum rv_code code = reason->code;
        char message[RV_REASON_SIZE];

        if (json_is_array(path))
                json_array_insert_new(path, 0, json_string(name_of(run)));
        snprintf(message, sizeof(message), "%.200s %.60s cannot be built from its source: %.200s", name_of(run), version_of(run), reason->message);
        rv__job_free(run);
        rv__run_refuse(run, code, RV_PHASE_RESOLVE, message, detail);
        run->outcome.reason.is_retryable = is_retryable;
        return RV_STEP_CLASSIFY;
}

static enum rv_step refuse_problem(struct rv_run *run)
{
        const struct rv_problem *problem = run->job->problem;
        int status = problem->status;

        if (status == 422)
                return refuse(run, "what it needs cannot be asked for");
        rv__job_free(run);
        return rv__run_fail(run, status, "a package could not be built", "reeve could not run the build of a package");
}

static enum rv_step look_at_end(struct rv_run *run)
{
        const struct rv_run *build = run->job;
        const struct rv_classification *reason = &build->outcome.reason;
        char line[LINE_SIZE];

        if (run->job_sink.is_full)
                return refuse(run, "it wrote more than it may");
        if (reason->started == RV_STARTED_NO && reason->code != RV_CODE_TIMEOUT)
                return pass_on(run);
        if (reason->code == RV_CODE_EXIT_NONZERO && *last_line(build, line))
                return refuse(run, line);
        return refuse(run, reason->message);
}

/* Before a package manager is given it. The answer's bytes stay where they are meanwhile. */
static enum rv_step check(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        const char *tag = rv_json_get_string(json_object_get(p->work.closure, "runtime"), "tag", "");
        struct rv_package_failure f = { 0 };

        if (rv_source_read_wheel(p->text.data ? p->text.data : "", p->text.size, p->work.source, tag, &p->work.wheel, &f) != 0)
                return rv__packages_refuse(run, &f, RV_PHASE_RESOLVE);
        p->work.what = RV_WORK_BUILT;
        return rv__packages_work(run);
}

static enum rv_step keep(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        const json_t *source = p->work.source;
        const struct rv_source_wheel *wheel = &p->work.wheel;
        struct rv_error err = { 0 };
        char sha256[RV_SHA256_HEX_SIZE];
        json_t *entry;

        if (rv_store_built_keep(run->core->store, wheel->data, wheel->bytes, sha256, &err) < 0)
                return rv__run_fail(run, 503, "the package store cannot be used", err.message);
        entry = json_pack("{s:O, s:O, s:s, s:s, s:O, s:O*}", "name", json_object_get(source, "name"), "version", json_object_get(source, "version"), "file",
                          wheel->file, "sha256", sha256, "yanked", json_object_get(source, "yanked"), "published_at", json_object_get(source, "published_at"));
        if (!p->build.built)
                p->build.built = json_array();
        if (!entry || json_array_append_new(p->build.built, entry) < 0)
                return fail_for_memory(run);
        rv__build_fini(run);
        rv_buf_fini(&p->work.archive);
        return rv__resolve_start_job(run);
}

enum rv_step rv__build_worked(struct rv_run *run)
{
        return run->packages.work.what == RV_WORK_SOURCE ? ask(run) : keep(run);
}

static enum rv_step look_at_build(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        struct rv_package_failure f = { 0 };
        int r;

        if (run->job->problem)
                return refuse_problem(run);
        if (run->job->outcome.reason.code != RV_CODE_OK || run->job_sink.is_full)
                return look_at_end(run);
        rv__job_free(run);
        r = rv_source_read_requires(p->text.data ? p->text.data : "", p->text.size, p->work.source, p->build.requires, &f);
        if (r == RV_ACQUIRE_E_FAILED)
                return rv__packages_refuse(run, &f, RV_PHASE_RESOLVE);
        if (r == 0)
                return p->build.n_rounds < ROUNDS_MAX ? start(run) : refuse(run, "its backend goes on asking for more that it needs");
        return r < 0 ? fail_for_memory(run) : check(run);
}

enum rv_step rv__build_look(struct rv_run *run)
{
        if (!run->is_job_over)
                return RV_STEP_WAIT;
        return run->packages.step == RV_PACKAGES_ASK ? look_at_ask(run) : look_at_build(run);
}

void rv__build_fini(struct rv_run *run)
{
        struct rv_run_build *b = &run->packages.build;

        json_decref(b->requires);
        json_decref(b->request);
        b->requires = b->request = NULL;
        rv_buf_fini(&b->input);
}
