/*
 * namespace.c - the backend `namespace`: Linux namespaces, cgroups, seccomp, in one shared kernel
 *
 * This is its half in the loop: it makes the pipes, asks the spawner for the sandbox (setup.c is the other
 * half), releases the program, watches and reports. See reeve/backend.h for the calls.
 */
#include "run.h"

#include "builtin.h"
#include "manifest.h"
#include "payload.h"
#include "spawn_msg.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- The end ---- */

static void give_up(struct ns_run *r)
{
        /* Reading: somebody outside holds a pipe open, what came so far is the output. Dying: a process is
         * stuck in the kernel; the caller gets its answer all the same. */
        for (int i = 0; i < 2; i++)
                if (r->pipes[i].fd >= 0)
                        ns_pipe_close(&r->pipes[i]);
        r->is_ended = true;
        ns_finish(r);
}

static void on_late(void *arg)
{
        struct ns_run *r = arg;

        r->is_stuck = !r->is_ended;
        /* Its kill was sent, and no other end was seen: the outcome stands although the teardown is not complete. */
        r->seen.was_stopped |= r->is_stuck && r->stop != RV_STOP_NONE;
        give_up(r);
}

static void set_timer(struct ns_run *r, uint32_t ms, void (*cb)(void *run))
{
        r->host->timer_stop(r->host->ctx, r->timer);
        r->timer = NULL;
        if (r->host->timer_start(r->host->ctx, ms, cb, r, &r->timer) < 0)
                cb(r);
}

static void close_control(struct ns_run *r)
{
        r->host->watch_remove(r->host->ctx, r->control_watch);
        r->control_watch = NULL;
        r->control_fd = rv_close(r->control_fd);
}

/* Observe once the last word on the processes is there and the pipes are at their end. */
void ns_finish(struct ns_run *r)
{
        if (!r->is_ended || r->is_observed || r->pipes[0].fd >= 0 || r->pipes[1].fd >= 0)
                return;
        r->is_observed = true;
        close_control(r);       /* what init says from here on is of no matter */
        r->host->timer_stop(r->host->ctx, r->timer);
        r->timer = NULL;
        ns_pipe_close_stdin(r);
        r->seen.was_stopped = r->seen.was_stopped && !r->seen.has_wait_status;
        r->host->observe(r->host->ctx, r->run, &r->seen);
}

static void set_fault(struct ns_run *r, enum rv_backend_fault fault, int e, const char *step, const char *text)
{
        if (r->seen.fault)
                return;         /* the first is the cause */
        r->seen.fault = fault;
        r->seen.fault_errno = e;
        rv_text_copy(r->seen.fault_step, sizeof(r->seen.fault_step), step);
        rv_text_copy(r->seen.fault_text, sizeof(r->seen.fault_text), text);
}

/* ---- Init's reports ---- */

static void on_exec_failed(struct ns_run *r, int e)
{
        char text[RV_REASON_SIZE];
        bool is_missing = e == ENOENT || e == EACCES || e == ENOEXEC || e == ELIBBAD;

        snprintf(text, sizeof(text), "the interpreter could not be executed: %s; it or its loader lies outside what the runtime %s shows",
                 strerror(e), r->plan->runtime);
        set_fault(r, is_missing ? RV_BACKEND_FAULT_RUNTIME : RV_BACKEND_FAULT_SETUP, e, "execute the interpreter", text);
}

/* A time that init tells, kept to what has passed since @from_us. */
static uint64_t within(uint64_t us, uint64_t from_us)
{
        uint64_t now_us = rv_boot_us();

        return us < from_us ? from_us : RV_MIN(us, now_us);
}

/*
 * One report. The channel leads into the sandbox, so what comes is checked: either STARTED, then EXITED, or
 * EXEC_FAILED, each once, and none before init was released.
 */
static bool take_report(struct ns_run *r)
{
        struct rv_init_report m;
        ssize_t n;

        if (r->control_fd < 0)
                return false;
        n = recv(r->control_fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && errno == EINTR)
                return true;
        if (n < 0 && errno == EAGAIN)
                return false;
        if (n != (ssize_t)sizeof(m)) {
                close_control(r);
                return false;
        }
        if (m.kind == RV_INIT_STARTED && r->seen.started == RV_STARTED_UNKNOWN) {
                r->seen.started = RV_STARTED_YES;
                r->start_us = within(m.start_us, r->go_us);
                r->host->started(r->host->ctx, r->run, r->start_us);
        } else if (m.kind == RV_INIT_EXITED && r->seen.started == RV_STARTED_YES && !r->seen.has_wait_status) {
                r->seen.has_wait_status = 1;
                r->seen.wait_status = m.wait_status;
                r->seen.wall_us = within(m.end_us, r->start_us) - r->start_us;
                r->host->ended(r->host->ctx, r->run);
                set_timer(r, r->teardown_ms, on_late);
        } else if (m.kind == RV_INIT_EXEC_FAILED && r->seen.started == RV_STARTED_UNKNOWN) {
                r->seen.started = RV_STARTED_NO;
                on_exec_failed(r, m.fault_errno);
        }
        return true;
}

