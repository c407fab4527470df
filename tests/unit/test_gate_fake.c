/* A gate that serves nothing: see test_gate_fake.h. */
#include "test_gate_fake.h"

#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

void fake_gate_send(const struct fake_gate *gate, const void *message, size_t n, int fd)
{
        int r = rv_send_with_fds(gate->fd, message, n, &fd, fd >= 0);

        assert_true(r == 0 || r == -EPIPE);     /* the loop has hung up */
}

void fake_gate_close(struct fake_gate *gate)
{
        gate->host->watch_remove(gate->host->ctx, gate->watch);
        gate->watch = NULL;
        gate->fd = rv_close(gate->fd);
}

static void report(const struct fake_gate *gate, uint64_t id)
{
        const struct rv_gate_message m = { .kind = RV_GATE_REPORT, .id = id };
        const char *text = gate->report ? gate->report : FAKE_GATE_REPORT;
        int fd = memfd_create("evidence", MFD_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(rv_write_all(fd, text, strlen(text)), 0);
        fake_gate_send(gate, &m, sizeof(m), fd);
        close(fd);
}

static void answer(struct fake_gate *gate, const struct rv_gate_message *q, enum fake_gate_mood mood)
{
        struct rv_gate_message m = { .id = q->id, .kind = RV_GATE_READY };

        switch (mood) {
        case FAKE_GATE_MUTE:
                break;
        case FAKE_GATE_REFUSES:
                m.kind = RV_GATE_REFUSED;
                strcpy(m.text, "it does not like\nthe rules");
                fake_gate_send(gate, &m, sizeof(m), -1);
                break;
        case FAKE_GATE_HANGS_UP:
                fake_gate_close(gate);
                break;
        case FAKE_GATE_TALKS:
                fake_gate_send(gate, "hello", 5, -1);
                break;
        default:
                if (q->kind == RV_GATE_ADD)
                        fake_gate_send(gate, &m, sizeof(m), -1);
                else
                        report(gate, q->id);
        }
}

static void take_rules(struct fake_gate *gate, int fd)
{
        ssize_t n = pread(fd, gate->rules, sizeof(gate->rules) - 1, 0);

        assert_true(n >= 0);
        gate->rules[n] = 0;
        gate->seals = fcntl(fd, F_GET_SEALS);
}

static bool take_message(struct fake_gate *gate)
{
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(int) * RV_GATE_FDS_MAX)];
        } control = { 0 };
        struct rv_gate_message m;
        struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        const struct cmsghdr *head;
        int fds[RV_GATE_FDS_MAX];
        size_t n_fds = 0;
        ssize_t n;

        n = recvmsg(gate->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n < 0 && errno == ECONNRESET)
                return true;    /* told once, before what was said */
        if (n < 0 && errno == EAGAIN)
                return false;
        if (n <= 0) {
                fake_gate_close(gate);
                return false;
        }
        assert_int_equal(n, sizeof(m));
        head = CMSG_FIRSTHDR(&message);
        if (head) {
                n_fds = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(fds, CMSG_DATA(head), sizeof(int) * n_fds);
        }
        if (m.kind == RV_GATE_ADD) {
                gate->n_adds++;
                gate->n_fds = n_fds;
                if (n_fds)
                        take_rules(gate, fds[0]);
        } else {
                gate->n_removes++;
                gate->drain_ms = m.drain_ms;
        }
        for (size_t i = 0; i < n_fds; i++)
                close(fds[i]);
        answer(gate, &m, m.kind == RV_GATE_ADD ? gate->at_add : gate->at_remove);
        return gate->fd >= 0;
}

static void on_channel(void *arg, uint32_t events)
{
        (void)events;
        while (take_message(arg))
                ;
}

void fake_gate_open(struct fake_gate *gate, const struct rv_host *host, int *ret_fd)
{
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        gate->host = host;
        gate->fd = pair[0];
        gate->watch = NULL;
        assert_int_equal(host->watch_add(host->ctx, gate->fd, RV_WATCH_READ, on_channel, gate, &gate->watch), 0);
        *ret_fd = pair[1];
}
