#include "mount.h"

#include "common.h"
#include "netns.h"
#include "netns_link.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHANNEL_FD 3
#define LAYERS_FD 4

static _Noreturn void fail_in(const struct ns_child *c, const char *step, int e, bool is_network)
{
        struct ns_message m = { .kind = NS_FAILED, .fault_errno = e < 0 ? -e : e, .is_network_fault = is_network };

        snprintf(m.step, sizeof(m.step), "%s", step);
        (void)send(c->spawner_fd, &m, sizeof(m), MSG_NOSIGNAL);
        _exit(1);
}

static _Noreturn void fail(const struct ns_child *c, const char *step, int e)
{
        fail_in(c, step, e, false);
}

#define STEP(name, expr)                          \
        do {                                      \
                if ((expr) < 0)                   \
                        fail(c, (name), errno);   \
        } while (0)

static void tell(const struct ns_child *c, enum ns_message_kind kind)
{
        struct ns_message m = { .kind = kind };

        STEP("report to the spawner", send(c->spawner_fd, &m, sizeof(m), MSG_NOSIGNAL));
}

/* With the directory of the result file, which the spawner reads when all processes are gone. */
static void tell_ready(const struct ns_child *c)
{
        struct ns_message m = { .kind = NS_READY };
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = { 0 };
        struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

        STEP("open " RV_BOX, fd);
        control.head = (struct cmsghdr){
                .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
        };
        memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
        STEP("report to the spawner", sendmsg(c->spawner_fd, &message, MSG_NOSIGNAL));
        close(fd);
}

/* Should the run not die, it must not keep the caller's standard error open: whoever reads that to its end would hang. */
static void let_go_of_caller(const struct ns_child *c)
{
#ifndef __SANITIZE_ADDRESS__
        STEP("let go of standard error", dup2(STDIN_FILENO, STDERR_FILENO));
#endif
        (void)c;
}

/* A caller that the kernel should spare (oom_score_adj below 0) does not hand that on; 0 is refused to nobody below. */
static void raise_oom_score(void)
{
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        if (fd >= 0) {
                (void)!write(fd, "0", 1);
                close(fd);
        }
}

/* What the spawner holds, other runs' directories too, is no business of this one. */
static int keep_only_channel(struct ns_child *c)
{
        if (c->spawner_fd != CHANNEL_FD && dup3(c->spawner_fd, CHANNEL_FD, O_CLOEXEC) < 0)
                return -1;
        c->spawner_fd = CHANNEL_FD;
        if (c->layers_fd < 0)
                return (int)syscall(SYS_close_range, LAYERS_FD, ~0u, 0);
        if (c->layers_fd != LAYERS_FD && dup3(c->layers_fd, LAYERS_FD, O_CLOEXEC) < 0)
                return -1;
        c->layers_fd = LAYERS_FD;
        return (int)syscall(SYS_close_range, LAYERS_FD + 1, ~0u, 0);
}

static void await_proceed(const struct ns_child *c)
{
        struct ns_message m;

        if (recv(c->spawner_fd, &m, sizeof(m), 0) != sizeof(m) || m.kind != NS_PROCEED)
                _exit(1);       /* the spawner is gone or gave up */
}

/* @flags: MSG_DONTWAIT if it may come later. Returns whether it is there. */
static bool take_assignment(struct ns_child *c, int flags)
{
        int fds[RV_SPAWN_FD_MAX_];
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(fds))];
        } control = { 0 };
        struct ns_message m;
        struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        struct cmsghdr *head;
        ssize_t n;

        n = recvmsg(c->spawner_fd, &message, MSG_CMSG_CLOEXEC | flags);
        if (n < 0 && errno == EAGAIN)
                return false;
        if (n != sizeof(m) || m.kind != NS_ASSIGN)
                _exit(1);       /* not needed after all */
        head = CMSG_FIRSTHDR(&message);
        if (!head || head->cmsg_len != CMSG_LEN(sizeof(fds)))
                fail(c, "take the run's descriptors", EBADMSG);
        memcpy(fds, CMSG_DATA(head), sizeof(fds));
        c->payload_fd = fds[RV_SPAWN_FD_PAYLOAD];
        c->network = m.network;
        c->is_resolver = m.is_resolver;
        memcpy(c->layer, m.layer, sizeof(c->layer));
        c->init = (struct rv_init){
                .control_fd = fds[RV_SPAWN_FD_CONTROL],
                .stdin_fd = fds[RV_SPAWN_FD_STDIN],
                .stdout_fd = fds[RV_SPAWN_FD_STDOUT],
                .stderr_fd = fds[RV_SPAWN_FD_STDERR],
                .language = m.language,
                .memory_mib = m.memory_mib,
                .interpreter = m.language != RV_PLAN_PYTHON ? c->runtime->config->javascript
                        : m.layer[0]                        ? RV_LAYER_PYTHON "/bin/python3"
                                                            : c->runtime->config->python,
                .uid = NS_PROGRAM_UID,
                .gid = NS_PROGRAM_UID,
                .has_own_uid = c->has_own_uid,
        };
        return true;
}

