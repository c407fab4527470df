#include "cgroup_limits.h"

#include "base/fd.h"
#include "cgroup_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REMOVE_TRIES 50         /* a millisecond apart */

static int make_directory(const struct rv_cgroup_place *place, int i, struct rv_cgroup *cg, struct rv_error *err)
{
        int parent_fd = place->h[i].dir_fd, r;

        if (mkdirat(parent_fd, cg->name, 0755) < 0) {
                r = -errno;
                return rv_error_set(err, rv_raise(r), "cannot make a cgroup in %s: %s; run as root, set `cgroup:` in the configuration, "
                                    "or have root run tools/dev/delegate for this user", place->h[i].path, strerror(-r));
        }
        cg->dir_fd[i] = openat(parent_fd, cg->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (cg->dir_fd[i] >= 0)
                rv_cgroup_hold(cg->dir_fd[i]);
        if (cg->dir_fd[i] >= 0 && cg->version == 1)
                cg->tasks_fd[i] = openat(cg->dir_fd[i], "tasks", O_WRONLY | O_CLOEXEC);
        if (cg->dir_fd[i] < 0 || (cg->version == 1 && cg->tasks_fd[i] < 0)) {
                r = -errno;
                if (cg->dir_fd[i] < 0)
                        (void)unlinkat(parent_fd, cg->name, AT_REMOVEDIR);
                return rv_error_set(err, rv_raise(r), "cannot open the cgroup just made in %s: %s", place->h[i].path, strerror(-r));
        }
        return 0;
}

int rv_cgroup_make(const struct rv_cgroup_place *place, const char *name, struct rv_cgroup *ret, struct rv_error *err)
{
        struct rv_cgroup cg = { .version = place->version, .oom_event_fd = -EBADF };
        int r = 0;

        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                cg.dir_fd[i] = cg.tasks_fd[i] = -EBADF;
        snprintf(cg.name, sizeof(cg.name), "%s", name);
        for (int i = 0; i < RV_CGROUP_MAX_ && r == 0; i++)
                if (place->h[i].dir_fd >= 0)
                        r = make_directory(place, i, &cg, err);
        if (r == 0 && place->version == 1)
                r = rv_cgroup_watch_oom(&cg, err);
        if (r < 0) {
                rv_cgroup_remove(place, &cg);
                return rv_trace(r);
        }
        *ret = cg;
        return 0;
}

int rv_cgroup_limit(const struct rv_cgroup_place *place, struct rv_cgroup *cg, const struct rv_cgroup_limits *limits,
        struct rv_error *err)
{
        return place->version == 1 ? rv_cgroup_limit_v1(place, cg, limits, err)
                                   : rv_cgroup_limit_v2(place, cg, limits, err);
}

int rv_cgroup_clone_fd(const struct rv_cgroup *cg)
{
        return cg->version == 2 ? cg->dir_fd[0] : -EBADF;
}

int rv_cgroup_join(const struct rv_cgroup *cg)
{
        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                if (cg->tasks_fd[i] >= 0 && write(cg->tasks_fd[i], "0", 1) != 1)
                        return -errno;
        return 0;
}

/* Does the text of /proc/PID/cgroup put the process at @want in hierarchy @id? */
static bool is_at(const char *text, unsigned id, const char *want)
{
        for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
                const char *path = strchr(line, ':');

                path = path ? strchr(path + 1, ':') : NULL;
                if (path && strtoul(line, NULL, 10) == id)
                        return !strncmp(path + 1, want, strlen(want)) && path[1 + strlen(want)] == '\n';
        }
        return false;
}

int rv_cgroup_verify(const struct rv_cgroup_place *place, const struct rv_cgroup *cg, pid_t pid, struct rv_error *err)
{
        char file[64], text[8192], want[512];
        int r;

        snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
        r = rv_cgroup_read(AT_FDCWD, file, text, sizeof(text));
        if (r < 0)
                return rv_error_set(err, rv_raise(r), "cannot read %s: %s", file, strerror(-r));
        for (int i = 0; i < RV_CGROUP_MAX_; i++) {
                if (cg->dir_fd[i] < 0)
                        continue;
                snprintf(want, sizeof(want), "%s/%s", place->h[i].expect, cg->name);
                if (!is_at(text, place->h[i].id, want))
                        return rv_error_set(err, rv_raise(-ESRCH), "the run is not in its cgroup %s/%s", place->h[i].path, cg->name);
        }
        return 0;
}

void rv_cgroup_count(const struct rv_cgroup *cg, struct rv_cgroup_counters *ret)
{
        if (cg->version == 1)
                rv_cgroup_count_v1(cg, ret);
        else
                rv_cgroup_count_v2(cg, ret);
}

static int remove_directory(int parent_fd, const char *name)
{
        const struct timespec pause = { .tv_nsec = 1000 * 1000 };

        for (int i = 0; unlinkat(parent_fd, name, AT_REMOVEDIR) < 0; i++) {
                if (errno == ENOENT)
                        return 0;
                if (errno != EBUSY || i == REMOVE_TRIES)
                        return rv_raise(-errno);
                nanosleep(&pause, NULL);
        }
        return 0;
}

int rv_cgroup_remove(const struct rv_cgroup_place *place, struct rv_cgroup *cg)
{
        int first = 0, r;

        for (int i = 0; i < RV_CGROUP_MAX_; i++) {
                if (cg->dir_fd[i] < 0)
                        continue;
                cg->tasks_fd[i] = rv_close(cg->tasks_fd[i]);
                cg->dir_fd[i] = rv_close(cg->dir_fd[i]);
                r = remove_directory(place->h[i].dir_fd, cg->name);
                if (r < 0 && !first)
                        first = r;
        }
        cg->oom_event_fd = rv_close(cg->oom_event_fd);
        return rv_trace(first);
}
