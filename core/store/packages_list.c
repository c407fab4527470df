#include "store/packages_list.h"
#include "store/packages_private.h"

#include "base/fd.h"
#include "base/text.h"
#include "package/lock.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 256

static uint64_t time_of(const struct stat *st)
{
        return (uint64_t)st->st_mtim.tv_sec * 1000000 + (uint64_t)st->st_mtim.tv_nsec / 1000;
}

/* What a directory takes on the disk with all that is in it. Takes @fd. */
static uint64_t size_of(int fd, unsigned depth)
{
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;
        uint64_t bytes = 0;
        struct stat st;

        if (!d) {
                rv_close(fd);
                return 0;
        }
        while ((e = readdir(d))) {
                if (!strcmp(e->d_name, "..") || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (!S_ISDIR(st.st_mode) || !strcmp(e->d_name, "."))
                        bytes += (uint64_t)st.st_blocks * 512;
                else if (depth < DEPTH_MAX)
                        bytes += size_of(openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                                depth + 1);
        }
        closedir(d);
        return bytes;
}

static void read_lock(int layer_fd, struct rv_store_layer *ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_json_unrefp) json_t *lock = NULL;

        if (rv_read_file_at(layer_fd, "lock.json", RV_LOCK_BYTES_MAX, &text) < 0 || rv_lock_read(text.data, text.size, &lock, NULL) < 0)
                return;
        rv_text_copy(ret->language, sizeof(ret->language), rv_json_get_string(lock, "language", ""));
        rv_text_copy(ret->runtime, sizeof(ret->runtime), rv_json_get_string(json_object_get(lock, "runtime"), "tag", ""));
        ret->n_packages = json_array_size(json_object_get(lock, "packages"));
}

/* Nothing is made here: a layer that has no note of use is not used. */
static bool is_in_use(const struct rv_store *store, const char *digest)
{
        _cleanup_(rv_closep) int fd = openat(store->used_fd, digest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static bool look_at_layer(struct rv_store *store, int layers_fd, const char *digest, struct rv_store_layer *ret)
{
        _cleanup_(rv_closep) int fd = openat(layers_fd, digest, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st, used;

        if (fd < 0 || fstat(fd, &st) < 0)
                return false;
        *ret = (struct rv_store_layer){ .last_use_us = time_of(&st) };
        rv_text_copy(ret->digest, sizeof(ret->digest), digest);
        if (fstatat(store->used_fd, digest, &used, AT_SYMLINK_NOFOLLOW) == 0)
                ret->last_use_us = time_of(&used);
        read_lock(fd, ret);
        ret->is_in_use = is_in_use(store, digest);
        ret->is_compiled = faccessat(fd, "manifest-compiled.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        ret->bytes = size_of(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0);
        return true;
}

static bool look_at_lock(const struct rv_store *store, const char *name, struct rv_store_held *ret)
{
        struct stat st;
        size_t n = strlen(name);

        if (n != RV_STORE_DIGITS + strlen(".json") || strcmp(name + RV_STORE_DIGITS, ".json") || fstatat(store->locks_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return false;
        memcpy(ret->key, name, RV_STORE_DIGITS);
        ret->key[RV_STORE_DIGITS] = 0;
        ret->last_use_us = time_of(&st);
        ret->bytes = (uint64_t)st.st_blocks * 512;
        return rv__store_is_digest(ret->key);
}

/* Room for one more element, doubling. */
static int grow(void **p, size_t n, size_t size)
{
        void *more;

        if (n & (n - 1))
                return 0;
        more = reallocarray(*p, n ? 2 * n : 1, size);
        if (!more)
                return rv_raise(-ENOMEM);
        *p = more;
        return 0;
}

static int list_layers(struct rv_store *store, struct rv_store_list *list)
{
        int fd = rv__store_layers(store), r = 0;
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;

        if (!d) {
                r = fd < 0 ? fd : rv_raise(-errno);
                rv_close(fd);
                return r == -ENOENT ? 0 : r;
        }
        while (r == 0 && (e = readdir(d))) {
                if (!rv__store_is_digest(e->d_name))
                        continue;
                r = grow((void **)&list->layers, list->n_layers, sizeof(*list->layers));
                if (r == 0 && look_at_layer(store, dirfd(d), e->d_name, &list->layers[list->n_layers]))
                        list->layers_bytes += list->layers[list->n_layers++].bytes;
        }
        closedir(d);
        return r;
}

static int list_locks(const struct rv_store *store, struct rv_store_list *list)
{
        int fd = openat(store->locks_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;

        if (!d) {
                r = rv_raise(-errno);
                rv_close(fd);
                return r;
        }
        while (r == 0 && (e = readdir(d))) {
                r = grow((void **)&list->locks, list->n_locks, sizeof(*list->locks));
                if (r == 0 && look_at_lock(store, e->d_name, &list->locks[list->n_locks]))
                        list->n_locks++;
        }
        closedir(d);
        return r;
}

static int compare_layers(const void *pa, const void *pb)
{
        const struct rv_store_layer *a = pa, *b = pb;

        return a->last_use_us != b->last_use_us ? (a->last_use_us < b->last_use_us ? -1 : 1)
                                                : strcmp(a->digest, b->digest);
}

static int compare_locks(const void *pa, const void *pb)
{
        const struct rv_store_held *a = pa, *b = pb;

        return a->last_use_us != b->last_use_us ? (a->last_use_us < b->last_use_us ? -1 : 1) : strcmp(a->key, b->key);
}

int rv_store_list(struct rv_store *store, struct rv_store_list *ret, struct rv_error *err)
{
        struct rv_store_list list = { 0 };
        int r = list_layers(store, &list);

        if (r == 0)
                r = list_locks(store, &list);
        if (r < 0) {
                rv_store_list_fini(&list);
                return rv_error_set(err, rv_trace(r), "cannot look through %s: %s%s", store->path, strerror(-r),
                                    r == -EPERM ? "; layers/ is not the right user's, or others can write there: remove it, it is made anew" : "");
        }
        if (list.n_layers)
                qsort(list.layers, list.n_layers, sizeof(*list.layers), compare_layers);
        if (list.n_locks)
                qsort(list.locks, list.n_locks, sizeof(*list.locks), compare_locks);
        *ret = list;
        return 0;
}

void rv_store_list_fini(struct rv_store_list *list)
{
        free(list->layers);
        free(list->locks);
        *list = (struct rv_store_list){ 0 };
}
