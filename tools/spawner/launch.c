#include "request.h"
#include "spawner.h"

#include "base/fd.h"
#include "base/test_point.h"
#include "base/text.h"
#include "sandbox.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RUN_NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

void spawner_fail(
        struct spawner *s, uint64_t id, enum rv_backend_fault fault, int e, const char *step, const char *text)
{
        struct rv_spawn_event event = {
                .struct_size = sizeof(event), .kind = RV_SPAWN_FAILED, .fault = fault, .fault_errno = e < 0 ? -e : e
        };

        rv_text_copy(event.fault_step, sizeof(event.fault_step), step);
        rv_text_copy(event.fault_text, sizeof(event.fault_text), text);
        spawner_report(s, id, &event, NULL, 0);
}

void spawner_removed(struct spawner *s, uint64_t id, int e)
{
        struct rv_spawn_event event = { .struct_size = sizeof(event), .kind = RV_SPAWN_REMOVED, .fault_errno = -e };

        if (e < 0)
                snprintf(event.fault_text, sizeof(event.fault_text), "a cgroup of the run could not be removed: %s", strerror(-e));
        spawner_report(s, id, &event, NULL, 0);
}

struct rv_runtime *spawner_open_runtime(struct spawner *s, size_t i, struct rv_error *err)
{
        struct rv_config_runtime *config = &s->config->runtimes[i];
        struct rv_runtime *rt = &s->runtimes[i];
        const char *uv = rv_config_uv(s->config);
        char place[IMAGE_PLACE_SIZE];

        if (rt->config)
                return rt;
        if (config->image && !*config->root) {
                const char *root;

                if (image_mount(config, &s->images, place, err) < 0)
                        return NULL;
                root = rv_arena_strdup(&s->config->arena, place);
                if (!root) {
                        rv_error_set(err, -ENOMEM, "the spawner is out of memory");
                        return NULL;
                }
                config->root = root;    /* from here on it is a directory like another */
        }
        if (rv_runtime_open(config, rt, err) < 0)
                return NULL;
        if (uv && rv_runtime_add_uv(rt, uv) < 0) {
                rv_error_set(err, -ENOMEM, "the spawner is out of memory");
                rv_runtime_close(rt);
                return NULL;
        }
        return rt;
}

static struct rv_runtime *find_runtime(struct spawner *s, const char *name, struct rv_error *err)
{
        for (size_t i = 0; i < s->config->n_runtimes; i++)
                if (strcmp(s->config->runtimes[i].name, name) == 0)
                        return spawner_open_runtime(s, i, err);
        rv_error_set(err, -ENOENT, "no runtime %s in the configuration", name);
        return NULL;
}

static int write_proc(pid_t pid, const char *file, const char *text)
{
        char path[64];
        size_t n = strlen(text);
        int fd, r = 0;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (write(fd, text, n) != (ssize_t)n)
                r = -errno;
        rv_close(fd);
        return r;
}

/*
 * With ids of the run's own PID 1 is 0 inside and the program NS_PROGRAM_UID; an ordinary user has one id to map,
 * and both are that. Nothing else of the host has a name there.
 */
static int map_ids(const struct run *run)
{
        char map[96];
        int r;

        if (run->uids.lock_fd >= 0)
                snprintf(map, sizeof(map), "0 %u 1\n%u %u 1\n", run->uids.init_uid, NS_PROGRAM_UID, run->uids.program_uid);
        else
                snprintf(map, sizeof(map), "%u %u 1\n", NS_PROGRAM_UID, (unsigned)geteuid());
        r = write_proc(run->pid, "setgroups", "deny");
        if (r == 0)
                r = write_proc(run->pid, "uid_map", map);
        if (run->uids.lock_fd < 0)
                snprintf(map, sizeof(map), "%u %u 1\n", NS_PROGRAM_UID, (unsigned)getegid());
        if (r == 0)
                r = write_proc(run->pid, "gid_map", map);
        return r;
}

static int watch(struct spawner *s, int fd, void *what)
{
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = what };

        return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int start_child(struct spawner *s, struct run *run)
{
        struct clone_args args = { .flags = RUN_NAMESPACES | CLONE_PIDFD, .exit_signal = SIGCHLD };
        _cleanup_(rv_freep) char *layers = NULL;
        struct ns_child child = { .cgroup = &run->cgroup,
                .runtime = run->runtime,
                .has_own_uid = run->uids.lock_fd >= 0,
                .layers_fd = -EBADF };
        struct ns_message proceed = { .kind = NS_PROCEED };
        int pair[2], r;
        long pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        signer_forget(&s->signer);      /* the child has a copy of what is in memory now */
        run->has_layers = layers_show(s, &layers, &child.layers_fd);
        child.layers = layers;
        child.spawner_fd = pair[1];
        args.pidfd = (uint64_t)(uintptr_t)&run->pidfd;
        if (rv_cgroup_clone_fd(&run->cgroup) >= 0) {
                args.flags |= CLONE_INTO_CGROUP;
                args.cgroup = (uint64_t)rv_cgroup_clone_fd(&run->cgroup);
        }
        rv_test_point("before-clone");
        pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid == 0) {
                close(pair[0]);
                ns_child_main(&child);
        }
        r = pid < 0 ? -errno : 0;
        rv_close(child.layers_fd);
        rv_close(pair[1]);
        if (r < 0) {
                rv_close(pair[0]);
                return r;
        }
        run->pid = (pid_t)pid;
        run->sync_fd = pair[0];
        r = map_ids(run);
        if (r == 0 && send(run->sync_fd, &proceed, sizeof(proceed), MSG_NOSIGNAL) < 0)
                r = -errno;
        if (r == 0)
                r = watch(s, run->sync_fd, &run->sync_fd);
        if (r == 0)
                r = watch(s, run->pidfd, &run->pidfd);
        if (r == 0 && run->cgroup.oom_event_fd >= 0)
                r = watch(s, run->cgroup.oom_event_fd, &run->cgroup.oom_event_fd);
        return r;
}

