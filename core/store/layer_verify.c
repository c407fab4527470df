#include "store/layer_verify.h"
#include "store/packages_private.h"

#include "base/fd.h"
#include "package/lock.h"
#include "store/layer_manifest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE "__pycache__"
#define DEPTH_MAX 256
#define CHUNK ((size_t)256 << 10)

struct walk {
        const struct rv_store *store;
        struct rv_manifest built, compiled;
        bool is_compiled;
        rv_layer_fault_fn on_fault;
        void *ctx;
        struct rv_layer_count *count;
        uint8_t *chunk;
        char path[RV_MANIFEST_PATH_MAX + 300];   /* from tree/ */
        size_t n_path;
};

static void tell(struct walk *w, const char *path, const char *fmt, ...) RV_PRINTF(3, 4);
static void tell(struct walk *w, const char *path, const char *fmt, ...)
{
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        w->count->n_faults++;
        if (w->on_fault)
                w->on_fault(w->ctx, path, text);
}

static void tell_here(struct walk *w, const char *fault)
{
        char path[sizeof(w->path) + 8];

        snprintf(path, sizeof(path), "tree%s%s", w->n_path ? "/" : "", w->path);
        tell(w, path, "%s", fault);
}

/* ---- One entry ---- */

static const char *const type_names[] = { [RV_MANIFEST_FILE] = "a file", [RV_MANIFEST_LINK] = "a link", [RV_MANIFEST_DIRECTORY] = "a directory" };

static bool is_of_type(mode_t mode, enum rv_manifest_type type)
{
        return type == RV_MANIFEST_FILE ? S_ISREG(mode) : type == RV_MANIFEST_LINK ? S_ISLNK(mode) : S_ISDIR(mode);
}

static void compare_file(struct walk *w, int dir_fd, const char *name, const struct rv_manifest_entry *e)
{
        _cleanup_(rv_closep) int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        uint8_t digest[RV_SHA256_SIZE];
        char hex[RV_SHA256_HEX_SIZE];
        struct rv_sha256 h;
        uint64_t size = 0;
        ssize_t n = 0;

        rv_sha256_init(&h);
        while (fd >= 0 && ((n = read(fd, w->chunk, CHUNK)) > 0 || (n < 0 && errno == EINTR))) {
                if (n < 0)
                        continue;
                rv_sha256_update(&h, w->chunk, (size_t)n);
                size += (uint64_t)n;
        }
        if (fd < 0 || n < 0) {
                tell_here(w, strerror(errno));
                return;
        }
        rv_sha256_final(&h, digest);
        rv_hex(digest, sizeof(digest), hex);
        w->count->n_files++;
        w->count->bytes += size;
        if (size != e->size)
                tell_here(w, "it has another size than in the manifest");
        else if (strcmp(hex, e->sha256))
                tell_here(w, "its bytes are not those of the manifest (SHA-256)");
}

static void compare_link(struct walk *w, int dir_fd, const char *name, const struct rv_manifest_entry *e)
{
        char target[4097];
        ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

        if (n < 0) {
                tell_here(w, strerror(errno));
                return;
        }
        target[n] = 0;
        if (strcmp(target, e->target))
                tell_here(w, "the link leads elsewhere than in the manifest");
}

static void compare_entry(
        struct walk *w, int dir_fd, const char *name, const struct stat *st, const struct rv_manifest_entry *e)
{
        if (!is_of_type(st->st_mode, e->type)) {
                char text[80];

                snprintf(text, sizeof(text), "it is not what it was in the manifest, %s", type_names[e->type]);
                tell_here(w, text);
                return;
        }
        if (st->st_uid != w->store->owner)
                tell_here(w, "it belongs to another user");
        if (e->type != RV_MANIFEST_LINK && (st->st_mode & 07777) != e->mode)
                tell_here(w, "it has another mode than in the manifest");
        if (e->type == RV_MANIFEST_FILE && st->st_nlink != 1)
                tell_here(w, "it has several names (hard links)");
        if (e->type == RV_MANIFEST_FILE)
                compare_file(w, dir_fd, name, e);
        else if (e->type == RV_MANIFEST_LINK)
                compare_link(w, dir_fd, name, e);
}

