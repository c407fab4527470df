#include "run/run_private.h"

#include "base/fd.h"

#include <unistd.h>

/* The program is over: wait for the rest of what the backend saw, and the gate, then take the result in. */
enum rv_step rv__run_collect(struct rv_run *run)
{
        if (!run->has_seen || !rv__run_end_network(run))
                return RV_STEP_WAIT;
        if (run->seen.started != RV_STARTED_NO)
                rv_result_read(run->seen.result_fd, run->seen.result_note, &run->result);
        run->seen.result_fd = rv_close(run->seen.result_fd);
        return RV_STEP_NEXT;
}
