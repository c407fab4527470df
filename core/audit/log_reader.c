#include "audit/log_reader.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 << 10)

/* 1; 0 if it is not there; -errno. */
static int open_segment(struct rv_log_reader *r, struct rv_error *err)
{
        r->fd = rv_close(r->fd);
        r->buf.size = r->start = 0;
        r->start_offset = 0;
        r->is_inside = false;
        r->fd = openat(r->log->audit_fd, r->segment, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (r->fd >= 0)
                return 1;
        return errno == ENOENT ? 0 : rv_log_fail(r->log, err, rv_raise(-errno), r->segment, "cannot read");
}

int rv_log_reader_open(struct rv_log *log, const char *segment, uint64_t offset, struct rv_log_reader *ret,
        struct rv_error *err)
{
        int r;

        *ret = (struct rv_log_reader){ .log = log, .fd = -EBADF };
        if (!*segment)
                return 0;       /* the first call for a line finds it */
        memcpy(ret->segment, segment, strlen(segment) + 1);
        r = open_segment(ret, err);
        if (r <= 0 || offset == 0)
                return r < 0 ? rv_trace(r) : 0;         /* if it was moved away, those after it are found */
        /* With the byte before, which tells whether a line begins there. */
        ret->start_offset = offset - 1;
        ret->is_inside = true;
        if (lseek(ret->fd, (off_t)ret->start_offset, SEEK_SET) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), segment, "cannot read");
        return 0;
}

/* More bytes behind those in the buffer. 1; 0 at the end of the segment; -errno. */
static int fill(struct rv_log_reader *r, struct rv_error *err)
{
        ssize_t n;
        int e;

        if (r->start) {
                memmove(r->buf.data, r->buf.data + r->start, r->buf.size - r->start);
                r->buf.size -= r->start;
                r->start = 0;
        }
        if (r->buf.size > RV_LOG_RECORD_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/audit/%s: the line at byte %llu is longer than any record; this file is damaged, keep it and move audit/ away to begin a new log",
                                    r->log->state_dir, r->segment, (unsigned long long)r->start_offset);
        e = rv_buf_reserve(&r->buf, READ_BYTES);
        if (e < 0)
                return rv_log_fail(r->log, err, e, r->segment, "cannot read");
        do
                n = read(r->fd, r->buf.data + r->buf.size, READ_BYTES);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return rv_log_fail(r->log, err, rv_raise(-errno), r->segment, "cannot read");
        r->buf.size += (size_t)n;
        return n > 0;
}

/* The next line of this segment. 1, 0, -errno. */
static int next_in_segment(struct rv_log_reader *r, const char **ret_line, size_t *ret_n, struct rv_error *err)
{
        size_t seen = 0;
        int e;

        for (;;) {
                const char *line = r->buf.data + r->start;
                size_t n_there = r->buf.size - r->start;
                const char *end = n_there > seen ? memchr(line + seen, '\n', n_there - seen) : NULL;

                if (end) {
                        bool is_inside = r->is_inside;

                        r->offset = r->start_offset;
                        r->start += (size_t)(end - line) + 1;
                        r->start_offset += (size_t)(end - line) + 1;
                        r->is_inside = false;
                        seen = 0;
                        if (is_inside)
                                continue;
                        *ret_line = line;
                        *ret_n = (size_t)(end - line);
                        return 1;
                }
                seen = n_there;
                e = fill(r, err);
                if (e <= 0)
                        return rv_trace(e);
        }
}

/*
 * Both steps twice, as others write meanwhile. What was appended before the next segment was begun may have come since
 * this one was read to its end; and a listing of the directory may show a segment that was made while it was read and
 * not one that was made just before that, which the next listing shows.
 */
int rv_log_reader_next(struct rv_log_reader *r, const char **ret_line, size_t *ret_n, struct rv_error *err)
{
        char next[RV_LOG_SEGMENT_NAME_SIZE];
        bool is_final = false;
        int e;

        for (;;) {
                e = r->fd >= 0 ? next_in_segment(r, ret_line, ret_n, err) : 0;
                if (e != 0)
                        return rv_trace(e);
                e = rv_log_segment_after(r->log, r->segment, next, err);
                if (e <= 0)
                        return rv_trace(e);
                if (!is_final) {
                        is_final = true;
                        continue;
                }
                memcpy(r->segment, next, sizeof(next));
                e = open_segment(r, err);
                if (e < 0)
                        return rv_trace(e);
                is_final = false;
        }
}

int rv_log_read_line(
        struct rv_log *log, const char *segment, uint64_t offset, size_t n, struct rv_buf *out, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        size_t n_before = offset ? 1 : 0, want = n_before + n + 1;
        const char *line;
        ssize_t got;

        out->size = 0;
        if (n > RV_LOG_RECORD_BYTES_MAX || offset > INT64_MAX - want)
                return 0;
        fd = openat(log->audit_fd, segment, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return errno == ENOENT ? 0 : rv_log_fail(log, err, rv_raise(-errno), segment, "cannot read");
        if (rv_buf_reserve(out, want) < 0)
                return rv_log_fail(log, err, rv_raise(-ENOMEM), segment, "cannot read");
        do
                got = pread(fd, out->data, want, (off_t)(offset - n_before));
        while (got < 0 && errno == EINTR);
        if (got < 0)
                return rv_log_fail(log, err, rv_raise(-errno), segment, "cannot read");
        line = out->data + n_before;
        if ((size_t)got != want || (n_before && out->data[0] != '\n') || line[n] != '\n' || memchr(line, '\n', n))
                return 0;
        memmove(out->data, line, n);
        out->size = n;
        return 1;
}

int rv_log_end(struct rv_log *log, char ret_segment[RV_LOG_SEGMENT_NAME_SIZE], uint64_t *ret_size, struct rv_error *err)
{
        struct stat st;
        int r;

        r = rv_log_segment_before(log, NULL, ret_segment, err);
        if (r <= 0)
                return rv_trace(r);
        if (fstatat(log->audit_fd, ret_segment, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), ret_segment, "cannot look at the file");
        *ret_size = (uint64_t)st.st_size;
        return 1;
}

void rv_log_reader_close(struct rv_log_reader *r)
{
        r->fd = rv_close(r->fd);
        rv_buf_fini(&r->buf);
}
