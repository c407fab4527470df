#include "run/run_private.h"

enum rv_step rv__run_answer(struct rv_run *run)
{
        run->is_answered = true;
        run->input.answered(run->input.ctx, run);
        return RV_STEP_NEXT;
}
