#include "layers_tree.h"

#include "layers.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CACHE "__pycache__"

struct walk {
        enum rv_layers_kind kind;
        const char *manifest;
        struct rv_error *err;
        size_t n_entries, n_path;
        char path[RV_LAYERS_PATH_MAX + 32];  /* from the staged directory */
};

/* Names are of another's choosing. */
static int refuse(const struct walk *w, int r, const char *why)
{
        char shown[200];
        size_t n = 0;

        for (; n + 1 < sizeof(shown) && w->path[n]; n++)
                shown[n] = (char)(w->path[n] >= ' ' && w->path[n] <= '~' ? w->path[n] : '?');
        shown[n] = 0;
        return rv_error_set(w->err, rv_raise(r), "the staged tree cannot become a layer: %s: %s", shown, why);
}

static int fail(const struct walk *w, int r, const char *what)
{
        char why[160];

        snprintf(why, sizeof(why), "%s: %s", what, strerror(-r));
        return refuse(w, r, why);
}

/* Access lists, file capabilities and whatever was written there; what a security module keeps is its own. */
static int drop_attributes(const struct walk *w, int fd)
{
        char names[4096];
        ssize_t n = flistxattr(fd, names, sizeof(names));

        if (n < 0)
                return errno == ENOTSUP ? 0 : fail(w, -errno, "its attributes cannot be listed");
        for (const char *p = names; p < names + n; p += strlen(p) + 1)
                if ((strncmp(p, "security.", 9) != 0 || !strcmp(p, "security.capability")) && fremovexattr(fd, p) < 0 && errno != ENODATA)
                        return fail(w, -errno, "an attribute of it cannot be removed");
        return 0;
}

static int own(const struct walk *w, int fd, mode_t mode)
{
        /* The owner first: for another's file the mode means nothing, and a change of owner takes bits away. */
        if (fchown(fd, geteuid(), getegid()) < 0)
                return fail(w, -errno, "its owner cannot be changed");
        if (fchmod(fd, mode) < 0)
                return fail(w, -errno, "its mode cannot be changed");
        return drop_attributes(w, fd);
}

static bool ends(const char *name, const char *with)
{
        size_t n = strlen(name), n_with = strlen(with);

        return n > n_with && strcmp(name + n - n_with, with) == 0;
}

static int own_file(const struct walk *w, int dir_fd, const char *name)
{
        _cleanup_(rv_closep) int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return fail(w, -errno, "it cannot be opened");
        if (!S_ISREG(st.st_mode))
                return refuse(w, -EBADMSG, "it is no regular file any more");
        if (st.st_nlink != 1)
                return refuse(w, -EBADMSG, "it is a file with several names (hard links)");
        return own(w, fd, st.st_mode & 0111 ? 0755 : 0644);
}

static int own_entry(struct walk *w, int dir_fd, const char *name, unsigned depth, bool is_cache);

/* Takes @fd. */
static int own_entries(struct walk *w, int fd, unsigned depth, bool is_cache)
{
        size_t n_path = w->n_path, n_name;
        const struct dirent *e;
        DIR *d = fdopendir(fd);
        int r = 0;

        if (!d) {
                r = -errno;
                rv_close(fd);
                return fail(w, r, "it cannot be listed");
        }
        while (r == 0 && (errno = 0, e = readdir(d))) {
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                n_name = strlen(e->d_name);
                if (n_path + 1 + n_name >= sizeof(w->path))
                        r = refuse(w, -EBADMSG, "what is in it has too long a path");
                else if (++w->n_entries > RV_LAYERS_ENTRIES_MAX)
                        r = refuse(w, -EBADMSG, "there are too many files");
                if (r < 0)
                        break;
                snprintf(w->path + n_path, sizeof(w->path) - n_path, "%s%s", n_path ? "/" : "", e->d_name);
                w->n_path = n_path + n_name + (n_path > 0);
                r = own_entry(w, dirfd(d), e->d_name, depth, is_cache);
                w->path[n_path] = 0;
                w->n_path = n_path;
                errno = 0;
        }
        if (r == 0 && errno)
                r = fail(w, -errno, "it cannot be listed");
        closedir(d);
        return r;
}

