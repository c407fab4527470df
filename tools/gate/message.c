#include "message.h"

#include "base/fd.h"

#include <sys/socket.h>

int message_receive(int fd, struct rv_gate_message *ret, int ret_fds[RV_GATE_FDS_MAX], size_t *ret_n_fds)
{
        ssize_t n = rv_receive_with_fds(fd, ret, sizeof(*ret), MSG_DONTWAIT, ret_fds, RV_GATE_FDS_MAX, ret_n_fds);

        if (n == -EINTR || n == -EAGAIN)
                return -EAGAIN;
        if (n <= 0)
                return n == -EBADMSG ? -EBADMSG : 0;
        return n == (ssize_t)sizeof(*ret) ? 1 : -EBADMSG;
}
