#include "test_netns.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define PROGRAM_UID 65534
#define GATE_UID 65533

int64_t now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int write_text(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC), r = 0;

        if (fd < 0)
                return -errno;
        if (write(fd, text, strlen(text)) < 0)
                r = -errno;
        close(fd);
        return r;
}

unsigned count_fds(void)
{
        DIR *d = opendir("/proc/self/fd");
        unsigned n = 0;

        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

union rv_netns_address address(const char *text, uint16_t port)
{
        union rv_netns_address a = { .ipv4 = { .sin_family = AF_INET, .sin_port = htons(port) } };

        if (inet_pton(AF_INET, text, &a.ipv4.sin_addr) == 1)
                return a;
        a = (union rv_netns_address){ .ipv6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) } };
        CHECK(inet_pton(AF_INET6, text, &a.ipv6.sin6_addr) == 1);
        return a;
}

socklen_t address_size(const union rv_netns_address *a)
{
        return a->any.sa_family == AF_INET ? sizeof(a->ipv4) : sizeof(a->ipv6);
}

bool is_address(const union rv_netns_address *a, const char *text, uint16_t port)
{
        union rv_netns_address b = address(text, port);
        char said[INET6_ADDRSTRLEN] = "?";
        bool is_same = a->any.sa_family == b.any.sa_family;

        if (is_same && b.any.sa_family == AF_INET)
                is_same = a->ipv4.sin_port == b.ipv4.sin_port && a->ipv4.sin_addr.s_addr == b.ipv4.sin_addr.s_addr;
        else if (is_same)
                is_same = a->ipv6.sin6_port == b.ipv6.sin6_port &&
                        IN6_ARE_ADDR_EQUAL(&a->ipv6.sin6_addr, &b.ipv6.sin6_addr);
        if (is_same)
                return true;
        inet_ntop(a->any.sa_family, a->any.sa_family == AF_INET ? (const void *)&a->ipv4.sin_addr : &a->ipv6.sin6_addr,
                said, sizeof(said));
        fprintf(stderr, "expected %s port %u, is %s port %u\n", text, port, said, ntohs(a->ipv4.sin_port));
        return false;
}

static void limit_waiting(int fd)
{
        const struct timeval t = { .tv_sec = ARRIVES_MS / 1000 };

        CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0);
        CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) == 0);
}

int dial(int type, const char *text, uint16_t port)
{
        union rv_netns_address a = address(text, port);
        int fd = socket(a.any.sa_family, type | SOCK_CLOEXEC, 0), r;

        CHECK(fd >= 0);
        limit_waiting(fd);
        if (connect(fd, &a.any, address_size(&a)) == 0)
                return fd;
        r = -errno;
        close(fd);
        return r;
}

int take_connection(int listener_fd)
{
        struct pollfd p = { .fd = listener_fd, .events = POLLIN };
        int fd;

        CHECK(poll(&p, 1, ARRIVES_MS) == 1);
        fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC);
        CHECK(fd >= 0);
        limit_waiting(fd);
        return fd;
}

bool is_quiet(const struct rv_netns *net)
{
        struct pollfd p[RV_NETNS_SOCKET_MAX_];

        for (size_t i = 0; i < net->n_fds; i++)
                p[i] = (struct pollfd){ .fd = net->fds[i], .events = POLLIN };
        return poll(p, net->n_fds, 2 * AT_ONCE_MS) == 0;
}

void echo(int fd)
{
        char c = 'x';

        CHECK(fd >= 0);
        CHECK(send(fd, &c, 1, MSG_NOSIGNAL) == 1);
        c = 0;
        CHECK(recv(fd, &c, 1, 0) == 1);
        CHECK(c == 'x');
        CHECK(recv(fd, &c, 1, 0) == 0);
        close(fd);
}

void serve_echo(int fd)
{
        char c = 0;

        CHECK(recv(fd, &c, 1, 0) == 1);
        CHECK(send(fd, &c, 1, MSG_NOSIGNAL) == 1);
        close(fd);
}

/* ---- Two processes ---- */

