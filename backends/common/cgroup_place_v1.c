#include "base/fd.h"
#include "cgroup_file.h"
#include "cgroup_place.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define TOP "/sys/fs/cgroup"

static const char *const controller_names[RV_CGROUP_MAX_] = { "memory", "pids", "cpu", "cpuacct" };

static void append(char *to, size_t size, const char *name)
{
        size_t n = strlen(to);

        snprintf(to + n, size - n, "/%s", name);
}

/* `reeve-<uid>` below @dir_fd, if it belongs to the caller: then it is the place. */
static int open_delegated(int dir_fd, struct rv_cgroup_hierarchy *h)
{
        char name[32];
        struct stat st;
        int fd;

        snprintf(name, sizeof(name), "reeve-%u", (unsigned)geteuid());
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -ENOENT;
        if (fstat(fd, &st) < 0 || st.st_uid != geteuid()) {
                rv_close(fd);
                return -ENOENT;
        }
        append(h->path, sizeof(h->path), name);
        append(h->expect, sizeof(h->expect), name);
        h->dir_fd = fd;
        return 0;
}

/* At a hierarchy's root runs get one directory of this instance's, so that the root stays tidy. */
static int make_own_directory(int dir_fd, const char *instance, struct rv_cgroup_hierarchy *h)
{
        char name[sizeof(h->own_name)];
        int fd;

        snprintf(name, sizeof(name), "reeve-%s", instance);
        if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
                return -errno;
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        rv_cgroup_hold(fd);
        h->dir_fd = fd;
        h->root_fd = dir_fd;
        memcpy(h->own_name, name, sizeof(name));
        append(h->path, sizeof(h->path), name);
        append(h->expect, sizeof(h->expect), name);
        return 0;
}

/* In a container /sys/fs/cgroup may be a writable tmpfs although the hierarchies are not: a mkdir there makes no cgroup. */
static bool is_cgroup(int fd)
{
        struct statfs fs;

        return fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP_SUPER_MAGIC;
}

static int choose(const char *configured, const char *own, const char *instance, int take_fd,
        struct rv_cgroup_place *place, struct rv_cgroup_hierarchy *h, struct rv_error *err)
{
        int r;

        if (!configured && open_delegated(take_fd, h) == 0) {
                rv_close(take_fd);
                place->rule = "delegated directory reeve-<uid>";
                return 0;
        }
        if (configured || (strcmp(own, "/") && faccessat(take_fd, ".", W_OK, AT_EACCESS) == 0)) {
                h->dir_fd = take_fd;
                return 0;
        }
        r = make_own_directory(take_fd, instance, h);
        if (r < 0) {
                rv_close(take_fd);
                return rv_error_set(err, rv_raise(r), "cannot make a cgroup in %s: %s; run as root, have root run tools/dev/delegate for this "
                                    "user, or set `cgroup:` in the configuration to one that reeve may write", h->path, strerror(-r));
        }
        return 0;
}

static int open_hierarchy(const char *controller, const char *cgroups, const char *configured,
        struct rv_cgroup_place *place, struct rv_cgroup_hierarchy *h, struct rv_error *err)
{
        char point[256], root[256], own[200];
        const char *below;
        int fd, r;

        r = rv_cgroup_own_path(cgroups, controller, &h->id, own, sizeof(own));
        if (r == 0)
                r = rv_cgroup_mount(controller, point, root, sizeof(point));
        if (r < 0)
                return rv_error_set(err, -ENOTSUP, "no cgroup hierarchy with the %s controller is mounted; mount it (mount -t cgroup -o %s "
                                    "cgroup /sys/fs/cgroup/%s), or boot with systemd.unified_cgroup_hierarchy=1", controller, controller, controller);
        below = configured ? configured : own;
        /* In a container the mount shows only the part of the hierarchy from `root` on. */
        if (!configured && strcmp(root, "/") && !strncmp(below, root, strlen(root)))
                below += strlen(root);
        while (*below == '/')
                below++;
        snprintf(h->path, sizeof(h->path), "%s%s%s", point, *below ? "/" : "", below);
        snprintf(h->expect, sizeof(h->expect), "%s", strcmp(own, "/") ? own : "");
        if (configured)
                snprintf(h->expect, sizeof(h->expect), "%s%.*s", *below ? "/" : "", (int)sizeof(h->expect) - 2, below);
        fd = open(h->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && !is_cgroup(fd)) {
                rv_close(fd);
                fd = -1;
                errno = ENOTSUP;
        }
        if (fd < 0) {
                r = -errno;
                return rv_error_set(err, rv_raise(r), "cannot open the cgroup %s: %s; set `cgroup:` in the configuration to one that reeve may write",
                                    h->path, strerror(-r));
        }
        return choose(configured, own, place->instance, fd, place, h, err);
}

static size_t skip(const char *path, const char *prefix)
{
        size_t n = strlen(prefix);

        return !strncmp(path, prefix, n) && (path[n] == '/' || !path[n]) ? n : 0;
}

/* As a path of the file system, in whichever hierarchy, the configured one is meant as well: the part below. */
static const char *below_mounts(const char *configured)
{
        size_t longest = 0, n;
        char path[512], root[256];
        struct statfs fs;

        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                if (rv_cgroup_mount(controller_names[i], path, root, sizeof(root)) == 0)
                        longest = RV_MAX(longest, skip(configured, path));
        if (longest)
                return configured + longest;
        configured += skip(configured, TOP);
        /* One more name is a hierarchy's: another controller's, or a link (cpu to cpu,cpuacct). */
        n = configured[0] == '/' ? 1 + strcspn(configured + 1, "/") : 0;
        snprintf(path, sizeof(path), "%s%.*s", TOP, (int)RV_MIN(n, (size_t)NAME_MAX), configured);
        if (n > 1 && statfs(path, &fs) == 0 && fs.f_type == CGROUP_SUPER_MAGIC)
                configured += n;
        return configured;
}

int rv_cgroup_place_v1(const char *configured, const char *cgroups, struct rv_cgroup_place *place, struct rv_error *err)
{
        int r;

        if (configured)
                configured = below_mounts(configured);
        place->version = 1;
        place->rule = configured ? "configured" : "the process's own cgroup";
        for (int i = 0; i < RV_CGROUP_MAX_; i++) {
                struct rv_cgroup_hierarchy *h = &place->h[i];

                /* cpuacct only counts; where it is not ours the times come from the process itself. */
                r = open_hierarchy(
                        controller_names[i], cgroups, configured, place, h, i == RV_CGROUP_CPUACCT ? NULL : err);
                if (r < 0 && i != RV_CGROUP_CPUACCT)
                        return rv_trace(r);
                /* cpu and cpuacct are one hierarchy on most hosts. */
                for (int j = 0; j < i; j++)
                        if (h->dir_fd >= 0 && place->h[j].dir_fd >= 0 && place->h[j].id == h->id) {
                                h->dir_fd = rv_close(h->dir_fd);
                                h->root_fd = rv_close(h->root_fd);
                                h->own_name[0] = 0;
                        }
        }
        return 0;
}