static void on_control(void *arg, uint32_t events)
{
        struct ns_run *r = arg;

        (void)events;
        while (take_report(r))
                ;
}

/* ---- The spawner's events ---- */

static void try_release(struct ns_run *r)
{
        char go = RV_INIT_GO;

        if (!r->is_held || !r->may_go || r->is_released || r->stop || r->control_fd < 0)
                return;
        r->is_released = true;
        r->go_us = rv_boot_us();
        r->seen.started = RV_STARTED_UNKNOWN;       /* until init says so */
        if (send(r->control_fd, &go, 1, MSG_NOSIGNAL) < 0)
                r->seen.started = RV_STARTED_NO;    /* init is dead; its end is told by the spawner */
}

static void on_spawn_ended(struct ns_run *r, const struct rv_spawn_event *e)
{
        while (take_report(r))
                ;
        if (r->seen.started == RV_STARTED_YES && !r->seen.has_wait_status)
                r->seen.wall_us = rv_boot_us() - r->start_us;      /* killed: nobody saw the program itself end */
        r->seen.was_stopped = e->was_stopped;
        if (e->is_memory_stop && !r->stop) {
                r->stop = RV_STOP_MEMORY_LIMIT;
                r->seen.was_stopped = 1;
        }
        r->seen.cpu_us = e->cpu_us;
        r->seen.peak_memory_bytes = e->peak_memory_bytes;
        r->seen.memory_limit_bytes = e->memory_limit_bytes;
        r->seen.peak_processes = e->peak_processes;
        r->seen.n_oom_kills = e->n_oom_kills;
        r->seen.is_memory_limit_reached = e->is_memory_limit_reached;
        r->seen.is_teardown_complete = 1;
        r->seen.result_fd = e->result_fd;
        memcpy(r->seen.result_note, e->result_note, sizeof(r->seen.result_note));
        r->is_ended = true;
        set_timer(r, r->plan->collect_ms, on_late);
        /* Every writer is dead: what is in the pipes is all that there will be, and is read now. */
        for (int i = 0; i < 2; i++) {
                ns_pipe_flow(&r->pipes[i], true);
                ns_pipe_read(&r->pipes[i]);
        }
        ns_finish(r);
}

static void free_run(struct ns_run *r)
{
        const struct rv_host *host = r->host;
        struct rv_run *run = r->run;
        int is_clean = r->is_clean;

        host->timer_stop(host->ctx, r->timer);
        close_control(r);
        free(r);
        host->released(host->ctx, run, is_clean);
}

/* A process of the run does not die. The caller has its answer; what is left is swept by a later start. */
static void abandon(void *arg)
{
        struct ns_run *r = arg;

        r->host->timer_stop(r->host->ctx, r->timer);
        r->timer = NULL;
        close_control(r);
        r->is_abandoned = true;
        r->host->released(r->host->ctx, r->run, 0);
}

static void on_spawn(void *arg, const struct rv_spawn_event *e)
{
        struct ns_run *r = arg;

        switch ((enum rv_spawn_event_kind)e->kind) {
        case RV_SPAWN_HELD:
                r->is_held = true;
                r->seen.memory_limit_bytes = e->memory_limit_bytes;
                if (e->network.n_fds)
                        r->host->network(r->host->ctx, r->run, &e->network);
                if (r->stop)
                        return;
                r->host->held(r->host->ctx, r->run);
                try_release(r);
                return;
        case RV_SPAWN_FAILED:
                set_fault(r, e->fault, e->fault_errno, e->fault_step, e->fault_text);
                r->seen.started = RV_STARTED_NO;
                r->seen.is_teardown_complete = 1;
                give_up(r);
                return;
        case RV_SPAWN_ENDED:
                if (!r->is_observed)
                        on_spawn_ended(r, e);
                else if (e->result_fd >= 0)
                        close(e->result_fd);
                return;
        case RV_SPAWN_REMOVED:
        case RV_SPAWN_LOST:
                break;
        }
        r->is_clean = e->kind == RV_SPAWN_REMOVED && e->fault_errno == 0;
        if (e->fault_text[0] && e->kind == RV_SPAWN_REMOVED)
                r->host->log(r->host->ctx, RV_LOG_WARNING, e->fault_text);
        if (e->kind == RV_SPAWN_LOST && !r->is_observed) {
                while (take_report(r))
                        ;
                set_fault(r, RV_BACKEND_FAULT_LOST, 0, "watch the run", e->fault_text);
                give_up(r);     /* may ask for the release, which waits for is_removed */
        }
        r->is_removed = true;
        if (r->is_abandoned)
                free(r);
        else if (r->wants_release)
                free_run(r);
}