static int become(uid_t uid)
{
        if (geteuid() != 0)
                return 0;        /* an ordinary user runs the test */
        if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
                return -errno;
        /* Else /proc/self belongs to root. */
        return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int netns_enter(enum who who)
{
        unsigned uid = geteuid(), gid = getegid();
        char map[64];
        int r;

        if (unshare(CLONE_NEWNET | (who == WHO_ROOT ? 0 : CLONE_NEWUSER)) < 0)
                return -errno;
        if (who == WHO_ROOT)
                return 0;
        r = write_text("/proc/self/setgroups", "deny");
        snprintf(map, sizeof(map), "%u %u 1\n", who == WHO_USER ? 1000 : 0, uid);
        if (r == 0)
                r = write_text("/proc/self/uid_map", map);
        snprintf(map, sizeof(map), "%u %u 1\n", who == WHO_USER ? 1000 : 0, gid);
        return r < 0 ? r : write_text("/proc/self/gid_map", map);
}

static void enter(enum who who)
{
        int r;

        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (who == WHO_USER)
                CHECK(become(PROGRAM_UID) == 0);
        r = netns_enter(who);
        if (r < 0)
                fprintf(stderr, "namespaces: %s\n", strerror(-r));
        CHECK(r == 0);
}

static _Noreturn void be_program(const struct variant *v, const struct play *play, int channel, int start)
{
        struct rv_netns net = { 0 };
        const char *step = "?";
        char c;
        int r;

        enter(v->who);
        if (play->prepare)
                play->prepare();
        r = rv_netns_open(v->mode, &net, &step);
        if (r < 0)
                fprintf(stderr, "cannot %s: %s\n", step, strerror(-r));
        CHECK(r == 0);
        if (play->privileged)
                play->privileged(v, &net);
        CHECK(rv_netns_drop_capabilities() == 0);
        CHECK(rv_send_with_fds(channel, &net, sizeof(net), net.fds, net.n_fds) == 0);
        rv_netns_close(&net);
        CHECK(read(start, &c, 1) == 0);
        if (play->program)
                play->program(v);
        _exit(0);
}

static void receive(int channel, struct rv_netns *ret)
{
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(ret->fds))];
        } control;
        struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
        struct msghdr m = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };

        CHECK(recvmsg(channel, &m, MSG_CMSG_CLOEXEC) == sizeof(*ret));
        CHECK(m.msg_controllen >= CMSG_LEN(ret->n_fds * sizeof(int)) &&
                control.head.cmsg_len == CMSG_LEN(ret->n_fds * sizeof(int)));
        memcpy(ret->fds, CMSG_DATA(&control.head), ret->n_fds * sizeof(int));
        for (size_t i = 0; i < ret->n_fds; i++) {
                CHECK(fcntl(ret->fds[i], F_GETFD) == FD_CLOEXEC);
                CHECK(fcntl(ret->fds[i], F_GETFL) & O_NONBLOCK);
        }
}

static _Noreturn void be_gate(const struct variant *v, const struct play *play, int channel, int start)
{
        struct rv_netns net = { 0 };

        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        CHECK(become(GATE_UID) == 0);
        receive(channel, &net);
        CHECK(net.n_fds == (net.has_ipv6 ? RV_NETNS_SOCKET_MAX_ : RV_NETNS_SOCKET_DNS_UDP6));
        if (!play->is_gate_first)
                close(start);
        if (play->gate)
                play->gate(v, &net);
        rv_netns_close(&net);
        _exit(0);
}

static int end_of(pid_t pid)
{
        int status = -1;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

static bool can_enter(enum who who)
{
        static int answers[3];      /* 0: not asked, 1: yes, 2: no */
        pid_t pid;

        if (!answers[who]) {
                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0)
                        _exit((who == WHO_USER && become(PROGRAM_UID) < 0) || netns_enter(who) < 0);
                answers[who] = end_of(pid) == 0 ? 1 : 2;
        }
        return answers[who] == 1;
}

void netns_play(const struct variant *v, const struct play *play)
{
        int channel[2], start[2];
        pid_t program, gate;
        bool has_program, has_gate;

        if (v->who != WHO_USER)
                need_root();
        if (!can_enter(v->who))
                cannot_run("root", "no user and network namespace can be made here");
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), 0);
        assert_int_equal(pipe2(start, O_CLOEXEC), 0);
        program = fork();
        assert_true(program >= 0);
        if (program == 0) {
                close(channel[0]);
                close(start[1]);
                be_program(v, play, channel[1], start[0]);
        }
        gate = fork();
        assert_true(gate >= 0);
        if (gate == 0) {
                close(channel[1]);
                close(start[0]);
                be_gate(v, play, channel[0], start[1]);
        }
        close(channel[0]);
        close(channel[1]);
        close(start[0]);
        close(start[1]);
        has_program = end_of(program) == 0;
        has_gate = end_of(gate) == 0;
        if (!has_program || !has_gate)
                fail_msg("%s:%s%s", v->name, has_program ? "" : " the program failed", has_gate ? "" : " the gate failed");
}

int netns_fork(enum who who, void (*body)(void))
{
        pid_t pid;

        if (who != WHO_USER)
                need_root();
        if (!can_enter(who))
                cannot_run("root", "no user and network namespace can be made here");
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
                if (who == WHO_USER)
                        CHECK(become(PROGRAM_UID) == 0);
                body();
                _exit(0);
        }
        return end_of(pid);
}
