/*
 * What init reports, through the backend that listens to it: an input is a script of what happens to one run, in
 * which init says anything at any time (it lives inside the sandbox) while the spawner and the core keep to their
 * protocols. Whatever the order, the core is told each thing at most once and in its order, times are within what
 * passed, there is one observation, and at the end nothing is held.
 */
#include "fuzz.h"

#include "base/clock.h"
#include "base/fd.h"
#include "builtin.h"
#include "spawn_msg.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_WATCHES 8
#define N_TIMERS 4

struct rv_host_watch {
        bool is_used;
        int fd;
        uint32_t events;
        void (*cb)(void *arg, uint32_t events);
        void *arg;
};

struct rv_host_timer {
        bool is_used, is_armed;
        void (*cb)(void *arg);
        void *arg;
};

enum spawner_state { NOT_ASKED, ASKED, HELD, ENDED, REMOVED };

/* One run and all round it. */
static struct world {
        struct rv_host_watch watches[N_WATCHES];
        struct rv_host_timer timers[N_TIMERS];
        void *state, *handle;
        enum spawner_state spawner;
        rv_spawn_cb cb;
        void *cb_arg;
        int init_fd, stdin_fd, out_fds[2];
        uint64_t begin_us;
        size_t n_written[2], n_output[2];
        bool is_gone, is_releasing, releases_at_once, wants_stop, was_stop_asked;
        unsigned n_held, n_started, n_ended, n_observed, n_released;
} w;

/* ---- The host ---- */

static void host_log(void *ctx, enum rv_log_level level, const char *text)
{
        FUZZ_CHECK(fuzz_is_line(text));
}

static int timer_start(void *ctx, uint64_t ms, void (*cb)(void *arg), void *arg, struct rv_host_timer **ret)
{
        for (size_t i = 0; i < N_TIMERS; i++)
                if (!w.timers[i].is_used) {
                        w.timers[i] = (struct rv_host_timer){ true, true, cb, arg };
                        *ret = &w.timers[i];
                        return 0;
                }
        FUZZ_CHECK(!"a timer is lost");
        return -ENOMEM;
}

static void timer_stop(void *ctx, struct rv_host_timer *timer)
{
        if (timer) {
                FUZZ_CHECK(timer->is_used);
                *timer = (struct rv_host_timer){ 0 };
        }
}

static int watch_add(void *ctx, int fd, uint32_t events, void (*cb)(void *arg, uint32_t events), void *arg,
                     struct rv_host_watch **ret)
{
        for (size_t i = 0; i < N_WATCHES; i++)
                if (!w.watches[i].is_used) {
                        w.watches[i] = (struct rv_host_watch){ true, fd, events, cb, arg };
                        *ret = &w.watches[i];
                        return 0;
                }
        FUZZ_CHECK(!"a watch is lost");
        return -ENOMEM;
}

static void watch_remove(void *ctx, struct rv_host_watch *watch)
{
        if (watch) {
                FUZZ_CHECK(watch->is_used);
                *watch = (struct rv_host_watch){ 0 };
        }
}

static int copy_fd(int fd)
{
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

        FUZZ_CHECK(copy >= 0);
        return copy;
}

static int spawn_start(void *ctx, const struct rv_spawn_spec *spec, rv_spawn_cb cb, void *arg, uint64_t *ret_id)
{
        FUZZ_CHECK(w.spawner == NOT_ASKED);
        w.init_fd = copy_fd(spec->control_fd);
        w.stdin_fd = copy_fd(spec->stdin_fd);
        w.out_fds[0] = copy_fd(spec->stdout_fd);
        w.out_fds[1] = copy_fd(spec->stderr_fd);
        w.cb = cb;
        w.cb_arg = arg;
        w.spawner = ASKED;
        *ret_id = 1;
        return 0;
}

static void spawn_stop(void *ctx, uint64_t id)
{
        FUZZ_CHECK(id == 1);
        w.was_stop_asked = true;
}

static void on_output(void *ctx, struct rv_run *run, enum rv_stream stream, const void *data, size_t n)
{
        w.n_output[stream] += n;
        FUZZ_CHECK(!w.n_observed && w.n_output[stream] <= w.n_written[stream]);
}

static void on_held(void *ctx, struct rv_run *run)
{
        FUZZ_CHECK(++w.n_held == 1 && w.spawner == HELD);
}

static void on_started(void *ctx, struct rv_run *run, uint64_t boot_us)
{
        FUZZ_CHECK(++w.n_started == 1 && w.n_held == 1 && !w.n_observed);
        FUZZ_CHECK(boot_us >= w.begin_us && boot_us <= rv_boot_us(), "a start that is not now");
}

static void on_ended(void *ctx, struct rv_run *run)
{
        FUZZ_CHECK(++w.n_ended == 1 && w.n_started == 1 && !w.n_observed);
}

static void release(void)
{
        w.is_releasing = true;
        rv_namespace_backend.release(w.state, w.handle);
}

