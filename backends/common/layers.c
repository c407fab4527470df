#include "layers.h"

#include "layers_tree.h"

#include "base/fd.h"
#include "base/remove.h"
#include "base/test_point.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST "manifest.json"
#define MANIFEST_COMPILED "manifest-compiled.json"
#define DIGEST_DIGITS (RV_LAYERS_NAME_SIZE - 1)

static bool is_digest(const char *text)
{
        return strlen(text) == DIGEST_DIGITS && strspn(text, "0123456789abcdef") == DIGEST_DIGITS;
}

static bool is_name(const char *text)
{
        size_t n = strlen(text);

        return n > 0 && n < DIGEST_DIGITS && text[0] != '-' &&
               strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") == n;
}

static int check_names(const char *name, const char *digest, struct rv_error *err)
{
        if (name && !is_name(name))
                return rv_error_set(err, rv_raise(-EINVAL), "\"%.80s\" names no staged directory: it needs letters, digits and hyphens, fewer than %d", name, DIGEST_DIGITS);
        if (digest && !is_digest(digest))
                return rv_error_set(err, rv_raise(-EINVAL), "\"%.80s\" names no layer: it needs %d digits of lower-case hexadecimal", digest, DIGEST_DIGITS);
        return 0;
}

/* ---- The directories ---- */

