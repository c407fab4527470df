#include "layer.h"

#include "request.h"
#include "spawner.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/text.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELPER "reeve-unpack"
#define EXE_FD 6                /* above all that the helper is given */

#define MEMORY_BYTES ((uint64_t)512 << 20)
#define PIDS 4u

/* ---- For runs ---- */

/* Whoever owns STATE could put anything in the layers' place: it has to be the spawner's own. */
static bool is_own(int fd)
{
        struct stat st;

        return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 022);
}

bool layers_show(const struct spawner *s, char **ret_path, int *ret_fd)
{
        _cleanup_(rv_closep) int state_fd = open(s->config->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(rv_closep) int packages_fd = state_fd < 0 ? -EBADF : openat(state_fd, "packages", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_(rv_closep) int fd = packages_fd < 0 ? -EBADF : openat(packages_fd, "layers", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int tree;

        if (fd < 0 || !is_own(fd))
                return false;
        if (geteuid() != 0)
                return asprintf(ret_path, "%s/packages/layers", s->config->state_dir) > 0;
        tree = (int)syscall(SYS_open_tree, fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0)
                return false;
        *ret_fd = tree;
        return true;
}

/* ---- The helper ---- */

static void report(struct spawner *s, uint64_t id, int e, const char *text)
{
        struct rv_spawn_event event = {
                .struct_size = sizeof(event), .kind = RV_SPAWN_LAYER, .fault_errno = e < 0 ? -e : e
        };

        rv_text_copy(event.fault_text, sizeof(event.fault_text), text);
        spawner_report(s, id, &event, NULL, 0);
}

/* Descriptors 0 to 5 of the helper, lifted first so that none is overwritten before it is taken. */
static int arrange(const int from[EXE_FD])
{
        int lifted[EXE_FD];

        for (int i = 0; i < EXE_FD; i++) {
                lifted[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 2 * EXE_FD);
                if (lifted[i] < 0)
                        return -1;
        }
        for (int i = 0; i < EXE_FD; i++)
                if (dup2(lifted[i], i) < 0)
                        return -1;
        return 0;
}

/* In the child: its end is seen, and there is nobody to tell more. */
static _Noreturn void become(const struct spawner *s, const struct layer_job *job, const int fds[EXE_FD])
{
        char *const argv[] = { (char *)HELPER, (char *)(job->kind == RV_SPAWN_REQUEST_BUILD ? "build" : "compiled"), NULL };
        char *const envp[] = { NULL };
        uid_t uid = job->uids.program_uid;
        int exe_fd = fcntl(s->unpack_fd, F_DUPFD_CLOEXEC, 4 * EXE_FD);

        if (exe_fd < 0 || arrange(fds) < 0 || dup3(exe_fd, EXE_FD, O_CLOEXEC) < 0)
                _exit(126);
        if (rv_cgroup_join(&job->cgroup) < 0 || syscall(SYS_close_range, EXE_FD + 1, ~0u, 0) < 0)
                _exit(126);
        rv_child_reset_signals();
        umask(022);
        if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
                _exit(126);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                _exit(126);
        (void)syscall(SYS_execveat, EXE_FD, "", argv, envp, AT_EMPTY_PATH);
        _exit(127);
}

static int clone_helper(struct spawner *s, struct layer_job *job, const int fds[EXE_FD])
{
        struct clone_args args = {
                .flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uint64_t)(uintptr_t)&job->pidfd
        };
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = &job->pidfd };
        long pid;

        signer_forget(&s->signer);      /* the child has a copy of what is in memory now */
        if (rv_cgroup_clone_fd(&job->cgroup) >= 0) {
                args.flags |= CLONE_INTO_CGROUP;
                args.cgroup = (uint64_t)rv_cgroup_clone_fd(&job->cgroup);
        }
        pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid == 0)
                become(s, job, fds);
        if (pid < 0)
                return -errno;
        job->pid = (pid_t)pid;
        return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, job->pidfd, &e) < 0 ? -errno : 0;
}

static void release(struct spawner *s, struct layer_job *job)
{
        rv_close(job->pidfd);
        rv_close(job->lock_fd);
        rv_layers_stage_close(&job->stage);
        if (job->placed)
                munmap(job->placed, sizeof(*job->placed));
        (void)rv_cgroup_remove(&s->place, &job->cgroup);
        rv_uid_release(&job->uids);
        free(job);
}

static int open_store(struct spawner *s, struct rv_error *err)
{
        int r;

        if (s->has_layers)
                return 0;
        r = rv_layers_open(s->config->state_dir, &s->layers, err);
        if (r < 0)
                return r;
        s->has_layers = true;
        (void)rv_layers_sweep(&s->layers);
        return 0;
}

