#include "tree.h"

#include "base/fd.h"
#include "base/json.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MODE_FILE 0644u
#define MODE_EXECUTABLE 0755u
#define MODE_DIRECTORY 0755u
#define MODE_LINK 0777u
#define CACHE_SUFFIX "/__pycache__"

void tree_open(struct tree *t, int fd, const char *const *owners)
{
        *t = (struct tree){ .fd = fd, .owners = owners, .parent_fd = -EBADF, .file_fd = -EBADF };
}

void tree_fini(struct tree *t)
{
        for (size_t i = 0; i < t->n_items; i++)
                free(t->items[i].target);
        free(t->items);
        t->items = NULL;
        t->n_items = 0;
        name_table_fini(&t->names);
        t->parent_fd = rv_close(t->parent_fd);
        t->file_fd = rv_close(t->file_fd);
}

static int open_beneath(int dir_fd, const char *path, int flags, unsigned mode)
{
        struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC), .mode = mode,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
        int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

        return fd < 0 ? rv_raise(-errno) : fd;
}

/* ---- Names and their items ---- */

static int clash(struct tree *t, const struct name_entry *there, const char *path, uint32_t owner, struct fault *f)
{
        char quote[FAULT_QUOTE_SIZE];

        return fault_set(f, UNPACK_UNSAFE, "%s and %s both have the path %s", t->owners[there->owner], t->owners[owner],
                fault_quote(path, strlen(path), quote));
}

/* The new entries' items: @path's own is the first, those behind it are directories above it. */
static int add(struct tree *t, const char *path, enum name_kind kind, uint32_t owner, struct fault *f)
{
        size_t n = strlen(path);
        struct name_entry *there;
        int r;

        if (n > NAME_BYTES_MAX * 2 - 1)
                return fault_set(f, UNPACK_UNSAFE, "%s has a path of more than 2047 bytes", t->owners[owner]);
        r = name_add(&t->names, path, n, kind, owner, &there);
        if (r)
                return r > 0 ? clash(t, there, path, owner, f) : rv_trace(r);
        if (t->names.n > t->n_room) {
                size_t n_room = RV_MAX(t->names.n, t->n_room * 2) + 64;
                struct tree_item *items = reallocarray(t->items, n_room, sizeof(*items));

                if (!items)
                        return rv_raise(-ENOMEM);
                t->items = items;
                t->n_room = n_room;
        }
        while (t->n_items < t->names.n)
                t->items[t->n_items++] = (struct tree_item){ .mode = MODE_DIRECTORY };
        return 0;
}

/* The directories that are new, the highest first: name_add() went upwards. */
static int make_directories(struct tree *t, size_t from)
{
        for (size_t i = t->names.n; i-- > from;) {
                const char *path = t->names.entries[i].name, *slash = strrchr(path, '/');
                _cleanup_(rv_freep) char *above = strndup(path, slash ? (size_t)(slash - path) : 0);
                _cleanup_(rv_closep) int fd = -EBADF;

                if (!above)
                        return rv_raise(-ENOMEM);
                fd = open_beneath(t->fd, slash ? above : ".", O_PATH | O_DIRECTORY, 0);
                if (fd < 0)
                        return rv_trace(fd);
                if (mkdirat(fd, slash ? slash + 1 : path, MODE_DIRECTORY) < 0)
                        return rv_raise(-errno);
        }
        return 0;
}

/* The directory of @path, kept open as the next file is likely in it too. */
static int open_parent(struct tree *t, const char *path, const char **ret_name)
{
        const char *slash = strrchr(path, '/');
        size_t n = slash ? (size_t)(slash - path) : 0;

        *ret_name = slash ? slash + 1 : path;
        if (t->parent_fd >= 0 && strlen(t->parent) == n && memcmp(t->parent, path, n) == 0)
                return 0;
        t->parent_fd = rv_close(t->parent_fd);
        memcpy(t->parent, path, n);
        t->parent[n] = 0;
        t->parent_fd = open_beneath(t->fd, n ? t->parent : ".", O_PATH | O_DIRECTORY, 0);
        return t->parent_fd < 0 ? rv_trace(t->parent_fd) : 0;
}

