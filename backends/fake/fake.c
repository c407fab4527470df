#include "fake.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct fake_state {
        const struct rv_host *host;
        const struct rv_fake_script *script;
        struct rv_fake_calls calls;
};

struct fake_run {
        struct fake_state *state;
        const struct rv_fake_script *script;
        const struct rv_plan *plan;
        struct rv_run *run;
        struct rv_host_timer *timer;
        size_t n_done;               /* steps */
        bool is_due;                 /* the time of the next step is over */
        bool is_playing;             /* steps are on the stack: it must not be freed under them */
        bool may_go, is_stopping, is_observed, wants_release;
};

/* ---- The caller's side of the contract ---- */

static void note(struct fake_run *r, unsigned *n, enum rv_fake_call call, const char *broken_rule)
{
        ++*n;
        if (broken_rule && !r->state->calls.broken_rule)
                r->state->calls.broken_rule = broken_rule;
        if (r->script->call)
                r->script->call(r->script->ctx, call, r->plan);
}

/* ---- Time ---- */

static void clear_timer(struct fake_run *r)
{
        r->state->host->timer_stop(r->state->host->ctx, r->timer);
        r->timer = NULL;
}

/* Calls @cb now if the time is RV_FAKE_AT_ONCE, or if there is no timer to be had. */
static void after(struct fake_run *r, int32_t ms, void (*cb)(void *run))
{
        const struct rv_host *host = r->state->host;

        clear_timer(r);
        if (ms < 0 || host->timer_start(host->ctx, (uint64_t)ms, cb, r, &r->timer) < 0)
                cb(r);
}

/* ---- The end ---- */

static int make_result(const char *text)
{
        size_t n = strlen(text);
        int fd = memfd_create("fake-result", MFD_CLOEXEC);

        if (fd >= 0 && write(fd, text, n) != (ssize_t)n) {
                close(fd);
                return -1;
        }
        return fd;
}

static void observe(struct fake_run *r, const struct rv_observation *seen, const char *result)
{
        const struct rv_host *host = r->state->host;
        struct rv_observation o = *seen;

        clear_timer(r);
        r->is_observed = true;
        o.struct_size = sizeof(o);
        o.result_fd = result ? make_result(result) : -1;
        host->observe(host->ctx, r->run, &o);   /* may lead to release(), and that to the end of @r */
}

static void on_stopped(void *arg)
{
        struct fake_run *r = arg;

        observe(r, r->script->on_stop, r->script->on_stop_result);
}

static void on_released(void *arg)
{
        struct fake_run *r = arg;
        const struct rv_host *host = r->state->host;
        struct rv_run *run = r->run;
        int is_clean = !r->script->is_unclean;

        clear_timer(r);
        free(r);
        host->released(host->ctx, run, is_clean);
}

/* ---- The steps ---- */

