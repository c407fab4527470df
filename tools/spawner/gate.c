#include "gate.h"

#include "spawner.h"

#include "base/child.h"
#include "base/fd.h"
#include "base/helper.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELPER "reeve-gate"
#define CHANNEL_FD 3            /* as the gate expects it */
#define EXE_FD 4

/* What all runs of a loop make it need together, and no more: RV_GATE_RUNS_MAX runs with their connections. */
#define MEMORY_BYTES ((uint64_t)512 << 20)
#define PIDS 16u

void gate_find(struct gate *gate)
{
        gate->exe_fd = gate->pidfd = gate->uids.lock_fd = -EBADF;
        (void)rv_helper_find("gate", HELPER, &gate->exe_fd, &gate->exe_error);
}

/* In the child: there is nobody to tell why it goes wrong; its end is seen. */
static _Noreturn void become(const struct gate *gate, int channel_fd)
{
        static const struct rlimit no_core = { 0, 0 };
        char *const argv[] = { (char *)HELPER, NULL }, *const envp[] = { NULL };
        uid_t uid = gate->uids.program_uid;

        if (dup2(channel_fd, CHANNEL_FD) < 0 || dup2(STDIN_FILENO, STDERR_FILENO) < 0 ||
            (gate->exe_fd != EXE_FD && dup3(gate->exe_fd, EXE_FD, O_CLOEXEC) < 0))
                _exit(126);
        if (rv_cgroup_join(&gate->cgroup) < 0 || syscall(SYS_close_range, EXE_FD + 1, ~0u, 0) < 0)
                _exit(126);
        rv_child_reset_signals();
        umask(077);
        (void)setrlimit(RLIMIT_CORE, &no_core);
        if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
                _exit(126);
        /* It is not tied to the spawner's life: its end is the end of the channel, and until then it has evidence to tell. */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                _exit(126);
        (void)syscall(SYS_execveat, EXE_FD, "", argv, envp, AT_EMPTY_PATH);
        _exit(127);
}

static int clone_gate(struct spawner *s, int channel_fd)
{
        struct gate *gate = &s->gate;
        struct clone_args args = {
                .flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uint64_t)(uintptr_t)&gate->pidfd
        };
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = gate };
        long pid;

        signer_forget(&s->signer);      /* the child has a copy of what is in memory now */
        if (rv_cgroup_clone_fd(&gate->cgroup) >= 0) {
                args.flags |= CLONE_INTO_CGROUP;
                args.cgroup = (uint64_t)rv_cgroup_clone_fd(&gate->cgroup);
        }
        pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid == 0)
                become(gate, channel_fd);
        if (pid < 0)
                return -errno;
        gate->pid = (pid_t)pid;
        return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, gate->pidfd, &e) < 0 ? -errno : 0;
}

static void release(struct spawner *s)
{
        struct gate *gate = &s->gate;

        gate->pid = 0;
        gate->pidfd = rv_close(gate->pidfd);
        (void)rv_cgroup_remove(&s->place, &gate->cgroup);
        rv_uid_release(&gate->uids);
}

/* Its ids and its cgroup. On failure nothing is left. */
static int prepare(struct spawner *s, struct rv_error *err)
{
        const struct rv_cgroup_limits limits = { .memory_bytes = MEMORY_BYTES, .pids = PIDS };
        struct gate *gate = &s->gate;
        char name[64];
        int r;

        gate->uids = (struct rv_uid_pair){ .lock_fd = -EBADF };
        if (geteuid() == 0) {
                r = rv_uid_take(s->config->uid_first, s->config->uid_last, &gate->uids, err);
                if (r < 0)
                        return r;
        }
        snprintf(name, sizeof(name), "reeve-%s-%u", s->place.instance, ++s->n_made);
        r = rv_cgroup_make(&s->place, name, &gate->cgroup, err);
        if (r < 0) {
                rv_uid_release(&gate->uids);
                return r;
        }
        r = rv_cgroup_limit(&s->place, &gate->cgroup, &limits, err);
        if (r < 0)
                release(s);
        return r;
}

int gate_start(struct spawner *s, struct rv_error *err)
{
        struct rv_spawn_event event = { .struct_size = sizeof(event), .kind = RV_SPAWN_GATE };
        struct gate *gate = &s->gate;
        int pair[2], r;

        if (gate->pid)
                return 0;
        if (gate->exe_fd < 0)
                return rv_error_set(err, -ENOENT, "%s", gate->exe_error.message);
        r = prepare(s, err);
        if (r < 0)
                return r;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                r = rv_error_set(err, -errno, "cannot make a socket pair: %s", strerror(errno));
                release(s);
                return r;
        }
        gate->was_killed = false;
        r = clone_gate(s, pair[1]);
        rv_close(pair[1]);
        if (r == 0)
                spawner_report(s, 0, &event, &pair[0], 1);
        rv_close(pair[0]);
        if (r == 0)
                return 0;
        rv_error_set(err, r, "cannot start the helper " HELPER ": %s", strerror(-r));
        if (gate->pid) {
                gate_kill(gate);
                gate_on_end(s);
        } else {
                release(s);
        }
        return r;
}

static void describe_end(const siginfo_t *info, char *text, size_t size)
{
        if (info->si_code == CLD_EXITED && info->si_status == 127)
                snprintf(text, size, "the gate cannot be executed");
        else if (info->si_code == CLD_EXITED)
                snprintf(text, size, "the gate ended with status %d", info->si_status);
        else
                snprintf(text, size, "the gate was ended by signal %d", info->si_status);
}

void gate_on_end(struct spawner *s)
{
        struct rv_spawn_event event = { .struct_size = sizeof(event), .kind = RV_SPAWN_GATE_LOST };
        struct rv_cgroup_counters counters;
        struct gate *gate = &s->gate;
        siginfo_t info = { 0 };
        size_t n;

        while (waitid(P_PIDFD, (id_t)gate->pidfd, &info, WEXITED) < 0 && errno == EINTR)
                ;
        rv_cgroup_count(&gate->cgroup, &counters);
        describe_end(&info, event.fault_text, sizeof(event.fault_text));
        n = strlen(event.fault_text);
        if (counters.n_oom_kills)
                snprintf(event.fault_text + n, sizeof(event.fault_text) - n, ", at its memory limit of %u MiB", (unsigned)(MEMORY_BYTES >> 20));
        release(s);
        if (!gate->was_killed)
                spawner_report(s, 0, &event, NULL, 0);
}

void gate_kill(struct gate *gate)
{
        gate->was_killed = true;
        if (gate->pidfd >= 0)
                (void)syscall(SYS_pidfd_send_signal, gate->pidfd, SIGKILL, NULL, 0);
}
