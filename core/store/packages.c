#include "store/packages_private.h"

#include "base/fd.h"
#include "base/remove.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files under a name of their own, until they are renamed: how old one is that nobody will rename any more. */
#define LEFT_S 3600

bool rv__store_is_digest(const char *text)
{
        return strlen(text) == RV_STORE_DIGITS && strspn(text, "0123456789abcdef") == RV_STORE_DIGITS;
}

/* ---- Opening ---- */

static int open_directory(const struct rv_store *store, int dir_fd, const char *name, mode_t mode, struct rv_error *err)
{
        const char *slash = *name ? "/" : "", *under = *name ? name : "packages";
        bool is_new = mkdirat(dir_fd, under, mode) == 0;
        int fd;

        if (!is_new && errno != EEXIST)
                return rv_error_set(err, rv_raise(-errno), "cannot make %s%s%s: %s", store->path, slash, name, strerror(errno));
        fd = openat(dir_fd, under, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot open %s%s%s: %s; it has to be a directory that this user can use", store->path, slash, name, strerror(errno));
        if (is_new)
                (void)fchmod(fd, mode);
        return fd;
}

static int open_all(struct rv_store *store, int state_fd, struct rv_error *err)
{
        static const char *const names[] = { "locks", "cache", "artifacts", "used", "claims", "built" };
        int *const fds[] = { &store->locks_fd, &store->cache_fd, &store->artifacts_fd, &store->used_fd,
                &store->claims_fd, &store->built_fd };

        store->packages_fd = open_directory(store, state_fd, "", 0755, err);
        if (store->packages_fd < 0)
                return rv_trace(store->packages_fd);
        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                *fds[i] = open_directory(store, store->packages_fd, names[i], 0700, err);
                if (*fds[i] < 0)
                        return rv_trace(*fds[i]);
        }
        return 0;
}

int rv_store_open(int state_fd, const char *state_dir, uid_t owner, struct rv_store **ret, struct rv_error *err)
{
        _cleanup_(rv_store_closep) struct rv_store *store = calloc(1, sizeof(*store));
        int r;

        if (!store)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        store->packages_fd = store->locks_fd = store->cache_fd = store->artifacts_fd = store->used_fd =
                store->claims_fd = store->built_fd = store->run_fd = -EBADF;
        store->owner = owner;
        pthread_mutex_init(&store->mutex, NULL);
        if (asprintf(&store->path, "%s/packages", state_dir) < 0) {
                store->path = NULL;
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        }
        r = open_all(store, state_fd, err);
        if (r < 0)
                return rv_trace(r);
        *ret = rv_take(&store);
        return 0;
}

void rv_store_close(struct rv_store *store)
{
        if (!store)
                return;
        if (store->run_fd >= 0)
                (void)rv_remove_tree_at(store->artifacts_fd, store->run);
        rv_close(store->run_fd);
        rv_close(store->built_fd);
        rv_close(store->claims_fd);
        rv_close(store->used_fd);
        rv_close(store->artifacts_fd);
        rv_close(store->cache_fd);
        rv_close(store->locks_fd);
        rv_close(store->packages_fd);
        pthread_mutex_destroy(&store->mutex);
        free(store->path);
        free(store);
}

int rv_store_cache_fd(const struct rv_store *store)
{
        return store->cache_fd;
}

/* ---- Artifacts ---- */

void rv_store_artifact_name(struct rv_store *store, char ret[RV_STORE_ARTIFACT_SIZE])
{
        snprintf(ret, RV_STORE_ARTIFACT_SIZE, "%d-%u", (int)getpid(), atomic_fetch_add(&store->n_names, 1));
}

/* A sweep can take it for a dead process's until the lock is there: then another is made. */
static int make_run(struct rv_store *store)
{
        struct stat st;
        uint32_t r;
        int fd;

        for (;;) {
                if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
                        return rv_raise(-EIO);
                snprintf(store->run, sizeof(store->run), "%d-%08x", (int)getpid(), r);
                if (mkdirat(store->artifacts_fd, store->run, 0700) < 0) {
                        if (errno == EEXIST)
                                continue;
                        return rv_raise(-errno);
                }
                fd = openat(store->artifacts_fd, store->run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0 && errno != ENOENT)
                        return rv_raise(-errno);
                if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
                        return fd;
                rv_close(fd);
        }
}

static unsigned sweep(struct rv_store *store, int dir_fd, bool (*one)(struct rv_store *store, const char *name));
static bool sweep_artifacts(struct rv_store *store, const char *name);

int rv_store_artifacts(struct rv_store *store, int *ret_fd, struct rv_error *err)
{
        int r;

        pthread_mutex_lock(&store->mutex);
        if (store->run_fd < 0) {
                (void)sweep(store, store->artifacts_fd, sweep_artifacts);
                store->run_fd = make_run(store);
        }
        r = store->run_fd;
        pthread_mutex_unlock(&store->mutex);
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "cannot make a directory in %s/artifacts: %s", store->path, strerror(-r));
        *ret_fd = r;
        return 0;
}

/* ---- What dead processes left ---- */

static bool sweep_artifacts(struct rv_store *store, const char *name)
{
        _cleanup_(rv_closep) int fd = openat(store->artifacts_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
                return false;
        return rv_remove_tree_at(store->artifacts_fd, name) == 0;
}

static bool sweep_claim(struct rv_store *store, const char *name)
{
        _cleanup_(rv_closep) int fd = rv__store_hold(store->claims_fd, name, LOCK_EX | LOCK_NB);

        return fd >= 0 && unlinkat(store->claims_fd, name, 0) == 0;
}

/* The note goes when the layer is gone; whoever is about to use or build it holds it. */
static bool sweep_used(struct rv_store *store, const char *name)
{
        _cleanup_(rv_closep) int fd = -EBADF;

        if (rv_store_layer_is_there(store, name))
                return false;
        fd = rv__store_hold(store->used_fd, name, LOCK_EX | LOCK_NB);
        return fd >= 0 && !rv_store_layer_is_there(store, name) && unlinkat(store->used_fd, name, 0) == 0;
}

static bool sweep_lock(struct rv_store *store, const char *name)
{
        struct stat st;

        if (name[0] != '.' || fstatat(store->locks_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                st.st_mtime + LEFT_S > time(NULL))
                return false;
        return unlinkat(store->locks_fd, name, 0) == 0;
}

static unsigned sweep(struct rv_store *store, int dir_fd, bool (*one)(struct rv_store *store, const char *name))
{
        int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;
        unsigned n = 0;

        if (!d) {
                rv_close(fd);
                return 0;
        }
        while ((e = readdir(d)))
                if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
                        n += one(store, e->d_name);
        closedir(d);
        return n;
}

unsigned rv_store_sweep(struct rv_store *store)
{
        return sweep(store, store->artifacts_fd, sweep_artifacts) + sweep(store, store->claims_fd, sweep_claim) +
               sweep(store, store->used_fd, sweep_used) + sweep(store, store->locks_fd, sweep_lock);
}
