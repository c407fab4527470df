#include "run/run_private.h"

/* After the answer, where nothing of it can change the answer. */
enum rv_step rv__run_teardown(struct rv_run *run)
{
        void *handle = run->handle;

        rv__run_clear_timer(run);
        rv__run_forget_gate(run);      /* what it saw of a job is read by whoever began it */
        if (handle) {
                run->handle = NULL;
                run->is_released = false;
                run->is_releasing = true;
                run->backend->release(run->backend_state, handle);
        }
        if (run->is_releasing && !run->is_released)
                return RV_STEP_WAIT;
        return run->parent ? RV_STEP_END : RV_STEP_NEXT;
}