/* Byte code is looked up in its own manifest, and in that alone only within __pycache__. */
static struct rv_manifest_entry *find(const struct walk *w, bool is_cache)
{
        struct rv_manifest_entry *e = rv_manifest_find(&w->built, w->path);

        return !e && is_cache ? rv_manifest_find(&w->compiled, w->path) : e;
}

/* ---- All of them ---- */

static int walk_directory(struct walk *w, int fd, unsigned depth, bool is_cache);

static int walk_entry(struct walk *w, int dir_fd, const char *name, unsigned depth, bool is_in_cache)
{
        bool is_cache = !strcmp(name, CACHE);
        struct rv_manifest_entry *e;
        struct stat st;
        int fd;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                tell_here(w, strerror(errno));
                return 0;
        }
        e = find(w, is_in_cache);
        if (e) {
                e->is_seen = true;
                compare_entry(w, dir_fd, name, &st, e);
        } else if (!is_cache || !S_ISDIR(st.st_mode) || !w->is_compiled) {
                tell_here(w, "it is not in the manifest");
                return 0;
        }
        if (!S_ISDIR(st.st_mode))
                return 0;
        fd = depth < DEPTH_MAX ? openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (fd < 0) {
                tell_here(w, depth < DEPTH_MAX ? strerror(errno) : "directories are too deep");
                return 0;
        }
        return walk_directory(w, fd, depth + 1, is_cache);
}

/* Takes @fd. */
static int walk_directory(struct walk *w, int fd, unsigned depth, bool is_cache)
{
        size_t n_path = w->n_path;
        DIR *d = fdopendir(fd);
        const struct dirent *e;
        int r = 0;

        if (!d) {
                rv_close(fd);
                return rv_raise(-ENOMEM);
        }
        while (r == 0 && (e = readdir(d))) {
                size_t n = strlen(e->d_name);

                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                if (n_path + n + 2 > sizeof(w->path)) {
                        tell_here(w, "what is in it has too long a path");
                        break;
                }
                snprintf(w->path + n_path, sizeof(w->path) - n_path, "%s%s", n_path ? "/" : "", e->d_name);
                w->n_path = n_path + n + (n_path > 0);
                r = walk_entry(w, dirfd(d), e->d_name, depth, is_cache);
                w->path[n_path] = 0;
                w->n_path = n_path;
        }
        closedir(d);
        return r;
}

static void tell_missing(struct walk *w)
{
        char path[sizeof(w->path)];

        for (size_t i = 0; i < w->built.n; i++) {
                if (w->built.entries[i].is_seen)
                        continue;
                snprintf(path, sizeof(path), "tree/%s", w->built.entries[i].path);
                tell(w, path, "it is in the manifest and not there");
        }
}

/* ---- Beside the tree ---- */

static void check_beside(struct walk *w, int layer_fd)
{
        static const char *const names[] = { ".", "..", "tree", "lock.json", "manifest.json", "manifest-compiled.json" };
        int fd = openat(layer_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;

        if (!d) {
                rv_close(fd);
                return;
        }
        while ((e = readdir(d))) {
                bool is_known = false;

                for (size_t i = 0; i < RV_N_ELEMENTS(names); i++)
                        is_known = is_known || !strcmp(e->d_name, names[i]);
                if (!is_known)
                        tell(w, e->d_name, "it is no part of a layer");
        }
        closedir(d);
}

static int check_lock(struct walk *w, int layer_fd, const char *digest)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_json_unrefp) json_t *lock = NULL;
        char hex[RV_SHA256_HEX_SIZE];
        struct rv_error why = { 0 };
        int r = rv_read_file_at(layer_fd, "lock.json", RV_LOCK_BYTES_MAX, &text);

        if (r < 0 && r != -ENOMEM) {
                tell(w, "lock.json", "it cannot be read: %s", strerror(-r));
                return 0;
        }
        if (r == 0)
                r = rv_lock_read(text.data ? text.data : "", text.size, &lock, &why);
        if (r == 0)
                r = rv_lock_digest(lock, hex);
        if (r == -ENOMEM)
                return rv_trace(r);
        if (r < 0)
                tell(w, "lock.json", "%s", why.message);
        else if (strcmp(hex, digest))
                tell(w, "lock.json", "it is the lock of another layer, %.16s", hex);
        return 0;
}

