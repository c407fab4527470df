/*
 * probe_sockets.c - which sockets there are to be had
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define N_FAMILIES 64
#define N_NETLINK 32

static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RAW, SOCK_RDM, 6 /* SOCK_DCCP */, 10 /* SOCK_PACKET */ };

/* A socket of any type; else what was said last, where a wrong type is the least telling answer. */
static long any_socket(int family, int protocol)
{
        int why = ESOCKTNOSUPPORT;

        for (size_t i = 0; i < N_ELEMENTS(types); i++) {
                int fd = socket(family, types[i], protocol);

                if (fd >= 0) {
                        close(fd);
                        return 0;
                }
                if (errno != ESOCKTNOSUPPORT && errno != EPROTONOSUPPORT && errno != EPROTOTYPE)
                        why = errno;
        }
        errno = why;
        return -1;
}

static void families(void)
{
        char check[64];

        for (int family = 0; family < N_FAMILIES; family++) {
                snprintf(check, sizeof(check), "5/sockets/family-%02d", family);
                say_returned(check, any_socket(family, 0));
        }
        for (int protocol = 0; protocol < N_NETLINK; protocol++) {
                snprintf(check, sizeof(check), "5/sockets/netlink-%02d", protocol);
                say_returned(check, any_socket(AF_NETLINK, protocol));
        }
}

/* Protocols of the internet families: those that no program here needs are attack surface, and asking for one
 * makes the kernel load its module. */
static void protocols(void)
{
        static const struct {
                const char *name;
                int type, protocol;
        } rows[] = {
                { "tcp", SOCK_STREAM, IPPROTO_TCP },   { "udp", SOCK_DGRAM, IPPROTO_UDP },     { "icmp", SOCK_DGRAM, IPPROTO_ICMP },
                { "raw", SOCK_RAW, IPPROTO_RAW },      { "raw-icmp", SOCK_RAW, IPPROTO_ICMP }, { "udplite", SOCK_DGRAM, 136 },
                { "mptcp", SOCK_STREAM, 262 },         { "sctp", SOCK_STREAM, 132 },           { "sctp-seqpacket", SOCK_SEQPACKET, 132 },
                { "dccp", 6 /* SOCK_DCCP */, 33 },     { "l2tp", SOCK_DGRAM, 115 },            { "smc", SOCK_STREAM, 256 },
        };
        char check[64];

        for (size_t i = 0; i < N_ELEMENTS(rows); i++)
                for (int is_six = 0; is_six < 2; is_six++) {
                        int fd = socket(is_six ? AF_INET6 : AF_INET, rows[i].type, rows[i].protocol);

                        snprintf(check, sizeof(check), "5/sockets/inet%s-%s", is_six ? "6" : "", rows[i].name);
                        say_returned(check, fd);
                        if (fd >= 0)
                                close(fd);
                }
}

static long connect_unix(const char *name, size_t length)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        long r;

        memcpy(to.sun_path, name, length);
        r = connect(fd, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
        if (r < 0)
                r = -errno;
        close(fd);
        if (r < 0) {
                errno = (int)-r;
                return -1;
        }
        return 0;
}

/* Names that a host listens on; the harness listens on the first two of its own, too. */
static void unix_names(void)
{
        static const struct {
                const char *check, *name;
                size_t length;
        } rows[] = {
                { "5/abstract-unix/connect-abstract", "\0reeve-escape-test", sizeof("\0reeve-escape-test") - 1 },
                { "5/abstract-unix/connect-path", "/tmp/reeve-escape-test.socket", sizeof("/tmp/reeve-escape-test.socket") },
                { "5/abstract-unix/connect-dbus", "/run/dbus/system_bus_socket", sizeof("/run/dbus/system_bus_socket") },
                { "5/abstract-unix/connect-systemd", "/run/systemd/private", sizeof("/run/systemd/private") },
                { "5/abstract-unix/connect-docker", "/var/run/docker.sock", sizeof("/var/run/docker.sock") },
                { "5/abstract-unix/connect-syslog", "/dev/log", sizeof("/dev/log") },
        };
        static char text[4096];
        unsigned n = 0;
        FILE *f;

        for (size_t i = 0; i < N_ELEMENTS(rows); i++)
                say_returned(rows[i].check, connect_unix(rows[i].name, rows[i].length));

        f = fopen("/proc/net/unix", "re");
        while (f && fgets(text, sizeof(text), f))
                n++;
        if (f)
                fclose(f);
        say("5/abstract-unix/listed", "%u", n ? n - 1 : 0);     /* the first line is a heading */
}

/* Own names work: programs use them (multiprocessing, asyncio). */
static void own_unix(void)
{
        static const char abstract[] = "\0of-the-run";
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        long r;

        memcpy(at.sun_path, abstract, sizeof(abstract) - 1);
        r = bind(fd, (struct sockaddr *)&at, offsetof(struct sockaddr_un, sun_path) + sizeof(abstract) - 1);
        if (r == 0)
                r = listen(fd, 1);
        if (r == 0)
                r = connect_unix(abstract, sizeof(abstract) - 1);
        say_returned("5/abstract-unix/own-abstract", r);
        close(fd);
}

void probe_sockets(void)
{
        struct {
                unsigned short family, zero;
                unsigned port, cid;
                unsigned char rest[4];
        } host = { AF_VSOCK, 0, 1024, 2 /* VMADDR_CID_HOST */, { 0 } };
        int fd, pair[2];

        families();
        protocols();
        unix_names();
        own_unix();

        fd = socket(AF_VSOCK, SOCK_STREAM, 0);
        say_returned("5/vsock/connect-host", fd < 0 ? -1 : connect(fd, (struct sockaddr *)&host, sizeof(host)));
        if (fd >= 0)
                close(fd);
        fd = open("/dev/vsock", O_RDONLY | O_CLOEXEC);
        say_returned("5/vsock/device", fd);
        say_returned("5/sockets/socketpair-unix", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
        say_returned("5/sockets/socketpair-vsock", socketpair(AF_VSOCK, SOCK_STREAM, 0, pair));
        say_returned("5/sockets/socketpair-tipc", socketpair(AF_TIPC, SOCK_STREAM, 0, pair));
}
