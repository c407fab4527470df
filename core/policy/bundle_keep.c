#include "policy/bundle_files.h"

#include "base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int sync_dir(const char *path)
{
        _cleanup_(rv_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return rv_raise(-errno);
        return fsync(fd) < 0 ? rv_raise(-errno) : 0;
}

/* Makes the directories that lead to a file of the copy. */
static int make_parents(const char *copy, const char *path)
{
        char part[PATH_MAX];

        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                if ((size_t)snprintf(part, sizeof(part), "%s/%.*s", copy, (int)(slash - path), path) >= sizeof(part))
                        return rv_raise(-ENAMETOOLONG);
                if (mkdir(part, 0700) < 0 && errno != EEXIST)
                        return rv_raise(-errno);
        }
        return 0;
}

static int write_files(const struct rv_bundle *b, const char *copy)
{
        char path[PATH_MAX];
        int r;

        for (size_t i = 0; i < b->n_files; i++) {
                const struct rv_bundle_file *f = &b->files[i];

                r = make_parents(copy, f->path);
                if (r < 0)
                        return rv_trace(r);
                if ((size_t)snprintf(path, sizeof(path), "%s/%s", copy, f->path) >= sizeof(path))
                        return rv_raise(-ENAMETOOLONG);
                r = rv_write_file(path, f->text, f->size, 0600, true);
                if (r < 0)
                        return rv_trace(r);
                *strrchr(path, '/') = 0;
                r = sync_dir(path);
                if (r < 0)
                        return rv_trace(r);
        }
        return rv_trace(sync_dir(copy));
}

/* Removes a copy that did not find its place: our own files, deepest directories first. */
static void remove_files(const struct rv_bundle *b, const char *copy)
{
        char path[PATH_MAX];

        for (size_t i = 0; i < b->n_files; i++) {
                if ((size_t)snprintf(path, sizeof(path), "%s/%s", copy, b->files[i].path) >= sizeof(path))
                        continue;
                unlink(path);
        }
        for (size_t i = b->n_files; i-- > 0;) {
                if ((size_t)snprintf(path, sizeof(path), "%s/%s", copy, b->files[i].path) >= sizeof(path))
                        continue;
                for (char *slash = strrchr(path, '/'); slash &&
                        (size_t)(slash - path) > strlen(copy); slash = strrchr(path, '/')) {
                        *slash = 0;
                        rmdir(path);   /* fails while a later file's directory is still in it: that one removes it */
                }
        }
        rmdir(copy);
}

static int keep_new(const struct rv_bundle *b, const char *dir, const char *place)
{
        char copy[PATH_MAX];
        int r;

        r = rv_mkdir_p(dir, 0700);
        if (r < 0)
                return rv_trace(r);
        if ((size_t)snprintf(copy, sizeof(copy), "%s/.new-XXXXXX", dir) >= sizeof(copy))
                return rv_raise(-ENAMETOOLONG);
        if (!mkdtemp(copy))
                return rv_raise(-errno);
        r = write_files(b, copy);
        if (r == 0 && rename(copy, place) < 0)
                /* Another process was first: its copy has the same bytes. */
                r = errno == EEXIST || errno == ENOTEMPTY ? 1 : rv_raise(-errno);
        if (r)
                remove_files(b, copy);
        return r < 0 ? rv_trace(r) : rv_trace(sync_dir(dir));
}

int rv_bundle_keep(const struct rv_bundle *b, const char *dir)
{
        char place[PATH_MAX];
        struct stat st;

        if ((size_t)snprintf(place, sizeof(place), "%s/%s", dir, b->digest) >= sizeof(place))
                return rv_raise(-ENAMETOOLONG);
        if (stat(place, &st) == 0)
                return S_ISDIR(st.st_mode) ? 0 : rv_raise(-ENOTDIR);
        return errno == ENOENT || errno == ENOTDIR ? rv_trace(keep_new(b, dir, place)) : rv_raise(-errno);
}