/* Return: 1 it is there and was read; 0 not; -ENOMEM */
static int read_manifest(struct walk *w, int layer_fd, const char *name, bool is_optional, struct rv_manifest *ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_error why = { 0 };
        int r = rv_read_file_at(layer_fd, name, RV_MANIFEST_BYTES_MAX, &text);

        if (r == -ENOENT && is_optional)
                return 0;
        if (r == 0)
                r = rv_manifest_read(text.data ? text.data : "", text.size, ret, &why);
        if (r == -ENOMEM)
                return rv_trace(r);
        if (r < 0)
                tell(w, name, "it cannot be read: %s", why.message[0] ? why.message : strerror(-r));
        return r == 0;
}

static int verify(struct walk *w, int layer_fd, const char *digest)
{
        int r, fd;

        check_beside(w, layer_fd);
        r = check_lock(w, layer_fd, digest);
        if (r == 0)
                r = read_manifest(w, layer_fd, "manifest-compiled.json", true, &w->compiled);
        if (r < 0)
                return rv_trace(r);
        w->is_compiled = r > 0;
        r = read_manifest(w, layer_fd, "manifest.json", false, &w->built);
        if (r <= 0)
                return r;
        fd = openat(layer_fd, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) {
                tell(w, "tree", "it cannot be opened: %s", strerror(errno));
                return 0;
        }
        r = walk_directory(w, fd, 0, false);
        if (r == 0)
                tell_missing(w);
        return rv_trace(r);
}

int rv_layer_verify(struct rv_store *store, const char *digest, rv_layer_fault_fn on_fault, void *ctx,
        struct rv_layer_count *ret, struct rv_error *err)
{
        _cleanup_(rv_closep) int layers_fd = -EBADF, fd = -EBADF, used_fd = -EBADF;
        _cleanup_(rv_freep) struct walk *w = NULL;
        int r;

        *ret = (struct rv_layer_count){ 0 };
        if (!rv__store_is_digest(digest))
                return rv_error_set(err, rv_raise(-EINVAL), "\"%.80s\" names no layer: it needs 64 digits of lower-case hexadecimal", digest);
        /* Nobody removes it meanwhile; but to look at it is not to use it. */
        used_fd = openat(store->used_fd, digest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (used_fd >= 0)
                (void)flock(used_fd, LOCK_SH);
        layers_fd = rv__store_layers(store);
        if (layers_fd == -ENOENT)
                return RV_LAYER_E_ABSENT;
        if (layers_fd < 0)
                return rv_error_set(err, rv_trace(layers_fd), "cannot open %s/layers: %s", store->path, strerror(-layers_fd));
        fd = openat(layers_fd, digest, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? RV_LAYER_E_ABSENT : rv_error_set(err, rv_raise(-errno), "cannot open %s/layers/%s: %s", store->path, digest, strerror(errno));
        w = calloc(1, sizeof(*w));
        if (w)
                w->chunk = malloc(CHUNK);
        if (!w || !w->chunk)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        w->store = store;
        w->on_fault = on_fault;
        w->ctx = ctx;
        w->count = ret;
        r = verify(w, fd, digest);
        rv_manifest_fini(&w->built);
        rv_manifest_fini(&w->compiled);
        free(w->chunk);
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "cannot look through the layer %s: %s", digest, strerror(-r));
        return ret->n_faults ? RV_LAYER_E_DAMAGED : 0;
}
