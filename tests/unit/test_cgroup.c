/*
 * A run's control groups on this host's own hierarchies: made, limited, read back, joined, verified, counted,
 * removed; and what happens where a limit cannot be written or does not hold.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "cgroup.h"
#include "test_privilege.h"

#define MIB ((uint64_t)1 << 20)

static const struct rv_cgroup_limits limits = { .memory_bytes = 128 * MIB, .pids = 10 };

static int open_place(void **state)
{
        static struct rv_cgroup_place place;
        struct rv_error err = { 0 };

        *state = NULL;
        if (geteuid() != 0 || access("/sys/fs/cgroup/memory/memory.limit_in_bytes", F_OK) < 0)
                return 0;
        if (rv_cgroup_place_open(NULL, &place, &err) != 0) {
                print_error("%s\n", err.message);
                return -1;
        }
        *state = &place;
        return 0;
}

static int close_place(void **state)
{
        if (*state)
                rv_cgroup_place_close(*state);
        return 0;
}

static struct rv_cgroup_place *need_place(void **state)
{
        need_root();
        if (!*state)
                cannot_run("root", "the memory controller of cgroup v1 is not mounted here");
        return *state;
}

/* Where @file of a cgroup is: the helper's own way to it, not the one under test. */
static const char *path_of(const struct rv_cgroup_place *place, int controller, const char *name, const char *file)
{
        static char paths[4][1200];
        static unsigned next;
        char *path = paths[next++ % 4];

        snprintf(path, sizeof(paths[0]), "%s/%s%s%s", place->h[controller].path, name, *file ? "/" : "", file);
        return path;
}

static uint64_t read_number(const char *path)
{
        char text[64] = "";
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                fail_msg("%s: %s", path, strerror(errno));
        assert_true(read(fd, text, sizeof(text) - 1) > 0);
        close(fd);
        return strtoull(text, NULL, 10);
}

static unsigned count_left(const struct rv_cgroup_place *place, const char *name)
{
        unsigned n = 0;

        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                n += place->h[i].dir_fd >= 0 && access(path_of(place, i, name, ""), F_OK) == 0;
        return n;
}

static void make(const struct rv_cgroup_place *place, const char *name, struct rv_cgroup *ret)
{
        struct rv_error err = { 0 };

        if (rv_cgroup_make(place, name, ret, &err) != 0)
                fail_msg("%s", err.message);
}

static void make_limited(
        const struct rv_cgroup_place *place, const char *name, const struct rv_cgroup_limits *l, struct rv_cgroup *ret)
{
        struct rv_error err = { 0 };

        make(place, name, ret);
        if (rv_cgroup_limit(place, ret, l, &err) != 0)
                fail_msg("%s", err.message);
}

/* A child that joins, says so, does @work and then waits to be killed. */
static pid_t join(const struct rv_cgroup *cg, int (*work)(void))
{
        int ready[2], result = -1;
        pid_t pid;

        assert_int_equal(pipe(ready), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                int r = rv_cgroup_join(cg);

                if (r == 0 && work)
                        r = work();
                (void)!write(ready[1], &r, sizeof(r));
                for (;;)
                        pause();
        }
        close(ready[1]);
        if (read(ready[0], &result, sizeof(result)) != sizeof(result))
                result = -EPIPE;        /* it died */
        close(ready[0]);
        if (!work)
                assert_int_equal(result, 0);
        return pid;
}

