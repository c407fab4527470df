#include "session.h"

/* How a session of one run ends: the log is sealed while what is left of the run is removed; the loop stops after both. */

static void end_if_over(struct session *s)
{
        if (s->is_sealed && s->is_last)
                rv_loop_stop(&s->loop);
}

/* What went wrong was warned of. */
static void on_sealed(void *arg, int r, const struct rv_error *err)
{
        struct session *s = arg;

        (void)r;
        (void)err;
        s->is_sealed = true;
        end_if_over(s);
}

void session_answered(struct session *s)
{
        rv_seal_start(s->seal, RV_SEAL_NEW, on_sealed, s);
}

void session_released(struct session *s)
{
        s->is_last = true;
        rv_gate_client_hang_up(s->core.gate);
        end_if_over(s);
}
