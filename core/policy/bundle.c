#include "policy/bundle_files.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { KIND_NONE, KIND_LUA, KIND_DATA, KIND_YAML };

struct loading {
        struct rv_bundle *bundle;
        size_t n_entries, n_bytes;
        struct rv_error *err;
};

static void free_files(struct rv_bundle_file *files, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                free((char *)files[i].path);
                free((char *)files[i].text);
                json_decref(files[i].data);
        }
        free(files);
}

void rv_bundle_free(struct rv_bundle *b)
{
        if (!b)
                return;
        free_files(b->owned, b->owned ? b->n_files : 0);
        free(b);
}

const char *rv_bundle_digest(const struct rv_bundle *b)
{
        return b->digest;
}

const char *rv_bundle_name(const struct rv_bundle *b)
{
        return b->name;
}

const char *rv_bundle_version(const struct rv_bundle *b)
{
        return b->version;
}

const char *rv_bundle_description(const struct rv_bundle *b)
{
        return b->description;
}

const struct rv_bundle_file *rv_bundle_find(const struct rv_bundle *b, const char *path)
{
        for (size_t i = 0; i < b->n_files; i++)
                if (strcmp(b->files[i].path, path) == 0)
                        return &b->files[i];
        return NULL;
}

bool rv_bundle_is_test(const struct rv_bundle_file *f)
{
        return strncmp(f->path, "tests/", 6) == 0;
}

void rv_bundle_compute_digest(const struct rv_bundle_file *files, size_t n_files, char ret_hex[RV_SHA256_HEX_SIZE])
{
        uint8_t digest[RV_SHA256_SIZE];
        char hex[RV_SHA256_HEX_SIZE];
        struct rv_sha256 h;

        rv_sha256_init(&h);
        for (size_t i = 0; i < n_files; i++) {
                rv_sha256_hex(files[i].text, files[i].size, hex);
                rv_sha256_update(&h, hex, strlen(hex));
                rv_sha256_update(&h, "  ", 2);
                rv_sha256_update(&h, files[i].path, strlen(files[i].path));
                rv_sha256_update(&h, "\n", 1);
        }
        rv_sha256_final(&h, digest);
        rv_hex(digest, sizeof(digest), ret_hex);
}

int rv_bundle_builtin(struct rv_bundle **ret)
{
        struct rv_bundle *b = malloc(sizeof(*b));

        if (!b)
                return rv_raise(-ENOMEM);
        *b = rv_bundle_default;
        *ret = b;
        return 0;
}

static bool ends_with(const char *s, const char *end)
{
        size_t n = strlen(s), n_end = strlen(end);

        return n > n_end && strcmp(s + n - n_end, end) == 0;
}

static enum kind kind_of(const char *path)
{
        if (strcmp(path, "bundle.yaml") == 0)
                return KIND_YAML;
        if (strncmp(path, "data/", 5) == 0)
                return ends_with(path, ".json") ? KIND_DATA : KIND_NONE;
        return ends_with(path, ".lua") ? KIND_LUA : KIND_NONE;
}

static size_t size_max(enum kind kind)
{
        return kind == KIND_LUA ? RV_BUNDLE_LUA_SIZE_MAX : kind == KIND_DATA ? RV_BUNDLE_DATA_SIZE_MAX
                : RV_BUNDLE_YAML_SIZE_MAX;
}

static int check_path(struct loading *l, const char *path)
{
        if (strlen(path) > RV_BUNDLE_PATH_MAX)
                return rv_error_set(l->err, rv_raise(-EINVAL), "%.80s: a path in a bundle has at most %d bytes", path,
                        RV_BUNDLE_PATH_MAX);
        for (const char *p = path; *p; p++)
                if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || strchr("_.-/", *p)))
                        return rv_error_set(l->err, rv_raise(-EINVAL),
                                "a file name in a bundle has letters, digits, '_', '.' and '-' only: byte 0x%02x in one that begins '%.*s'",
                                (unsigned)(unsigned char)*p, (int)(p - path), path);
        return 0;
}

static int add_file(struct loading *l, const char *path, struct rv_buf *text, json_t *data)
{
        struct rv_bundle *b = l->bundle;
        struct rv_bundle_file *f = &b->owned[b->n_files];
        char *copy = strdup(path);

        if (!copy)
                return rv_raise(-ENOMEM);
        l->n_bytes += text->size;
        *f = (struct rv_bundle_file){ .path = copy, .size = text->size, .data = data };
        f->text = rv_buf_take(text, NULL);
        b->n_files++;
        return f->text ? 0 : rv_raise(-ENOMEM);
}

/* The message of a failed read, in words that say what to do. */
static int read_failed(struct loading *l, const char *path, enum kind kind, int r)
{
        if (r == -EFBIG)
                return rv_error_set(l->err, r, "%s: larger than %zu bytes", path, size_max(kind));
        if (r == -ELOOP)
                return rv_error_set(l->err, r, "%s: is a link; a bundle holds the file itself, so that its digest means something", path);
        if (r == -EINVAL)
                return rv_error_set(l->err, r, "%s: is not a regular file", path);
        return rv_error_set(l->err, r, "%s: %s", path, strerror(-r));
}

