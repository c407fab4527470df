#include "base/fd.h"
#include "cgroup_file.h"
#include "cgroup_place.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define LEAF "reeve-supervisor"         /* where reeve's own processes go, as controllers want no process beside them */
#define BUSCTL "/usr/bin/busctl"
#define SCOPE_WAIT_MS 3000

static const char *const wanted[] = { "memory", "pids", "cpu" };

static bool has_controllers(int dir_fd, const char *file)
{
        char text[512];

        if (rv_cgroup_read(dir_fd, file, text, sizeof(text)) < 0)
                return false;
        for (size_t i = 0; i < RV_N_ELEMENTS(wanted); i++)
                if (!rv_cgroup_has_word(text, wanted[i], ' '))
                        return false;
        return true;
}

/* Controllers for the children of @dir_fd. */
static int enable_controllers(int dir_fd)
{
        return has_controllers(dir_fd, "cgroup.subtree_control") ? 0 : rv_cgroup_write(dir_fd, "cgroup.subtree_control", "+memory +pids +cpu");
}

/* The spawner, and the loop that started it if it stands in the same cgroup, go to a leaf. */
static int move_to_leaf(int dir_fd)
{
        char procs[4096], pid[32];
        int leaf_fd, r = 0;

        if (mkdirat(dir_fd, LEAF, 0755) < 0 && errno != EEXIST)
                return -errno;
        leaf_fd = openat(dir_fd, LEAF, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (leaf_fd < 0)
                return -errno;
        if (rv_cgroup_read(dir_fd, "cgroup.procs", procs, sizeof(procs)) < 0)
                procs[0] = 0;
        for (char *save = NULL, *line = strtok_r(procs, "\n", &save); line && r == 0; line = strtok_r(NULL, "\n", &save)) {
                pid_t other = (pid_t)strtol(line, NULL, 10);

                if (other != getpid() && other != getppid())
                        continue;       /* not ours to move: enabling controllers then says EBUSY */
                snprintf(pid, sizeof(pid), "%d", (int)other);
                r = rv_cgroup_write(leaf_fd, "cgroup.procs", pid);
        }
        rv_close(leaf_fd);
        return r;
}

static int open_at(const char *point, const char *path, struct rv_cgroup_hierarchy *h, struct rv_error *err)
{
        int r;

        while (*path == '/')
                path++;
        snprintf(h->path, sizeof(h->path), "%s%s%s", point, *path ? "/" : "", path);
        snprintf(h->expect, sizeof(h->expect), "%s%s", *path ? "/" : "", path);
        h->dir_fd = open(h->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (h->dir_fd >= 0)
                return 0;
        r = -errno;
        return rv_error_set(err, rv_raise(r), "cannot open the cgroup %s: %s; set `cgroup:` in the configuration to one that reeve may write",
                            h->path, strerror(-r));
}

static void close_at(struct rv_cgroup_hierarchy *h)
{
        h->dir_fd = rv_close(h->dir_fd);
}

/* ---- 1: configured ---- */

static int use_configured(
        const char *configured, const char *point, struct rv_cgroup_place *place, struct rv_error *err)
{
        struct rv_cgroup_hierarchy *h = &place->h[0];
        int r;

        r = open_at(point, configured, h, err);
        if (r == 0)
                r = enable_controllers(h->dir_fd);
        if (r < 0)
                return rv_error_set(err, rv_raise(r), "the configured cgroup %s has no memory, pids and cpu controllers for its children: %s; it "
                                    "must be delegated to reeve and hold no process", h->path, strerror(-r));
        place->rule = "configured";
        return 0;
}

/* ---- 2: a delegated unit that reeve runs in ---- */

/* systemd marks a cgroup that it has delegated. */
static bool is_delegated(const char *path)
{
        char value[8];

        return (getxattr(path, "user.delegate", value, sizeof(value)) == 1 && value[0] == '1') ||
               (getxattr(path, "trusted.delegate", value, sizeof(value)) == 1 && value[0] == '1');
}

static int use_below(const char *point, const char *own, const char *rule, struct rv_cgroup_place *place)
{
        struct rv_cgroup_hierarchy *h = &place->h[0];
        int r;

        r = open_at(point, own, h, NULL);
        if (r == 0)
                r = move_to_leaf(h->dir_fd);
        if (r == 0)
                r = enable_controllers(h->dir_fd);
        if (r < 0) {
                close_at(h);
                return r;
        }
        place->rule = rule;
        return 0;
}

/* A reeve that runs in a unit where another one has made the leaf already finds itself there. */
static const char *without_leaf(const char *own, char *buffer, size_t size)
{
        size_t n = strlen(own), n_leaf = strlen("/" LEAF);

        if (n <= n_leaf || strcmp(own + n - n_leaf, "/" LEAF) || n >= size)
                return own;
        snprintf(buffer, size, "%.*s", (int)(n - n_leaf), own);
        return buffer;
}

/* ---- 3: a transient scope ---- */

/* systemd's own client asks for it: StartTransientUnit with this process in it, and Delegate. */
static int call_manager(bool is_user, const char *unit)
{
        char pid[32];
        char *argv[] = { BUSCTL, is_user ? "--user" : "--system", "--quiet", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                         "org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))", (char *)unit, "fail", "4",
                         "PIDs", "au", "1", pid, "Delegate", "b", "true", "CollectMode", "s", "inactive-or-failed",
                         "Description", "s", "isolation for reeve", "0", NULL };
        char runtime_dir[64];
        char *envp[] = { "PATH=/usr/bin:/bin", is_user ? runtime_dir : NULL, NULL };
        posix_spawn_file_actions_t files;
        pid_t child;
        int status, r;

        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        snprintf(runtime_dir, sizeof(runtime_dir), "XDG_RUNTIME_DIR=/run/user/%u", (unsigned)geteuid());
        posix_spawn_file_actions_init(&files);
        for (int fd = 0; fd < 3; fd++)
                posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
        r = posix_spawn(&child, BUSCTL, &files, NULL, argv, envp);
        posix_spawn_file_actions_destroy(&files);
        if (r)
                return -r;
        while (waitpid(child, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

/* The manager answers before it has moved us. */
static int await_scope(const char *unit, char *ret_own, size_t size)
{
        const struct timespec pause = { .tv_nsec = 1000 * 1000 };
        char text[RV_CGROUP_PROC_SIZE];
        unsigned id;

        for (int i = 0; i < SCOPE_WAIT_MS; i++) {
                if (rv_cgroup_read(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) == 0 &&
                    rv_cgroup_own_path(text, "", &id, ret_own, size) == 0 && strstr(ret_own, unit))
                        return 0;
                nanosleep(&pause, NULL);
        }
        return -ETIMEDOUT;
}

static bool has_manager(bool is_user)
{
        char path[64];

        if (!is_user)
                return access("/run/systemd/system", F_OK) == 0 && access(BUSCTL, X_OK) == 0;
        snprintf(path, sizeof(path), "/run/user/%u/systemd", (unsigned)geteuid());
        return access(path, F_OK) == 0 && access(BUSCTL, X_OK) == 0;
}

static int use_scope(const char *point, struct rv_cgroup_place *place)
{
        bool is_user = geteuid() != 0;
        char unit[96], own[256];
        int r;

        if (!has_manager(is_user))
                return -ENOENT;
        snprintf(unit, sizeof(unit), "reeve-%s.scope", place->instance);
        r = call_manager(is_user, unit);
        if (r == 0)
                r = await_scope(unit, own, sizeof(own));
        if (r == 0)
                r = use_below(point, own, is_user ? "transient scope of the user's manager" : "transient scope of the system's manager", place);
        return r;
}

/* ---- 4: a container's root, or the real one ---- */

/* Only the real root has no cgroup.events; there processes and controllers may stand side by side. */
static bool is_real_root(const char *point)
{
        char file[600];

        snprintf(file, sizeof(file), "%s/cgroup.events", point);
        return access(file, F_OK) < 0;
}

static int use_real_root(const char *point, struct rv_cgroup_place *place)
{
        struct rv_cgroup_hierarchy *h = &place->h[0];
        int r;

        r = open_at(point, "/", h, NULL);
        if (r == 0)
                r = enable_controllers(h->dir_fd);
        if (r < 0) {
                close_at(h);
                return r;
        }
        h->root_fd = h->dir_fd;
        snprintf(h->own_name, sizeof(h->own_name), "reeve-%s", place->instance);
        h->dir_fd = -EBADF;
        if (mkdirat(h->root_fd, h->own_name, 0755) < 0)
                return -errno;
        h->dir_fd = openat(h->root_fd, h->own_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (h->dir_fd < 0)
                return -errno;
        rv_cgroup_hold(h->dir_fd);
        snprintf(h->path, sizeof(h->path), "%s/%s", point, h->own_name);
        snprintf(h->expect, sizeof(h->expect), "/%s", h->own_name);
        place->rule = "the hierarchy's root";
        return enable_controllers(h->dir_fd);
}

static int refuse(
        const char *point, const char *own, bool is_container, int scope_error, int root_error, struct rv_error *err)
{
        if (is_container && geteuid() == 0)
                return rv_error_set(err, rv_raise(root_error), "cannot place runs in this container's cgroup %s: %s; mount /sys/fs/cgroup writable, with "
                                    "no process but reeve in its root, or set `cgroup:` in the configuration", point, strerror(-root_error));
        if (geteuid() != 0)
                return rv_error_set(err, rv_raise(-EACCES), "no cgroup to place runs in: uid %u owns none, and %s; log in (so that `systemctl --user` "
                                    "works), have root run `loginctl enable-linger`, or set `cgroup:` in the configuration to a delegated one",
                                    (unsigned)geteuid(), scope_error == -ENOENT ? "it has no systemd user manager" : "its systemd user manager gave no scope");
        return rv_error_set(err, rv_raise(-EBUSY), "no cgroup to place runs in: %s%s is not delegated, and %s; run reeve in a unit with Delegate=yes "
                            "(systemd-run --scope -p Delegate=yes), or set `cgroup:` in the configuration to a delegated one", point, own,
                            scope_error == -ENOENT ? "there is no systemd manager" : "systemd gave no scope");
}

int rv_cgroup_place_v2(
        const char *configured, const char *point, const char *own, struct rv_cgroup_place *place, struct rv_error *err)
{
        char path[600], buffer[256];
        const char *unit = without_leaf(own, buffer, sizeof(buffer));
        int scope_error, root_error = -EACCES;
        bool is_container;

        place->version = 2;
        if (configured) {
                /* As a path of the file system it is meant as well. */
                if (!strncmp(configured, point, strlen(point)) && configured[strlen(point)] == '/')
                        configured += strlen(point);
                return use_configured(configured, point, place, err);
        }
        snprintf(path, sizeof(path), "%s%s", point, unit);
        if (is_delegated(path) && use_below(point, unit, "delegated unit", place) == 0)
                return 0;
        scope_error = use_scope(point, place);
        if (scope_error == 0)
                return 0;
        /* In a namespace of its own the root may be empty although this process is not in it. */
        is_container = !is_real_root(point);
        if (is_container)
                root_error = use_below(point, "/", "the container's cgroup", place);
        else if (!strcmp(unit, "/"))
                root_error = use_real_root(point, place);
        if (root_error == 0)
                return 0;
        return refuse(point, unit, is_container, scope_error, root_error, err);
}