static int claim(
        struct tree *t, const char *path, enum name_kind kind, uint32_t owner, const char **ret_name, struct fault *f)
{
        size_t item = t->names.n;
        int r = add(t, path, kind, owner, f);

        if (r)
                return r < 0 ? rv_trace(r) : r;
        r = make_directories(t, item + 1);
        return r < 0 ? rv_trace(r) : rv_trace(open_parent(t, path, ret_name));
}

/* ---- Files and links ---- */

int tree_create(struct tree *t, const char *path, uint32_t owner, bool is_executable, struct fault *f)
{
        unsigned mode = is_executable ? MODE_EXECUTABLE : MODE_FILE;
        const char *name;
        int r;

        t->file = t->names.n;
        r = claim(t, path, NAME_FILE, owner, &name, f);
        if (r)
                return r;
        t->file_fd = open_beneath(t->parent_fd, name, O_WRONLY | O_CREAT | O_EXCL, mode);
        if (t->file_fd < 0)
                return rv_trace(t->file_fd);
        t->items[t->file].mode = mode;
        rv_sha256_init(&t->sha256);
        t->n_files++;
        return 0;
}

int tree_write(struct tree *t, const void *data, size_t n)
{
        rv_sha256_update(&t->sha256, data, n);
        t->items[t->file].bytes += n;
        t->bytes += n;
        return rv_trace(rv_write_all(t->file_fd, data, n));
}

static const struct timespec times[2] = { { TREE_MTIME_S, 0 }, { TREE_MTIME_S, 0 } };

int tree_close(struct tree *t)
{
        rv_sha256_final(&t->sha256, t->items[t->file].sha256);
        if (futimens(t->file_fd, times) < 0)
                return rv_raise(-errno);
        t->file_fd = rv_close(t->file_fd);
        return 0;
}

int tree_put(struct tree *t, const char *path, uint32_t owner, bool is_executable, const void *data, size_t n,
        struct fault *f)
{
        int r = tree_create(t, path, owner, is_executable, f);

        if (r == 0)
                r = tree_write(t, data, n);
        return r == 0 ? rv_trace(tree_close(t)) : r;
}