static int load_file(struct loading *l, int dir_fd, const char *name, const char *path, enum kind kind)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_json_unrefp) json_t *data = NULL;
        int r;

        r = check_path(l, path);
        if (r < 0)
                return rv_trace(r);
        if (l->bundle->n_files == RV_BUNDLE_FILES_MAX)
                return rv_error_set(l->err, rv_raise(-E2BIG), "more than %d files", RV_BUNDLE_FILES_MAX);
        r = rv_read_file_at(dir_fd, name, size_max(kind), &text);
        if (r < 0)
                return read_failed(l, path, kind, r);
        /* An empty file leaves the buffer without memory of its own. */
        if (rv_buf_reserve(&text, 1) < 0)
                return rv_raise(-ENOMEM);
        if (l->n_bytes + text.size > RV_BUNDLE_SIZE_MAX)
                return rv_error_set(l->err, rv_raise(-E2BIG), "more than %d bytes in all", RV_BUNDLE_SIZE_MAX);
        if (kind == KIND_DATA)
                r = rv_json_read(text.data, text.size, RV_BUNDLE_DATA_DEPTH_MAX, &data, l->err);
        else if (kind == KIND_YAML)
                r = rv_bundle_read_yaml(l->bundle, path, text.data, text.size, l->err);
        if (r < 0) {
                if (kind == KIND_DATA)
                        rv_error_prefix(l->err, "%s", path);
                return rv_trace(r);
        }
        r = add_file(l, path, &text, data);
        if (r == 0)
                data = NULL;
        return rv_trace(r);
}

static int load_dir(struct loading *l, int take_fd, const char *prefix, unsigned depth);

static int load_entry(struct loading *l, int dir_fd, const char *name, const char *prefix, unsigned depth)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        char path[RV_BUNDLE_PATH_MAX + NAME_MAX + 3];
        struct stat st;

        if (name[0] == '.' || ends_with(name, "~"))
                return 0;
        if (++l->n_entries > RV_BUNDLE_ENTRIES_MAX)
                return rv_error_set(l->err, rv_raise(-E2BIG), "more than %d directory entries", RV_BUNDLE_ENTRIES_MAX);
        snprintf(path, sizeof(path), "%s%s", prefix, name);
        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return rv_error_set(l->err, rv_raise(-errno), "%s: %s", path, strerror(errno));
        if (S_ISDIR(st.st_mode)) {
                if (depth == RV_BUNDLE_DEPTH_MAX || strlen(path) >= RV_BUNDLE_PATH_MAX)
                        return 0;
                fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0)
                        return rv_error_set(l->err, rv_raise(-errno), "%s: %s", path, strerror(errno));
                strcat(path, "/");
                return rv_trace(load_dir(l, rv_take_fd(&fd), path, depth + 1));
        }
        if (kind_of(path) == KIND_NONE)
                return 0;
        return rv_trace(load_file(l, dir_fd, name, path, kind_of(path)));
}

static void close_dirp(DIR **d)
{
        if (*d)
                closedir(*d);
}

static int load_dir(struct loading *l, int take_fd, const char *prefix, unsigned depth)
{
        _cleanup_(close_dirp) DIR *dir = fdopendir(take_fd);
        struct dirent *entry;
        int r;

        if (!dir) {
                r = rv_raise(-errno);
                rv_close(take_fd);
                return rv_error_set(l->err, r, "%s: %s", prefix, strerror(-r));
        }
        while (errno = 0, (entry = readdir(dir)) != NULL) {
                r = load_entry(l, dirfd(dir), entry->d_name, prefix, depth);
                if (r < 0)
                        return rv_trace(r);
        }
        return errno ? rv_error_set(l->err, rv_raise(-errno), "%s: %s", prefix, strerror(errno)) : 0;
}

/* "FILE:LINE: text", "FILE: line LINE, column …: text" (JSON) or "FILE: text"; a file's name has no blank. */
const char *rv_bundle_error_place(const struct rv_error *err, char ret_file[RV_BUNDLE_PATH_MAX + 1], int *ret_line)
{
        const char *message = err->message, *colon = strchr(message, ':'), *text;
        char *end;
        long line;

        *ret_line = 0;
        ret_file[0] = 0;
        if (!colon || (size_t)(colon - message) > RV_BUNDLE_PATH_MAX || memchr(message, ' ', (size_t)(colon - message)))
                return message;
        memcpy(ret_file, message, (size_t)(colon - message));
        ret_file[colon - message] = 0;
        text = colon + 1 + strspn(colon + 1, " ");
        line = strtol(strncmp(text, "line ", 5) == 0 ? text + 5 : text, &end, 10);
        if (line > 0 && (*end == ':' || *end == ','))
                *ret_line = (int)line;
        return *end == ':' && line > 0 && text == colon + 1 ? end + 1 + strspn(end + 1, " ") : text;
}

static int compare_files(const void *a, const void *b)
{
        return strcmp(((const struct rv_bundle_file *)a)->path, ((const struct rv_bundle_file *)b)->path);
}

int rv_bundle_load(const char *dir, struct rv_bundle **ret, struct rv_error *err)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *b = calloc(1, sizeof(*b));
        struct loading l = { .bundle = b, .err = err };
        int r, fd;

        if (!b)
                return rv_raise(-ENOMEM);
        b->owned = calloc(RV_BUNDLE_FILES_MAX, sizeof(*b->owned));
        if (!b->owned)
                return rv_raise(-ENOMEM);
        b->files = b->owned;
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
                r = rv_raise(-errno);
                return rv_error_set(err, r, "cannot open the policy bundle %s: %s", dir, strerror(-r));
        }
        r = load_dir(&l, fd, "", 1);
        if (r == -ENOMEM)
                rv_error_set(err, r, "out of memory");
        if (r < 0)
                return rv_trace(r);
        qsort(b->owned, b->n_files, sizeof(*b->owned), compare_files);
        if (!rv_bundle_find(b, "policy.lua"))
                return rv_error_set(err, rv_raise(-ENOENT), "policy.lua: not in the policy bundle %s, whose entry it is", dir);
        rv_bundle_compute_digest(b->files, b->n_files, b->digest);
        *ret = rv_take(&b);
        return 0;
}
