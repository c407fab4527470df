#include "store/packages_private.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Wheels that were built from source, by their hash. A lock names them, and nowhere else could they be had from. */

#define SUFFIX ".whl"
#define NAME_SIZE (RV_STORE_DIGITS + sizeof(SUFFIX))
#define UNNAMED_S 3600          /* how long one that no lock names stays: its lock may be about to be kept */

int rv_store_built_fd(const struct rv_store *store)
{
        return store->built_fd;
}

static bool make_name(const char *sha256, char ret[NAME_SIZE])
{
        if (!rv__store_is_digest(sha256))
                return false;
        snprintf(ret, NAME_SIZE, "%s" SUFFIX, sha256);
        return true;
}

bool rv_store_built_is_there(const struct rv_store *store, const char *sha256)
{
        char name[NAME_SIZE];

        return make_name(sha256, name) && faccessat(store->built_fd, name, R_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int put(struct rv_store *store, const char *name, const void *data, size_t n)
{
        char unique[RV_STORE_ARTIFACT_SIZE], temporary[RV_STORE_ARTIFACT_SIZE + 1];
        int r;

        rv_store_artifact_name(store, unique);
        snprintf(temporary, sizeof(temporary), ".%s", unique);
        (void)unlinkat(store->built_fd, temporary, 0);
        r = rv_write_file_at(store->built_fd, temporary, data, n, 0600, true);
        if (r == 0 && renameat(store->built_fd, temporary, store->built_fd, name) < 0)
                r = rv_raise(-errno);
        if (r < 0)
                (void)unlinkat(store->built_fd, temporary, 0);
        return rv_trace(r);
}

int rv_store_built_keep(
        struct rv_store *store, const void *data, size_t n, char ret_sha256[RV_SHA256_HEX_SIZE], struct rv_error *err)
{
        char name[NAME_SIZE], sha256[RV_SHA256_HEX_SIZE];
        int r;

        rv_sha256_hex(data, n, sha256);
        rv_require(make_name(sha256, name));
        r = put(store, name, data, n);
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "cannot keep what was built in %s/built: %s", store->path, strerror(-r));
        memcpy(ret_sha256, sha256, sizeof(sha256));
        return 0;
}

/* ---- Which of them still have a lock ---- */

static bool is_named(const struct rv_store *store, const struct rv_store_list *list, const char *sha256)
{
        for (size_t i = 0; i < list->n_locks; i++) {
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                char name[RV_STORE_DIGITS + sizeof(".json")];

                snprintf(name, sizeof(name), "%s.json", list->locks[i].key);
                /* One that cannot be read may name it; one that is gone does not. */
                if (rv_read_file_at(store->locks_fd, name, RV_STORE_HELD_MAX, &text) == 0 && text.size &&
                        strstr(text.data, sha256))
                        return true;
        }
        return false;
}

unsigned rv__store_prune_built(const struct rv_store *store, const struct rv_store_list *list)
{
        int fd = openat(store->built_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;
        unsigned n = 0;

        if (!d) {
                rv_close(fd);
                return 0;
        }
        while ((e = readdir(d))) {
                char sha256[RV_SHA256_HEX_SIZE];
                struct stat st;

                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || fstatat(store->built_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    st.st_mtime + UNNAMED_S > time(NULL))
                        continue;
                snprintf(sha256, sizeof(sha256), "%.64s", e->d_name);
                if (e->d_name[0] == '.' || !is_named(store, list, sha256))
                        n += unlinkat(store->built_fd, e->d_name, 0) == 0;
        }
        closedir(d);
        return n;
}
