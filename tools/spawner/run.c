#include "spawner.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/test_point.h"
#include "sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESULT_FILE ".reeve-result"
#define OOM_WATCH_US (1000 * 1000)
#define LATE_US (1000 * 1000)   /* how much later than the loop should the spawner ends a run */

void run_kill(struct run *run)
{
        if (run->pidfd >= 0)
                (void)syscall(SYS_pidfd_send_signal, run->pidfd, SIGKILL, NULL, 0);
}

static const char *find_knob(const struct ns_message *m)
{
        /* The kernel gives a namespace a /proc of its own only where the one at hand hides nothing. */
        if (!strcmp(m->step, "mount /proc") && m->fault_errno == EPERM)
                return "parts of this container's /proc are masked: run it with /proc unmasked (procMount: Unmasked, or "
                       "--security-opt systempaths=unconfined)";
        return "see reeve doctor";
}

void run_report_held(struct spawner *s, struct run *run)
{
        struct rv_spawn_event event = { .struct_size = sizeof(event),
                .kind = RV_SPAWN_HELD,
                .memory_limit_bytes = run->cgroup.memory_limit_bytes };

        if (!run->is_assigned || !run->is_verified || run->is_held || run->has_failed ||
            (run->network != RV_PLAN_NETWORK_NONE && !run->net.n_fds))
                return;
        run->is_held = true;
        event.network = (struct rv_network_sockets){ .struct_size = sizeof(event.network),
                .n_fds = (uint32_t)run->net.n_fds,
                .is_redirect = run->net.mode == RV_NETNS_REDIRECT,
                .listen_port = RV_NETNS_PORT };
        spawner_report(s, run->id, &event, run->net.fds, run->net.n_fds);
        rv_netns_close(&run->net);
        run->net.n_fds = 0;
}

/* A run that is not assigned fails in silence: the one that asks next makes its own, and is told. */
static void fail_run_with(
        struct spawner *s, struct run *run, enum rv_backend_fault fault, int e, const char *step, const char *text)
{
        run->has_failed = true;
        if (run->is_assigned)
                spawner_fail(s, run->id, fault, e, step, text);
        run_kill(run);
}

static void fail_run(struct spawner *s, struct run *run, int e, const char *step, const char *text)
{
        fail_run_with(s, run, RV_BACKEND_FAULT_SETUP, e, step, text);
}

/* Has the child said that it is dead, and why? Then that is the next message. */
static bool is_failure_next(const struct run *run)
{
        struct ns_message next;
        ssize_t n;

        do
                n = recv(run->sync_fd, &next, sizeof(next), MSG_PEEK | MSG_DONTWAIT);
        while (n < 0 && errno == ECONNRESET);   /* told once, and before what it had said */
        return n == (ssize_t)sizeof(next) && next.kind == NS_FAILED;
}

/* It builds its root meanwhile: what holds the program is the loop, which waits for HELD. */
static void on_joined(struct spawner *s, struct run *run)
{
        struct rv_error err = { 0 };
        int r;

        if (is_failure_next(run))
                return;
        r = rv_cgroup_verify(&s->place, &run->cgroup, run->pid, &err);
        if (r < 0) {
                struct pollfd end = { .fd = run->pidfd, .events = POLLIN };

                /* One that died in between is in no cgroup any more; its end is told for what it was. */
                if (poll(&end, 1, 0) <= 0 && !is_failure_next(run))
                        fail_run(s, run, r, "verify the cgroups", err.message);
                return;
        }
        run->is_verified = true;
        run_report_held(s, run);
}

/* Takes the descriptors. */
static void on_network(struct spawner *s, struct run *run, const struct ns_message *m, int *fds, size_t *n_fds)
{
        rv_netns_close(&run->net);
        run->net = (struct rv_netns){ .n_fds = *n_fds, .mode = m->network };
        memcpy(run->net.fds, fds, sizeof(*fds) * *n_fds);
        *n_fds = 0;
        run_report_held(s, run);
}

static void on_failed(struct spawner *s, struct run *run, struct ns_message *m)
{
        char text[RV_REASON_SIZE];
        const char *need;

        m->step[sizeof(m->step) - 1] = 0;
        need = m->is_network_fault ? rv_netns_need(m->step) : NULL;
        snprintf(text, sizeof(text), "cannot %s: %s; %s%s", m->step, strerror(m->fault_errno), need ? "this needs " : "",
                 need ? need : find_knob(m));
        /* To be short of something for a moment is not to be unable to have a network. */
        if (m->is_network_fault && m->fault_errno != ENOMEM && m->fault_errno != ENOBUFS && m->fault_errno != EMFILE &&
                m->fault_errno != ENFILE)
                fail_run_with(s, run, RV_BACKEND_FAULT_CAPABILITY, m->fault_errno,
                        spawner_network_capability(run->network), text);
        else
                fail_run(s, run, m->fault_errno, m->step, text);
}