/* Ids and a cgroup. */
static int prepare(struct spawner *s, struct layer_job *job, struct rv_error *err)
{
        const struct rv_cgroup_limits limits = { .memory_bytes = MEMORY_BYTES, .pids = PIDS };
        char name[64];
        int r;

        if (!s->has_place)
                return rv_error_set(err, s->place_error.code, "%s", s->place_error.message);
        if (s->unpack_fd < 0)
                return rv_error_set(err, -ENOENT, "the helper " HELPER " is not there: install all of reeve");
        if (geteuid() == 0) {
                r = rv_uid_take(s->config->uid_first, s->config->uid_last, &job->uids, err);
                if (r < 0)
                        return r;
        }
        snprintf(name, sizeof(name), "reeve-%s-%u", s->place.instance, ++s->n_made);
        r = rv_cgroup_make(&s->place, name, &job->cgroup, err);
        return r < 0 ? r : rv_cgroup_limit(&s->place, &job->cgroup, &limits, err);
}

static int open_tree_of(const struct spawner *s, const char *digest, int *ret_fd, struct rv_error *err)
{
        char path[RV_LAYER_DIGEST_SIZE + 8];
        int fd, r;

        snprintf(path, sizeof(path), "%s/tree", digest);
        fd = openat(s->layers.layers_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) {
                r = -errno;
                return rv_error_set(err, r, "cannot open the layer %s: %s", digest, strerror(-r));
        }
        *ret_fd = fd;
        return 0;
}

static int start(
        struct spawner *s, struct layer_job *job, const int given[RV_SPAWN_LAYER_FD_MAX_], struct rv_error *err)
{
        uid_t uid = geteuid() == 0 ? job->uids.program_uid : geteuid();
        _cleanup_(rv_closep) int tree_fd = -EBADF;
        int fds[EXE_FD], r;

        r = open_store(s, err);
        if (r == 0)
                r = rv_layers_stage(&s->layers, job->run_id, uid, uid, &job->stage, err);
        if (r == 0 && job->kind == RV_SPAWN_REQUEST_COMPILED)
                r = open_tree_of(s, job->digest, &tree_fd, err);
        if (r < 0)
                return r;
        fds[0] = given[RV_SPAWN_LAYER_FD_JOB];
        fds[1] = given[RV_SPAWN_LAYER_FD_RESULT];
        fds[2] = STDIN_FILENO;          /* /dev/null */
        fds[3] = given[RV_SPAWN_LAYER_FD_ARTIFACTS];
        fds[4] = job->stage.dir_fd;
        fds[5] = tree_fd >= 0 ? tree_fd : STDIN_FILENO;
        r = clone_helper(s, job, fds);
        if (r < 0)
                rv_error_set(err, r, "cannot start the helper " HELPER ": %s", strerror(-r));
        return r;
}

void layer_begin(struct spawner *s, const struct rv_spawn_request *q, const int fds[RV_SPAWN_LAYER_FD_MAX_])
{
        struct layer_job *job = calloc(1, sizeof(*job));
        const char *fault = request_find_fault(s->config, q);
        struct rv_error err = { 0 };
        int r;

        if (job) {
                *job = (struct layer_job){ .id = q->id, .kind = q->kind, .pidfd = -EBADF, .uids.lock_fd = -EBADF,
                        .stage = { -EBADF, -EBADF }, .lock_fd = -EBADF };
                job->cgroup.oom_event_fd = -EBADF;
                for (int i = 0; i < RV_CGROUP_MAX_; i++)
                        job->cgroup.dir_fd[i] = job->cgroup.tasks_fd[i] = -EBADF;
                memcpy(job->run_id, q->run_id, sizeof(job->run_id));
                memcpy(job->digest, q->layer, sizeof(job->digest));
        }
        if (!job)
                r = rv_error_set(&err, -ENOMEM, "the spawner is out of memory");
        else if (fault)
                r = rv_error_set(&err, -EINVAL, "the loop asked for what may not be: %s", fault);
        else
                r = prepare(s, job, &err);
        if (r == 0)
                r = start(s, job, fds, &err);
        for (int i = 0; i < RV_SPAWN_LAYER_FD_LOCK; i++)
                rv_close(fds[i]);
        if (job)
                job->lock_fd = fds[RV_SPAWN_LAYER_FD_LOCK];
        else
                rv_close(fds[RV_SPAWN_LAYER_FD_LOCK]);
        if (r == 0) {
                job->next = s->layer_jobs;
                s->layer_jobs = job;
                return;
        }
        report(s, q->id, r, err.message);
        if (job && job->pid) {
                (void)syscall(SYS_pidfd_send_signal, job->pidfd, SIGKILL, NULL, 0);
                (void)waitpid(job->pid, NULL, 0);
        }
        if (job)
                release(s, job);
}