int tree_link(struct tree *t, const char *path, uint32_t owner, const char *target, struct fault *f)
{
        size_t item = t->names.n;
        const char *name;
        int r = claim(t, path, NAME_LINK, owner, &name, f);

        if (r)
                return r;
        if (symlinkat(target, t->parent_fd, name) < 0 || utimensat(t->parent_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
                return rv_raise(-errno);
        t->items[item].target = strdup(target);
        if (!t->items[item].target)
                return rv_raise(-ENOMEM);
        t->items[item].mode = MODE_LINK;
        t->items[item].bytes = strlen(target);
        return 0;
}

int tree_make_executable(struct tree *t, const char *path)
{
        struct name_entry *e = name_find(&t->names, path, strlen(path));
        _cleanup_(rv_closep) int fd = -EBADF;

        if (!e || e->kind != NAME_FILE)
                return 0;
        fd = open_beneath(t->fd, path, O_RDONLY, 0);
        if (fd < 0)
                return rv_trace(fd);
        if (fchmod(fd, MODE_EXECUTABLE) < 0)
                return rv_raise(-errno);
        t->items[e - t->names.entries].mode = MODE_EXECUTABLE;
        return 0;
}

/* ---- The manifest ---- */

struct sorted {
        const struct name_entry *entry;
        const struct tree_item *item;
};

static int compare_paths(const void *a, const void *b)
{
        const struct sorted *x = a, *y = b;

        return strcmp(x->entry->name, y->entry->name);
}

static void write_text(const char *text, struct rv_buf *out)
{
        _cleanup_(rv_json_unrefp) json_t *value = json_string(text);

        if (!value || rv_json_canonical(value, out) < 0)
                out->is_failed = true;
}

/* Members in canonical order: mode, path, sha256, size, target, type. */
static void write_entry(const struct sorted *s, struct rv_buf *out)
{
        static const char *const types[] = { [NAME_DIRECTORY] = "directory", [NAME_FILE] = "file", [NAME_LINK] = "link" };
        char hex[RV_SHA256_HEX_SIZE];

        rv_buf_printf(out, "{\"mode\":%u,\"path\":", s->item->mode);
        write_text(s->entry->name, out);
        if (s->entry->kind == NAME_FILE) {
                rv_hex(s->item->sha256, RV_SHA256_SIZE, hex);
                rv_buf_printf(out, ",\"sha256\":\"%s\"", hex);
        }
        rv_buf_printf(out, ",\"size\":%llu", (unsigned long long)s->item->bytes);
        if (s->entry->kind == NAME_LINK) {
                rv_buf_puts(out, ",\"target\":");
                write_text(s->item->target, out);
        }
        rv_buf_printf(out, ",\"type\":\"%s\"}", types[s->entry->kind]);
}

/* In any order: setting a directory's times does not change those of the one above it. */
static int set_directory_times(struct tree *t)
{
        for (size_t i = 0; i < t->names.n; i++) {
                _cleanup_(rv_closep) int fd = -EBADF;

                if (t->names.entries[i].kind != NAME_DIRECTORY)
                        continue;
                fd = open_beneath(t->fd, t->names.entries[i].name, O_RDONLY | O_DIRECTORY, 0);
                if (fd < 0)
                        return rv_trace(fd);
                if (futimens(fd, times) < 0)
                        return rv_raise(-errno);
        }
        return futimens(t->fd, times) < 0 ? rv_raise(-errno) : 0;
}

static bool is_listed(const struct tree *t, const struct name_entry *e)
{
        return !t->lists_caches_only || e->kind != NAME_DIRECTORY ||
                (e->size > strlen(CACHE_SUFFIX) && strcmp(e->name + e->size - strlen(CACHE_SUFFIX), CACHE_SUFFIX) == 0);
}

static int finish(struct tree *t, struct rv_buf *manifest)
{
        _cleanup_(rv_freep) struct sorted *all = calloc(t->names.n + 1, sizeof(*all));
        size_t n = 0;
        int r;

        if (!all)
                return rv_raise(-ENOMEM);
        t->parent_fd = rv_close(t->parent_fd);
        r = set_directory_times(t);
        if (r < 0)
                return rv_trace(r);
        for (size_t i = 0; i < t->names.n; i++)
                if (is_listed(t, &t->names.entries[i]))
                        all[n++] = (struct sorted){ &t->names.entries[i], &t->items[i] };
        qsort(all, n, sizeof(*all), compare_paths);
        rv_buf_puts(manifest, "{\"entries\":[");
        for (size_t i = 0; i < n; i++) {
                if (i)
                        rv_buf_putc(manifest, ',');
                write_entry(&all[i], manifest);
        }
        rv_buf_puts(manifest, "],\"schema\":\"reeve.manifest/1\"}");
        return rv_buf_error(manifest) < 0 ? rv_raise(-ENOMEM) : 0;
}

int tree_publish(struct tree *t, int dir_fd, const char *manifest_name, json_t **ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf manifest = { 0 };
        _cleanup_(rv_closep) int fd = -EBADF;
        char hex[RV_SHA256_HEX_SIZE];
        int r = finish(t, &manifest);

        if (r < 0)
                return rv_trace(r);
        fd = open_beneath(dir_fd, manifest_name, O_WRONLY | O_CREAT | O_EXCL, MODE_FILE);
        if (fd < 0)
                return rv_trace(fd);
        r = rv_write_all(fd, manifest.data, manifest.size);
        if (r < 0)
                return rv_trace(r);
        rv_sha256_hex(manifest.data, manifest.size, hex);
        *ret = json_pack("{s:I, s:I, s:s}", "n_files", (json_int_t)t->n_files, "bytes", (json_int_t)t->bytes, "manifest_sha256", hex);
        return *ret ? 0 : rv_raise(-ENOMEM);
}

int tree_has_file(int dir_fd, const char *path)
{
        _cleanup_(rv_closep) int fd = open_beneath(dir_fd, path, O_PATH, 0);
        struct stat st;

        if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
                return 0;
        if (fd < 0)
                return rv_trace(fd);
        return fstat(fd, &st) < 0 ? rv_raise(-errno) : S_ISREG(st.st_mode);
}
