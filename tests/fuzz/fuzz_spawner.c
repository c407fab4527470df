/*
 * Messages to the spawner, the one process with privilege: whatever bytes and descriptors a loop that was taken over
 * sends, nothing but a message of the right size and number is taken, no descriptor is lost, a START that is
 * found good holds nothing outside the configuration, and with what the signer is asked it can be worked. The first
 * byte of an input is how many descriptors go along.
 */
#include "fuzz.h"

#include "base/fd.h"
#include "request.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 9

static const char config_text[] = "runtimes: {py: {root: /srv/py}}\n"
                                  "tenants: {local: {}, team-a: {runtime: py}}\n"
                                  "limits: {pids: 64, cpus: 1.5}\n";

static const struct rv_config *config(void)
{
        static struct rv_config *c;
        struct rv_error err = { 0 };

        if (!c)
                FUZZ_CHECK(rv_config_parse(config_text, sizeof(config_text) - 1, "/fuzz.yaml", &c, &err) == 0, "%s", err.message);
        return c;
}

static void send_message(int fd, const void *data, size_t size, int n_fds)
{
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
        } control = { 0 };
        struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        int fds[FDS_MAX];

        for (int i = 0; i < n_fds; i++)
                fds[i] = fd;
        if (n_fds) {
                control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n_fds),
                                                 .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
                memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * (size_t)n_fds);
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n_fds);
        }
        FUZZ_CHECK(sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)size);
}

/* What is found good is within what the configuration and the bounds allow. */
static void check_request(const struct rv_spawn_request *q)
{
        const char *fault = request_find_fault(config(), q);

        if (fault) {
                FUZZ_CHECK(fuzz_is_line(fault));
                return;
        }
        FUZZ_CHECK(strlen(q->run_id) == RV_RUN_ID_SIZE - 1 && strspn(q->run_id, "0123456789abcdef") == RV_RUN_ID_SIZE - 1);
        FUZZ_CHECK(memchr(q->runtime, 0, sizeof(q->runtime)) && memchr(q->tenant, 0, sizeof(q->tenant)));
        FUZZ_CHECK(strcmp(q->tenant, "local") == 0 || strcmp(q->tenant, "team-a") == 0, "%s", q->tenant);
        FUZZ_CHECK(q->language == RV_PLAN_PYTHON || q->language == RV_PLAN_JAVASCRIPT);
        FUZZ_CHECK(q->network <= RV_PLAN_NETWORK_ANY);
        FUZZ_CHECK(q->memory_mib >= 128 && q->memory_mib <= 2048 && q->timeout_s >= 1 && q->timeout_s <= 300 &&
                q->pids >= 1 && q->pids <= 64 && q->cpus_milli == 1500);
}

/* Whatever tree a request shows, it has a root, and a growth that is taken gives the size that it claims. */
static void check_sign_request(const struct rv_sign_request *q)
{
        const char *fault = request_find_sign_fault(q);
        struct rv_merkle tree = q->edge;
        rv_merkle_hash root;

        if (fault) {
                FUZZ_CHECK(fuzz_is_line(fault));
                return;
        }
        FUZZ_CHECK(strlen(q->log_id) == RV_LOG_ID_SIZE - 1 && strspn(q->log_id, "0123456789abcdef") == RV_LOG_ID_SIZE - 1);
        rv_merkle_root(&tree, root);
        if (rv_merkle_grow(&tree, &q->growth) == 0)
                FUZZ_CHECK(tree.size == q->edge.size + q->growth.size);
        else
                FUZZ_CHECK(memcmp(&tree, &q->edge, sizeof(tree)) == 0);
        rv_merkle_root(&tree, root);
}

/* What a message must be taken for: told by size and kind. */
static int expect(const void *data, size_t size, int n_sent)
{
        uint32_t kind = 0;
        bool is_sign_kind;

        if (n_sent > RV_SPAWN_FD_MAX_)
                return -EBADMSG;
        if (size == 0)
                return 0;
        memcpy(&kind, data, RV_MIN(size, sizeof(kind)));
        is_sign_kind = kind >= RV_SIGN_QUERY && kind < RV_SIGN_KIND_MAX_;
        if (size == sizeof(struct rv_spawn_request) && !is_sign_kind)
                return REQUEST_SPAWN;
        return size == sizeof(struct rv_sign_request) && is_sign_kind ? REQUEST_SIGN : -EBADMSG;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        int n_sent = fuzz_byte(&in) % (FDS_MAX + 1), n_fds = -1, pair[2], next_before, next_after, r;
        struct {
                int before, fds[RV_SPAWN_FD_MAX_], after;
        } got = { .before = 0x5a5a5a5a, .after = 0x5a5a5a5a };
        union request q = { 0 };

        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        next_before = dup(pair[0]);
        close(next_before);
        send_message(pair[0], in.data, in.size, n_sent);
        r = request_receive(pair[1], &q, got.fds, &n_fds);
        FUZZ_CHECK(got.before == 0x5a5a5a5a && got.after == 0x5a5a5a5a && n_fds >= 0 && n_fds <= RV_SPAWN_FD_MAX_);
        FUZZ_CHECK(n_fds == (n_sent > RV_SPAWN_FD_MAX_ || in.size > sizeof(q) ? 0 : n_sent), "%d descriptors of %d", n_fds, n_sent);
        for (int i = 0; i < n_fds; i++)
                FUZZ_CHECK(fcntl(got.fds[i], F_GETFD) == FD_CLOEXEC && close(got.fds[i]) == 0);
        /* No more came in than were told of. */
        next_after = dup(pair[0]);
        FUZZ_CHECK(next_after == next_before, "%d descriptors stay open", next_after - next_before);
        close(next_after);
        FUZZ_CHECK(r == expect(in.data, in.size, n_sent), "%d", r);
        if (r > 0)
                FUZZ_CHECK(memcmp(&q, in.data, in.size) == 0);
        if (r == REQUEST_SPAWN)
                check_request(&q.spawn);
        else if (r == REQUEST_SIGN)
                check_sign_request(&q.sign);
        close(pair[0]);
        FUZZ_CHECK(request_receive(pair[1], &q, got.fds, &n_fds) == 0 && n_fds == 0);
        close(pair[1]);
        return 0;
}
