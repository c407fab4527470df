#include "run/run_private.h"

#include <string.h>

/* It is turned away unread, and that is on record. */
static enum rv_step turn_away(struct rv_run *run)
{
        struct rv_error err = { 0 };
        int r;

        (void)rv__run_fail(run, 503, "no run starts for now", run->input.unavailable);
        r = run->problem ? rv__record_rejected(run, &err) : 0;
        return r < 0 ? rv__run_fail(run, 503, "the audit log cannot be written", err.message) : RV_STEP_ANSWER;
}

/* Of reeve's own requests: it need not be text. */
static int give_stdin(struct rv_run *run)
{
        char *data = malloc(run->input.stdin_bytes + 1);

        if (!data)
                return rv_raise(-ENOMEM);
        memcpy(data, run->input.stdin_data, run->input.stdin_bytes);
        free(run->request->stdin_data);
        run->request->stdin_data = data;
        run->request->stdin_bytes = run->input.stdin_bytes;
        return 0;
}

/* A request outside its bounds is rejected: nothing runs, one record, every fault listed. */
enum rv_step rv__run_validate(struct rv_run *run)
{
        struct rv_error err = { 0 };
        int r;

        if (run->input.unavailable)
                return turn_away(run);
        if (run->input.value)
                r = rv_request_from_json(run->input.value, &run->request, &run->problem);
        else
                r = rv_request_parse(run->input.text, run->input.text_bytes, &run->request, &run->problem);
        if (r == 0 && run->input.stdin_data)
                r = give_stdin(run);
        if (r < 0)
                return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it read the request");
        if (r == 0)
                return RV_STEP_NEXT;
        r = rv__record_rejected(run, &err);
        if (r < 0)
                return rv__run_fail(run, 503, "the audit log cannot be written", err.message);
        return RV_STEP_ANSWER;
}
