#include "cgroup_place.h"

#include "base/fd.h"
#include "cgroup_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int rv_cgroup_own_path(const char *cgroups, const char *controller, unsigned *ret_id, char *ret, size_t size)
{
        for (const char *line = cgroups; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
                const char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
                char controllers[256];
                size_t n;

                if (!path)
                        continue;
                snprintf(controllers, sizeof(controllers), "%.*s", (int)(path - list - 1), list + 1);
                if (*controller ? !rv_cgroup_has_word(controllers, controller, ',') : controllers[0] != 0)
                        continue;
                n = strcspn(path + 1, "\n");
                if (n >= size)
                        return -ENAMETOOLONG;
                memcpy(ret, path + 1, n);
                ret[n] = 0;
                *ret_id = (unsigned)strtoul(line, NULL, 10);
                return 0;
        }
        return -ENOENT;
}

int rv_cgroup_mount(const char *controller, char *ret_point, char *ret_root, size_t size)
{
        const char *want = *controller ? "cgroup" : "cgroup2";
        char line[4096];
        int r = -ENOENT;
        FILE *f = fopen("/proc/self/mountinfo", "re");

        if (!f)
                return -errno;
        while (r == -ENOENT && fgets(line, sizeof(line), f)) {
                char root[1024], point[1024], type[64], source[256], options[1024];
                char *tail = strstr(line, " - ");

                if (!tail || sscanf(tail, " - %63s %255s %1023s", type, source, options) != 3 || strcmp(type, want) ||
                    (*controller && !rv_cgroup_has_word(options, controller, ',')))
                        continue;
                if (sscanf(line, "%*s %*s %*s %1023s %1023s", root, point) != 2)
                        continue;
                if (strlen(root) >= size || strlen(point) >= size) {
                        r = -ENAMETOOLONG;
                } else {
                        strcpy(ret_root, root);
                        strcpy(ret_point, point);
                        r = 0;
                }
        }
        fclose(f);
        return r;
}

int rv_cgroup_pid_namespace(unsigned long *ret)
{
        struct stat st;

        if (stat("/proc/self/ns/pid", &st) < 0)
                return -errno;
        *ret = (unsigned long)st.st_ino;
        return 0;
}

/* Process id and start time name an instance in its PID namespace for as long as the machine is up: a later start
 * in there can tell whether the owner of a left-over directory still lives. */
static int make_instance(char *ret, size_t size)
{
        char text[1024], *p;
        unsigned long long start = 0;
        unsigned long namespace = 0;
        int r;

        r = rv_cgroup_pid_namespace(&namespace);
        if (r < 0)
                return r;
        r = rv_cgroup_read(AT_FDCWD, "/proc/self/stat", text, sizeof(text));
        if (r < 0)
                return r;
        p = strrchr(text, ')');
        for (int i = 0; p && i < 20; i++)
                p = strchr(p + 1, ' ');
        if (p)
                start = strtoull(p + 1, NULL, 10);
        snprintf(ret, size, "%d.%llu.%lu", (int)getpid(), start, namespace);
        return 0;
}

/* v2 is the layout if the memory controller is there: a hybrid host has a v2 mount without it. */
static bool is_v2(char *ret_point, char *ret_root, size_t size)
{
        char controllers[512], file[600];

        if (rv_cgroup_mount("", ret_point, ret_root, size) < 0)
                return false;
        snprintf(file, sizeof(file), "%s/cgroup.controllers", ret_point);
        return rv_cgroup_read(AT_FDCWD, file, controllers, sizeof(controllers)) == 0 && rv_cgroup_has_word(controllers, "memory", ' ');
}

int rv_cgroup_place_open(const char *configured, struct rv_cgroup_place *ret, struct rv_error *err)
{
        struct rv_cgroup_place place = { 0 };
        char cgroups[RV_CGROUP_PROC_SIZE], point[256], root[256], own[256];
        unsigned id;
        int r;

        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                place.h[i].dir_fd = place.h[i].root_fd = -EBADF;
        r = make_instance(place.instance, sizeof(place.instance));
        if (r == 0)
                r = rv_cgroup_read(AT_FDCWD, "/proc/self/cgroup", cgroups, sizeof(cgroups));
        if (r < 0)
                return rv_error_set(err, rv_raise(r), "cannot read /proc/self: %s; mount proc", strerror(-r));
        if (is_v2(point, root, sizeof(point))) {
                r = rv_cgroup_own_path(cgroups, "", &id, own, sizeof(own));
                if (r < 0)
                        rv_error_set(err, rv_raise(r), "/proc/self/cgroup names no cgroup of v2: %s", strerror(-r));
                else
                        r = rv_cgroup_place_v2(configured, point, own, &place, err);
        } else {
                r = rv_cgroup_place_v1(configured, cgroups, &place, err);
        }
        if (r < 0) {
                rv_cgroup_place_close(&place);
                return rv_trace(r);
        }
        *ret = place;
        return 0;
}

void rv_cgroup_place_close(struct rv_cgroup_place *place)
{
        for (int i = 0; i < RV_CGROUP_MAX_; i++) {
                struct rv_cgroup_hierarchy *h = &place->h[i];

                h->dir_fd = rv_close(h->dir_fd);
                if (h->own_name[0])
                        (void)unlinkat(h->root_fd, h->own_name, AT_REMOVEDIR);
                h->root_fd = rv_close(h->root_fd);
        }
}
