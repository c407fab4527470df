/*
 * drive.c - namespaces for the tests of the gate
 *
 *     drive world RESOLV_CONF PROGRAM…   in a network of its own, in which every address is this machine's, with this
 *                                        file as /etc/resolv.conf: what the gate sees as the outside
 *     drive inside FD MODE PROGRAM…      in the network namespace of a run: its sockets are sent over FD, a
 *                                        SOCK_SEQPACKET, with MODE (tproxy or redirect) and one byte for IPv6; the
 *                                        program is started when a byte comes back
 */
#include "base/fd.h"
#include "base/text.h"
#include "netns.h"
#include "netns_link.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static _Noreturn void fail(const char *what, int r)
{
        fprintf(stderr, "drive: %s: %s\n", what, strerror(-r));
        _exit(1);
}

static void write_file(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                fail(path, -errno);
        close(fd);
}

static void make_world(const char *resolv_conf)
{
        bool has_ipv6;
        int r;

        if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
                fail("unshare", -errno);
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount(resolv_conf, "/etc/resolv.conf", NULL, MS_BIND, NULL) < 0)
                fail("mount", -errno);
        r = rv_netns_loopback_up();
        if (r == 0)
                r = rv_netns_route_all(&has_ipv6);
        if (r < 0)
                fail("network", r);
}

static void be_inside(int channel_fd, const char *mode_name)
{
        char map[64], told[2] = "", c;
        unsigned uid = geteuid(), gid = getegid();
        struct rv_netns net = { 0 };
        const char *step = "?";
        int r;

        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (unshare(CLONE_NEWNET | CLONE_NEWUSER) < 0)
                fail("unshare", -errno);
        write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof(map), "0 %u 1\n", uid);
        write_file("/proc/self/uid_map", map);
        snprintf(map, sizeof(map), "0 %u 1\n", gid);
        write_file("/proc/self/gid_map", map);
        r = rv_netns_open(strcmp(mode_name, "redirect") == 0 ? RV_NETNS_REDIRECT : RV_NETNS_TPROXY, &net, &step);
        if (r < 0)
                fail(step, r);
        r = rv_netns_drop_capabilities();
        if (r < 0)
                fail("capabilities", r);
        told[0] = net.has_ipv6 ? '6' : '4';
        r = rv_send_with_fds(channel_fd, told, 1, net.fds, net.n_fds);
        if (r < 0)
                fail("send", r);
        rv_netns_close(&net);
        if (recv(channel_fd, &c, 1, 0) != 1)
                _exit(1);
        close(channel_fd);
}

int main(int argc, char **argv)
{
        if (argc >= 4 && strcmp(argv[1], "world") == 0) {
                make_world(argv[2]);
                argv += 3;
        } else if (argc >= 5 && strcmp(argv[1], "inside") == 0) {
                be_inside(atoi(argv[2]), argv[3]);
                argv += 4;
        } else {
                fprintf(stderr, "usage: drive world RESOLV_CONF PROGRAM… | drive inside FD tproxy|redirect PROGRAM…\n");
                return 2;
        }
        execv(argv[0], argv);
        fail(argv[0], -errno);
}