static int own_directory(struct walk *w, int dir_fd, const char *name, unsigned depth, bool is_cache)
{
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

        if (fd < 0)
                return fail(w, -errno, "it cannot be opened");
        r = depth > RV_LAYERS_DEPTH_MAX ? refuse(w, -EBADMSG, "directories are too deep") : own(w, fd, 0755);
        if (r < 0) {
                rv_close(fd);
                return r;
        }
        return own_entries(w, fd, depth + 1, is_cache);
}

/* What may stand where: the reason why not, or NULL. */
static const char *judge(const struct walk *w, const char *name, mode_t mode, unsigned depth, bool is_cache)
{
        if (depth == 0 && S_ISREG(mode) && !strcmp(name, w->manifest))
                return NULL;
        if (depth == 0 && w->kind == RV_LAYERS_BUILT)
                return S_ISDIR(mode) && !strcmp(name, "tree") ? NULL : "it is neither the tree nor its manifest";
        if (w->kind == RV_LAYERS_BUILT)
                return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) ? NULL : "it is neither a regular file nor a directory nor a symbolic link";
        if (is_cache)
                return S_ISREG(mode) && ends(name, ".pyc") ? NULL : "in " CACHE " only *.pyc files are taken";
        return S_ISDIR(mode) ? NULL : "only directories, and *.pyc files in " CACHE ", are taken";
}

static int own_entry(struct walk *w, int dir_fd, const char *name, unsigned depth, bool is_cache)
{
        const char *why;
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return fail(w, -errno, "it cannot be looked at");
        why = judge(w, name, st.st_mode, depth, is_cache);
        if (why)
                return refuse(w, -EBADMSG, why);
        if (S_ISDIR(st.st_mode))
                return own_directory(w, dir_fd, name, depth, !strcmp(name, CACHE));
        if (S_ISREG(st.st_mode))
                return own_file(w, dir_fd, name);
        if (fchownat(dir_fd, name, geteuid(), getegid(), AT_SYMLINK_NOFOLLOW) < 0)
                return fail(w, -errno, "its owner cannot be changed");
        return 0;
}

int rv__layers_own(int dir_fd, enum rv_layers_kind kind, const char *manifest, struct rv_error *err)
{
        struct walk w = { .kind = kind, .manifest = manifest, .err = err };
        int fd, r;

        /* Closed to the user who filled it before anything is looked at; open to all only when it is renamed. */
        r = own(&w, dir_fd, 0700);
        if (r < 0)
                return r;
        fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return fail(&w, -errno, "the directory cannot be opened");
        r = own_entries(&w, fd, 0, false);
        if (r == 0 && kind == RV_LAYERS_BUILT && faccessat(dir_fd, "tree", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                r = refuse(&w, -EBADMSG, "there is no tree in it");
        if (r == 0 && faccessat(dir_fd, manifest, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                r = refuse(&w, -EBADMSG, "there is no manifest in it");
        return r;
}

static int merge_one(int from_fd, int to_fd, const char *name)
{
        _cleanup_(rv_closep) int from = -EBADF, to = -EBADF;

        if (!strcmp(name, CACHE))
                return renameat2(from_fd, name, to_fd, name, RENAME_NOREPLACE) == 0 || errno == EEXIST ||
                                errno == ENOTEMPTY
                        ? 0
                        : rv_raise(-errno);
        to = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (to < 0)
                return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : rv_raise(-errno);
        from = openat(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return from < 0 ? rv_raise(-errno) : rv_trace(rv__layers_merge(from, to));
}

int rv__layers_merge(int from_fd, int to_fd)
{
        int fd = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;

        if (!d) {
                r = rv_raise(-errno);
                rv_close(fd);
                return r;
        }
        while (r == 0 && (errno = 0, e = readdir(d)))
                if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
                        r = merge_one(dirfd(d), to_fd, e->d_name);
        if (r == 0 && errno)
                r = rv_raise(-errno);
        closedir(d);
        return r;
}
