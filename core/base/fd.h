/*
 * fd.h - file descriptors and files, whole or not at all
 *
 * Every descriptor made here is close-on-exec. -EBADF stands for "none" in a variable. Any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <sys/types.h>

/** rv_close() - close unless negative, keeping errno. Context: any. Ownership: takes @fd. Return: -EBADF, to store */
int rv_close(int fd);
static inline void rv_closep(int *fd)
{
        *fd = rv_close(*fd);
}
static inline int rv_take_fd(int *fd)
{
        int r = *fd;
        *fd = -EBADF;
        return r;
}

/** rv_write_all() - write all @n bytes, through short writes and EINTR. Context: may block. Ownership: borrows. Return: 0 or -errno */
int rv_write_all(int fd, const void *data, size_t n);

/**
 * rv_send_with_fds() - one message on a socket that keeps their bounds, with descriptors (SCM_RIGHTS, unix(7))
 * @n_fds: 0 to RV_SEND_FDS_MAX
 *
 * Context:   may block
 * Ownership: borrows; the receiver gets descriptors of its own
 * Return:    0 or -errno; never SIGPIPE
 */
int rv_send_with_fds(int socket_fd, const void *data, size_t size, const int *fds, size_t n_fds);
#define RV_SEND_FDS_MAX 8

/**
 * rv_receive_with_fds() - one message from such a socket, whole or not at all, with its descriptors
 * @data:      @size bytes; written as far as the message goes, also after a failure
 * @flags:     of recvmsg(2), such as MSG_DONTWAIT
 * @ret_fds:   room for @max_fds descriptors, 1 to RV_SEND_FDS_MAX; close-on-exec
 * @ret_n_fds: always set; 0 after a failure: what came with a message that is not taken is closed
 *
 * Context:   may block, unless @flags say otherwise
 * Ownership: borrows @socket_fd; the descriptors are the caller's
 * Return:    the bytes of the message; 0 also at the end; -EBADMSG it is longer than @size, or has more descriptors than
 *            @max_fds; -EAGAIN, -EINTR, -errno
 */
ssize_t rv_receive_with_fds(int socket_fd, void *data, size_t size, int flags, int *ret_fds, size_t max_fds,
        size_t *ret_n_fds);

/**
 * rv_read_file_at() - a regular file's bytes, bounded
 * @dir_fd: AT_FDCWD or a directory
 * @max:    most bytes
 * @out:    added to
 *
 * Opened O_NOFOLLOW | O_NONBLOCK, so that neither a link nor a FIFO is a trap.
 *
 * Context:   may block on a slow disk
 * Ownership: borrows
 * Return:    0; -EFBIG; -ELOOP a link; -EINVAL not a regular file; -errno
 */
int rv_read_file_at(int dir_fd, const char *path, size_t max, struct rv_buf *out);

/** rv_read_fd() - all until end of file, at most @max bytes. Context: may block. Ownership: borrows @fd. Return: 0; -EFBIG (what was read so far is in @out); -errno */
int rv_read_fd(int fd, size_t max, struct rv_buf *out);

/** rv_write_file() - replace or make @path with @mode through a temporary name, synced if @is_synced. Context: may block. Ownership: borrows. Return: 0 or -errno */
int rv_write_file(const char *path, const void *data, size_t n, mode_t mode, bool is_synced);

/** rv_write_file_at() - as rv_write_file(), @path being relative to @dir_fd. Context: may block. Ownership: borrows. Return: 0 or -errno */
int rv_write_file_at(int dir_fd, const char *path, const void *data, size_t n, mode_t mode, bool is_synced);

/** rv_mkdir_p() - make @path and its parents, mode 0755, the last with @mode. Context: may block. Ownership: borrows. Return: 0 (also if there) or -errno */
int rv_mkdir_p(const char *path, mode_t mode);
