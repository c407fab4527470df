#include "base/remove.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 32

/* A directory deeper than that is moved up to the top, and is emptied in the next pass. */
struct removal {
        int top_fd;
        unsigned n_moved;
};

static int remove_entry(struct removal *r, int dir_fd, const char *name, unsigned depth);

/* One without all of its owner's bits can neither be listed nor emptied. */
static int open_directory(int dir_fd, const char *name)
{
        _cleanup_(rv_closep) int path_fd = -EBADF;
        char proc[64];
        struct stat st;
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
                (void)fchmod(fd, 0700);
        if (fd >= 0 || errno != EACCES)
                return fd < 0 ? -errno : fd;
        path_fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path_fd);
        if (path_fd < 0 || chmod(proc, 0700) < 0)
                return rv_raise(-EACCES);
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? rv_raise(-errno) : fd;
}

static int move_up(struct removal *r, int dir_fd, const char *name)
{
        char at_top[32];

        for (;;) {
                snprintf(at_top, sizeof(at_top), "deep-%u", r->n_moved++);
                if (renameat(dir_fd, name, r->top_fd, at_top) == 0 || errno == ENOENT)
                        return 0;
                if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
                        return rv_raise(-errno);
        }
}

/* One pass over what a directory holds; takes @fd. */
static int empty(struct removal *r, int fd, unsigned depth)
{
        const struct dirent *e;
        DIR *d = fdopendir(fd);
        int status = 0;

        if (!d) {
                status = rv_raise(-errno);
                rv_close(fd);
                return status;
        }
        while (status == 0 && (errno = 0, e = readdir(d)))
                if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
                        status = remove_entry(r, dirfd(d), e->d_name, depth);
        if (status == 0 && errno)
                status = rv_raise(-errno);
        closedir(d);
        return status;
}

static int remove_directory(struct removal *r, int dir_fd, const char *name, unsigned depth)
{
        int fd, status;

        if (depth == DEPTH_MAX)
                return rv_trace(move_up(r, dir_fd, name));
        while (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0) {
                if (errno == ENOENT)
                        return 0;
                if (errno != ENOTEMPTY && errno != EEXIST)
                        return rv_raise(-errno);
                fd = open_directory(dir_fd, name);
                if (fd < 0)
                        return fd == -ENOENT ? 0 : rv_trace(fd);
                status = empty(r, fd, depth + 1);
                if (status < 0)
                        return rv_trace(status);
        }
        return 0;
}

static int remove_entry(struct removal *r, int dir_fd, const char *name, unsigned depth)
{
        if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR && errno != EPERM)
                return rv_raise(-errno);
        return rv_trace(remove_directory(r, dir_fd, name, depth));
}

int rv_remove_tree_at(int dir_fd, const char *name)
{
        struct removal r = { .top_fd = -EBADF };
        int status;

        if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR && errno != EPERM)
                return rv_raise(-errno);
        r.top_fd = open_directory(dir_fd, name);
        if (r.top_fd < 0)
                return r.top_fd == -ENOENT ? 0 : rv_trace(r.top_fd);
        status = remove_directory(&r, dir_fd, name, 0);
        rv_close(r.top_fd);
        return rv_trace(status);
}
