#include "store/packages_private.h"

#include "base/clock.h"
#include "base/fd.h"
#include "package/lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_FIRST_US 1000
#define WAIT_LONGEST_US 50000

int rv__store_layers(const struct rv_store *store)
{
        _cleanup_(rv_closep) int fd = openat(store->packages_fd, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != store->owner || (st.st_mode & 022))
                return rv_raise(-EPERM);
        return rv_take_fd(&fd);
}

bool rv_store_layer_is_there(const struct rv_store *store, const char *digest)
{
        _cleanup_(rv_closep) int fd = rv__store_is_digest(digest) ? rv__store_layers(store) : -EINVAL;
        struct stat st;

        return fd >= 0 && fstatat(fd, digest, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
                st.st_uid == store->owner && !(st.st_mode & 022);
}

int rv_store_layer_lock(const struct rv_store *store, const char *digest, json_t **ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_closep) int fd = rv_store_layer_is_there(store, digest) ? rv__store_layers(store) : -ENOENT;
        char path[RV_SHA256_HEX_SIZE + 16], found[RV_SHA256_HEX_SIZE];
        json_t *lock;
        int r;

        if (fd < 0)
                return RV_STORE_E_ABSENT;
        snprintf(path, sizeof(path), "%s/lock.json", digest);
        r = rv_read_file_at(fd, path, RV_LOCK_BYTES_MAX, &text);
        if (r == 0)
                r = rv_lock_read(text.data ? text.data : "", text.size, &lock, NULL);
        if (r < 0)
                return r == -ENOMEM ? rv_trace(r) : RV_STORE_E_ABSENT;
        r = rv_lock_digest(lock, found);
        if (r == 0 && strcmp(found, digest) == 0)
                *ret = lock;
        else
                json_decref(lock);
        return r < 0 ? rv_trace(r) : strcmp(found, digest) ? RV_STORE_E_ABSENT : 0;
}

bool rv_store_layer_is_compiled(const struct rv_store *store, const char *digest)
{
        _cleanup_(rv_closep) int fd = rv__store_is_digest(digest) ? rv__store_layers(store) : -EINVAL;
        char path[RV_SHA256_HEX_SIZE + 32];

        snprintf(path, sizeof(path), "%s/manifest-compiled.json", digest);
        return fd >= 0 && faccessat(fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int rv__store_hold(int dir_fd, const char *name, int operation)
{
        for (;;) {
                _cleanup_(rv_closep) int fd = openat(
                        dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
                struct stat own, named;

                if (fd < 0)
                        return rv_raise(-errno);
                while (flock(fd, operation) < 0)
                        if (errno != EINTR)
                                return -errno;
                if (fstat(fd, &own) < 0)
                        return rv_raise(-errno);
                /* It was removed between the opening and the lock: the name stands for another file now, or for none. */
                if (fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == own.st_ino &&
                        named.st_dev == own.st_dev)
                        return rv_take_fd(&fd);
        }
}

static int check_digest(const char *digest, struct rv_error *err)
{
        return rv__store_is_digest(digest) ? 0 : rv_error_set(err, rv_raise(-EINVAL), "\"%.80s\" names no layer: it needs 64 digits of lower-case hexadecimal", digest);
}

int rv_store_layer_use(struct rv_store *store, const char *digest, int *ret_fd, struct rv_error *err)
{
        int fd = check_digest(digest, err);

        if (fd < 0)
                return fd;
        fd = rv__store_hold(store->used_fd, digest, LOCK_SH);
        if (fd >= 0 && futimens(fd, NULL) < 0) {
                int r = -errno;

                rv_close(fd);
                fd = r;
        }
        if (fd < 0)
                return rv_error_set(err, rv_trace(fd), "cannot note in %s/used that the layer %s is used: %s", store->path, digest, strerror(-fd));
        *ret_fd = fd;
        return 0;
}

int rv_store_claim(struct rv_store *store, const char *digest, int *ret_fd, struct rv_error *err)
{
        int fd = check_digest(digest, err);

        if (fd < 0)
                return fd;
        fd = rv__store_hold(store->claims_fd, digest, LOCK_EX | LOCK_NB);
        if (fd == -EWOULDBLOCK)
                return RV_STORE_E_TAKEN;
        if (fd < 0)
                return rv_error_set(err, rv_trace(fd), "cannot claim the layer %s in %s/claims: %s", digest, store->path, strerror(-fd));
        *ret_fd = fd;
        return 0;
}

int rv_store_claim_wait(struct rv_store *store, const char *digest, const _Atomic bool *stop, uint64_t deadline_us,
        int *ret_fd, struct rv_error *err)
{
        uint64_t wait_us = WAIT_FIRST_US;

        for (;;) {
                uint64_t now = rv_clock_us(CLOCK_MONOTONIC);
                struct timespec t;
                int r;

                if (stop && atomic_load(stop))
                        return -ECANCELED;
                r = rv_store_claim(store, digest, ret_fd, err);
                if (r != RV_STORE_E_TAKEN || now >= deadline_us)
                        return r < 0 ? rv_trace(r) : r;
                wait_us = RV_MIN(wait_us, deadline_us - now);
                t = (struct timespec){ .tv_nsec = (long)wait_us * 1000 };
                nanosleep(&t, NULL);
                wait_us = RV_MIN(wait_us * 2, (uint64_t)WAIT_LONGEST_US);
        }
}

int rv_store_claim_end(struct rv_store *store, const char *digest, int take_fd)
{
        if (take_fd >= 0)
                (void)unlinkat(store->claims_fd, digest, 0);
        return rv_close(take_fd);
}
