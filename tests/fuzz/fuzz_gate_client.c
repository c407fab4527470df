/*
 * What the gate says on its channel: an input is a script in which the loop adds and removes runs, and the gate says
 * anything, with any descriptor, at any time. Each run is told at most once that it is served and exactly once how it
 * ends, served before reported and only what was asked for, and at the end no descriptor, watch or timer is held.
 */
#include "fuzz.h"

#include "base/fd.h"
#include "egress/gate_client.h"
#include "egress/gate_msg.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RUNS_MAX 6
#define TIMERS_MAX 8

struct rv_host_watch {
        int fd;
        void (*cb)(void *arg, uint32_t events);
        void *arg;
};

struct rv_host_timer {
        bool is_used, is_armed;
        void (*cb)(void *arg);
        void *arg;
};

struct run {
        uint64_t id;
        bool is_removed, is_served, is_over, is_forgotten;
};

static struct world {
        struct rv_gate_client *client;
        struct rv_host_watch watch;
        bool has_watch;
        struct rv_host_timer timers[TIMERS_MAX];
        struct run runs[RUNS_MAX];
        size_t n_runs;
        int gate_fd, memfd;
} w;

static void host_log(void *ctx, enum rv_log_level level, const char *text)
{
        FUZZ_CHECK(fuzz_is_line(text));
}

static int timer_start(void *ctx, uint64_t ms, void (*cb)(void *arg), void *arg, struct rv_host_timer **ret)
{
        for (size_t i = 0; i < TIMERS_MAX; i++)
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
        if (timer)
                *timer = (struct rv_host_timer){ 0 };
}

static int watch_add(void *ctx, int fd, uint32_t events, void (*cb)(void *arg, uint32_t events), void *arg,
        struct rv_host_watch **ret)
{
        FUZZ_CHECK(!w.has_watch, "a watch is lost");
        w.has_watch = true;
        w.watch = (struct rv_host_watch){ fd, cb, arg };
        *ret = &w.watch;
        return 0;
}

static void watch_remove(void *ctx, struct rv_host_watch *watch)
{
        if (watch) {
                FUZZ_CHECK(w.has_watch);
                w.has_watch = false;
        }
}

static const struct rv_host host = { .struct_size = sizeof(host),
        .log = host_log,
        .timer_start = timer_start,
        .timer_stop = timer_stop,
        .watch_add = watch_add,
        .watch_remove = watch_remove };

static void on_event(void *arg, const struct rv_gate_event *event)
{
        struct run *run = arg;

        FUZZ_CHECK(!run->is_over && !run->is_forgotten, "told after the end");
        switch (event->kind) {
        case RV_GATE_EVENT_SERVED:
                FUZZ_CHECK(!run->is_served && !run->is_removed);
                run->is_served = true;
                return;
        case RV_GATE_EVENT_REPORT:
                FUZZ_CHECK(run->is_removed && event->evidence && json_is_array(event->evidence->contacts));
                break;
        case RV_GATE_EVENT_REFUSED:
                FUZZ_CHECK(!run->is_removed && fuzz_is_line(event->text));
                break;
        case RV_GATE_EVENT_LOST:
                FUZZ_CHECK(fuzz_is_line(event->text));
                break;
        }
        run->is_over = true;
}

static void dispatch(void)
{
        struct pollfd p = { .fd = w.watch.fd, .events = POLLIN };

        if (w.has_watch && poll(&p, 1, 0) > 0)
                w.watch.cb(w.watch.arg, RV_WATCH_READ);
}

static void open_gate(void)
{
        int pair[2];

        w.gate_fd = rv_close(w.gate_fd);
        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        w.gate_fd = pair[1];
        rv_gate_client_serve(w.client, pair[0]);
}

static void gate_says(struct fuzz_cursor *in)
{
        struct rv_gate_message m = { .kind = fuzz_byte(in) % 8, .id = fuzz_byte(in) % (RUNS_MAX + 2) };
        uint8_t how = fuzz_byte(in);
        size_t n = how & 1 ? sizeof(m) : fuzz_byte(in);

        fuzz_bytes(in, m.text, how & 2 ? sizeof(m.text) : 4);
        if (w.gate_fd >= 0 && n <= sizeof(m))
                (void)rv_send_with_fds(w.gate_fd, &m, n, &w.memfd, how & 4 ? 1 : 0);
}

/* What a REPORT that is sent from here on has in its file. */
static void gate_writes(struct fuzz_cursor *in)
{
        static const char good[] = "{\"contacts\":[],\"denials\":[],\"more_contacts\":0,\"more_denials\":0}";
        char text[64];
        size_t n = fuzz_byte(in) % sizeof(text);

        w.memfd = rv_close(w.memfd);
        w.memfd = n == 1 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : memfd_create("evidence", MFD_CLOEXEC);
        fuzz_bytes(in, text, n);
        if (n == 0)
                (void)!write(w.memfd, good, sizeof(good) - 1);
        else if (n > 1)
                (void)!write(w.memfd, text, n);
}

static void add(void)
{
        struct run *run = &w.runs[w.n_runs];

        if (w.n_runs < RUNS_MAX && rv_gate_client_add(w.client, "{}", 2, NULL, 0, on_event, run, &run->id) == 0)
                w.n_runs++;
}

static void act(struct fuzz_cursor *in)
{
        struct run *run = w.n_runs ? &w.runs[fuzz_byte(in) % w.n_runs] : NULL;

        switch (fuzz_byte(in) % 10) {
        case 0: add(); break;
        case 1:
                if (run && !run->is_over && !run->is_forgotten) {
                        run->is_removed = true;
                        rv_gate_client_remove(w.client, run->id, 100);
                }
                break;
        case 2:
                if (run) {
                        run->is_forgotten = true;
                        rv_gate_client_forget(w.client, run->id);
                }
                break;
        case 3:
        case 4: gate_says(in); break;
        case 5: gate_writes(in); break;
        case 6: w.gate_fd = rv_close(w.gate_fd); break;
        case 7: rv_gate_client_lose(w.client, "the gate ended with status 1"); break;
        case 8: open_gate(); break;
        default:
                for (size_t i = 0; i < TIMERS_MAX; i++)
                        if (w.timers[i].is_armed) {
                                w.timers[i].is_armed = false;
                                w.timers[i].cb(w.timers[i].arg);
                        }
        }
        dispatch();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        int before = fcntl(0, F_DUPFD_CLOEXEC, 3), after;

        close(before);
        w = (struct world){ .gate_fd = -EBADF, .memfd = -EBADF };
        FUZZ_CHECK(rv_gate_client_new(&host, &w.client) == 0);
        open_gate();
        gate_writes(&(struct fuzz_cursor){ (const uint8_t *)"", 0 });
        while (in.size)
                act(&in);
        /* However it went: when the gate is gone, everyone was told. */
        w.gate_fd = rv_close(w.gate_fd);
        dispatch();
        rv_gate_client_lose(w.client, "the end");
        for (size_t i = 0; i < w.n_runs; i++)
                FUZZ_CHECK(w.runs[i].is_over || w.runs[i].is_forgotten, "run %zu was never told", i);
        rv_gate_client_free(w.client);
        rv_close(w.memfd);
        FUZZ_CHECK(!w.has_watch, "a watch stays");
        for (size_t i = 0; i < TIMERS_MAX; i++)
                FUZZ_CHECK(!w.timers[i].is_used, "a timer stays");
        after = fcntl(0, F_DUPFD_CLOEXEC, 3);
        FUZZ_CHECK(after == before, "a descriptor stays open");
        close(after);
        return 0;
}
