#include "audit/lines.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)1 << 20)

void rv_lines_begin(struct rv_lines *lines, int audit_fd)
{
        *lines = (struct rv_lines){ .audit_fd = audit_fd, .fd = -EBADF };
}

void rv_lines_close(struct rv_lines *lines)
{
        lines->fd = rv_close(lines->fd);
        rv_buf_fini(&lines->buf);
}

void rv_lines_name(uint64_t seq, char ret_name[RV_LOG_SEGMENT_NAME_SIZE])
{
        snprintf(ret_name, RV_LOG_SEGMENT_NAME_SIZE, "%020" PRIu64 ".jsonl", seq);
}

int rv_lines_open(struct rv_lines *lines, uint64_t segment)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        char name[RV_LOG_SEGMENT_NAME_SIZE];
        struct stat st;

        rv_lines_name(segment, name);
        fd = openat(lines->audit_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return errno == ENOENT ? -ENOENT : rv_raise(-errno);
        if (fstat(fd, &st) < 0)
                return rv_raise(-errno);
        if (!S_ISREG(st.st_mode))
                return rv_raise(-EINVAL);
        rv_close(lines->fd);
        lines->fd = rv_take_fd(&fd);
        lines->segment = segment;
        lines->offset = lines->rest = lines->start_offset = 0;
        lines->buf.size = lines->start = 0;
        return 0;
}

/* More bytes behind those in the buffer. 1; 0 at the end of the file; -EMSGSIZE; -errno. */
static int fill(struct rv_lines *lines)
{
        size_t n_there = lines->buf.size - lines->start;
        ssize_t n;
        int r;

        if (n_there > RV_LOG_RECORD_BYTES_MAX) {
                lines->offset = lines->start_offset;
                return -EMSGSIZE;
        }
        if (lines->start && n_there)
                memmove(lines->buf.data, lines->buf.data + lines->start, n_there);
        lines->buf.size = n_there;
        lines->start = 0;
        r = rv_buf_reserve(&lines->buf, READ_BYTES);
        if (r < 0)
                return rv_trace(r);
        do
                n = pread(lines->fd, lines->buf.data + n_there, READ_BYTES, (off_t)(lines->start_offset + n_there));
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return rv_raise(-errno);
        lines->buf.size += (size_t)n;
        return n > 0;
}

int rv_lines_in_segment(struct rv_lines *lines, const char **ret_line, size_t *ret_n)
{
        size_t seen = 0;
        int r;

        for (;;) {
                size_t n_there = lines->buf.size - lines->start;
                const char *line = n_there ? lines->buf.data + lines->start : NULL;
                const char *end = n_there > seen ? memchr(line + seen, '\n', n_there - seen) : NULL;

                if (end) {
                        size_t n = (size_t)(end - line);

                        lines->offset = lines->start_offset;
                        lines->start += n + 1;
                        lines->start_offset += n + 1;
                        if (n >= RV_LOG_RECORD_BYTES_MAX)
                                return -EMSGSIZE;
                        *ret_line = line;
                        *ret_n = n;
                        return 1;
                }
                seen = n_there;
                r = fill(lines);
                if (r == 0) {
                        /* These bytes may be others by the next time. */
                        lines->rest = n_there;
                        lines->buf.size = lines->start = 0;
                }
                if (r <= 0)
                        return r == -EMSGSIZE ? r : rv_trace(r);
        }
}

void rv_lines_again(struct rv_lines *lines)
{
        lines->buf.size = lines->start = 0;
        lines->start_offset = lines->offset;
}

int rv_lines_next(struct rv_lines *lines, const char **ret_line, size_t *ret_n)
{
        int r;

        for (;;) {
                r = lines->fd >= 0 ? rv_lines_in_segment(lines, ret_line, ret_n) : 0;
                if (r > 0)
                        lines->next++;
                if (r != 0 || (lines->fd >= 0 && lines->next == lines->segment))
                        return rv_trace(r);
                r = rv_lines_open(lines, lines->next);
                if (r < 0)
                        return r == -ENOENT ? 0 : rv_trace(r);
        }
}
