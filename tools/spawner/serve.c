#include "request.h"
#include "spawner.h"
#include "init.h"
#include "start.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/helper.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OOM_LOOK_MS 2
#define CLOSE_US (2 * 1000 * 1000)

void spawner_report(struct spawner *s, uint64_t id, const struct rv_spawn_event *event, const int *fds, size_t n_fds)
{
        struct rv_spawn_report report = { .id = id, .event = *event };

        report.event.result_fd = -1;
        /* A failure is the loop's end, which the event loop sees as end of file. */
        (void)rv_send_with_fds(s->channel_fd, &report, sizeof(report), fds, n_fds);
}

static void stop(struct spawner *s, uint64_t id)
{
        layer_stop(s, id);
        for (struct run *run = s->runs; run; run = run->next)
                if (run->is_assigned && run->id == id) {
                        run->was_stopped = true;
                        run_kill(run);
                }
}

/* The loop is gone, or does not keep to the protocol: nothing may run on. */
static void close_channel(struct spawner *s)
{
        s->channel_fd = rv_close(s->channel_fd);
        s->is_closing = true;
        s->give_up_us = rv_boot_us() + CLOSE_US;
        gate_kill(&s->gate);
        layer_stop_all(s);
        for (struct run *run = s->runs; run; run = run->next)
                run_kill(run);
}

static void sign(struct spawner *s, const struct rv_sign_request *q)
{
        const char *fault = request_find_sign_fault(q);
        struct rv_sign_answer answer = { .code = RV_SIGN_REFUSED };

        if (fault)
                snprintf(answer.text, sizeof(answer.text), "the loop asked the signer for what may not be: %s", fault);
        else
                signer_answer(&s->signer, q, &answer);
        (void)rv_send_with_fds(s->channel_fd, &answer, sizeof(answer), NULL, 0);
}

static bool is_build(const struct rv_spawn_request *q)
{
        return q->kind == RV_SPAWN_REQUEST_BUILD || q->kind == RV_SPAWN_REQUEST_COMPILED;
}

static void on_channel(struct spawner *s)
{
        union request q;
        int fds[RV_SPAWN_FD_MAX_], n_fds, r;

        r = request_receive(s->channel_fd, &q, fds, &n_fds);
        if (r == -EAGAIN)
                return;
        if (r == REQUEST_SPAWN && q.spawn.kind == RV_SPAWN_REQUEST_START && n_fds == RV_SPAWN_FD_MAX_ && s->runtimes) {
                spawner_launch(s, &q.spawn, fds);
                return;
        }
        if (r == REQUEST_SPAWN && is_build(&q.spawn) && n_fds == RV_SPAWN_LAYER_FD_MAX_ && s->runtimes) {
                layer_begin(s, &q.spawn, fds);
                return;
        }
        for (int i = 0; i < n_fds; i++)
                rv_close(fds[i]);
        if (r == REQUEST_SPAWN && q.spawn.kind == RV_SPAWN_REQUEST_STOP && n_fds == 0)
                stop(s, q.spawn.id);
        else if (r == REQUEST_SIGN && n_fds == 0)
                sign(s, &q.sign);
        else
                close_channel(s);
}

/* What an epoll event points at, if the run it belongs to is still there. */
static void dispatch(struct spawner *s, void *what)
{
        if (what == &s->gate)
                return gate_on_end(s);
        if (layer_on_end(s, what))
                return;
        for (struct run *run = s->runs; run; run = run->next) {
                if (what == &run->sync_fd)
                        return run_on_sync(s, run);
                if (what == &run->cgroup.oom_event_fd)
                        return run_on_oom(s, run);
                if (what == &run->pidfd)
                        return run_on_end(s, run);
        }
}

/* A loop that was stopped, by SIGSTOP or a debugger, keeps no time: no run goes on for ever because of it. */
static int look_at_time(struct run *run)
{
        uint64_t now_us = rv_clock_us(CLOCK_MONOTONIC);

        if (!run->end_us || run->was_stopped)
                return INT_MAX;
        if (now_us < run->end_us)
                return (int)((run->end_us - now_us) / 1000) + 1;
        run->was_stopped = true;
        run_kill(run);
        return INT_MAX;
}

/* What no event tells of. How long the next look may wait, in milliseconds; -1: no look is needed. */
static int look_at_runs(struct spawner *s)
{
        int wait_ms = s->is_closing ? 100 : INT_MAX;

        for (struct run *run = s->runs; run; run = run->next) {
                wait_ms = RV_MIN(wait_ms, look_at_time(run));
                if (run->oom_until_us)
                        run_on_oom(s, run);
                if (run->oom_until_us)
                        wait_ms = RV_MIN(wait_ms, OOM_LOOK_MS);
        }
        return wait_ms == INT_MAX ? -1 : wait_ms;
}

static int serve(struct spawner *s)
{
        struct epoll_event events[64], channel = { .events = EPOLLIN };

        if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->channel_fd, &channel) < 0)
                return 1;
        while (!s->is_closing || ((s->runs || s->gate.pid || s->layer_jobs) && rv_boot_us() < s->give_up_us)) {
                int n = epoll_wait(s->epoll_fd, events, RV_N_ELEMENTS(events), look_at_runs(s));

                for (int i = 0; i < n; i++) {
                        if (events[i].data.ptr)
                                dispatch(s, events[i].data.ptr);
                        else if (!s->is_closing)
                                on_channel(s);
                }
        }
        return 0;
}

