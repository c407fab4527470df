#include "audit/lines.h"

#include "audit/log.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 << 10)

static int fail(const struct rv_lines *lines, struct rv_error *err, int r)
{
        return rv__segments_fail(lines->path, lines->segment, err, r, "cannot read");
}

void rv_lines_begin(struct rv_lines *ret, int dir_fd, const char *path)
{
        *ret = (struct rv_lines){ .dir_fd = dir_fd, .path = path, .fd = -EBADF, .end = UINT64_MAX };
}

void rv_lines_close(struct rv_lines *lines)
{
        lines->fd = rv_close(lines->fd);
        rv_segments_fini(&lines->listed);
        rv_buf_fini(&lines->buf);
}

/* ---- In a segment ---- */

/* From there on nothing is known. */
static void move_to(struct rv_lines *lines, uint64_t offset)
{
        lines->buf.size = lines->start = 0;
        lines->next_offset = offset;
}

int rv_lines_go(struct rv_lines *lines, const char *segment, uint64_t offset, struct rv_error *err)
{
        struct stat st;

        snprintf(lines->segment, sizeof(lines->segment), "%s", segment);
        lines->is_last_look = false;
        lines->rest = 0;
        /* With the byte before, which tells whether a line begins there. */
        lines->is_inside = offset > 0;
        move_to(lines, offset - lines->is_inside);
        lines->offset = lines->next_offset;
        rv_close(lines->fd);
        lines->fd = openat(lines->dir_fd, lines->segment, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (lines->fd < 0)
                return errno == ENOENT ? 0 : fail(lines, err, rv_raise(-errno));
        if (fstat(lines->fd, &st) == 0 && S_ISREG(st.st_mode))
                return 1;
        lines->fd = rv_close(lines->fd);
        return rv_error_set(err, rv_raise(-EINVAL), "%s/%s: is no regular file", lines->path, lines->segment);
}

/* More bytes behind those in the buffer. 1; 0 at the end of the segment; RV_LINES_E_LONG; -errno. */
static int fill(struct rv_lines *lines, struct rv_error *err)
{
        size_t n_there = lines->buf.size - lines->start;
        uint64_t at = lines->next_offset + n_there;
        ssize_t n;
        int r;

        if (at >= lines->end)
                return 0;
        if (n_there > RV_LOG_RECORD_BYTES_MAX) {
                lines->offset = lines->next_offset;
                return RV_LINES_E_LONG;
        }
        if (lines->start && n_there)
                memmove(lines->buf.data, lines->buf.data + lines->start, n_there);
        lines->buf.size = n_there;
        lines->start = 0;
        r = rv_buf_reserve(&lines->buf, READ_BYTES);
        if (r < 0)
                return fail(lines, err, r);
        do
                n = pread(
                        lines->fd, lines->buf.data + n_there, RV_MIN((uint64_t)READ_BYTES, lines->end - at), (off_t)at);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return fail(lines, err, rv_raise(-errno));
        if (n == 0 && lines->range)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/%s: is shorter than it was", lines->path, lines->segment);
        lines->buf.size += (size_t)n;
        return n > 0;
}

int rv_lines_in_segment(struct rv_lines *lines, const char **ret_line, size_t *ret_n, struct rv_error *err)
{
        size_t seen = 0;
        int r;

        for (;;) {
                size_t n_there = lines->buf.size - lines->start;
                const char *line = n_there ? lines->buf.data + lines->start : NULL;
                const char *end = n_there > seen ? memchr(line + seen, '\n', n_there - seen) : NULL;

                if (end) {
                        size_t n = (size_t)(end - line);
                        bool is_inside = lines->is_inside;

                        lines->offset = lines->next_offset;
                        lines->start += n + 1;
                        lines->next_offset += n + 1;
                        lines->is_inside = false;
                        seen = 0;
                        if (is_inside)
                                continue;
                        if (n >= RV_LOG_RECORD_BYTES_MAX)
                                return RV_LINES_E_LONG;
                        *ret_line = line;
                        *ret_n = n;
                        return 1;
                }
                seen = n_there;
                r = fill(lines, err);
                if (r == 0) {
                        /* These bytes may be others by the next time. */
                        lines->rest = lines->is_inside ? 0 : n_there;
                        move_to(lines, lines->next_offset);
                }
                if (r <= 0 || r == RV_LINES_E_LONG)
                        return r < 0 ? rv_trace(r) : r;
        }
}

int rv_lines_fail_long(const struct rv_lines *lines, struct rv_error *err)
{
        return rv_error_set(err, rv_raise(-EBADMSG), "%s/%s: the line at byte %llu is longer than any record; this file is damaged, keep it and move audit/ away to begin a new log",
                            lines->path, lines->segment, (unsigned long long)lines->offset);
}

void rv_lines_again(struct rv_lines *lines)
{
        move_to(lines, lines->offset);
}

/* ---- Across segments ---- */

int rv_lines_find(struct rv_lines *lines, const char *after, char ret_name[RV_LOG_SEGMENT_NAME_SIZE],
        struct rv_error *err)
{
        const struct rv_segment *next = rv_segments_after(&lines->listed, after);
        int r;

        if (!next) {
                r = rv_segments_list(lines->dir_fd, lines->path, after, &lines->listed, err);
                if (r < 0)
                        return rv_trace(r);
                next = rv_segments_after(&lines->listed, after);
        }
        if (!next)
                return 0;
        memcpy(ret_name, next->name, sizeof(next->name));
        return 1;
}

/*
 * Where another segment follows, this one is read to its end once more: lines may have come before the other was begun and
 * after the end was seen. 1; 0 none follows; -errno.
 */
static int go_on(struct rv_lines *lines, struct rv_error *err)
{
        char next[RV_LOG_SEGMENT_NAME_SIZE];
        int r;

        r = rv_lines_find(lines, lines->segment, next, err);
        if (r <= 0)
                return rv_trace(r);
        if (lines->fd >= 0 && !lines->is_last_look) {
                lines->is_last_look = true;
                return 1;
        }
        r = rv_lines_go(lines, next, 0, err);      /* if it was moved away, those after it are found */
        return r < 0 ? rv_trace(r) : 1;
}

/* To a segment of the range. 0; -errno. */
static int go_in_range(struct rv_lines *lines, const struct rv_segment *segment, uint64_t offset, struct rv_error *err)
{
        int r = rv_lines_go(lines, segment->name, offset, err);

        lines->end = segment->size;
        lines->range_start = segment->start;
        return r == 0 ? fail(lines, err, rv_raise(-ENOENT)) : RV_MIN(r, 0);
}

static int go_on_in_range(struct rv_lines *lines, struct rv_error *err)
{
        const struct rv_segment *next = rv_segments_after(lines->range, lines->segment);
        int r;

        if (!next)
                return 0;
        if (lines->rest)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/%s: its last line does not end, although another segment follows", lines->path, lines->segment);
        if (next->start >= lines->to)
                return 0;
        r = go_in_range(lines, next, 0, err);
        return r < 0 ? rv_trace(r) : 1;
}

int rv_lines_next(struct rv_lines *lines, const char **ret_line, size_t *ret_n, struct rv_error *err)
{
        int r;

        for (;;) {
                r = lines->fd >= 0 ? rv_lines_in_segment(lines, ret_line, ret_n, err) : 0;
                if (r == RV_LINES_E_LONG)
                        return rv_lines_fail_long(lines, err);
                if (r < 0)
                        return rv_trace(r);
                if (r > 0)
                        return !lines->range || lines->range_start + lines->offset < lines->to;
                r = lines->range ? go_on_in_range(lines, err) : go_on(lines, err);
                if (r <= 0)
                        return rv_trace(r);
        }
}

int rv_lines_begin_at(struct rv_lines *ret, int dir_fd, const char *path, const char *segment, uint64_t offset,
        struct rv_error *err)
{
        int r;

        rv_lines_begin(ret, dir_fd, path);
        r = *segment ? rv_lines_go(ret, segment, offset, err) : 0;
        return r < 0 ? rv_trace(r) : 0;
}

int rv_lines_begin_range(struct rv_lines *ret, const struct rv_segments *segments, uint64_t from, uint64_t to,
        struct rv_error *err)
{
        size_t i = 0;

        rv_lines_begin(ret, segments->dir_fd, segments->path);
        ret->range = segments;
        while (i < segments->n && from >= segments->all[i].start + segments->all[i].size)
                i++;
        if (i == segments->n)
                return 0;
        ret->to = to;
        return rv_trace(go_in_range(ret, &segments->all[i], from - segments->all[i].start, err));
}

/* ---- One line ---- */

int rv_lines_one(int dir_fd, const char *path, const char *segment, uint64_t offset, size_t n, struct rv_buf *out,
        struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        size_t n_before = offset ? 1 : 0, want = n_before + n + 1;
        const char *line;
        ssize_t got;

        out->size = 0;
        if (n > RV_LOG_RECORD_BYTES_MAX || offset > INT64_MAX - want)
                return 0;
        fd = openat(dir_fd, segment, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return errno == ENOENT ? 0 : rv__segments_fail(path, segment, err, rv_raise(-errno), "cannot read");
        if (rv_buf_reserve(out, want) < 0)
                return rv__segments_fail(path, segment, err, rv_raise(-ENOMEM), "cannot read");
        do
                got = pread(fd, out->data, want, (off_t)(offset - n_before));
        while (got < 0 && errno == EINTR);
        if (got < 0)
                return rv__segments_fail(path, segment, err, rv_raise(-errno), "cannot read");
        line = out->data + n_before;
        if ((size_t)got != want || (n_before && out->data[0] != '\n') || line[n] != '\n' || memchr(line, '\n', n))
                return 0;
        memmove(out->data, line, n);
        out->data[n] = 0;
        out->size = n;
        return 1;
}
