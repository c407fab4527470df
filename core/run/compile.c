#include "run/packages.h"
#include "run/run_private.h"

#include "base/fd.h"
#include "package/drivers.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * After the answer, of a Python layer that was not compiled yet: a job compiles all of it, and the spawner has the result
 * added. Nothing of it can change the answer; if it fails, runs start slower, and the next one tries again.
 */

#define FRAMES_FILE "frames"
#define FRAMES_BYTES_MAX ((uint64_t)4 << 30)
#define COMPILE_TIMEOUT_S 120
#define COMPILE_MEMORY_MIB 1024
#define COMPILE_BUDGET_MS (UINT64_C(150) * 1000)

static int put_frames(void *ctx, const void *data, size_t n)
{
        struct rv_run_packages *p = ctx;

        p->frames_bytes += n;
        if (p->frames_bytes > FRAMES_BYTES_MAX)
                return rv_raise(-EFBIG);
        return rv_trace(rv_write_all(p->frames_fd, data, n));
}

static bool is_wanted(struct rv_run *run)
{
        const struct rv_run_packages *p = &run->packages;

        return run->request && !run->input.build_for && run->request->language == RV_LANGUAGE_PYTHON && p->report &&
                run->backend && !run->evidence.stop && !run->is_refused &&
                !rv_store_layer_is_compiled(run->core->store, p->digest);
}

static enum rv_step start(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;
        const struct rv_driver *driver = rv_driver_get(RV_DRIVER_COMPILE, RV_LANGUAGE_PYTHON);
        struct rv_job_spec spec = {
                .language = RV_LANGUAGE_PYTHON,
                .network_mode = RV_NETWORK_NONE,
                .source = driver->text,
                .source_bytes = driver->size,
                .layer = p->digest,
                .timeout_s = COMPILE_TIMEOUT_S,
                .memory_mib = COMPILE_MEMORY_MIB,
                .sink = { put_frames, p, false },
        };
        struct rv_error err = { 0 };

        rv__packages_begin(run, COMPILE_BUDGET_MS);
        if (rv__packages_claim(run, p->digest) != 0)
                return RV_STEP_END;     /* somebody else does it */
        if (rv__packages_open_artifacts(run, &err) < 0)
                return RV_STEP_END;
        p->frames_fd = openat(p->artifacts_fd, FRAMES_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (p->frames_fd < 0 || rv__job_start(run, &spec) < 0)
                return RV_STEP_END;
        p->step = RV_PACKAGES_JOB;
        return RV_STEP_WAIT;
}

static enum rv_step add(struct rv_run *run)
{
        static const char job[] = "{\"file\":\"" FRAMES_FILE "\"}";
        struct rv_run_packages *p = &run->packages;
        _cleanup_(rv_closep) int job_fd = -EBADF;
        char why[RV_REASON_SIZE];
        const char *fault = rv__job_fault(run, why);

        p->frames_fd = rv_close(p->frames_fd);
        rv__job_free(run);
        if (fault || rv__packages_make_memory("reeve-compiled", job, strlen(job), &job_fd) < 0)
                return RV_STEP_END;
        if (rv__packages_build(run, RV_LAYER_COMPILED, job_fd, -1) < 0)
                return RV_STEP_END;
        p->step = RV_PACKAGES_BUILD;
        return RV_STEP_WAIT;
}

enum rv_step rv__run_compile(struct rv_run *run)
{
        struct rv_run_packages *p = &run->packages;

        if (!p->is_compiling) {
                p->is_compiling = true;
                return is_wanted(run) ? start(run) : RV_STEP_END;
        }
        if (p->step == RV_PACKAGES_JOB)
                return run->is_job_over ? add(run) : RV_STEP_WAIT;
        if (p->is_building)
                return RV_STEP_WAIT;
        if (p->build_errno) {
                char line[RV_REASON_SIZE];

                snprintf(line, sizeof(line), "the package layer could not be compiled: %.400s", p->build_fault);
                run->core->host->log(run->core->host->ctx, RV_LOG_INFO, line);
        }
        return RV_STEP_END;
}
