#include "audit/log_files.h"

#include "audit/log_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 << 10)

static int fail(const struct rv_log_files *files, const char *name, struct rv_error *err, int r, const char *what)
{
        return rv_error_set(err, r, "%s%s%s: %s: %s", files->path, *name ? "/" : "", name, what, strerror(-r));
}

static void closedirp(DIR **d)
{
        if (*d)
                closedir(*d);
}

static int compare_files(const void *a, const void *b)
{
        return strcmp(((const struct rv_log_file *)a)->name, ((const struct rv_log_file *)b)->name);
}

static int add_file(struct rv_log_files *files, const char *name, struct rv_error *err)
{
        struct rv_log_file *more, *file;

        more = reallocarray(files->files, files->n_files + 1, sizeof(*more));
        if (!more)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        files->files = more;
        file = &more[files->n_files++];
        *file = (struct rv_log_file){ .first_seq = strtoull(name, NULL, 10) };
        memcpy(file->name, name, sizeof(file->name));
        return 0;
}

/* After all names are known: a segment that another follows has all its lines by then. */
static int measure(struct rv_log_files *files, struct rv_error *err)
{
        qsort(files->files, files->n_files, sizeof(*files->files), compare_files);
        for (size_t i = 0; i < files->n_files; i++) {
                struct rv_log_file *file = &files->files[i];
                struct stat st;

                if (fstatat(files->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        return fail(files, file->name, err, rv_raise(-errno), "cannot read");
                if (!S_ISREG(st.st_mode))
                        return rv_error_set(err, rv_raise(-EINVAL), "%s/%s: is no regular file", files->path, file->name);
                file->start = files->size;
                file->size = (uint64_t)st.st_size;
                files->size += file->size;
        }
        return 0;
}

static int list(struct rv_log_files *files, struct rv_error *err)
{
        _cleanup_(closedirp) DIR *d = NULL;
        struct dirent *e;
        int fd, r = 0;

        fd = openat(files->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        d = fd >= 0 ? fdopendir(fd) : NULL;
        if (!d) {
                r = rv_raise(-errno);
                rv_close(fd);
                return fail(files, "", err, r, "cannot read the directory");
        }
        while (r == 0 && (errno = 0, (e = readdir(d))))
                if (rv_log_is_segment(e->d_name))
                        r = add_file(files, e->d_name, err);
        if (r == 0 && errno)
                r = fail(files, "", err, rv_raise(-errno), "cannot read the directory");
        if (r == 0 && files->n_files == 0)
                r = rv_error_set(err, rv_raise(-ENOENT), "%s: there is no log: no file NNNNNNNNNNNNNNNNNNNN.jsonl in it", files->path);
        return r == 0 ? measure(files, err) : r;
}

int rv_log_files_open(int dir_fd, const char *path, struct rv_log_files *ret, struct rv_error *err)
{
        struct rv_log_files files = { .dir_fd = dir_fd, .path = path };
        int r;

        r = list(&files, err);
        if (r < 0) {
                rv_log_files_close(&files);
                return rv_trace(r);
        }
        *ret = files;
        return 0;
}

void rv_log_files_close(struct rv_log_files *files)
{
        free(files->files);
        files->files = NULL;
        files->n_files = 0;
}

uint64_t rv_log_files_at_seq(const struct rv_log_files *files, uint64_t seq)
{
        size_t i = files->n_files;

        while (i > 1 && files->files[i - 1].first_seq > seq)
                i--;
        return i ? files->files[i - 1].start : 0;
}

uint64_t rv_log_files_past_seq(const struct rv_log_files *files, uint64_t seq)
{
        for (size_t i = 0; i < files->n_files; i++)
                if (files->files[i].first_seq > seq)
                        return files->files[i].start;
        return files->size;
}

/* ---- Lines ---- */

static int open_file(struct rv_log_lines *l, uint64_t offset, struct rv_error *err)
{
        const struct rv_log_file *file = &l->of->files[l->file];

        l->fd = rv_close(l->fd);
        l->buf.size = l->start = 0;
        /* With the byte before, which tells whether a line begins there. */
        l->is_inside = offset > 0;
        l->start_offset = offset - l->is_inside;
        l->fd = openat(l->of->dir_fd, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        return l->fd < 0 ? fail(l->of, file->name, err, rv_raise(-errno), "cannot read") : 0;
}

int rv_log_lines_open(
        const struct rv_log_files *files, uint64_t from, uint64_t to, struct rv_log_lines *ret, struct rv_error *err)
{
        size_t i = 0;

        *ret = (struct rv_log_lines){ .of = files, .fd = -EBADF, .to = to };
        while (i < files->n_files && from >= files->files[i].start + files->files[i].size)
                i++;
        ret->file = i;
        return i < files->n_files ? rv_trace(open_file(ret, from - files->files[i].start, err)) : 0;
}

/* More of the segment, as far as it went when the log was opened. 1; 0 at that end; -errno. */
static int fill(struct rv_log_lines *l, struct rv_error *err)
{
        const struct rv_log_file *file = &l->of->files[l->file];
        uint64_t at;
        ssize_t n;
        int r;

        if (l->start) {
                memmove(l->buf.data, l->buf.data + l->start, l->buf.size - l->start);
                l->buf.size -= l->start;
                l->start = 0;
        }
        at = l->start_offset + l->buf.size;
        if (at >= file->size)
                return 0;
        if (l->buf.size > RV_LOG_RECORD_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/%s: the line at byte %llu is longer than any record", l->of->path, file->name, (unsigned long long)l->start_offset);
        r = rv_buf_reserve(&l->buf, READ_BYTES);
        if (r < 0)
                return rv_error_set(err, r, "out of memory");
        do
                n = pread(l->fd, l->buf.data + l->buf.size, RV_MIN((uint64_t)READ_BYTES, file->size - at), (off_t)at);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return fail(l->of, file->name, err, rv_raise(-errno), "cannot read");
        if (n == 0)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/%s: is shorter than it was", l->of->path, file->name);
        l->buf.size += (size_t)n;
        return 1;
}

/* The next line of this segment. 1, 0, -errno. */
static int next_in_file(struct rv_log_lines *l, const char **ret_line, size_t *ret_n, struct rv_error *err)
{
        size_t seen = 0;
        int r;

        for (;;) {
                const char *line = l->buf.data + l->start;
                size_t n_there = l->buf.size - l->start;
                const char *end = n_there > seen ? memchr(line + seen, '\n', n_there - seen) : NULL;

                if (end) {
                        bool is_inside = l->is_inside;

                        l->offset = l->start_offset;
                        l->start += (size_t)(end - line) + 1;
                        l->start_offset += (size_t)(end - line) + 1;
                        l->is_inside = false;
                        seen = 0;
                        if (is_inside)
                                continue;
                        *ret_line = line;
                        *ret_n = (size_t)(end - line);
                        return 1;
                }
                seen = n_there;
                r = fill(l, err);
                if (r <= 0)
                        return rv_trace(r);
        }
}

int rv_log_lines_next(struct rv_log_lines *l, const char **ret_line, size_t *ret_n, struct rv_error *err)
{
        const struct rv_log_files *of = l->of;
        int r;

        while (l->file < of->n_files) {
                const struct rv_log_file *file = &of->files[l->file];

                r = next_in_file(l, ret_line, ret_n, err);
                if (r < 0)
                        return rv_trace(r);
                if (r > 0)
                        return file->start + l->offset < l->to;
                l->tail_bytes = l->is_inside ? 0 : file->size - l->start_offset;
                if (l->tail_bytes && l->file + 1 < of->n_files)
                        return rv_error_set(err, rv_raise(-EBADMSG), "%s/%s: its last line does not end, although another segment follows", of->path, file->name);
                if (++l->file == of->n_files || of->files[l->file].start >= l->to)
                        break;
                r = open_file(l, 0, err);
                if (r < 0)
                        return rv_trace(r);
        }
        l->file = of->n_files;
        return 0;
}

void rv_log_lines_close(struct rv_log_lines *l)
{
        l->fd = rv_close(l->fd);
        rv_buf_fini(&l->buf);
}
