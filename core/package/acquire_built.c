#include "package/acquire_private.h"

#include "base/fd.h"
#include "base/hash.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* Wheels that were built here: they are not fetched, but kept in a directory, by their hash. */

#define NAME_SIZE (RV_SHA256_HEX_SIZE + sizeof(".whl"))

bool rv__acquire_is_built(const json_t *package)
{
        const char *url = rv_json_get_string(package, "url", NULL);

        return url && !*url;
}

const json_t *rv__acquire_find_built(const struct rv_acquire *in, const json_t *package)
{
        static const char *const same[] = { "name", "version", "file" };
        const json_t *entry;
        size_t i, k;

        json_array_foreach((json_t *)in->built, i, entry) {
                for (k = 0; k < RV_N_ELEMENTS(same); k++)
                        if (strcmp(rv_json_get_string(entry, same[k], ""), rv_json_get_string(package, same[k], "-")) != 0)
                                break;
                if (k == RV_N_ELEMENTS(same))
                        return entry;
        }
        return NULL;
}

static int copy(int from_fd, int to_fd)
{
        struct stat st;

        if (fstat(from_fd, &st) < 0)
                return rv_raise(-errno);
        for (off_t left = st.st_size; left > 0;) {
                ssize_t n = sendfile(to_fd, from_fd, NULL, (size_t)left);

                if (n <= 0)
                        return rv_raise(n < 0 ? -errno : -EIO);
                left -= n;
        }
        return 0;
}

/* Of a closure the wheel is one of this run; a lock has its hash. What the bytes are is looked at with all the others. */
int rv__acquire_take_built(const struct rv_acquire *in, const json_t *package, size_t index, struct rv_artifact *a,
        struct rv_package_failure *f)
{
        _cleanup_(rv_closep) int from_fd = -EBADF;
        _cleanup_(rv_closep) int to_fd = -EBADF;
        const char *hash = rv_json_get_string(package, "hash", ""), *name = rv_json_get_string(package, "name", "");
        const char *sha256 = strncmp(hash, "sha256:", 7) == 0 ? hash + 7 : rv_json_get_string(rv__acquire_find_built(in, package), "sha256", "");
        char from[NAME_SIZE], to[RV_ACQUIRE_FILE_SIZE];
        int r;

        snprintf(from, sizeof(from), "%.64s.whl", sha256);
        if (strlen(sha256) == RV_SHA256_HEX_SIZE - 1 && !strchr(sha256, '/') && in->built_fd >= 0)
                from_fd = openat(in->built_fd, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (from_fd < 0)
                return rv__acquire_fail(f, RV_PACKAGE_INSTALL_FAILED, "build_failed", false, name,
                                        "the wheel of %s %s was built from its source, and is not in the store any more: have the packages looked for anew", name,
                                        rv_json_get_string(package, "version", ""));
        rv_acquire_file(index, to);
        to_fd = openat(in->dir_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (to_fd < 0)
                return rv_raise(-errno);
        (void)fchmod(to_fd, 0644);
        r = copy(from_fd, to_fd);
        if (r < 0)
                return rv_trace(r);
        a->is_there = true;
        a->url = "";
        return 0;
}