static void on_observe(void *ctx, struct rv_run *run, const struct rv_observation *o)
{
        FUZZ_CHECK(++w.n_observed == 1);
        FUZZ_CHECK(o->started <= RV_STARTED_UNKNOWN && (o->started == RV_STARTED_YES) == (w.n_started == 1), "%u", o->started);
        FUZZ_CHECK(o->fault != RV_BACKEND_FAULT_RUNTIME || o->started == RV_STARTED_NO, "started, and could not be");
        FUZZ_CHECK(o->has_wait_status == w.n_ended);
        FUZZ_CHECK(w.n_held || o->started == RV_STARTED_NO);
        FUZZ_CHECK(o->wall_us <= rv_boot_us() - w.begin_us, "%llu us", (unsigned long long)o->wall_us);
        FUZZ_CHECK(!(o->was_stopped && o->has_wait_status));
        FUZZ_CHECK(o->fault ? o->fault_step[0] && o->fault_text[0] : !o->fault_text[0]);
        FUZZ_CHECK(memchr(o->fault_step, 0, sizeof(o->fault_step)) && memchr(o->fault_text, 0, sizeof(o->fault_text)));
        if (o->result_fd >= 0)
                FUZZ_CHECK(close(o->result_fd) == 0);
        if (w.releases_at_once)
                release();
}

static void on_released(void *ctx, struct rv_run *run, int is_clean)
{
        FUZZ_CHECK(++w.n_released == 1 && w.is_releasing && w.n_observed == 1);
        FUZZ_CHECK(!is_clean || w.spawner == REMOVED);
}

static const struct rv_host host = {
        .struct_size = sizeof(host), .abi_major = RV_BACKEND_ABI_MAJOR, .abi_minor = RV_BACKEND_ABI_MINOR,
        .log = host_log, .timer_start = timer_start, .timer_stop = timer_stop, .watch_add = watch_add,
        .watch_remove = watch_remove, .spawn_start = spawn_start, .spawn_stop = spawn_stop, .output = on_output,
        .held = on_held, .started = on_started, .ended = on_ended, .observe = on_observe, .released = on_released,
};

static void dispatch(void)
{
        for (size_t i = 0; i < N_WATCHES; i++) {
                struct rv_host_watch *watch = &w.watches[i];
                struct pollfd p = { .fd = watch->fd };

                p.events |= watch->events & RV_WATCH_READ ? POLLIN : 0;
                p.events |= watch->events & RV_WATCH_WRITE ? POLLOUT : 0;
                if (watch->is_used && poll(&p, 1, 0) > 0)
                        watch->cb(watch->arg, watch->events);
        }
}

static void fire_timers(void)
{
        for (size_t i = 0; i < N_TIMERS; i++)
                if (w.timers[i].is_armed) {
                        w.timers[i].is_armed = false;
                        w.timers[i].cb(w.timers[i].arg);
                }
}

/* ---- What happens ---- */

