#include "cgroup.h"

#include "base/fd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const controller_names[RV_CGROUP_MAX_] = { "memory", "pids", "cpu", "cpuacct" };

static int write_text(int dir_fd, const char *file, const char *text)
{
        int fd, r = 0;
        size_t n = strlen(text);

        fd = openat(dir_fd, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        if (write(fd, text, n) != (ssize_t)n)
                r = errno ? -errno : -EIO;
        rv_close(fd);
        return r;
}

static int read_text(int dir_fd, const char *file, char *ret, size_t size)
{
        ssize_t n;
        int fd;

        fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        n = read(fd, ret, size - 1);
        if (n < 0)
                n = -errno;
        else
                ret[n] = 0;
        rv_close(fd);
        return n < 0 ? (int)n : 0;
}

static uint64_t read_number(int dir_fd, const char *file)
{
        char text[64];

        return dir_fd >= 0 && read_text(dir_fd, file, text, sizeof(text)) == 0 ? strtoull(text, NULL, 10) : 0;
}

/* The value of `key` in a file of "key value" lines. */
static uint64_t read_keyed(int dir_fd, const char *file, const char *key)
{
        char text[1024], *line, *save = NULL;
        size_t n = strlen(key);

        if (dir_fd < 0 || read_text(dir_fd, file, text, sizeof(text)) < 0)
                return 0;
        for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                if (!strncmp(line, key, n) && line[n] == ' ')
                        return strtoull(line + n + 1, NULL, 10);
        return 0;
}

/* ---- The place ---- */

/* Is @word one of the comma-separated @list? */
static bool list_has(const char *list, const char *word)
{
        size_t n = strlen(word);

        for (const char *p = list; p; p = strchr(p, ','), p = p ? p + 1 : NULL)
                if (!strncmp(p, word, n) && (p[n] == ',' || p[n] == 0))
                        return true;
        return false;
}

struct hierarchy_line {
        unsigned id;
        char path[256];      /* of this process in the hierarchy */
};

/* The line of /proc/self/cgroup that names @controller. */
static int find_own_path(char *cgroups, const char *controller, struct hierarchy_line *ret)
{
        char *save = NULL;

        for (char *line = strtok_r(cgroups, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

                if (!path)
                        continue;
                *list++ = 0;
                *path++ = 0;
                if (!list_has(list, controller))
                        continue;
                if (strlen(path) >= sizeof(ret->path))
                        return -ENAMETOOLONG;
                ret->id = (unsigned)strtoul(line, NULL, 10);
                strcpy(ret->path, path);
                return 0;
        }
        return -ENOENT;
}

/* Mount point and mounted root of the v1 hierarchy of @controller, from /proc/self/mountinfo. */
static int find_mount(const char *controller, char *ret_point, char *ret_root, size_t size)
{
        char line[4096];
        int r = -ENOENT;
        FILE *f = fopen("/proc/self/mountinfo", "re");

        if (!f)
                return -errno;
        while (r == -ENOENT && fgets(line, sizeof(line), f)) {
                char root[1024], point[1024], type[64], source[256], options[1024];
                char *tail = strstr(line, " - ");

                if (!tail || sscanf(tail, " - %63s %255s %1023s", type, source, options) != 3 || strcmp(type, "cgroup") ||
                    !list_has(options, controller))
                        continue;
                if (sscanf(line, "%*s %*s %*s %1023s %1023s", root, point) != 2)
                        continue;
                if (strlen(root) >= size || strlen(point) >= size)
                        r = -ENAMETOOLONG;
                else {
                        strcpy(ret_root, root);
                        strcpy(ret_point, point);
                        r = 0;
                }
        }
        fclose(f);
        return r;
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
        strncat(h->path, "/", sizeof(h->path) - strlen(h->path) - 1);
        strncat(h->path, name, sizeof(h->path) - strlen(h->path) - 1);
        strncat(h->expect, "/", sizeof(h->expect) - strlen(h->expect) - 1);
        strncat(h->expect, name, sizeof(h->expect) - strlen(h->expect) - 1);
        h->dir_fd = fd;
        return 0;
}

/* At a hierarchy's root runs get one directory of this instance's, so that the root stays tidy. */
static int make_own_directory(int dir_fd, const char *instance, struct rv_cgroup_hierarchy *h)
{
        snprintf(h->own_name, sizeof(h->own_name), "reeve-%s", instance);
        if (mkdirat(dir_fd, h->own_name, 0755) < 0 && errno != EEXIST)
                return -errno;
        h->dir_fd = openat(dir_fd, h->own_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (h->dir_fd < 0)
                return -errno;
        h->is_own_directory = true;
        h->root_fd = dir_fd;
        snprintf(h->expect, sizeof(h->expect), "/%s", h->own_name);
        strncat(h->path, h->expect, sizeof(h->path) - strlen(h->path) - 1);
        return 0;
}

static int open_hierarchy(const char *controller, const char *cgroups, const char *configured, const char *instance,
                          struct rv_cgroup_hierarchy *h, struct rv_error *err)
{
        char copy[4096], point[256], root[256];
        struct hierarchy_line own;
        const char *below;
        int fd, r;

        snprintf(copy, sizeof(copy), "%s", cgroups);
        r = find_own_path(copy, controller, &own);
        if (r == 0)
                r = find_mount(controller, point, root, sizeof(point));
        if (r < 0)
                return rv_error_set(err, -ENOTSUP,
                                    "no cgroup v1 hierarchy with the %s controller is mounted; mount it "
                                    "(mount -t cgroup -o %s cgroup /sys/fs/cgroup/%s) or run where it is",
                                    controller, controller, controller);
        h->id = own.id;
        below = configured ? configured : own.path;
        /* In a container the mount shows only the part of the hierarchy from `root` on. */
        if (!configured && strcmp(root, "/") && !strncmp(below, root, strlen(root)))
                below += strlen(root);
        if (!strcmp(below, "/"))
                below = "";
        snprintf(h->path, sizeof(h->path), "%s%s%s", point, *below && *below != '/' ? "/" : "", below);
        snprintf(h->expect, sizeof(h->expect), "%s%s", *below && *below != '/' ? "/" : "",
                 configured ? below : strcmp(own.path, "/") ? own.path : "");
        fd = open(h->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
                r = -errno;
                return rv_error_set(err, r, "cannot open the cgroup %s: %s; set `cgroup:` in the configuration to one that reeve may write",
                                    h->path, strerror(-r));
        }
        if (!configured && open_delegated(fd, h) == 0) {
                rv_close(fd);
                return 0;
        }
        if (configured || strcmp(own.path, "/")) {
                h->dir_fd = fd;
                return 0;
        }
        r = make_own_directory(fd, instance, h);
        if (r < 0) {
                rv_close(fd);
                return rv_error_set(err, r, "cannot make a cgroup in %s: %s; run as root, or have root run tools/dev/delegate for this user",
                                    h->path, strerror(-r));
        }
        return 0;
}

/* Process id and start time name an instance for as long as the machine is up: a later start can tell
 * whether the owner of a left-over directory still lives. */
static int make_instance(char *ret, size_t size)
{
        char text[1024], *p;
        unsigned long long start = 0;
        int r;

        r = read_text(AT_FDCWD, "/proc/self/stat", text, sizeof(text));
        if (r < 0)
                return r;
        p = strrchr(text, ')');
        for (int i = 0; p && i < 20; i++)
                p = strchr(p + 1, ' ');
        if (p)
                start = strtoull(p + 1, NULL, 10);
        snprintf(ret, size, "%d.%llu", (int)getpid(), start);
        return 0;
}

int rv_cgroup_place_open(const char *configured, struct rv_cgroup_place *ret, struct rv_error *err)
{
        struct rv_cgroup_place place = { 0 };
        char cgroups[4096];
        int r;

        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                place.h[i].dir_fd = place.h[i].root_fd = -EBADF;
        r = make_instance(place.instance, sizeof(place.instance));
        if (r == 0)
                r = read_text(AT_FDCWD, "/proc/self/cgroup", cgroups, sizeof(cgroups));
        if (r < 0)
                return rv_error_set(err, r, "cannot read /proc/self: %s; mount proc", strerror(-r));
        place.reason = configured ? "configured" : "own";
        for (int i = 0; i < RV_CGROUP_MAX_; i++) {
                r = open_hierarchy(controller_names[i], cgroups, configured, place.instance, &place.h[i], err);
                if (r < 0) {
                        rv_cgroup_place_close(&place);
                        return rv_trace(r);
                }
                /* cpu and cpuacct are one hierarchy on most hosts. */
                for (int j = 0; j < i; j++)
                        if (place.h[j].dir_fd >= 0 && place.h[j].id == place.h[i].id) {
                                place.h[i].dir_fd = rv_close(place.h[i].dir_fd);
                                if (place.h[i].is_own_directory)
                                        place.h[i].root_fd = rv_close(place.h[i].root_fd);
                                place.h[i].is_own_directory = false;
                        }
        }
        *ret = place;
        return 0;
}

void rv_cgroup_place_close(struct rv_cgroup_place *place)
{
        for (int i = 0; i < RV_CGROUP_MAX_; i++) {
                struct rv_cgroup_hierarchy *h = &place->h[i];

                h->dir_fd = rv_close(h->dir_fd);
                if (h->is_own_directory)
                        (void)unlinkat(h->root_fd, h->own_name, AT_REMOVEDIR);
                h->root_fd = rv_close(h->root_fd);
        }
}

/* ---- One run ---- */

/* Writes a limit and insists that the kernel holds at most what was asked for. */
static int set_limit(const struct rv_cgroup_place *place, int controller, int dir_fd, const char *file, uint64_t value,
                     uint64_t *ret_actual, struct rv_error *err)
{
        char text[32];
        uint64_t actual;
        int r;

        snprintf(text, sizeof(text), "%" PRIu64, value);
        r = write_text(dir_fd, file, text);
        if (r < 0)
                return rv_error_set(err, r, "cannot write the limit %s/*/%s: %s%s", place->h[controller].path, file, strerror(-r),
                                    r == -ENOENT && strstr(file, "memsw")
                                            ? "; swap must be limited too: boot with swapaccount=1"
                                            : "; the cgroup must be writable for reeve: see `cgroup:` in the configuration");
        actual = read_number(dir_fd, file);
        if (actual == 0 || actual > value)
                return rv_error_set(err, -EIO, "the limit %s/*/%s reads %" PRIu64 " after %" PRIu64 " was written; reeve runs nothing without it",
                                    place->h[controller].path, file, actual, value);
        if (ret_actual)
                *ret_actual = actual;
        return 0;
}

/* memory.limit first, then memsw: the other order is refused by the kernel (memsw may not be below memory). */
static int limit_memory(const struct rv_cgroup_place *place, struct rv_cgroup *cg, uint64_t bytes, struct rv_error *err)
{
        int fd = cg->dir_fd[RV_CGROUP_MEMORY], r;

        r = set_limit(place, RV_CGROUP_MEMORY, fd, "memory.limit_in_bytes", bytes, &cg->memory_limit_bytes, err);
        if (r == 0)
                r = set_limit(place, RV_CGROUP_MEMORY, fd, "memory.memsw.limit_in_bytes", bytes, NULL, err);
        return r;
}

static int limit_cpu(const struct rv_cgroup_place *place, struct rv_cgroup *cg, uint32_t cpus_milli, struct rv_error *err)
{
        return cpus_milli == 0 ? 0 : set_limit(place, RV_CGROUP_CPU, cg->dir_fd[RV_CGROUP_CPU], "cpu.cfs_quota_us",
                                               (uint64_t)cpus_milli * 100, NULL, err);
}

/* Ask to be told when the run meets its memory limit (cgroup v1 event interface). */
static int watch_oom(struct rv_cgroup *cg, struct rv_error *err)
{
        int dir_fd = cg->dir_fd[RV_CGROUP_MEMORY], control_fd, r;
        char text[64];

        cg->oom_event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        control_fd = openat(dir_fd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
        if (cg->oom_event_fd < 0 || control_fd < 0) {
                r = -errno;
        } else {
                snprintf(text, sizeof(text), "%d %d", cg->oom_event_fd, control_fd);
                r = write_text(dir_fd, "cgroup.event_control", text);
        }
        rv_close(control_fd);
        if (r < 0)
                return rv_error_set(err, r, "cannot watch memory.oom_control: %s", strerror(-r));
        return 0;
}

static int make_directory(const struct rv_cgroup_place *place, int i, struct rv_cgroup *cg, struct rv_error *err)
{
        int parent_fd = place->h[i].dir_fd, r;

        if (mkdirat(parent_fd, cg->name, 0755) < 0) {
                r = -errno;
                return rv_error_set(err, r, "cannot make a cgroup in %s: %s; run as root, set `cgroup:` in the configuration, "
                                    "or have root run tools/dev/delegate for this user", place->h[i].path, strerror(-r));
        }
        cg->dir_fd[i] = openat(parent_fd, cg->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (cg->dir_fd[i] >= 0)
                cg->tasks_fd[i] = openat(cg->dir_fd[i], "tasks", O_WRONLY | O_CLOEXEC);
        if (cg->dir_fd[i] < 0 || cg->tasks_fd[i] < 0) {
                r = -errno;
                if (cg->dir_fd[i] < 0)
                        (void)unlinkat(parent_fd, cg->name, AT_REMOVEDIR);
                return rv_error_set(err, r, "cannot open the cgroup just made in %s: %s", place->h[i].path, strerror(-r));
        }
        return 0;
}

int rv_cgroup_make(const struct rv_cgroup_place *place, const char *name, struct rv_cgroup *ret, struct rv_error *err)
{
        struct rv_cgroup cg = { .oom_event_fd = -EBADF };
        int r = 0;

        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                cg.dir_fd[i] = cg.tasks_fd[i] = -EBADF;
        snprintf(cg.name, sizeof(cg.name), "%s", name);
        for (int i = 0; i < RV_CGROUP_MAX_ && r == 0; i++)
                if (place->h[i].dir_fd >= 0)
                        r = make_directory(place, i, &cg, err);
        if (r == 0)
                r = watch_oom(&cg, err);
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
        int r;

        r = limit_memory(place, cg, limits->memory_bytes, err);
        if (r == 0)
                r = set_limit(place, RV_CGROUP_PIDS, cg->dir_fd[RV_CGROUP_PIDS], "pids.max", limits->pids, NULL, err);
        if (r == 0)
                r = limit_cpu(place, cg, limits->cpus_milli, err);
        return rv_trace(r);
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
        char file[64], text[4096], want[512];
        int r;

        snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
        r = read_text(AT_FDCWD, file, text, sizeof(text));
        if (r < 0)
                return rv_error_set(err, r, "cannot read %s: %s", file, strerror(-r));
        for (int i = 0; i < RV_CGROUP_MAX_; i++) {
                if (cg->dir_fd[i] < 0)
                        continue;
                snprintf(want, sizeof(want), "%s/%s", place->h[i].expect, cg->name);
                if (!is_at(text, place->h[i].id, want))
                        return rv_error_set(err, -ESRCH, "the run is not in its %s cgroup %s/%s", controller_names[i],
                                            place->h[i].path, cg->name);
        }
        return 0;
}

void rv_cgroup_count(const struct rv_cgroup *cg, struct rv_cgroup_counters *ret)
{
        int memory_fd = cg->dir_fd[RV_CGROUP_MEMORY];
        int cpu_fd = cg->dir_fd[RV_CGROUP_CPUACCT] >= 0 ? cg->dir_fd[RV_CGROUP_CPUACCT] : cg->dir_fd[RV_CGROUP_CPU];

        *ret = (struct rv_cgroup_counters){
                .peak_memory_bytes = read_number(memory_fd, "memory.max_usage_in_bytes"),
                .n_oom_kills = (uint32_t)read_keyed(memory_fd, "memory.oom_control", "oom_kill"),
                .cpu_us = read_number(cpu_fd, "cpuacct.usage") / 1000,
                .peak_processes = (uint32_t)read_number(cg->dir_fd[RV_CGROUP_PIDS], "pids.peak"),
        };
        /* v1's failure counters stay 0 with swap capped, so the peak tells whose limit it was. */
        ret->is_memory_limit_reached = ret->peak_memory_bytes >= cg->memory_limit_bytes - cg->memory_limit_bytes / 100;
}

static int remove_directory(int parent_fd, const char *name)
{
        const struct timespec pause = { .tv_nsec = 1000 * 1000 };

        for (int i = 0; unlinkat(parent_fd, name, AT_REMOVEDIR) < 0; i++) {
                if (errno == ENOENT)
                        return 0;
                if (errno != EBUSY || i == 50)
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
