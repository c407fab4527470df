/*
 * Messages to the spawner, the one process with privilege: whatever bytes and descriptors a loop that was taken over
 * sends, nothing but a message of the right size and number is taken, no descriptor is lost, and a START that is
 * found good holds nothing outside the configuration. The first byte of an input is how many descriptors go along.
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
        FUZZ_CHECK(q->network == RV_PLAN_NETWORK_NONE);
        FUZZ_CHECK(q->memory_mib >= 128 && q->memory_mib <= 2048 && q->timeout_s >= 1 && q->timeout_s <= 300 &&
                q->pids >= 1 && q->pids <= 64 && q->cpus_milli == 1500);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        int n_sent = fuzz_byte(&in) % (FDS_MAX + 1), n_fds = -1, pair[2], next_before, next_after, r;
        struct {
                int before, fds[RV_SPAWN_FD_MAX_], after;
        } got = { .before = 0x5a5a5a5a, .after = 0x5a5a5a5a };
        struct rv_spawn_request q = { 0 };

        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        next_before = dup(pair[0]);
        close(next_before);
        send_message(pair[0], in.data, in.size, n_sent);
        r = request_receive(pair[1], &q, got.fds, &n_fds);
        FUZZ_CHECK(got.before == 0x5a5a5a5a && got.after == 0x5a5a5a5a && n_fds >= 0 && n_fds <= RV_SPAWN_FD_MAX_);
        FUZZ_CHECK(n_fds == RV_MIN(n_sent, (int)RV_SPAWN_FD_MAX_), "%d descriptors of %d", n_fds, n_sent);
        for (int i = 0; i < n_fds; i++)
                FUZZ_CHECK(fcntl(got.fds[i], F_GETFD) == FD_CLOEXEC && close(got.fds[i]) == 0);
        /* No more came in than were told of. */
        next_after = dup(pair[0]);
        FUZZ_CHECK(next_after == next_before, "%d descriptors stay open", next_after - next_before);
        close(next_after);
        if (in.size == 0)
                FUZZ_CHECK(r == 0, "an empty message is the channel's end");
        else if (in.size != sizeof(q) || n_sent > RV_SPAWN_FD_MAX_)
                FUZZ_CHECK(r == -EBADMSG, "%d", r);
        else
                FUZZ_CHECK(r == 1 && memcmp(&q, in.data, sizeof(q)) == 0, "%d", r);
        if (r == 1)
                check_request(&q);
        close(pair[0]);
        FUZZ_CHECK(request_receive(pair[1], &q, got.fds, &n_fds) == 0 && n_fds == 0);
        close(pair[1]);
        return 0;
}
