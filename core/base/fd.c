#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int rv_close(int fd)
{
        int e = errno;

        if (fd >= 0)
                close(fd);
        errno = e;
        return -EBADF;
}

int rv_write_all(int fd, const void *data, size_t n)
{
        const char *p = data;

        while (n) {
                ssize_t w = write(fd, p, n);

                if (w < 0) {
                        if (errno == EINTR)
                                continue;
                        return rv_raise(-errno);
                }
                p += w;
                n -= (size_t)w;
        }
        return 0;
}

int rv_read_fd(int fd, size_t max, struct rv_buf *out)
{
        size_t start = out->size;

        for (;;) {
                size_t left = max - (out->size - start);
                ssize_t n;
                int r;

                /* One byte past the bound tells "just full" from "too big". */
                r = rv_buf_reserve(out, RV_MIN(left + 1, (size_t)65536));
                if (r < 0)
                        return rv_trace(r);
                n = read(fd, out->data + out->size, RV_MIN(left + 1, (size_t)65536));
                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return rv_raise(-errno);
                }
                if (n == 0) {
                        out->data[out->size] = 0;
                        return 0;
                }
                if ((size_t)n > left)
                        return rv_raise(-EFBIG);
                out->size += (size_t)n;
        }
}

int rv_read_file_at(int dir_fd, const char *path, size_t max, struct rv_buf *out)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        struct stat st;

        fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return rv_raise(-errno);
        if (fstat(fd, &st) < 0)
                return rv_raise(-errno);
        if (!S_ISREG(st.st_mode))
                return rv_raise(-EINVAL);
        if (st.st_size > 0 && (uint64_t)st.st_size > max)
                return rv_raise(-EFBIG);
        return rv_trace(rv_read_fd(fd, max, out));
}

int rv_write_file_at(int dir_fd, const char *path, const void *data, size_t n, mode_t mode, bool is_synced)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        _cleanup_(rv_freep) char *name = NULL;
        int r;

        if (asprintf(&name, "%s.%d.new", path, (int)getpid()) < 0) {
                name = NULL;
                return rv_raise(-ENOMEM);
        }
        fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd < 0)
                return rv_raise(-errno);
        r = rv_write_all(fd, data, n);
        if (r == 0 && is_synced && fdatasync(fd) < 0)
                r = rv_raise(-errno);
        if (r == 0 && renameat(dir_fd, name, dir_fd, path) < 0)
                r = rv_raise(-errno);
        if (r < 0)
                unlinkat(dir_fd, name, 0);
        return r;
}

int rv_write_file(const char *path, const void *data, size_t n, mode_t mode, bool is_synced)
{
        return rv_trace(rv_write_file_at(AT_FDCWD, path, data, n, mode, is_synced));
}

int rv_mkdir_p(const char *path, mode_t mode)
{
        char part[4096];
        size_t n = strlen(path);

        if (n == 0 || n >= sizeof(part))
                return rv_raise(-ENAMETOOLONG);
        for (size_t i = 1; i <= n; i++) {
                if (path[i] != '/' && path[i] != 0)
                        continue;
                memcpy(part, path, i);
                part[i] = 0;
                if (mkdir(part, path[i] ? 0755 : mode) < 0 && errno != EEXIST)
                        return rv_raise(-errno);
        }
        return 0;
}

int rv_send_with_fds(int socket_fd, const void *data, size_t size, const int *fds, size_t n_fds)
{
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(int) * RV_SEND_FDS_MAX)];
        } control = { 0 };
        struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

        rv_check(n_fds <= RV_SEND_FDS_MAX);
        if (n_fds) {
                control.head = (struct cmsghdr){
                        .cmsg_len = CMSG_LEN(sizeof(int) * n_fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
                };
                memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * n_fds);
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        }
        while (sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0)
                if (errno != EINTR)
                        return -errno;
        return 0;
}

ssize_t rv_receive_with_fds(int socket_fd, void *data, size_t size, int flags, int *ret_fds, size_t max_fds,
        size_t *ret_n_fds)
{
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(int) * RV_SEND_FDS_MAX)];
        } control = { 0 };
        struct iovec iov = { .iov_base = data, .iov_len = size };
        /* Not CMSG_SPACE(): in its padding one descriptor more could fit. */
        struct msghdr message = { .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = CMSG_LEN(sizeof(int) * max_fds) };
        const struct cmsghdr *c;
        size_t n_fds = 0;
        ssize_t n;

        *ret_n_fds = 0;
        rv_require(max_fds >= 1 && max_fds <= RV_SEND_FDS_MAX);
        n = recvmsg(socket_fd, &message, flags | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return -errno;
        c = CMSG_FIRSTHDR(&message);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
                n_fds = RV_MIN((c->cmsg_len - CMSG_LEN(0)) / sizeof(int), max_fds);
                memcpy(ret_fds, CMSG_DATA(c), sizeof(int) * n_fds);
        }
        if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
                while (n_fds)
                        rv_close(ret_fds[--n_fds]);
                return -EBADMSG;
        }
        *ret_n_fds = n_fds;
        return n;
}