/* A report with the times that an input may choose: absolute, or as far from now as it says. */
static void init_reports(struct fuzz_cursor *in)
{
        struct rv_init_report m = { .kind = fuzz_byte(in) % 5 };
        uint8_t how;

        m.fault_errno = fuzz_byte(in);
        m.wait_status = fuzz_byte(in);
        how = fuzz_byte(in);
        fuzz_bytes(in, &m.start_us, how & 1 ? 8 : 2);
        fuzz_bytes(in, &m.end_us, how & 2 ? 8 : 2);
        if (how & 4)
                m.start_us = rv_boot_us() - m.start_us;
        if (how & 8)
                m.end_us = rv_boot_us() + m.end_us;
        if (how & 16)
                m.wait_status = m.wait_status << 8;
        if (w.init_fd >= 0)
                (void)!send(w.init_fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void init_talks(struct fuzz_cursor *in)
{
        uint8_t text[64];
        size_t n = fuzz_byte(in) % (sizeof(text) + 1);

        fuzz_bytes(in, text, n);
        if (w.init_fd >= 0)
                (void)!send(w.init_fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void program_writes(struct fuzz_cursor *in, int stream)
{
        static const char bytes[256];
        ssize_t n = 0;

        if (w.out_fds[stream] >= 0) {
                fcntl(w.out_fds[stream], F_SETFL, O_NONBLOCK);
                n = write(w.out_fds[stream], bytes, fuzz_byte(in));
        }
        w.n_written[stream] += n > 0 ? (size_t)n : 0;
}

static void program_closes(void)
{
        for (int i = 0; i < 2; i++)
                w.out_fds[i] = rv_close(w.out_fds[i]);
        w.stdin_fd = rv_close(w.stdin_fd);
}

static bool may_tell(enum rv_spawn_event_kind kind)
{
        switch (kind) {
        case RV_SPAWN_HELD: return w.spawner == ASKED;
        case RV_SPAWN_FAILED: return w.spawner == ASKED || (w.spawner == HELD && !w.n_started);
        case RV_SPAWN_ENDED: return w.spawner == HELD;
        case RV_SPAWN_REMOVED: return w.spawner == ENDED;
        case RV_SPAWN_LOST: break;
        }
        return w.spawner != NOT_ASKED && w.spawner != REMOVED;
}

/* The next event, if the spawner could send it now. */
static void spawner_tells(struct fuzz_cursor *in, enum rv_spawn_event_kind kind)
{
        struct rv_spawn_event e = { .struct_size = sizeof(e), .kind = kind, .result_fd = -1 };
        bool is_last = kind == RV_SPAWN_REMOVED || kind == RV_SPAWN_LOST;

        if (!may_tell(kind))
                return;
        if (kind == RV_SPAWN_FAILED || kind == RV_SPAWN_LOST) {
                e.fault = kind == RV_SPAWN_FAILED ? 1 + fuzz_byte(in) % 5 : 0;
                snprintf(e.fault_step, sizeof(e.fault_step), "step");
                snprintf(e.fault_text, sizeof(e.fault_text), "text");
        }
        if (kind == RV_SPAWN_REMOVED && fuzz_byte(in) % 4 == 1) {
                e.fault_errno = EBUSY;
                snprintf(e.fault_text, sizeof(e.fault_text), "it stays");
        }
        if (kind == RV_SPAWN_ENDED) {
                uint8_t how = fuzz_byte(in);

                e.was_stopped = w.was_stop_asked && (how & 1);
                e.is_memory_stop = (how & 2) != 0;
                e.result_fd = how & 4 ? copy_fd(0) : -1;
                if (how & 8)
                        program_closes();
        }
        w.spawner = kind == RV_SPAWN_HELD ? HELD : is_last ? REMOVED : ENDED;
        w.cb(w.cb_arg, &e);
}

static void act(struct fuzz_cursor *in)
{
        switch (fuzz_byte(in) % 17) {
        case 0:
        case 1: init_reports(in); break;
        case 2: init_talks(in); break;
        case 3: w.init_fd = rv_close(w.init_fd); break;
        case 4: spawner_tells(in, RV_SPAWN_HELD); break;
        case 5: spawner_tells(in, RV_SPAWN_FAILED); break;
        case 6: spawner_tells(in, RV_SPAWN_ENDED); break;
        case 7: spawner_tells(in, RV_SPAWN_REMOVED); break;
        case 8: spawner_tells(in, RV_SPAWN_LOST); break;
        case 9:
                if (!w.is_gone && !w.n_observed)
                        rv_namespace_backend.go(w.state, w.handle);
                w.is_gone = true;
                break;
        case 10:
                if (!w.n_observed)
                        rv_namespace_backend.stop(w.state, w.handle, RV_STOP_TIMEOUT + fuzz_byte(in) % 4);
                break;
        case 11: fire_timers(); break;
        case 12: program_writes(in, RV_STREAM_STDOUT); break;
        case 13: program_writes(in, RV_STREAM_STDERR); break;
        case 14: program_closes(); break;
        case 15:
                if (w.n_observed && !w.is_releasing)
                        release();
                break;
        default: dispatch(); break;
        }
}

/* However far the script went, the run comes to its end. */
static void end(void)
{
        struct fuzz_cursor none = { 0 };

        spawner_tells(&none, w.spawner == HELD ? RV_SPAWN_ENDED : RV_SPAWN_FAILED);
        program_closes();
        for (int i = 0; i < 8; i++) {
                dispatch();
                fire_timers();
        }
        FUZZ_CHECK(w.n_observed == 1);
        if (!w.is_releasing)
                release();
        spawner_tells(&none, RV_SPAWN_REMOVED);
        FUZZ_CHECK(w.n_released == 1);
        w.init_fd = rv_close(w.init_fd);
        for (size_t i = 0; i < N_WATCHES; i++)
                FUZZ_CHECK(!w.watches[i].is_used, "a watch stays");
        for (size_t i = 0; i < N_TIMERS; i++)
                FUZZ_CHECK(!w.timers[i].is_used, "a timer stays");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_plan plan = { .struct_size = sizeof(plan), .run_id = "0123456789abcdef0123456789abcdef", .tenant = "local",
                                .runtime = "host", .timeout_s = 30, .memory_mib = 128, .pids = 64, .source = "1",
                                .source_bytes = 1, .collect_ms = 1000, .teardown_ms = 1000 };
        struct fuzz_cursor in = { data, size };
        uint8_t how = fuzz_byte(&in);
        int next_before = copy_fd(0), next_after;

        close(next_before);
        signal(SIGPIPE, SIG_IGN);       /* as the core has it */
        w = (struct world){ .init_fd = -EBADF, .stdin_fd = -EBADF, .out_fds = { -EBADF, -EBADF },
                            .begin_us = rv_boot_us(), .releases_at_once = how & 1 };
        plan.stdin_data = "input";
        plan.stdin_bytes = how & 2 ? 5 : 0;
        FUZZ_CHECK(rv_namespace_backend.configure(&host, &w.state) == 0);
        FUZZ_CHECK(rv_namespace_backend.start(w.state, &plan, NULL, &w.handle) == 0);
        while (in.size)
                act(&in);
        end();
        rv_namespace_backend.fini(w.state);
        next_after = copy_fd(0);
        FUZZ_CHECK(next_after == next_before, "a descriptor stays open");
        close(next_after);
        return 0;
}