/* Which knob a host turns to refuse a process its own namespaces. */
static void explain_clone(int e, struct rv_error *err)
{
        const char *knob = "see reeve doctor";

        if (e == -EPERM || e == -EACCES)
                knob = geteuid() == 0 ? "reeve needs CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID, and a seccomp profile that lets it make namespaces"
                                      : "allow user namespaces: kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0";
        else if (e == -ENOSPC)
                knob = "raise user.max_user_namespaces";
        else if (e == -EAGAIN)
                knob = "no more processes may be made: raise pids.max of reeve's cgroup or ulimit -u";
        rv_error_set(err, e, "cannot start a process in new namespaces: %s; %s", strerror(-e), knob);
}

struct failure {
        enum rv_backend_fault fault;
        const char *step;
        bool is_under_way;              /* there is a child: REMOVED is told when it is gone */
        struct rv_error err;
};

static void forget(struct spawner *s, struct run *run)
{
        rv_cgroup_remove(&s->place, &run->cgroup);
        rv_uid_release(&run->uids);
        free(run);
}

/* A run that is nobody's yet: ids, cgroups and a child that builds its root. NULL, or has_failed: see @f. */
static struct run *make_run(struct spawner *s, const struct rv_runtime *runtime, struct failure *f)
{
        struct run *run = calloc(1, sizeof(*run));
        char name[64];

        *f = (struct failure){ .fault = RV_BACKEND_FAULT_SETUP, .step = "take a user id" };
        if (!run) {
                rv_error_set(&f->err, -ENOMEM, "the spawner is out of memory");
                return NULL;
        }
        run->runtime = runtime;
        run->pidfd = run->sync_fd = run->box_fd = run->uids.lock_fd = run->cgroup.oom_event_fd = -EBADF;
        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                run->cgroup.dir_fd[i] = run->cgroup.tasks_fd[i] = -EBADF;
        if (geteuid() == 0 && rv_uid_take(s->config->uid_first, s->config->uid_last, &run->uids, &f->err) < 0)
                goto fail;
        f->fault = RV_BACKEND_FAULT_CAPABILITY;
        f->step = "memory";
        snprintf(name, sizeof(name), "reeve-%s-%u", s->place.instance, ++s->n_made);
        if (rv_cgroup_make(&s->place, name, &run->cgroup, &f->err) < 0)
                goto fail;
        f->fault = RV_BACKEND_FAULT_SETUP;
        f->step = "clone";
        f->err.code = start_child(s, run);
        if (f->err.code < 0) {
                int e = f->err.code;

                f->err.code = 0;
                explain_clone(e, &f->err);
        }
        if (run->pid <= 0)
                goto fail;
        run->next = s->runs;
        s->runs = run;
        if (!f->err.code)
                return run;
        run->has_failed = true;         /* half set up: it ends the usual way */
        run_kill(run);
        return run;
fail:
        forget(s, run);
        return NULL;
}

void spawner_prepare(struct spawner *s)
{
        struct rv_runtime *runtime;
        struct failure f;

        if (!s->has_place)
                return;
        runtime = find_runtime(s, s->config->tenants[0].runtime, NULL);
        if (runtime)
                s->spare = make_run(s, runtime, &f);
}

static struct run *take_run(struct spawner *s, const struct rv_runtime *runtime, bool needs_layers, struct failure *f)
{
        struct run *run = s->spare;

        s->spare = NULL;
        if (run && !run->has_failed && run->runtime == runtime && (run->has_layers || !needs_layers))
                return run;
        if (run)
                run_kill(run);
        return make_run(s, runtime, f);
}

static int assign(struct run *run, const struct rv_spawn_request *q, const int fds[RV_SPAWN_FD_MAX_])
{
        struct ns_message m = { .kind = NS_ASSIGN,
                .language = q->language,
                .memory_mib = q->memory_mib,
                .network = q->network,
                .is_resolver = q->is_resolver };
        int r;

        memcpy(m.layer, q->layer, sizeof(m.layer));
        r = rv_send_with_fds(run->sync_fd, &m, sizeof(m), fds, RV_SPAWN_FD_MAX_);

        /* One that is dead already has said why, or is told as a run that ended. */
        if (r < 0 && r != -EPIPE && r != -ECONNRESET)
                return r;
        return 0;
}

