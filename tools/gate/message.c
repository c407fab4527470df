#include "message.h"

#include "base/rv.h"

#include <string.h>
#include <sys/socket.h>

int message_receive(int fd, struct rv_gate_message *ret, int ret_fds[RV_GATE_FDS_MAX], size_t *ret_n_fds)
{
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(int) * RV_GATE_FDS_MAX)];
        } control = { 0 };
        struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
        /* Not the whole of `control`: what aligns its end would take one descriptor more than `ret_fds` does. */
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
                                  .msg_controllen = CMSG_LEN(sizeof(int) * RV_GATE_FDS_MAX) };
        struct cmsghdr *c;
        ssize_t n;

        *ret_n_fds = 0;
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n < 0)
                return errno == EINTR || errno == EAGAIN ? -EAGAIN : 0;
        c = CMSG_FIRSTHDR(&message);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
                *ret_n_fds = RV_MIN((c->cmsg_len - CMSG_LEN(0)) / sizeof(int), (size_t)RV_GATE_FDS_MAX);
                memcpy(ret_fds, CMSG_DATA(c), sizeof(int) * *ret_n_fds);
        }
        if (n == 0)
                return 0;
        return n == (ssize_t)sizeof(*ret) && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? 1 : -EBADMSG;
}
