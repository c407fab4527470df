#include "session.h"

#include "reeve.h"

#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

#define LOOK_AGAIN_US 50000u     /* while another process is delivering */
#define TRY_AGAIN_US 500000u     /* after a delivery that failed */

int session_sink_open(struct session *s, struct rv_error *err)
{
        return s->config->audit.sink.to ? rv_trace(rv_sink_open(&s->config->audit.sink, &s->sink, err)) : 0;
}

static void complain(struct session *s, const char *why)
{
        struct rv_error ignored = { 0 };
        uint64_t lag = 0;

        if (s->has_complained)
                return;
        s->has_complained = true;
        (void)rv_sink_lag(s->core.log, &lag, &ignored);
        say("warning: the audit log's second place: %s; %llu bytes of the log are not delivered", why, (unsigned long long)lag);
}

/* Until the lag is what it may be. Of another process that is delivering one hears by the lag. */
static int wait_for(struct session *s, uint64_t *lag, struct rv_error *err)
{
        const struct rv_config_sink *c = &s->config->audit.sink;
        uint64_t deadline_us = rv_boot_us() + s->config->phases.queue_ms * 1000;
        struct rv_sink_progress progress = { 0 };
        int r = 0;

        while (*lag > c->lag_max_bytes && rv_boot_us() < deadline_us) {
                struct rv_error why = { 0 };

                r = rv_sink_send(s->sink, s->core.log, deadline_us, &progress, &why);
                if (r < 0)
                        complain(s, why.message);
                if (r != 0)
                        usleep(r < 0 ? TRY_AGAIN_US : LOOK_AGAIN_US);
                r = rv_sink_lag(s->core.log, lag, err);
                if (r < 0)
                        return rv_trace(r);
        }
        return 0;
}

void session_sink_gate(struct session *s)
{
        struct rv_error err = { 0 };
        char last[RV_ERROR_MESSAGE_MAX] = "";
        uint64_t lag = 0;
        int r;

        if (!s->sink)
                return;
        r = rv_sink_lag(s->core.log, &lag, &err);
        if (r == 0 && lag > s->config->audit.sink.lag_max_bytes && s->config->audit.sink.behind[0] == 'w')
                r = wait_for(s, &lag, &err);
        if (r < 0) {
                rv_error_set(&s->behind, r, "the audit log's second place, %s: it cannot be told how far behind it is: %s", rv_sink_name(s->sink), err.message);
                return;
        }
        if (lag <= s->config->audit.sink.lag_max_bytes)
                return;
        (void)rv_sink_last_error(s->core.log, last, sizeof(last));
        rv_error_set(&s->behind, -EBUSY, "the audit log's second place, %s, is %llu bytes behind, and audit.sink.lag_max allows %llu%s%s; `reeve audit send` delivers them",
                     rv_sink_name(s->sink), (unsigned long long)lag, (unsigned long long)s->config->audit.sink.lag_max_bytes, *last ? "; last error: " : "", last);
}

/* It hung a moment ago, and most likely does so still. */
static void complain_of_rest(struct session *s, uint64_t rest_us)
{
        char last[RV_ERROR_MESSAGE_MAX] = "", text[sizeof(last) + 64];

        (void)rv_sink_last_error(s->core.log, last, sizeof(last));
        snprintf(text, sizeof(text), "%s; it is tried again in %llu s", last, (unsigned long long)(rest_us / 1000000 + 1));
        complain(s, text);
}

void session_sink_send(struct session *s)
{
        struct rv_sink_progress progress = { 0 };
        struct rv_error err = { 0 };
        uint64_t rest_us;

        if (!s->sink || !s->core.log)
                return;
        /* Where runs are refused for what is not delivered, that it be delivered comes first. */
        rest_us = s->behind.code ? 0 : rv_sink_rest_us(s->core.log);
        if (rest_us)
                complain_of_rest(s, rest_us);
        else if (rv_sink_send(s->sink, s->core.log, rv_boot_us() + s->config->audit.sink.timeout_ms * 1000, &progress,
                         &err) < 0)
                complain(s, err.message);
}

const char *session_unavailable(const struct session *s)
{
        return s->behind.code ? s->behind.message : NULL;
}
