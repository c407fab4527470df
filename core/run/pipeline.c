#include "run/run_private.h"

#include "base/fd.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* The pipeline: each phase with the step of the outcome model whose time it is. */
static const struct {
        enum rv_step (*run)(struct rv_run *run);
        enum rv_phase step;
} phases[RV_RUN_PHASES] = {
        [RV_RUN_VALIDATE] = { rv__run_validate, RV_PHASE_VALIDATE },
        [RV_RUN_IDEMPOTENCY] = { rv__run_idempotency, RV_PHASE_IDEMPOTENCY },
        [RV_RUN_DECIDE] = { rv__run_decide, RV_PHASE_DECIDE },
        [RV_RUN_RESOLVE] = { rv__run_resolve, RV_PHASE_RESOLVE },
        [RV_RUN_DECIDE_RESOLVED] = { rv__run_decide_resolved, RV_PHASE_DECIDE },
        [RV_RUN_PREPARE] = { rv__run_prepare, RV_PHASE_PREPARE },
        [RV_RUN_PLAN] = { rv__run_plan, RV_PHASE_PLAN },
        [RV_RUN_START] = { rv__run_start, RV_PHASE_START },
        [RV_RUN_RUN] = { rv__run_run, RV_PHASE_RUN },
        [RV_RUN_COLLECT] = { rv__run_collect, RV_PHASE_COLLECT },
        [RV_RUN_CLASSIFY] = { rv__run_classify, RV_PHASE_CLASSIFY },
        [RV_RUN_RECORD] = { rv__run_record, RV_PHASE_RECORD },
        [RV_RUN_ANSWER] = { rv__run_answer, RV_PHASE_ANSWER },
        [RV_RUN_TEARDOWN] = { rv__run_teardown, RV_PHASE_TEARDOWN },
        [RV_RUN_COMPILE] = { rv__run_compile, RV_PHASE_TEARDOWN },
};

static uint64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void enter(struct rv_run *run, enum rv_run_phase phase)
{
        uint64_t now = now_ns();

        run->outcome.timings_us[phases[run->phase].step] += (now - run->phase_start_ns) / 1000;
        run->phase_start_ns = now;
        run->phase = phase;
}

/*
 * A phase that waits is called again when something happened. Callbacks may come while a phase is on the
 * stack (a backend may answer at once): they only leave a note, and the loop here looks again.
 */
void rv__run_go_on(struct rv_run *run)
{
        enum rv_step step;

        run->wants_advance = true;
        if (run->is_advancing)
                return;
        run->is_advancing = true;
        while (run->wants_advance) {
                run->wants_advance = false;
                step = phases[run->phase].run(run);
                if (step == RV_STEP_END) {
                        run->is_advancing = false;
                        run->input.released(run->input.ctx, run);     /* may free it */
                        return;
                }
                if (step == RV_STEP_WAIT)
                        continue;
                if (run->parent && (step != RV_STEP_NEXT || run->phase == RV_RUN_COLLECT)) {
                        enter(run, RV_RUN_TEARDOWN);    /* a job has no outcome, and nobody to be answered */
                        run->wants_advance = true;
                        continue;
                }
                enter(run,
                        step == RV_STEP_CLASSIFY         ? RV_RUN_CLASSIFY
                                : step == RV_STEP_ANSWER ? RV_RUN_ANSWER
                                : step == RV_STEP_AGAIN  ? RV_RUN_IDEMPOTENCY
                                : step == RV_STEP_RESOLVE ? RV_RUN_RESOLVE
                                                         : run->phase + 1);
                run->wants_advance = true;
        }
        run->is_advancing = false;
}

enum rv_step rv__run_refuse(
        struct rv_run *run, enum rv_code code, enum rv_phase phase, const char *message, json_t *take_detail)
{
        rv_classification_refuse(code, phase, message, &run->outcome.reason);
        run->is_refused = true;
        json_decref(run->detail);
        run->detail = take_detail;
        return RV_STEP_CLASSIFY;
}

enum rv_step rv__run_fail(struct rv_run *run, int status, const char *title, const char *detail)
{
        rv_problem_free(run->problem);
        run->problem = rv_problem_new(status, status == 503 ? "urn:reeve:problem:unavailable" : "urn:reeve:problem:internal", title);
        if (run->problem)
                rv_problem_detail(run->problem, "%s", detail);
        return RV_STEP_ANSWER;
}

void rv__run_clear_timer(struct rv_run *run)
{
        run->core->host->timer_stop(run->core->host->ctx, run->timer);
        run->timer = NULL;
}

int rv__run_set_timer(struct rv_run *run, uint64_t ms, void (*cb)(void *run))
{
        rv__run_clear_timer(run);
        return run->core->host->timer_start(run->core->host->ctx, ms, cb, run, &run->timer);
}

static void make_id(char ret[RV_RUN_ID_SIZE])
{
        uint8_t bytes[16];

        rv_require(getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes));
        rv_hex(bytes, sizeof(bytes), ret);
}

void rv__run_make_ids(struct rv_run *run)
{
        make_id(run->run_id);
        make_id(run->decision_id);
}

int rv_run_start(struct rv_core *core, const struct rv_run_input *input, struct rv_run **ret_run)
{
        struct rv_run *run = calloc(1, sizeof(*run));

        if (!run)
                return rv_raise(-ENOMEM);
        run->core = core;
        run->input = *input;
        run->tenant = rv_config_tenant(core->config, input->tenant);
        run->seen.result_fd = -1;
        rv__packages_init(run);
        rv__run_make_ids(run);
        rv_capture_init(&run->out, RV_CAPTURE_STDOUT_CHARACTERS, RV_CAPTURE_CEILING_BYTES);
        rv_capture_init(&run->err, RV_CAPTURE_STDERR_CHARACTERS, RV_CAPTURE_CEILING_BYTES);
        run->phase_start_ns = now_ns();
        *ret_run = run;
        rv__run_go_on(run);
        return 0;
}

const struct rv_problem *rv_run_problem(const struct rv_run *run)
{
        return run->problem;
}

const struct rv_outcome *rv_run_outcome(const struct rv_run *run)
{
        return run->problem || !run->is_answered ? NULL : &run->outcome;
}

const json_t *rv_run_lock(const struct rv_run *run)
{
        return run->packages.lock;
}

void rv_run_free(struct rv_run *run)
{
        if (!run)
                return;
        rv__run_key_fini(run);
        rv__run_network_fini(run);
        rv_request_free(run->request);
        rv_problem_free(run->problem);
        json_decref(run->facts);
        json_decref(run->verdict);
        json_decref(run->granted);
        rv__packages_fini(run);
        json_decref(run->shadow);
        json_decref(run->detail);
        free(run->plan_env);
        rv_registry_tools_fini(&run->tools);
        rv_capture_fini(&run->out);
        rv_capture_fini(&run->err);
        rv_result_fini(&run->result);
        rv_close(run->seen.result_fd);
        free(run);
}

int rv_core_add_backend(struct rv_core *core, const struct rv_backend *backend)
{
        void *state = NULL;
        int r;

        if (core->n_backends == RV_CORE_BACKENDS_MAX)
                return rv_raise(-ENOSPC);
        r = backend->configure(core->host, &state);
        if (r < 0)
                return rv_trace(r);
        core->backends[core->n_backends].backend = backend;
        core->backends[core->n_backends++].state = state;
        return 0;
}

void rv_core_fini(struct rv_core *core)
{
        while (core->n_backends) {
                core->n_backends--;
                core->backends[core->n_backends].backend->fini(core->backends[core->n_backends].state);
        }
}