static int open_own(int packages_fd, const char *state_dir, const char *name, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        bool is_new = mkdirat(packages_fd, name, 0755) == 0;
        struct stat st;

        if (!is_new && errno != EEXIST)
                return rv_error_set(err, rv_raise(-errno), "cannot make %s/packages/%s: %s", state_dir, name, strerror(errno));
        fd = openat(packages_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return rv_error_set(err, rv_raise(errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno), "cannot open %s/packages/%s: %s; it has to be a directory, else remove it", state_dir, name, strerror(errno));
        if (st.st_uid != geteuid())
                return rv_error_set(err, rv_raise(-EPERM), "%s/packages/%s belongs to uid %u, and layers are taken from uid %u alone; remove it, it is made anew", state_dir, name, (unsigned)st.st_uid, (unsigned)geteuid());
        if (!is_new && (st.st_mode & 022))
                return rv_error_set(err, rv_raise(-EPERM), "%s/packages/%s can be written by others than its owner (mode %04o); remove it, it is made anew", state_dir, name, (unsigned)st.st_mode & 07777);
        /* Whatever the umask was. */
        if ((st.st_mode & 07777) != 0755 && fchmod(fd, 0755) < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot set the mode of %s/packages/%s: %s", state_dir, name, strerror(errno));
        return rv_take_fd(&fd);
}

/* It belongs to whom STATE belongs to, who keeps the rest of the store there. */
static int open_packages(const char *state_dir, struct rv_error *err)
{
        _cleanup_(rv_closep) int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
        struct stat st;
        bool is_new;

        if (state_fd < 0 || fstat(state_fd, &st) < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot open the state directory %s: %s", state_dir, strerror(errno));
        is_new = mkdirat(state_fd, "packages", 0755) == 0;
        if (!is_new && errno != EEXIST)
                return rv_error_set(err, rv_raise(-errno), "cannot make %s/packages: %s", state_dir, strerror(errno));
        fd = openat(state_fd, "packages", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return rv_error_set(err, rv_raise(errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno), "cannot open %s/packages: %s; it has to be a directory, else remove it", state_dir, strerror(errno));
        if (is_new && (fchmod(fd, 0755) < 0 || (st.st_uid != geteuid() && fchown(fd, st.st_uid, st.st_gid) < 0)))
                return rv_error_set(err, rv_raise(-errno), "cannot give %s/packages to uid %u: %s", state_dir, (unsigned)st.st_uid, strerror(errno));
        return rv_take_fd(&fd);
}

int rv_layers_open(const char *state_dir, struct rv_layers *ret, struct rv_error *err)
{
        _cleanup_(rv_closep) int packages_fd = open_packages(state_dir, err), layers_fd = -EBADF, staging_fd = -EBADF;

        if (packages_fd < 0)
                return rv_trace(packages_fd);
        layers_fd = open_own(packages_fd, state_dir, "layers", err);
        if (layers_fd < 0)
                return rv_trace(layers_fd);
        staging_fd = open_own(packages_fd, state_dir, "staging", err);
        if (staging_fd < 0)
                return rv_trace(staging_fd);
        *ret = (struct rv_layers){ .layers_fd = rv_take_fd(&layers_fd), .staging_fd = rv_take_fd(&staging_fd) };
        return 0;
}

void rv_layers_close(struct rv_layers *layers)
{
        layers->layers_fd = rv_close(layers->layers_fd);
        layers->staging_fd = rv_close(layers->staging_fd);
}

/* ---- Staging ---- */

static int open_staged(const struct rv_layers *layers, const char *name)
{
        int fd = openat(layers->staging_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

/* A sweep can take it for a dead process's until the lock is there: then it is made again. */
static int make_locked(const struct rv_layers *layers, const char *name)
{
        struct stat st;
        int fd;

        for (;;) {
                if (mkdirat(layers->staging_fd, name, 0700) < 0)
                        return rv_raise(-errno);
                fd = open_staged(layers, name);
                if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
                        return fd;
                if (fd < 0 && fd != -ENOENT)
                        return rv_trace(fd);
                rv_close(fd);
                /* Whoever holds the lock is removing it. */
                if (unlinkat(layers->staging_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                        return rv_raise(-errno);
        }
}

int rv_layers_stage(const struct rv_layers *layers, const char *name, uid_t uid, gid_t gid, struct rv_layers_stage *ret,
        struct rv_error *err)
{
        struct rv_layers_stage stage = { .lock_fd = -EBADF, .dir_fd = -EBADF };
        int r = check_names(name, NULL, err);

        if (r < 0)
                return r;
        stage.lock_fd = make_locked(layers, name);
        if (stage.lock_fd < 0)
                return rv_error_set(err, rv_trace(stage.lock_fd), "cannot make the staging directory %s: %s", name, strerror(-stage.lock_fd));
        /* By a descriptor of its own: the lock is not theirs to let go of. */
        stage.dir_fd = open_staged(layers, name);
        r = stage.dir_fd < 0 ? stage.dir_fd : 0;
        if (r == 0 && (uid != geteuid() || gid != getegid()) && fchown(stage.lock_fd, uid, gid) < 0)
                r = -errno;
        if (r == 0) {
                *ret = stage;
                return 0;
        }
        unlinkat(layers->staging_fd, name, AT_REMOVEDIR);
        rv_layers_stage_close(&stage);
        return rv_error_set(err, rv_raise(r), "cannot give the staging directory %s to uid %u: %s", name, (unsigned)uid, strerror(-r));
}

void rv_layers_stage_close(struct rv_layers_stage *stage)
{
        stage->lock_fd = rv_close(stage->lock_fd);
        stage->dir_fd = rv_close(stage->dir_fd);
}

int rv_layers_unstage(const struct rv_layers *layers, const char *name)
{
        int r = check_names(name, NULL, NULL);

        return r < 0 ? r : rv_trace(rv_remove_tree_at(layers->staging_fd, name));
}

int rv_layers_sweep(const struct rv_layers *layers)
{
        int n = 0, fd = openat(layers->staging_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;

        if (!d) {
                rv_close(fd);
                return 0;
        }
        while ((e = readdir(d))) {
                _cleanup_(rv_closep) int staged = -EBADF;

                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                staged = open_staged(layers, e->d_name);
                if (staged >= 0 && flock(staged, LOCK_EX | LOCK_NB) < 0)
                        continue;
                n += rv_remove_tree_at(layers->staging_fd, e->d_name) == 0;
        }
        closedir(d);
        return n;
}

/* ---- Layers ---- */

static int copy_lock(int dir_fd, int lock_fd)
{
        _cleanup_(rv_closep) int fd = openat(dir_fd, "lock.json", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        char bytes[65536];
        size_t at = 0;
        ssize_t n;
        int r = fd < 0 ? rv_raise(-errno) : 0;

        while (r == 0 && (n = pread(lock_fd, bytes, sizeof(bytes), (off_t)at)) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return rv_raise(-errno);
                at += (size_t)n;
                r = at > RV_LAYERS_LOCK_MAX ? rv_raise(-EFBIG) : rv_write_all(fd, bytes, (size_t)n);
        }
        return r == 0 && fchmod(fd, 0644) < 0 ? rv_raise(-errno) : r;
}

static int show(const struct rv_layers *layers, const char *name, int dir_fd, const char *digest)
{
        if (fchmod(dir_fd, 0755) < 0 || syncfs(dir_fd) < 0)
                return rv_raise(-errno);
        rv_test_point("layer-synced");
        if (renameat2(layers->staging_fd, name, layers->layers_fd, digest, RENAME_NOREPLACE) < 0 &&
            /* A file system without that: a directory that is not empty is not replaced either. */
            (errno != EINVAL || renameat(layers->staging_fd, name, layers->layers_fd, digest) < 0))
                return errno == EEXIST || errno == ENOTEMPTY ? rv_trace(rv_remove_tree_at(layers->staging_fd, name))
                                                             : rv_raise(-errno);
        rv_test_point("layer-renamed");
        return fsync(layers->layers_fd) < 0 ? rv_raise(-errno) : 0;
}

/* What was made there, root's from here on. */
static int take_staged(const struct rv_layers *layers, const char *name, const char *digest, enum rv_layers_kind kind,
        const char *manifest, int *ret_fd, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        int r = check_names(name, digest, err);

        if (r < 0)
                return r;
        fd = open_staged(layers, name);
        if (fd < 0)
                return rv_error_set(err, rv_trace(fd), "cannot open the staging directory %s: %s", name, strerror(-fd));
        r = rv__layers_own(fd, kind, manifest, err);
        if (r < 0)
                return rv_trace(r);
        *ret_fd = rv_take_fd(&fd);
        return 0;
}

int rv_layers_publish(
        const struct rv_layers *layers, const char *name, const char *digest, int lock_fd, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        int r = take_staged(layers, name, digest, RV_LAYERS_BUILT, MANIFEST, &fd, err);

        if (r < 0)
                return rv_trace(r);
        rv_test_point("layer-owned");
        if (lock_fd >= 0)
                r = copy_lock(fd, lock_fd);
        if (r == 0)
                r = show(layers, name, fd, digest);
        return r < 0 ? rv_error_set(err, rv_trace(r), "cannot publish the layer %s: %s", digest, strerror(-r)) : 0;
}

static int merge(const struct rv_layers *layers, int from_fd, const char *digest)
{
        _cleanup_(rv_closep) int layer_fd = openat(
                layers->layers_fd, digest, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_(rv_closep) int to = -EBADF;

        if (layer_fd < 0 || syncfs(from_fd) < 0)
                return rv_raise(-errno);
        if (renameat2(from_fd, MANIFEST_COMPILED, layer_fd, MANIFEST_COMPILED, RENAME_NOREPLACE) < 0)
                return errno == EEXIST ? 0 : rv_raise(-errno);
        rv_test_point("layer-manifest");
        to = openat(layer_fd, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return to < 0 ? rv_raise(-errno) : rv_trace(rv__layers_merge(from_fd, to));
}

int rv_layers_add_compiled(const struct rv_layers *layers, const char *name, const char *digest, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        int r = take_staged(layers, name, digest, RV_LAYERS_COMPILED, MANIFEST_COMPILED, &fd, err);

        if (r < 0)
                return rv_trace(r);
        r = merge(layers, fd, digest);
        if (r == 0)
                r = rv_remove_tree_at(layers->staging_fd, name);
        return r < 0 ? rv_error_set(err, rv_trace(r), "cannot add byte code to the layer %s: %s", digest, strerror(-r)) : 0;
}

int rv_layers_remove(const struct rv_layers *layers, const char *digest, struct rv_error *err)
{
        static _Atomic unsigned n_removed;
        char name[RV_LAYERS_NAME_SIZE];
        int r = check_names(NULL, digest, err);

        if (r < 0)
                return r;
        snprintf(name, sizeof(name), "removed-%.16s-%d-%u", digest, (int)getpid(), n_removed++);
        if (renameat(layers->layers_fd, digest, layers->staging_fd, name) < 0)
                return errno == ENOENT ? 0 : rv_error_set(err, rv_raise(-errno), "cannot remove the layer %s: %s", digest, strerror(errno));
        rv_test_point("layer-removing");
        r = rv_remove_tree_at(layers->staging_fd, name);
        return r < 0 ? rv_error_set(err, rv_trace(r), "the layer %s is not there any more, but some of it cannot be removed from staging/: %s", digest, strerror(-r)) : 0;
}