static int end(pid_t pid)
{
        int status = -1;

        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

static void limits_are_written(void **state)
{
        const struct rv_cgroup_limits l = { .memory_bytes = 200 * MIB, .pids = 33, .cpus_milli = 1500 };
        struct rv_cgroup_place *place = need_place(state);
        const char *name = "reeve-test-limits";
        struct rv_cgroup cg;
        char instance[32];

        snprintf(instance, sizeof(instance), "%d.", (int)getpid());
        assert_int_equal(strncmp(place->instance, instance, strlen(instance)), 0);
        make_limited(place, name, &l, &cg);
        assert_int_equal(read_number(path_of(place, RV_CGROUP_MEMORY, name, "memory.limit_in_bytes")), 200 * MIB);
        assert_int_equal(read_number(path_of(place, RV_CGROUP_MEMORY, name, "memory.memsw.limit_in_bytes")), 200 * MIB);
        assert_int_equal(read_number(path_of(place, RV_CGROUP_PIDS, name, "pids.max")), 33);
        assert_int_equal(read_number(path_of(place, RV_CGROUP_CPU, name, "cpu.cfs_quota_us")), 150000);
        assert_int_equal(cg.memory_limit_bytes, 200 * MIB);
        assert_true(count_left(place, name) >= 3);
        assert_int_equal(rv_cgroup_remove(place, &cg), 0);
        assert_int_equal(count_left(place, name), 0);
}

static void without_a_quota_there_is_none(void **state)
{
        struct rv_cgroup_place *place = need_place(state);
        char text[16] = "";
        struct rv_cgroup cg;
        int fd;

        make_limited(place, "reeve-test-quota", &limits, &cg);
        fd = open(path_of(place, RV_CGROUP_CPU, "reeve-test-quota", "cpu.cfs_quota_us"), O_RDONLY);
        assert_true(read(fd, text, sizeof(text) - 1) > 0);
        close(fd);
        assert_string_equal(text, "-1\n");
        assert_int_equal(rv_cgroup_remove(place, &cg), 0);
}

static int touch_20_mib(void)
{
        char *p = mmap(NULL, 20 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
                return -ENOMEM;
        memset(p, 1, 20 * MIB);
        return 0;
}

static void joined_verified_counted(void **state)
{
        struct rv_cgroup_place *place = need_place(state);
        struct rv_cgroup_counters counters;
        struct rv_error err = { 0 };
        struct rv_cgroup cg;
        pid_t pid;

        make_limited(place, "reeve-test-join", &limits, &cg);
        assert_int_equal(rv_cgroup_verify(place, &cg, getpid(), &err), -ESRCH);
        assert_non_null(strstr(err.message, place->h[RV_CGROUP_MEMORY].path));
        pid = join(&cg, touch_20_mib);
        assert_int_equal(rv_cgroup_verify(place, &cg, pid, NULL), 0);
        end(pid);
        rv_cgroup_count(&cg, &counters);
        assert_in_range(counters.peak_memory_bytes, 20 * MIB, 128 * MIB);
        assert_true(counters.cpu_us > 0);
        assert_int_equal(counters.n_oom_kills, 0);
        assert_false(counters.is_memory_limit_reached);
        assert_int_not_equal(rv_cgroup_verify(place, &cg, pid, NULL), 0);
        assert_int_equal(rv_cgroup_remove(place, &cg), 0);
}

/* In all but one is not enough. */
static void half_joined_is_not_verified(void **state)
{
        struct rv_cgroup_place *place = need_place(state);
        struct rv_cgroup cg, part;
        pid_t pid;

        make_limited(place, "reeve-test-half", &limits, &cg);
        part = cg;
        part.tasks_fd[RV_CGROUP_PIDS] = -EBADF;
        pid = join(&part, NULL);
        assert_int_equal(rv_cgroup_verify(place, &cg, pid, NULL), -ESRCH);
        end(pid);
        assert_int_equal(rv_cgroup_remove(place, &cg), 0);
}

/* Two names of which one begins like the other are two cgroups. */
static void a_longer_name_is_another(void **state)
{
        struct rv_cgroup_place *place = need_place(state);
        struct rv_cgroup a, b;
        pid_t pid;

        make_limited(place, "reeve-test-name", &limits, &a);
        make_limited(place, "reeve-test-name-2", &limits, &b);
        pid = join(&b, NULL);
        assert_int_equal(rv_cgroup_verify(place, &a, pid, NULL), -ESRCH);
        assert_int_equal(rv_cgroup_verify(place, &b, pid, NULL), 0);
        end(pid);
        assert_int_equal(rv_cgroup_remove(place, &a), 0);
        assert_int_equal(rv_cgroup_remove(place, &b), 0);
}

static int touch_too_much(void)
{
        char *p = mmap(NULL, 256 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (p == MAP_FAILED)
                return -ENOMEM;
        for (uint64_t i = 0; i < 256 * MIB; i += 4096)
                p[i] = 1;
        return 0;
}

static void out_of_memory_is_told(void **state)
{
        struct rv_cgroup_place *place = need_place(state);
        struct rv_cgroup_counters counters;
        struct rv_cgroup cg;
        struct pollfd p;
        pid_t pid;

        make_limited(place, "reeve-test-oom", &limits, &cg);
        p = (struct pollfd){ .fd = cg.oom_event_fd, .events = POLLIN };
        assert_int_equal(poll(&p, 1, 0), 0);
        pid = join(&cg, touch_too_much);
        assert_int_equal(poll(&p, 1, 5000), 1);
        assert_true(WIFSIGNALED(end(pid)));
        rv_cgroup_count(&cg, &counters);
        assert_true(counters.n_oom_kills >= 1);
        assert_true(counters.is_memory_limit_reached);
        assert_in_range(counters.peak_memory_bytes, 126 * MIB, 128 * MIB);
        assert_int_equal(rv_cgroup_remove(place, &cg), 0);
}

/* Joins, forks as long as it can, tells how many it has, and ends them all and itself. */
static _Noreturn void fork_20(const struct rv_cgroup *cg, int fd)
{
        int n = 0;

        if (rv_cgroup_join(cg) != 0 || setsid() < 0)
                _exit(1);
        while (n < 20) {
                pid_t pid = fork();

                if (pid == 0)
                        for (;;)
                                pause();
                if (pid < 0)
                        break;
                n++;
        }
        if (n < 20 && errno != EAGAIN)
                n = -errno;
        (void)!write(fd, &n, sizeof(n));
        kill(0, SIGKILL);
        _exit(1);
}

static void processes_are_limited(void **state)
{
        struct rv_cgroup_place *place = need_place(state);
        struct rv_cgroup cg;
        int ready[2], n = -1;
        pid_t pid;

        make_limited(place, "reeve-test-pids", &limits, &cg);
        assert_int_equal(pipe(ready), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                fork_20(&cg, ready[1]);
        assert_int_equal(read(ready[0], &n, sizeof(n)), sizeof(n));
        assert_int_equal(n, limits.pids - 1);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        close(ready[0]);
        close(ready[1]);
        assert_int_equal(rv_cgroup_remove(place, &cg), 0);      /* waits while its children die */
        assert_int_equal(count_left(place, "reeve-test-pids"), 0);
}

/* ---- Where it fails ---- */

static void a_name_that_is_there(void **state)
{
        struct rv_cgroup_place *place = need_place(state);
        const char *name = "reeve-test-there";
        struct rv_cgroup cg = { .oom_event_fd = 77 };
        struct rv_error err = { 0 };

        /* In the last hierarchy, so that the others have to be cleaned up again. */
        assert_int_equal(mkdir(path_of(place, RV_CGROUP_CPU, name, ""), 0755), 0);
        assert_int_equal(rv_cgroup_make(place, name, &cg, &err), -EEXIST);
        assert_int_equal(cg.oom_event_fd, 77);
        assert_non_null(strstr(err.message, place->h[RV_CGROUP_CPU].path));
        assert_int_equal(count_left(place, name), 1);
        assert_int_equal(rmdir(path_of(place, RV_CGROUP_CPU, name, "")), 0);
}

static const struct {
        const char *name;
        int controller;
        const char *file;
        const char *content;            /* what stands over it: not to be written if "", else a file that lies */
        int expected;
        bool is_always;                 /* also without a quota */
} unwritable[] = {
        { "memory, read-only", RV_CGROUP_MEMORY, "memory.limit_in_bytes", "", -EROFS, true },
        { "memory and swap, read-only", RV_CGROUP_MEMORY, "memory.memsw.limit_in_bytes", "", -EROFS, true },
        { "pids, read-only", RV_CGROUP_PIDS, "pids.max", "", -EROFS, true },
        { "quota, read-only", RV_CGROUP_CPU, "cpu.cfs_quota_us", "", -EROFS, false },
        { "memory keeps more than was written", RV_CGROUP_MEMORY, "memory.limit_in_bytes", "9999999999999999999", -EIO, true },
        { "swap keeps more than was written", RV_CGROUP_MEMORY, "memory.memsw.limit_in_bytes", "9999999999999999999", -EIO, true },
        { "pids keeps more than was written", RV_CGROUP_PIDS, "pids.max", "9999999999999999999", -EIO, true },
        { "quota keeps more than was written", RV_CGROUP_CPU, "cpu.cfs_quota_us", "9999999999999999999", -EIO, false },
};

static int cover_and_limit(const struct rv_cgroup_place *place, size_t row, bool has_quota, const char *cover)
{
        const struct rv_cgroup_limits l = { .memory_bytes = 128 * MIB, .pids = 10, .cpus_milli = has_quota ? 1000 : 0 };
        const char *name = "reeve-test-cover", *path = path_of(place, unwritable[row].controller, name, unwritable[row].file);
        struct rv_error err = { 0 };
        struct rv_cgroup cg;
        int r;

        if (rv_cgroup_make(place, name, &cg, NULL) != 0)
                return 2;
        if (mount(cover, path, NULL, MS_BIND, NULL) < 0)
                return 3;
        if (!*unwritable[row].content && mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
                return 4;
        r = rv_cgroup_limit(place, &cg, &l, &err);
        if (umount(path) < 0 || rv_cgroup_remove(place, &cg) != 0)
                return 5;
        if (count_left(place, name))
                return 6;
        if (r != (has_quota || unwritable[row].is_always ? unwritable[row].expected : 0))
                return 7;
        if (r < 0 &&
                (!strstr(err.message, unwritable[row].file) ||
                        !strstr(err.message, place->h[unwritable[row].controller].path)))
                return 8;
        return 0;
}

/* In a mount namespace of its own, with a place opened in it; 0, or which step went wrong. */
static int limit_over(size_t row, bool has_quota, const char *cover)
{
        struct rv_cgroup_place place;
        int r;

        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || rv_cgroup_place_open(NULL, &place, NULL) != 0)
                return 1;
        r = cover_and_limit(&place, row, has_quota, cover);
        rv_cgroup_place_close(&place);
        return r;
}

static void a_limit_that_does_not_hold(void **state)
{
        need_place(state);
        for (size_t i = 0; i < 2 * RV_N_ELEMENTS(unwritable); i++) {
                size_t row = i / 2, n = strlen(unwritable[row].content);
                char cover[] = "/tmp/reeve-test-cover-XXXXXX";
                int fd = mkstemp(cover), status;
                pid_t pid;

                assert_true(fd >= 0);
                assert_int_equal(write(fd, unwritable[row].content, n), n);
                close(fd);
                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0)
                        _exit(limit_over(row, i % 2, cover));
                assert_int_equal(waitpid(pid, &status, 0), pid);
                unlink(cover);
                if (status != 0)
                        fail_msg("%s, %s quota: step %d", unwritable[row].name, i % 2 ? "with a" : "without a", WEXITSTATUS(status));
        }
}

static void a_busy_cgroup_stays(void **state)
{
        struct rv_cgroup_place *place = need_place(state);
        const char *name = "reeve-test-busy";
        struct rv_cgroup cg;
        pid_t pid;

        make_limited(place, name, &limits, &cg);
        pid = join(&cg, NULL);
        assert_int_equal(rv_cgroup_remove(place, &cg), -EBUSY);
        assert_true(count_left(place, name) > 0);
        end(pid);
        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                if (place->h[i].dir_fd >= 0)
                        assert_int_equal(rmdir(path_of(place, i, name, "")), 0);
}

/* ---- Places ---- */

/* In a process of its own: an instance is named by its process. */
static int open_and_close(void)
{
        char own[RV_CGROUP_MAX_][600];
        struct rv_cgroup_place place;
        int n_own = 0;

        if (rv_cgroup_place_open(NULL, &place, NULL) != 0)
                return 1;
        for (int i = 0; i < RV_CGROUP_MAX_; i++) {
                snprintf(own[i], sizeof(own[i]), "%s", place.h[i].own_name[0] ? place.h[i].path : "");
                if (*own[i] && access(own[i], F_OK) < 0)
                        return 2;
                n_own += *own[i] != 0;
        }
        rv_cgroup_place_close(&place);
        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                if (place.h[i].dir_fd != -EBADF || (*own[i] && access(own[i], F_OK) == 0))
                        return 3;
        return n_own ? 0 : 100;
}

static void the_place_is_left_clean(void **state)
{
        int status;
        pid_t pid;

        need_place(state);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(open_and_close());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WEXITSTATUS(status) == 100)
                cannot_run("root", "this process is at the root of no hierarchy, so it makes no directory of its own");
        assert_int_equal(status, 0);
}

/* A path of the file system means the same in whichever hierarchy it is, and without one. */
static void check_file_system_paths(const struct rv_cgroup_place *want)
{
        static const char *const configured[] = {
                "/sys/fs/cgroup/reeve-test-place",
                "/sys/fs/cgroup/memory/reeve-test-place",
                "/sys/fs/cgroup/pids/reeve-test-place",
                "/sys/fs/cgroup/cpu/reeve-test-place",
                "/sys/fs/cgroup/systemd/reeve-test-place",
                "reeve-test-place/",
        };

        for (size_t row = 0; row < RV_N_ELEMENTS(configured); row++) {
                struct rv_error err = { 0 };
                struct rv_cgroup_place place;

                if (row == 4 && access("/sys/fs/cgroup/systemd/tasks", F_OK) < 0)
                        continue;
                if (rv_cgroup_place_open(configured[row], &place, &err) != 0)
                        fail_msg("%s: %s", configured[row], err.message);
                for (int i = 0; i < RV_CGROUP_MAX_; i++)
                        if (want->h[i].dir_fd >= 0)
                                assert_int_equal(strncmp(place.h[i].path, want->h[i].path, strlen(want->h[i].path)), 0);
                rv_cgroup_place_close(&place);
        }
}

static void a_configured_place(void **state)
{
        struct rv_cgroup_place *host = need_place(state), place;
        const char *below = "/reeve-test-place";
        struct rv_error err = { 0 };
        char paths[RV_CGROUP_MAX_][300];
        struct rv_cgroup cg;
        pid_t pid;

        place.instance[0] = 'x';
        assert_int_equal(rv_cgroup_place_open(below, &place, &err), -ENOENT);
        assert_int_equal(place.instance[0], 'x');
        assert_non_null(strstr(err.message, "/reeve-test-place"));
        assert_non_null(strstr(err.message, "cgroup:"));
        for (int i = 0; i < RV_CGROUP_MAX_; i++) {
                static const char *const controllers[] = { "memory", "pids", "cpu", "cpuacct" };

                snprintf(paths[i], sizeof(paths[i]), "/sys/fs/cgroup/%s%s", controllers[i], below);
                if (mkdir(paths[i], 0755) < 0)
                        assert_int_equal(errno, EEXIST);        /* two of them in one hierarchy */
        }
        assert_int_equal(rv_cgroup_place_open(below, &place, NULL), 0);
        assert_int_not_equal(place.h[RV_CGROUP_MEMORY].dir_fd, host->h[RV_CGROUP_MEMORY].dir_fd);
        assert_string_equal(place.h[RV_CGROUP_MEMORY].path, "/sys/fs/cgroup/memory/reeve-test-place");
        check_file_system_paths(&place);
        make_limited(&place, "run", &limits, &cg);
        pid = join(&cg, NULL);
        assert_int_equal(rv_cgroup_verify(&place, &cg, pid, NULL), 0);
        end(pid);
        assert_int_equal(rv_cgroup_remove(&place, &cg), 0);
        rv_cgroup_place_close(&place);
        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                if (rmdir(paths[i]) < 0)
                        assert_int_equal(errno, ENOENT);
}

/* A name that no living process has given, as of an instance in PID namespace @namespace, with a process in it. */
static pid_t make_left_over(const struct rv_cgroup_place *place, unsigned long namespace, struct rv_cgroup *ret)
{
        char name[64];
        pid_t gone = fork();

        assert_true(gone >= 0);
        if (gone == 0)
                _exit(0);
        end(gone);
        snprintf(name, sizeof(name), "reeve-%d.1.%lu-1", (int)gone, namespace);
        make(place, name, ret);
        return join(ret, NULL);
}

static void only_the_dead_of_this_pid_namespace_are_swept(void **state)
{
        struct rv_cgroup_place *place = need_place(state), below = *place;
        struct rv_cgroup dead, foreign;
        pid_t dead_pid, foreign_pid;
        unsigned n_foreign;
        char suffix[32];
        struct stat st;

        assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
        snprintf(suffix, sizeof(suffix), ".%lu", (unsigned long)st.st_ino);
        assert_non_null(strstr(place->instance, suffix));
        /* Only where this test has made something is swept, not beside it. */
        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                below.h[i].own_name[0] = 0;
        dead_pid = make_left_over(place, (unsigned long)st.st_ino, &dead);
        foreign_pid = make_left_over(place, (unsigned long)st.st_ino + 1, &foreign);
        assert_int_equal(rv_cgroup_sweep(&below, NULL, NULL), 0);
        assert_int_equal(waitpid(dead_pid, NULL, 0), dead_pid);
        assert_int_equal(count_left(place, dead.name), 0);
        assert_int_equal(waitpid(foreign_pid, NULL, WNOHANG), 0);
        n_foreign = count_left(place, foreign.name);
        assert_int_not_equal(n_foreign, 0);
        /* Empty, it is as one that is just being made, until its owner's lock ends. */
        end(foreign_pid);
        assert_int_equal(rv_cgroup_sweep(&below, NULL, NULL), 0);
        assert_int_equal(count_left(place, foreign.name), n_foreign);
        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                if (foreign.dir_fd[i] >= 0)
                        assert_int_equal(flock(foreign.dir_fd[i], LOCK_UN), 0);
        assert_int_equal(rv_cgroup_sweep(&below, NULL, NULL), 0);
        assert_int_equal(count_left(place, foreign.name), 0);
        assert_int_equal(rv_cgroup_remove(place, &foreign), 0);
        assert_int_equal(rv_cgroup_remove(place, &dead), 0);
}

/* As an ordinary user: 0 if all that tools/dev/delegate makes is used, and CPU time is counted in it. */
static int use_delegated(uid_t uid)
{
        struct rv_cgroup_place place;
        struct rv_cgroup_counters counters;
        struct rv_cgroup cg;
        pid_t pid;

        if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
                return 1;
        if (rv_cgroup_place_open(NULL, &place, NULL) != 0 || strcmp(place.rule, "delegated directory reeve-<uid>") != 0)
                return 2;
        if (rv_cgroup_make(&place, "reeve-test-delegated", &cg, NULL) != 0)
                return 3;
        pid = join(&cg, NULL);
        rv_cgroup_count(&cg, &counters);
        end(pid);
        if (rv_cgroup_remove(&place, &cg) != 0)
                return 4;
        rv_cgroup_place_close(&place);
        return counters.cpu_us > 0 ? 0 : 5;
}

static void a_delegated_place_counts_cpu_time(void **state)
{
        const uid_t uid = 2;            /* bin */
        char tool[512], command[600];
        int status;
        pid_t pid;

        need_place(state);
        snprintf(tool, sizeof(tool), "%.*s../../tools/dev/delegate", (int)(strlen(__FILE__) - strlen("test_cgroup.c")), __FILE__);
        if (access(tool, X_OK) < 0)
                cannot_run("root", "this was not started in the build directory");
        snprintf(command, sizeof(command), "%s bin >/dev/null", tool);
        assert_int_equal(system(command), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(use_delegated(uid));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        snprintf(command, sizeof(command), "%s --remove bin", tool);
        assert_int_equal(system(command), 0);
        assert_int_equal(status, 0);
}

#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, open_place, close_place)

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_PLACE(limits_are_written),
                IN_PLACE(without_a_quota_there_is_none),
                IN_PLACE(joined_verified_counted),
                IN_PLACE(half_joined_is_not_verified),
                IN_PLACE(a_longer_name_is_another),
                IN_PLACE(out_of_memory_is_told),
                IN_PLACE(processes_are_limited),
                IN_PLACE(a_name_that_is_there),
                IN_PLACE(a_limit_that_does_not_hold),
                IN_PLACE(a_busy_cgroup_stays),
                IN_PLACE(the_place_is_left_clean),
                IN_PLACE(a_configured_place),
                IN_PLACE(only_the_dead_of_this_pid_namespace_are_swept),
                IN_PLACE(a_delegated_place_counts_cpu_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
