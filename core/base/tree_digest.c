#include "base/tree_digest.h"

#include "base/fd.h"
#include "base/hash.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEPTH_MAX 128
#define PREFIX "sha256:"

struct entry {
        char *path;
        char type;
        mode_t mode;
        char value[RV_SHA256_HEX_SIZE];
};

struct walk {
        struct entry *entries;
        size_t n, n_room;
        struct rv_error *err;
};

static void walk_fini(struct walk *w)
{
        for (size_t i = 0; i < w->n; i++)
                free(w->entries[i].path);
        free(w->entries);
}

static int fail(struct walk *w, int r, const char *path)
{
        return rv_error_set(w->err, rv_raise(r), "%s: %s", path, strerror(-r));
}

static int read_link(int dir_fd, const char *name, char ret_hex[RV_SHA256_HEX_SIZE])
{
        char target[4096];
        ssize_t n = readlinkat(dir_fd, name, target, sizeof(target));

        if (n < 0 || n == sizeof(target))
                return n < 0 ? -errno : -ENAMETOOLONG;
        rv_sha256_hex(target, (size_t)n, ret_hex);
        return 0;
}

static int read_file(int dir_fd, const char *name, char ret_hex[RV_SHA256_HEX_SIZE])
{
        _cleanup_(rv_closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

        return fd < 0 ? -errno : rv_sha256_fd(fd, ret_hex);
}

static int look_at(int dir_fd, const char *name, struct entry *e)
{
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        e->mode = st.st_mode & 07777;
        strcpy(e->value, "-");
        switch (st.st_mode & S_IFMT) {
        case S_IFREG:
                e->type = 'f';
                return read_file(dir_fd, name, e->value);
        case S_IFLNK:
                e->type = 'l';
                e->mode = 0777;
                return read_link(dir_fd, name, e->value);
        case S_IFDIR:
                e->type = 'd';
                return 0;
        case S_IFCHR:
        case S_IFBLK:
                e->type = S_ISCHR(st.st_mode) ? 'c' : 'b';
                snprintf(e->value, sizeof(e->value), "%u:%u", major(st.st_rdev), minor(st.st_rdev));
                return 0;
        default:
                e->type = S_ISFIFO(st.st_mode) ? 'p' : 's';
                return 0;
        }
}

static int add(struct walk *w, int dir_fd, const char *name, const char *above)
{
        struct entry e = { 0 }, *more;
        int r;

        if (w->n >= RV_TREE_ENTRIES_MAX)
                return rv_error_set(w->err, rv_raise(-E2BIG), "there are more than %u files and directories", RV_TREE_ENTRIES_MAX);
        if (w->n == w->n_room) {
                more = reallocarray(w->entries, w->n_room ? 2 * w->n_room : 1024, sizeof(*more));
                if (!more)
                        return rv_raise(-ENOMEM);
                w->entries = more;
                w->n_room = w->n_room ? 2 * w->n_room : 1024;
        }
        if (asprintf(&e.path, "%s%s%s", above, *above ? "/" : "", name) < 0)
                return rv_raise(-ENOMEM);
        r = look_at(dir_fd, name, &e);
        if (r < 0) {
                r = fail(w, r, e.path);
                free(e.path);
                return r;
        }
        w->entries[w->n++] = e;
        return 0;
}

static void closedirp(DIR **d)
{
        if (*d)
                closedir(*d);
}

static int walk(struct walk *w, int dir_fd, const char *name, const char *above, unsigned depth)
{
        _cleanup_(closedirp) DIR *d = NULL;
        const struct dirent *e;
        int fd, r = 0;

        if (depth > DEPTH_MAX)
                return fail(w, -ELOOP, above);
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        d = fd >= 0 ? fdopendir(fd) : NULL;
        if (!d) {
                r = -errno;
                rv_close(fd);
                return fail(w, r, *above ? above : ".");
        }
        while (r == 0 && (errno = 0, e = readdir(d))) {
                size_t at = w->n;

                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                r = add(w, dirfd(d), e->d_name, above);
                if (r == 0 && w->entries[at].type == 'd')
                        r = walk(w, dirfd(d), e->d_name, w->entries[at].path, depth + 1);
        }
        return r == 0 && errno ? fail(w, -errno, above) : r;
}

static int compare(const void *a, const void *b)
{
        return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

int rv_tree_digest(int dir_fd, char ret[RV_TREE_DIGEST_SIZE], size_t *n_entries, struct rv_error *err)
{
        _cleanup_(walk_fini) struct walk w = { .err = err };
        uint8_t digest[RV_SHA256_SIZE];
        struct rv_sha256 h;
        int r = walk(&w, dir_fd, ".", "", 0);

        if (r < 0)
                return r == -ENOMEM ? rv_error_set(err, r, "out of memory") : rv_trace(r);
        if (w.n)
                qsort(w.entries, w.n, sizeof(*w.entries), compare);
        rv_sha256_init(&h);
        for (size_t i = 0; i < w.n; i++) {
                const struct entry *e = &w.entries[i];
                char head[RV_SHA256_HEX_SIZE + 16];
                int n = snprintf(head, sizeof(head), "%c %04o %s ", e->type, (unsigned)e->mode, e->value);

                rv_sha256_update(&h, head, (size_t)n);
                rv_sha256_update(&h, e->path, strlen(e->path) + 1);
        }
        rv_sha256_final(&h, digest);
        memcpy(ret, PREFIX, sizeof(PREFIX));
        rv_hex(digest, sizeof(digest), ret + strlen(PREFIX));
        if (n_entries)
                *n_entries = w.n;
        return 0;
}

int rv_file_digest(int fd, char ret[RV_TREE_DIGEST_SIZE])
{
        char hex[RV_SHA256_HEX_SIZE];
        int r = rv_sha256_fd(fd, hex);

        if (r < 0)
                return rv_trace(r);
        snprintf(ret, RV_TREE_DIGEST_SIZE, PREFIX "%s", hex);
        return 0;
}