/* ---- The interface ---- */

static int ns_configure(const struct rv_host *host, void **ret_state)
{
        struct ns_state *state = calloc(1, sizeof(*state));

        if (!state)
                return rv_raise(-ENOMEM);
        state->host = host;
        *ret_state = state;
        return 0;
}

static void ns_can(void *state, struct rv_manifest *m)
{
        const struct ns_state *ns = state;

        ns_manifest_fill(ns->host, m);
}

static int begin(struct ns_run *r, struct rv_spawn_spec *spec)
{
        const struct rv_host *host = r->host;
        int control[2], e;

        e = ns_pipe_make(r, spec);
        if (e == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
                e = rv_raise(-errno);
        if (e < 0)
                return e;
        r->control_fd = control[0];
        spec->control_fd = control[1];
        e = rv_payload_write(r->plan, &spec->payload_fd);
        if (e == 0)
                e = host->spawn_start(host->ctx, spec, on_spawn, r, &r->spawn_id);
        if (e == 0)
                e = host->watch_add(host->ctx, r->control_fd, RV_WATCH_READ, on_control, r, &r->control_watch);
        if (e == 0)
                e = ns_pipe_watch(r);
        return e;
}

static int ns_start(void *state, const struct rv_plan *plan, struct rv_run *run, void **ret_handle)
{
        struct ns_state *ns = state;
        struct rv_spawn_spec spec = { .struct_size = sizeof(spec), .plan = plan, .stdin_fd = -EBADF,
                .stdout_fd = -EBADF, .stderr_fd = -EBADF, .control_fd = -EBADF, .payload_fd = -EBADF };
        struct ns_run *r = calloc(1, sizeof(*r));
        int e;

        if (!r)
                return rv_raise(-ENOMEM);
        *r = (struct ns_run){ .host = ns->host, .run = run, .plan = plan, .teardown_ms = plan->teardown_ms, .control_fd = -EBADF, .stdin_fd = -EBADF,
                              .seen = { .struct_size = sizeof(r->seen), .result_fd = -1 } };
        for (int i = 0; i < 2; i++)
                r->pipes[i] = (struct ns_pipe){ .run = r, .stream = i, .fd = -EBADF };
        e = begin(r, &spec);
        rv_close(spec.control_fd);
        rv_close(spec.payload_fd);
        rv_close(spec.stdin_fd);
        rv_close(spec.stdout_fd);
        rv_close(spec.stderr_fd);
        *ret_handle = r;
        if (e == 0)
                return 0;
        if (r->spawn_id) {      /* under way: let it end the usual way */
                set_fault(r, RV_BACKEND_FAULT_SETUP, -e, "watch the run", strerror(-e));
                r->stop = RV_STOP_SHUTDOWN;
                r->host->spawn_stop(r->host->ctx, r->spawn_id);
                return 0;
        }
        for (int i = 0; i < 2; i++)
                ns_pipe_close(&r->pipes[i]);
        ns_pipe_close_stdin(r);
        close_control(r);
        free(r);
        *ret_handle = NULL;
        return rv_trace(e);
}

static void ns_go(void *state, void *handle)
{
        struct ns_run *r = handle;

        (void)state;
        r->may_go = true;
        try_release(r);
}

static void ns_stop(void *state, void *handle, enum rv_stop why)
{
        struct ns_run *r = handle;

        (void)state;
        if (r->stop || r->is_ended)
                return;
        r->stop = why;
        r->host->spawn_stop(r->host->ctx, r->spawn_id);
        set_timer(r, r->teardown_ms, on_late);
}

static void ns_flow(void *state, void *handle, enum rv_stream stream, int is_flowing)
{
        struct ns_run *r = handle;

        (void)state;
        ns_pipe_flow(&r->pipes[stream], is_flowing || r->is_ended);
}

static void ns_release(void *state, void *handle)
{
        struct ns_run *r = handle;

        (void)state;
        r->wants_release = true;
        if (r->is_removed)
                free_run(r);
        else if (r->is_stuck)
                abandon(r);
        else
                set_timer(r, r->teardown_ms, abandon);
}

static void ns_fini(void *state)
{
        free(state);
}

const struct rv_backend rv_namespace_backend = {
        .struct_size = sizeof(struct rv_backend),
        .abi_major = RV_BACKEND_ABI_MAJOR,
        .abi_minor = RV_BACKEND_ABI_MINOR,
        .name = "namespace",
        .version = "0.1",
        .configure = ns_configure,
        .can = ns_can,
        .start = ns_start,
        .go = ns_go,
        .stop = ns_stop,
        .flow = ns_flow,
        .release = ns_release,
        .fini = ns_fini,
};