/* What makes this namespace a network: the sockets go out and are not kept, and nothing can change them from here on. */
static void open_network(const struct ns_child *c)
{
        struct ns_message m = { .kind = NS_NETWORK };
        struct rv_netns net;
        const char *step = "";
        int r;

        if (c->network == RV_PLAN_NETWORK_NONE)
                return;
        r = rv_netns_open_best(RV_NETNS_TPROXY, &net, &step);
        if (r < 0)
                fail_in(c, step, r, true);
        m.network = net.mode;
        r = rv_send_with_fds(c->spawner_fd, &m, sizeof(m), net.fds, net.n_fds);
        if (r < 0)
                fail(c, "hand out the network's sockets", r);
        rv_netns_close(&net);
        r = rv_netns_drop_capabilities();
        if (r < 0)
                fail(c, "give up the network's capabilities", r);
}

/* The program's file, owned by the program: it may change or delete it. */
static void write_source(const struct ns_child *c, const struct rv_payload *payload)
{
        const char *name = rv_init_main_file(c->init.language), *p = payload->source;
        size_t left = payload->source_bytes;
        int fd;

        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        STEP("make the program's file", fd);
        while (left) {
                ssize_t n = write(fd, p, left);

                if (n < 0 && errno == EINTR)
                        continue;
                STEP("write the program's file", n);
                p += n;
                left -= (size_t)n;
        }
        if (c->has_own_uid)
                STEP("own the program's file", fchown(fd, NS_PROGRAM_UID, NS_PROGRAM_UID));
        close(fd);
}

static void become_root_inside(const struct ns_child *c)
{
        if (!c->has_own_uid)
                return;
        STEP("set group ids", syscall(SYS_setresgid, 0, 0, 0));
        STEP("set user ids", syscall(SYS_setresuid, 0, 0, 0));
}

_Noreturn void ns_child_main(struct ns_child *c)
{
        struct rv_payload payload;
        const char *step = "";
        bool is_assigned;
        int r;

        r = rv_cgroup_join(c->cgroup);
        if (r < 0)
                fail(c, "join the cgroups", r);
        STEP("unshare the cgroup namespace", unshare(CLONE_NEWCGROUP));
        tell(c, NS_JOINED);
        STEP("close the spawner's files", keep_only_channel(c));
        let_go_of_caller(c);
        rv_child_reset_signals();       /* what the spawner ignores or blocks is not the program's business */
        umask(022);
        raise_oom_score();
        (void)personality(PER_LINUX);   /* a caller's setarch -R would take address space randomisation from the run */
        STEP("start a session", setsid());
        await_proceed(c);
        r = ns_mount_open(c, &step);
        if (r < 0)
                fail(c, step, r);
        become_root_inside(c);
        STEP("set the parent-death signal", prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
        STEP("become undumpable", prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
        prctl(PR_SET_NAME, "reeve-init");
        (void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
        STEP("set the host name", sethostname(NS_HOST_NAME, strlen(NS_HOST_NAME)));

        r = rv_netns_loopback_up();
        if (r < 0)
                fail(c, "bring up lo", r);
        /* Known already unless this is a child in store: the gate then takes the sockets while the root is made. */
        is_assigned = take_assignment(c, MSG_DONTWAIT);
        if (is_assigned)
                open_network(c);
        r = ns_mount_root(c, &step);
        if (r < 0)
                fail(c, step, r);
        if (!is_assigned) {
                (void)take_assignment(c, 0);
                open_network(c);
        }
        r = rv_payload_read(c->payload_fd, &payload);
        if (r < 0)
                fail(c, "read the payload", r);
        r = ns_mount_assign(c, &payload, &step);
        if (r < 0)
                fail(c, step, r);
        write_source(c, &payload);
        r = ns_mount_seal(&step);
        if (r == 0)
                r = rv_init_confine(&step);
        if (r < 0)
                fail(c, step, r);
        tell_ready(c);
        close(c->spawner_fd);
        rv_init_run(&c->init, &payload);
}