static void do_step(struct fake_run *r, const struct rv_fake_step *step)
{
        const struct rv_host *host = r->state->host;
        struct timespec now;

        switch (step->kind) {
        case RV_FAKE_HELD:
                host->held(host->ctx, r->run);
                break;
        case RV_FAKE_STARTED:
                clock_gettime(CLOCK_BOOTTIME, &now);
                host->started(host->ctx, r->run, (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u);
                break;
        case RV_FAKE_OUTPUT:
                for (uint32_t i = 0; i < (step->n_times ? step->n_times : 1) && !r->is_observed; i++)
                        host->output(host->ctx, r->run, step->stream, step->data, step->n_bytes);
                break;
        case RV_FAKE_ENDED:
                host->ended(host->ctx, r->run);
                break;
        case RV_FAKE_OBSERVE:
                observe(r, step->seen, step->result);
                break;
        case RV_FAKE_CALL:
                r->script->call(r->script->ctx, RV_FAKE_STEP, r->plan);
                break;
        }
}

static void play(struct fake_run *r);

static void on_due(void *arg)
{
        struct fake_run *r = arg;

        clear_timer(r);
        r->is_due = true;
        play(r);
}

static void play(struct fake_run *r)
{
        if (r->is_playing)
                return;         /* a step led here: the loop below goes on when it is done */
        r->is_playing = true;
        while (!r->is_observed && !r->is_stopping && r->n_done < r->script->n_steps) {
                const struct rv_fake_step *step = &r->script->steps[r->n_done];

                if (step->kind == RV_FAKE_STARTED && !r->may_go)
                        break;
                if (step->after_ms >= 0 && !r->is_due) {
                        if (!r->timer)
                                after(r, step->after_ms, on_due);
                        if (!r->is_due)
                                break;
                }
                r->is_due = false;
                r->n_done++;
                do_step(r, step);
        }
        r->is_playing = false;
        if (r->wants_release)
                after(r, r->script->release_ms, on_released);
}

/* ---- The interface ---- */

static int fake_configure(const struct rv_host *host, void **ret_state)
{
        static const struct rv_fake_script nothing;
        struct fake_state *state = calloc(1, sizeof(*state));

        if (!state)
                return -ENOMEM;
        state->host = host;
        state->script = &nothing;
        *ret_state = state;
        return 0;
}

static void fake_can(void *arg, struct rv_manifest *ret)
{
        struct fake_state *state = arg;

        if (state->script->manifest) {
                *ret = *state->script->manifest;
                return;
        }
        *ret = (struct rv_manifest){ .struct_size = sizeof(*ret), .is_usable = 1, .isolation = "shared-kernel" };
        for (int i = 0; i < RV_CAPABILITY_MAX_; i++)
                ret->capabilities[i].grade = RV_GRADE_ENFORCED;
}

/* One socket that nobody dials. */
static void give_network(struct fake_run *r)
{
        struct rv_network_sockets sockets = { .struct_size = sizeof(sockets), .n_fds = 1, .listen_port = 1 };

        sockets.fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (sockets.fds[0] >= 0)
                r->state->host->network(r->state->host->ctx, r->run, &sockets);
}

static int fake_start(void *arg, const struct rv_plan *plan, struct rv_run *run, void **ret_handle)
{
        struct fake_state *state = arg;
        struct fake_run *r = calloc(1, sizeof(*r));

        if (!r)
                return -ENOMEM;
        *r = (struct fake_run){ .state = state, .script = state->script, .plan = plan, .run = run };
        if (state->script->next)
                state->script = state->script->next;
        note(r, &state->calls.n_starts, RV_FAKE_START, NULL);
        if (r->script->start_error) {
                free(r);
                return -state->script->start_error;
        }
        if (plan->network != RV_PLAN_NETWORK_NONE && !r->script->has_no_network)
                give_network(r);
        play(r);
        *ret_handle = r;
        return 0;
}

static void fake_go(void *state, void *handle)
{
        struct fake_run *r = handle;

        (void)state;
        note(r, &r->state->calls.n_goes, RV_FAKE_GO,
             r->may_go ? "go() twice" : r->is_observed ? "go() after observe()" : r->is_stopping ? "go() after stop()" : NULL);
        r->may_go = true;
        play(r);
}

static void fake_stop(void *state, void *handle, enum rv_stop why)
{
        struct fake_run *r = handle;

        (void)state;
        if (!r->state->calls.n_stops)
                r->state->calls.why = why;
        note(r, &r->state->calls.n_stops, RV_FAKE_STOP, r->is_observed ? "stop() after observe()" : NULL);
        if (r->is_stopping || r->is_observed || !r->script->on_stop)
                return;
        r->is_stopping = true;
        after(r, r->script->stop_ms, on_stopped);
}

static void fake_release(void *state, void *handle)
{
        struct fake_run *r = handle;

        (void)state;
        note(r, &r->state->calls.n_releases, RV_FAKE_RELEASE,
             r->wants_release ? "release() twice" : !r->is_observed ? "release() before observe()" : NULL);
        r->wants_release = true;
        if (!r->is_playing)
                after(r, r->script->release_ms, on_released);
}

static void fake_fini(void *state)
{
        free(state);
}

void rv_fake_play(void *arg, const struct rv_fake_script *script)
{
        struct fake_state *state = arg;

        state->script = script;
        state->calls = (struct rv_fake_calls){ 0 };
}

const struct rv_fake_calls *rv_fake_calls(const void *state)
{
        return &((const struct fake_state *)state)->calls;
}

const struct rv_backend rv_fake_backend = {
        .struct_size = sizeof(struct rv_backend),
        .abi_major = RV_BACKEND_ABI_MAJOR,
        .abi_minor = RV_BACKEND_ABI_MINOR,
        .name = "fake",
        .version = "0.1",
        .configure = fake_configure,
        .can = fake_can,
        .start = fake_start,
        .go = fake_go,
        .stop = fake_stop,
        .release = fake_release,
        .fini = fake_fini,
};