void run_on_sync(struct spawner *s, struct run *run)
{
        struct ns_message m = { 0 };
        int fds[RV_NETNS_SOCKET_MAX_];
        size_t n_fds;
        ssize_t n = rv_receive_with_fds(run->sync_fd, &m, sizeof(m), MSG_DONTWAIT, fds, RV_N_ELEMENTS(fds), &n_fds);

        /* ECONNRESET, once: it died before it read what was sent to it. What it had said still comes. */
        if (n == -EAGAIN || n == -EINTR || n == -ECONNRESET)
                return;
        if (n == (ssize_t)sizeof(m) && m.kind == NS_JOINED && !run->has_failed) {
                on_joined(s, run);
        } else if (n == (ssize_t)sizeof(m) && m.kind == NS_NETWORK && !run->has_failed) {
                on_network(s, run, &m, fds, &n_fds);
        } else if (n == (ssize_t)sizeof(m) && m.kind == NS_READY && n_fds == 1) {
                rv_close(run->box_fd);
                run->box_fd = fds[--n_fds];
                run->end_us = rv_clock_us(CLOCK_MONOTONIC) + s->config->phases.start_ms * 1000 +
                        run->timeout_s * 1000000ull + LATE_US;
                spawner_sweep(s);       /* the program is starting: nobody waits for the spawner now */
        } else if (n == (ssize_t)sizeof(m) && m.kind == NS_FAILED && !run->has_failed) {
                on_failed(s, run, &m);
        } else {
                run->sync_fd = rv_close(run->sync_fd);    /* leaves the epoll set, too */
        }
        while (n_fds)
                rv_close(fds[--n_fds]);
}

/*
 * v1 kills one process of a run and lets the rest go on; the whole run is ended as soon as its counter shows
 * such a kill at its own limit. The event comes before the counter moves, so look again for a while.
 */
void run_on_oom(struct spawner *s, struct run *run)
{
        struct rv_cgroup_counters counters;
        uint64_t n;

        (void)s;
        if (read(run->cgroup.oom_event_fd, &n, sizeof(n)) > 0)
                run->oom_until_us = rv_boot_us() + OOM_WATCH_US;
        rv_cgroup_count(&run->cgroup, &counters);
        if (counters.n_oom_kills && counters.is_memory_limit_reached) {
                run->is_memory_stop = true;
                run_kill(run);
        }
        if (run->is_memory_stop || rv_boot_us() > run->oom_until_us)
                run->oom_until_us = 0;
}

/* Opened, never read, by the privileged side: the loop judges what it is. */
static int open_result(const struct run *run, struct rv_spawn_event *event)
{
        int fd;

        if (run->box_fd < 0)
                return -EBADF;
        fd = openat(run->box_fd, RESULT_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
                snprintf(event->result_note, sizeof(event->result_note), "the result file cannot be read: %s",
                         errno == ELOOP ? "it is a link" : strerror(errno));
        return fd;
}

static uint64_t to_us(struct timeval t)
{
        return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_usec;
}

static void unlink_run(struct spawner *s, struct run *run)
{
        for (struct run **p = &s->runs; *p; p = &(*p)->next)
                if (*p == run) {
                        *p = run->next;
                        return;
                }
}

void run_on_end(struct spawner *s, struct run *run)
{
        struct rv_spawn_event event = { .struct_size = sizeof(event), .kind = RV_SPAWN_ENDED, .result_fd = -1 };
        struct rv_cgroup_counters counters;
        uint64_t id = run->id;
        bool is_assigned = run->is_assigned, is_told;
        struct rusage usage = { 0 };
        siginfo_t info;
        int result_fd, r;

        /* A child that failed says so before it dies: read that first. */
        while (run->sync_fd >= 0 && !run->has_failed)
                run_on_sync(s, run);
        /* The system call, unlike the C library's, also tells what the processes used. */
        while (syscall(SYS_waitid, P_PIDFD, run->pidfd, &info, WEXITED, &usage) < 0 && errno == EINTR)
                ;
        rv_cgroup_count(&run->cgroup, &counters);
        event.was_stopped = run->was_stopped;
        event.is_memory_stop = run->is_memory_stop;
        event.cpu_us = counters.cpu_us ? counters.cpu_us : to_us(usage.ru_utime) + to_us(usage.ru_stime);
        event.peak_memory_bytes = counters.peak_memory_bytes;
        event.memory_limit_bytes = run->cgroup.memory_limit_bytes;
        event.peak_processes = counters.peak_processes;
        event.n_oom_kills = counters.n_oom_kills;
        event.is_memory_limit_reached = counters.is_memory_limit_reached;
        is_told = run->has_failed || !is_assigned;
        if (!is_told) {
                result_fd = open_result(run, &event);
                spawner_report(s, id, &event, &result_fd, result_fd >= 0);
                rv_close(result_fd);
        }
        rv_test_point("in-teardown");
        unlink_run(s, run);
        if (s->spare == run)
                s->spare = NULL;
        rv_netns_close(&run->net);
        rv_close(run->box_fd);
        rv_close(run->sync_fd);
        rv_close(run->pidfd);
        r = rv_cgroup_remove(&s->place, &run->cgroup);
        rv_uid_release(&run->uids);
        free(run);
        if (is_assigned)
                spawner_removed(s, id, r);
}