/* The spawner outlives its caller's terminal and signals just long enough to clean up. */
static int settle(enum spawner_duty duty)
{
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        bool is_explaining = duty == SPAWNER_EXPLAIN || duty == SPAWNER_RUNTIMES;
        sigset_t none;

        /* Nothing of the caller's stays open here but standard error, where a bug would be told. */
        if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || (!is_explaining && dup2(null_fd, STDOUT_FILENO) < 0))
                return -errno;

        signal(SIGCHLD, SIG_DFL);
        for (int i = 0, ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP }; i < 6; i++)
                signal(ignored[i], SIG_IGN);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        (void)setsid();
        if (geteuid() == 0) {
                /* An ordinary user's spawner stays dumpable: else it could not map its child's id in /proc. */
                (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
                if (setgroups(0, NULL) < 0)
                        return -errno;
        }
        return syscall(SYS_close_range, SPAWNER_CHANNEL_FD + !is_explaining, ~0u, 0) < 0 ? -errno : 0;
}

/*
 * What the caller's shell limits is no limit of a run's: those are its cgroup, the cap of its files and its time.
 * Where a limit may not be raised, it must at least not be in the way of what every run is given.
 */
static int lift_limits(const struct spawner *s, struct rv_error *err)
{
        const struct {
                __rlimit_resource_t resource;
                const char *name;
                rlim_t needed;
        } limits[] = {
                { RLIMIT_NPROC, "processes (ulimit -u)", s->config->limits.pids },
                { RLIMIT_NOFILE, "open files (ulimit -n)", RV_INIT_FILES_MAX },
                { RLIMIT_STACK, "stack (ulimit -s)", RV_INIT_STACK_BYTES },
                /* More than any run could use: a limit above these is no limit. */
                { RLIMIT_AS, "address space (ulimit -v)", (rlim_t)1 << 42 },
                { RLIMIT_DATA, "data (ulimit -d)", (rlim_t)1 << 42 },
                { RLIMIT_FSIZE, "file size (ulimit -f)", (rlim_t)1 << 40 },
                { RLIMIT_CPU, "processor time (ulimit -t)", 1 << 20 },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(limits); i++) {
                struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

                /* The host's own bound of open files is below infinity. */
                if (limits[i].resource != RLIMIT_NOFILE && setrlimit(limits[i].resource, &limit) == 0)
                        continue;
                if (getrlimit(limits[i].resource, &limit) < 0)
                        continue;
                limit.rlim_max = RV_MAX(limit.rlim_max, limits[i].needed);
                limit.rlim_cur = limit.rlim_max;
                if (setrlimit(limits[i].resource, &limit) < 0)
                        return rv_error_set(err, -EPERM, "reeve was started with a limit of %s that is below the %llu that a run is given; raise it",
                                            limits[i].name, (unsigned long long)limits[i].needed);
        }
        return 0;
}

static void open_place(struct spawner *s)
{
        if (lift_limits(s, &s->place_error) == 0)
                s->has_place = rv_cgroup_place_open(s->config->cgroup, &s->place, &s->place_error) == 0;
}

static int open_config(struct spawner *s, const char *file, enum spawner_duty duty, struct rv_error *err)
{
        int r = *file ? rv_config_load(file, &s->config, err) : rv_config_parse("", 0, "", &s->config, err);

        if (r < 0)
                return r;
        s->runtimes = duty == SPAWNER_SIGN ? NULL : calloc(s->config->n_runtimes, sizeof(*s->runtimes));
        s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        return (s->runtimes || duty == SPAWNER_SIGN) && s->epoll_fd >= 0 ? 0 : rv_error_set(err, -ENOMEM, "out of memory or descriptors");
}

static int serve_runs(struct spawner *s)
{
        int r;

        spawner_prepare(s);
        gate_find(&s->gate);
        (void)rv_helper_find("unpack", "reeve-unpack", &s->unpack_fd, NULL);
        r = serve(s);
        spawner_sweep(s);
        return r;
}

static int do_duty(struct spawner *s, enum spawner_duty duty)
{
        switch (duty) {
        case SPAWNER_EXPLAIN:
                return spawner_explain(s);
        case SPAWNER_RUNTIMES:
                return spawner_explain_runtimes(s);
        case SPAWNER_SIGN:
                return serve(s);
        default:
                return serve_runs(s);
        }
}

int spawner_main(const char *config_file, enum spawner_duty duty, const char *key_file)
{
        struct spawner s = { .channel_fd = SPAWNER_CHANNEL_FD,
                .epoll_fd = -EBADF,
                .unpack_fd = -EBADF,
                .gate = { .exe_fd = -EBADF, .pidfd = -EBADF } };
        struct rv_error err = { 0 };
        int r;

        prctl(PR_SET_NAME, "reeve-spawner");
        r = settle(duty);
        if (r == 0)
                r = open_config(&s, config_file, duty, &err);
        if (r < 0) {
                /* What is wrong with the configuration is told by the loop, which reads it too. */
                if (!err.code)
                        fprintf(stderr, "reeve: the spawner: %s\n", strerror(-r));
                return 1;
        }
        spawner_forget_caller();
        (void)!chdir("/");
        signer_init(&s.signer, s.config, key_file);
        if (duty == SPAWNER_RUN || duty == SPAWNER_EXPLAIN)
                open_place(&s);
        r = do_duty(&s, duty);
        if (s.has_layers)
                rv_layers_close(&s.layers);
        signer_fini(&s.signer);
        if (s.has_place)
                rv_cgroup_place_close(&s.place);
        for (size_t i = 0; s.runtimes && i < s.config->n_runtimes; i++)
                rv_runtime_close(&s.runtimes[i]);
        free(s.runtimes);
        rv_config_free(s.config);
        return r;
}