static void describe_end(const siginfo_t *info, uint64_t n_oom_kills, struct rv_error *err)
{
        if (n_oom_kills)
                rv_error_set(err, -ENOMEM, "the helper " HELPER " met its memory limit of %u MiB", (unsigned)(MEMORY_BYTES >> 20));
        else if (info->si_code == CLD_EXITED)
                rv_error_set(err, -EIO, "the helper " HELPER " ended with status %d", info->si_status);
        else
                rv_error_set(err, -EIO, "the helper " HELPER " was ended by signal %d", info->si_status);
}

/* Nothing of its user is left, or may be: what it made does not change any more. */
static int place(const struct spawner *s, const struct layer_job *job, struct rv_error *err)
{
        if (job->kind == RV_SPAWN_REQUEST_BUILD)
                return rv_layers_publish(&s->layers, job->run_id, job->digest, job->lock_fd, err);
        return rv_layers_add_compiled(&s->layers, job->run_id, job->digest, err);
}

/* All of it goes to the disk, and other runs are not to wait for that: a child does it, and says how it went in memory that is shared. */
static int begin_placing(struct spawner *s, struct layer_job *job)
{
        struct clone_args args = {
                .flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uint64_t)(uintptr_t)&job->pidfd
        };
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = &job->pidfd };
        void *memory = mmap(NULL, sizeof(struct rv_error), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        long pid;

        if (memory == MAP_FAILED)
                return -errno;
        job->placed = memory;
        job->pidfd = rv_close(job->pidfd);
        signer_forget(&s->signer);      /* the child has a copy of what is in memory now */
        pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid == 0)
                _exit(place(s, job, job->placed) < 0);
        if (pid < 0)
                return -errno;
        job->pid = (pid_t)pid;
        return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, job->pidfd, &e) < 0 ? -errno : 0;
}

static void await(struct layer_job *job, siginfo_t *ret)
{
        *ret = (siginfo_t){ 0 };
        while (waitid(P_PIDFD, (id_t)job->pidfd, ret, WEXITED) < 0 && errno == EINTR)
                ;
}

/* Returns whether it goes on. */
static bool conclude_helper(struct spawner *s, struct layer_job *job)
{
        struct rv_cgroup_counters counters;
        struct rv_error err = { 0 };
        siginfo_t info;
        int r;

        await(job, &info);
        rv_cgroup_count(&job->cgroup, &counters);
        if (info.si_code == CLD_EXITED && info.si_status == 0) {
                r = begin_placing(s, job);
                if (r == 0)
                        return true;
                rv_error_set(&err, r, "cannot start a process that puts the layer in place: %s", strerror(-r));
        } else {
                describe_end(&info, counters.n_oom_kills, &err);
        }
        (void)rv_layers_unstage(&s->layers, job->run_id);
        report(s, job->id, err.code, err.message);
        return false;
}

static void conclude_placing(struct spawner *s, struct layer_job *job)
{
        siginfo_t info;
        int e = 0;

        await(job, &info);
        if (info.si_code != CLD_EXITED || info.si_status != 0) {
                (void)rv_layers_unstage(&s->layers, job->run_id);
                e = job->placed->code ? job->placed->code : -EIO;
        }
        job->placed->message[sizeof(job->placed->message) - 1] = 0;
        report(s, job->id, e, job->placed->message);
}

bool layer_on_end(struct spawner *s, const void *what)
{
        for (struct layer_job **p = &s->layer_jobs; *p; p = &(*p)->next) {
                struct layer_job *job = *p;

                if (what != &job->pidfd)
                        continue;
                /* One that could not be begun has `placed` too, and is told of by conclude_helper() already. */
                if (job->placed)
                        conclude_placing(s, job);
                else if (conclude_helper(s, job))
                        return true;
                *p = job->next;
                release(s, job);
                return true;
        }
        return false;
}

void layer_stop(struct spawner *s, uint64_t id)
{
        for (struct layer_job *job = s->layer_jobs; job; job = job->next)
                if (job->id == id && !job->placed)
                        (void)syscall(SYS_pidfd_send_signal, job->pidfd, SIGKILL, NULL, 0);
}

void layer_stop_all(struct spawner *s)
{
        for (struct layer_job *job = s->layer_jobs; job; job = job->next)
                (void)syscall(SYS_pidfd_send_signal, job->pidfd, SIGKILL, NULL, 0);
}
