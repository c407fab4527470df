#include "cgroup.h"

#include "base/fd.h"
#include "cgroup_file.h"
#include "cgroup_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "reeve-"
#define NEW_MS 20               /* so long a directory may be there before its maker has locked it */
#define KILL_ROUNDS 20          /* a millisecond apart: a process that forks while it is killed needs a few */

/* May /proc be asked about our process ids? It may have been mounted in another PID namespace. */
static bool is_own_proc(void)
{
        char text[32] = "";

        return readlink("/proc/self", text, sizeof(text) - 1) > 0 && strtol(text, NULL, 10) == getpid();
}

/* "reeve-PID.START.NAMESPACE…": is the process that gave the name gone? The start time tells it from a later one
 * with its number. In another PID namespace the number says nothing. */
static bool is_left_over(const char *name, unsigned long own)
{
        unsigned long long start, now = 0;
        unsigned long namespace = 0;
        char file[64], text[1024], *p;
        int pid, r;

        if (sscanf(name, PREFIX "%d.%llu.%lu", &pid, &start, &namespace) != 3 || namespace != own)
                return false;
        snprintf(file, sizeof(file), "/proc/%d/stat", pid);
        r = rv_cgroup_read(AT_FDCWD, file, text, sizeof(text));
        if (r < 0)
                return r == -ENOENT || r == -ESRCH;     /* for want of descriptors nobody is dead */
        p = strrchr(text, ')');
        /* Killed together with its parent, it waits for the host's init to reap it, which may take its time. */
        if (p && p[1] == ' ' && (p[2] == 'Z' || p[2] == 'X'))
                return true;
        for (int i = 0; p && i < 20; i++)
                p = strchr(p + 1, ' ');
        if (p)
                now = strtoull(p + 1, NULL, 10);
        return now != start;
}

static void kill_all(int dir_fd)
{
        char text[65536];

        if (rv_cgroup_write(dir_fd, "cgroup.kill", "1") == 0)
                return;
        if (rv_cgroup_read(dir_fd, "cgroup.procs", text, sizeof(text)) < 0)
                return;
        for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                pid_t pid = (pid_t)strtol(line, NULL, 10);

                if (pid > 1)
                        (void)kill(pid, SIGKILL);
        }
}

static int sweep_children(int dir_fd);

/* Kill what is in @name, remove it and what is below it. */
static int remove_tree(int parent_fd, const char *name)
{
        const struct timespec pause = { .tv_nsec = 1000 * 1000 };
        int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        (void)sweep_children(fd);
        for (int i = 0; unlinkat(parent_fd, name, AT_REMOVEDIR) < 0; i++) {
                if (errno == ENOENT)
                        break;
                if (errno != EBUSY || i == KILL_ROUNDS) {
                        rv_close(fd);
                        return -EBUSY;
                }
                kill_all(fd);
                nanosleep(&pause, NULL);
        }
        rv_close(fd);
        return 0;
}

/* Runs of an instance stand below a directory of its own at a hierarchy's root: all of them go with it. */
static int sweep_children(int dir_fd)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *entry;

        if (!dir) {
                rv_close(copy);
                return -errno;
        }
        while ((entry = readdir(dir)))
                if (entry->d_type == DT_DIR && !strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
                        (void)remove_tree(dir_fd, entry->d_name);
        closedir(dir);
        return 0;
}

/* Remove what an instance in another PID namespace has left: only what is empty, and whose lock ended with its holder. */
static void sweep_foreign(int parent_fd, const char *name, unsigned long own)
{
        const struct timespec pause = { .tv_nsec = NEW_MS * 1000 * 1000 };
        unsigned long long start;
        unsigned long namespace = 0;
        struct dirent *entry;
        DIR *dir;
        int pid, fd;

        if (sscanf(name, PREFIX "%d.%llu.%lu", &pid, &start, &namespace) != 3 || namespace == own)
                return;
        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                rv_close(fd);
                return;
        }
        if (!rv_cgroup_is_held(fd) && nanosleep(&pause, NULL) == 0 && !rv_cgroup_is_held(fd)) {
                while ((entry = readdir(dir)))
                        if (entry->d_type == DT_DIR && !strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
                                (void)unlinkat(fd, entry->d_name, AT_REMOVEDIR);
                (void)unlinkat(parent_fd, name, AT_REMOVEDIR);
        }
        closedir(dir);
}

static int sweep_in(int dir_fd, const char *path, void (*told)(void *arg, const char *path), void *arg)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n_left = 0;
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *entry;
        unsigned long own = 0;
        char text[1024];

        if (!dir || !is_own_proc() || rv_cgroup_pid_namespace(&own) < 0) {
                if (dir)
                        closedir(dir);
                else
                        rv_close(copy);
                return 0;
        }
        while ((entry = readdir(dir))) {
                if (entry->d_type == DT_DIR)
                        sweep_foreign(dir_fd, entry->d_name, own);
                if (entry->d_type != DT_DIR || !is_left_over(entry->d_name, own) ||
                        remove_tree(dir_fd, entry->d_name) == 0)
                        continue;
                n_left++;
                snprintf(text, sizeof(text), "%s/%s", path, entry->d_name);
                if (told)
                        told(arg, text);
        }
        closedir(dir);
        return n_left;
}

int rv_cgroup_sweep(const struct rv_cgroup_place *place, void (*told)(void *arg, const char *path), void *arg)
{
        int n_left = 0;

        for (int i = 0; i < RV_CGROUP_MAX_; i++) {
                const struct rv_cgroup_hierarchy *h = &place->h[i];

                if (h->dir_fd < 0)
                        continue;
                if (h->own_name[0]) {
                        char root[sizeof(h->path)];

                        /* The path without the directory of this instance's own. */
                        snprintf(root, sizeof(root), "%.*s", (int)(strlen(h->path) - strlen(h->own_name) - 1), h->path);
                        n_left += sweep_in(h->root_fd, root, told, arg);
                } else
                        n_left += sweep_in(h->dir_fd, h->path, told, arg);
        }
        return n_left;
}
