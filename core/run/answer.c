#include "run/run_private.h"

#include "base/test_point.h"

enum rv_step rv__run_answer(struct rv_run *run)
{
        rv_test_point("before-answer");
        run->is_answered = true;
        run->input.answered(run->input.ctx, run);
        rv__run_key_answered(run);
        return RV_STEP_NEXT;
}
