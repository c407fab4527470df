#include "run/run_private.h"

/* The phase `run`: the program is running, under its time limit. */

static void on_time_limit(void *arg)
{
        struct rv_run *run = arg;

        rv__run_end(run, RV_STOP_TIMEOUT, RV_PHASE_RUN, 0);
}

void rv__run_end(struct rv_run *run, enum rv_stop why, enum rv_phase phase, uint64_t budget_ms)
{
        if (run->evidence.stop || !run->handle || run->has_seen)
                return;
        run->evidence.stop = why;
        run->evidence.stop_phase = phase;
        run->evidence.stop_limit_ms = (uint32_t)budget_ms;
        rv__run_clear_timer(run);
        run->backend->stop(run->backend_state, run->handle, why);
}

void rv_run_stop(struct rv_run *run, enum rv_stop why)
{
        rv__run_key_stop(run, why);
        rv__packages_stop(run, why);
        /* By what was seen: the state machine may be a callback behind. */
        rv__run_end(run, why, run->phase == RV_RUN_START && !run->is_started ? RV_PHASE_START : RV_PHASE_RUN, 0);
}

void rv_run_flow(struct rv_run *run, enum rv_stream stream, bool is_flowing)
{
        if (run->handle && !run->has_seen && RV_HAS(run->backend, flow) && run->backend->flow)
                run->backend->flow(run->backend_state, run->handle, stream, is_flowing);
}

enum rv_step rv__run_run(struct rv_run *run)
{
        if (run->is_ended || run->has_seen) {
                rv__run_clear_timer(run);
                return RV_STEP_NEXT;
        }
        if (!run->is_timed && !run->evidence.stop) {
                run->is_timed = true;
                if (rv__run_set_timer(run, (uint64_t)run->plan.timeout_s * 1000, on_time_limit) < 0)
                        rv__run_end(run, RV_STOP_SHUTDOWN, RV_PHASE_RUN, 0);
        }
        return RV_STEP_WAIT;
}