const char *spawner_network_capability(enum rv_plan_network network)
{
        switch (network) {
        case RV_PLAN_NETWORK_REGISTRIES:
                return "network_registries";
        case RV_PLAN_NETWORK_DOMAINS:
                return "network_domains";
        case RV_PLAN_NETWORK_ANY:
                return "network_any";
        default:
                return "network_none";
        }
}

static int open_gate(struct spawner *s, const struct run *run, struct failure *f)
{
        int r = gate_start(s, &f->err);

        f->fault = r == -ENOENT ? RV_BACKEND_FAULT_CAPABILITY : RV_BACKEND_FAULT_SETUP;
        f->step = r == -ENOENT ? spawner_network_capability(run->network) : "start the gate";
        return r;
}

/* Once for each interpreter of each image. */
static void warm(struct spawner *s, const struct rv_runtime *runtime, bool is_python)
{
        size_t i = (size_t)(runtime - s->runtimes);

        if (!runtime->config->image || i >= 64 || s->images.warmed[is_python] & UINT64_C(1) << i)
                return;
        s->images.warmed[is_python] |= UINT64_C(1) << i;
        image_warm(runtime->config, is_python);
}

static int launch_in(struct spawner *s, const struct rv_spawn_request *q, const int *fds, struct failure *f)
{
        struct rv_cgroup_limits limits = {
                .memory_bytes = (uint64_t)q->memory_mib << 20, .pids = q->pids, .cpus_milli = q->cpus_milli
        };
        struct rv_runtime *runtime;
        const char *interpreter;
        struct run *run;
        int r;

        *f = (struct failure){ .fault = RV_BACKEND_FAULT_RUNTIME, .step = "find the interpreter" };
        runtime = find_runtime(s, q->runtime, &f->err);
        if (!runtime || rv_runtime_interpreter(runtime, q->language, &interpreter, &f->err) < 0)
                return f->err.code;
        warm(s, runtime, q->language == RV_PLAN_PYTHON);
        run = take_run(s, runtime, q->layer[0] != 0, f);
        if (!run)
                return f->err.code;
        run->id = q->id;
        run->timeout_s = q->timeout_s;
        run->network = q->network;
        run->is_assigned = true;
        if (run->has_failed) {
                f->is_under_way = true;
                return f->err.code;
        }
        *f = (struct failure){ .fault = RV_BACKEND_FAULT_CAPABILITY, .step = "memory" };
        r = rv_cgroup_limit(&s->place, &run->cgroup, &limits, &f->err);
        /* /dev/stdin and the like open a pipe anew, which its owner may: that must be the program. */
        for (int i = RV_SPAWN_FD_STDIN; i <= RV_SPAWN_FD_STDERR && r == 0 && geteuid() == 0; i++)
                r = fchown(fds[i], run->uids.program_uid, run->uids.program_uid) < 0 ? -errno : 0;
        if (r == 0) {
                f->fault = RV_BACKEND_FAULT_SETUP;
                f->step = "assign the run";
                r = assign(run, q, fds);
        }
        if (r < 0)
                rv_error_set(&f->err, r, "cannot hand the run to its process: %s; see reeve doctor", strerror(-r));
        else if (q->network != RV_PLAN_NETWORK_NONE)
                r = open_gate(s, run, f);       /* while the child makes what it is to serve */
        if (r < 0) {
                run->has_failed = true;
                run_kill(run);
        }
        f->is_under_way = r < 0;
        if (r == 0)
                run_report_held(s, run);
        return r;
}

/* To be short of something for a moment is not to be unable to enforce a limit. */
static bool is_shortage(int e)
{
        return e == -EMFILE || e == -ENFILE || e == -ENOMEM || e == -EAGAIN || e == -EINTR || e == -ENOSPC;
}

void spawner_launch(struct spawner *s, const struct rv_spawn_request *q, const int fds[RV_SPAWN_FD_MAX_])
{
        struct failure f = { .fault = RV_BACKEND_FAULT_CAPABILITY, .step = "memory", .err = s->place_error };
        const char *fault = request_find_fault(s->config, q);
        int r = -EINVAL;

        if (fault)
                f = (struct failure){ .fault = RV_BACKEND_FAULT_SETUP, .step = "check the request" };
        if (fault)
                rv_error_set(&f.err, r, "the loop asked for what may not be: %s", fault);
        else if (s->has_place)
                r = launch_in(s, q, fds, &f);
        if (r < 0 && f.fault == RV_BACKEND_FAULT_CAPABILITY && is_shortage(f.err.code)) {
                f.fault = RV_BACKEND_FAULT_SETUP;
                f.step = "make the cgroups";
        }
        if (r < 0)
                spawner_fail(s, q->id, f.fault, f.err.code, f.step, f.err.message);
        if (r < 0 && !f.is_under_way)
                spawner_removed(s, q->id, 0);
        for (int i = 0; i < RV_SPAWN_FD_MAX_; i++)
                rv_close(fds[i]);
}
