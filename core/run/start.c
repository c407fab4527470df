#include "run/run_private.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* The budget of the phase is over and the interpreter was not executed. */
static void on_start_budget(void *arg)
{
        struct rv_run *run = arg;

        rv__run_end(run, RV_STOP_TIMEOUT, RV_PHASE_START, run->core->config->phases.start_ms);
}

static void on_held(void *ctx, struct rv_run *run)
{
        (void)ctx;
        run->is_held = true;
        /* The timer may come late on a busy machine: past the budget nothing is released. */
        if (rv_clock_us(CLOCK_MONOTONIC) - run->start_begun_us > run->core->config->phases.start_ms * 1000)
                on_start_budget(run);
}

static void on_started(void *ctx, struct rv_run *run, uint64_t boot_us)
{
        (void)ctx;
        (void)boot_us;
        run->is_started = run->evidence.was_seen_started = true;
        rv__run_go_on(run);
        if (run->input.started)
                run->input.started(run->input.ctx, run);
}

/* It may be over already, and after the observation only release() may follow. */
void rv__run_release(struct rv_run *run)
{
        if (!run->is_decision_durable || !rv__run_is_network_ready(run) || run->evidence.was_released ||
                run->has_seen || run->evidence.stop)
                return;
        run->evidence.was_released = true;
        run->backend->go(run->backend_state, run->handle);
}

/*
 * The isolation is built, and the run's network, while the decision is made durable: the program is held until all is
 * done. Without a durable decision nothing runs.
 */
static enum rv_step begin(struct rv_run *run)
{
        struct rv_error err = { 0 };
        int r;

        run->start_begun_us = rv_clock_us(CLOCK_MONOTONIC);
        r = run->backend->start(run->backend_state, &run->plan, run, &run->handle);
        if (r < 0) {
                run->evidence.start_error = r;
                run->evidence.start_step = "ask the spawner";
                return RV_STEP_CLASSIFY;
        }
        r = run->parent ? 0 : rv_log_sync(run->core->log, &err);
        if (r < 0) {
                rv__run_end(run, RV_STOP_SHUTDOWN, RV_PHASE_START, 0);
                rv__run_fail(run, 503, "the audit log cannot be written", err.message);
                return RV_STEP_WAIT;
        }
        if (rv__run_set_timer(run, run->core->config->phases.start_ms, on_start_budget) < 0)
                rv__run_end(run, RV_STOP_SHUTDOWN, RV_PHASE_START, 0);
        run->is_decision_durable = true;
        rv__run_stop_unserved(run);
        rv__run_release(run);
        return run->is_started || run->has_seen ? RV_STEP_NEXT : RV_STEP_WAIT;
}

enum rv_step rv__run_start(struct rv_run *run)
{
        if (!run->handle)
                return begin(run);
        if (run->problem)
                return run->has_seen ? RV_STEP_ANSWER : RV_STEP_WAIT;
        return run->is_started || run->has_seen ? RV_STEP_NEXT : RV_STEP_WAIT;
}

/* ---- What a backend tells of a run, in the order in which it may come ---- */

static void on_output(void *ctx, struct rv_run *run, enum rv_stream stream, const void *data, size_t n)
{
        int r;

        (void)ctx;
        if ((run->parent || run->input.build_for) && stream == RV_STREAM_STDOUT)
                r = 0;          /* its own receiver bounds it */
        else
                r = rv_capture_feed(stream == RV_STREAM_STDOUT ? &run->out : &run->err, data, n);
        if (run->input.output)
                run->input.output(run->input.ctx, stream, data, n);
        if (r == RV_CAPTURE_E_CEILING && !run->evidence.stop) {
                run->evidence.stop_stream = stream;
                run->evidence.output_ceiling_bytes = RV_CAPTURE_CEILING_BYTES;
                rv__run_end(run, RV_STOP_OUTPUT_LIMIT, RV_PHASE_RUN, 0);
        }
}

static void on_ended(void *ctx, struct rv_run *run)
{
        (void)ctx;
        run->is_ended = true;
        rv__run_go_on(run);
}

static void on_observe(void *ctx, struct rv_run *run, const struct rv_observation *observation)
{
        (void)ctx;
        memcpy(&run->seen, observation, RV_MIN(sizeof(run->seen), (size_t)observation->struct_size));
        run->seen.struct_size = sizeof(run->seen);
        /* The backend keeps the limit as well, for when this process is stopped; its kill is met before the timer. */
        if (run->seen.was_stopped && run->is_timed && !run->evidence.stop &&
            rv_clock_us(CLOCK_MONOTONIC) - run->start_begun_us > run->plan.timeout_s * 1000000ull) {
                run->evidence.stop = RV_STOP_TIMEOUT;
                run->evidence.stop_phase = RV_PHASE_RUN;
        }
        run->has_seen = true;
        rv__run_go_on(run);
}

static void on_released(void *ctx, struct rv_run *run, int is_clean)
{
        (void)ctx;
        (void)is_clean;
        run->is_released = true;
        rv__run_go_on(run);
}

void rv_core_fill_host(struct rv_host *host)
{
        host->output = on_output;
        host->network = rv__run_on_network;
        host->held = on_held;
        host->started = on_started;
        host->ended = on_ended;
        host->observe = on_observe;
        host->released = on_released;
}
