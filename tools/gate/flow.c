#include "flow.h"

#include "base/fd.h"
#include "gate.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SPLICE_FLAGS (SPLICE_F_MOVE | SPLICE_F_NONBLOCK)

void flow_init(struct flow *flow)
{
        *flow = (struct flow){ .pipe = { -EBADF, -EBADF } };
}

void flow_fini(struct flow *flow)
{
        rv_buf_fini(&flow->out);
        flow->pipe[0] = rv_close(flow->pipe[0]);
        flow->pipe[1] = rv_close(flow->pipe[1]);
}

bool flow_is_empty(const struct flow *flow)
{
        return flow->out_at == flow->out.size && flow->in_pipe == 0;
}

static int break_flow(struct flow *flow)
{
        int r = -errno;

        flow->is_broken = true;
        flow->is_blocked = false;
        flow->out.size = flow->out_at = 0;
        flow->in_pipe = 0;
        return r;
}

int flow_flush(struct flow *flow, int to_fd)
{
        flow->is_blocked = false;
        while (flow->out_at < flow->out.size) {
                ssize_t n = send(to_fd, flow->out.data + flow->out_at, flow->out.size - flow->out_at, MSG_NOSIGNAL);

                if (n < 0 && errno != EAGAIN && errno != EINTR)
                        return break_flow(flow);
                flow->is_blocked = n < 0 && errno == EAGAIN;
                if (flow->is_blocked)
                        return 0;
                flow->out_at += n > 0 ? (size_t)n : 0;
        }
        flow->out.size = flow->out_at = 0;
        while (flow->in_pipe) {
                ssize_t n = splice(flow->pipe[0], NULL, to_fd, NULL, flow->in_pipe, SPLICE_FLAGS);

                if (n < 0 && errno != EAGAIN && errno != EINTR)
                        return break_flow(flow);
                flow->is_blocked = n < 0 && errno == EAGAIN;
                if (flow->is_blocked)
                        return 0;
                flow->in_pipe -= n > 0 ? (size_t)n : 0;
        }
        return 0;
}

static int64_t pull_copied(struct flow *flow, int from_fd, int to_fd, char *chunk)
{
        ssize_t n = recv(from_fd, chunk, GATE_CHUNK_BYTES, 0), sent;

        if (n <= 0)
                return n < 0 ? -errno : 0;
        sent = send(to_fd, chunk, (size_t)n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
                (void)break_flow(flow);
        sent = RV_MAX(sent, 0);
        if (!flow->is_broken && rv_buf_append(&flow->out, chunk + sent, (size_t)(n - sent)) < 0)
                return rv_raise(-ENOMEM);
        flow->is_blocked = !flow_is_empty(flow);
        return n;
}

static bool has_pipe(struct flow *flow)
{
        if (flow->pipe[0] >= 0)
                return true;
        if (flow->n_bytes < FLOW_COPIED_BYTES || pipe2(flow->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
                return false;
        (void)fcntl(flow->pipe[0], F_SETPIPE_SZ, FLOW_PIPE_BYTES);
        rv_buf_fini(&flow->out);
        return true;
}

int64_t flow_pull(struct flow *flow, int from_fd, int to_fd, char *chunk)
{
        ssize_t n;

        if (!has_pipe(flow)) {
                n = (ssize_t)pull_copied(flow, from_fd, to_fd, chunk);
                flow->n_bytes += n > 0 ? (uint64_t)n : 0;
                return n;
        }
        n = splice(from_fd, NULL, flow->pipe[1], NULL, FLOW_PIPE_BYTES, SPLICE_FLAGS);
        if (n <= 0)
                return n < 0 ? -errno : 0;
        flow->in_pipe += (size_t)n;
        flow->n_bytes += (uint64_t)n;
        (void)flow_flush(flow, to_fd);
        return n;
}
