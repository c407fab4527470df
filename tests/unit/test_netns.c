/*
 * What a program reaches in a run's network namespace, and what arrives at the gate: each test as root, as root in a
 * user namespace and as an ordinary user, with transparent proxying and with redirection.
 */
#include "netns_link.h"
#include "test_netns.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>

#define SOME_PAYLOAD "what is asked"

struct place {
        const char *dialled;
        uint16_t port;
        const char *told;                /* as it arrives; NULL: as dialled */
};

/* ---- TCP ---- */

static const struct place places[] = {
        { "93.184.216.34", 443, NULL },
        { "93.184.216.34", 80, NULL },
        { "198.18.0.1", 5432, NULL },
        { "1.2.3.4", 65535, NULL },
        { "8.8.8.8", 54, NULL },
        { "10.0.0.1", 22, NULL },
        { "192.168.1.1", 2, NULL },
        { "169.254.169.254", 80, NULL },
        { "100.100.100.200", 80, NULL },
        { "128.0.0.1", 80, NULL },
        { "126.255.255.255", 80, NULL },
        { "240.0.0.1", 80, NULL },
        { "::ffff:1.2.3.4", 443, "1.2.3.4" },
        { "2001:4860:4860::8888", 443, NULL },
        { "2001:4860:4860::8888", 54, NULL },
        { "64:ff9b::a9fe:a9fe", 80, NULL },
        { "fd00:ec2::254", 80, NULL },
        { "::2", 80, NULL },
        { "2002::1", 40000, NULL },
};

static void dial_places(const struct variant *v)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(places); i++)
                echo(dial(SOCK_STREAM, places[i].dialled, places[i].port));
}

static void expect_places(const struct variant *v, const struct rv_netns *net)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(places); i++) {
                int fd = take_connection(net->fds[RV_NETNS_SOCKET_TCP]);
                union rv_netns_address a;

                CHECK(rv_netns_destination(fd, v->mode, &a) == 0);
                CHECK(is_address(&a, places[i].told ? places[i].told : places[i].dialled, places[i].port));
                serve_echo(fd);
        }
        CHECK(is_quiet(net));
}

static void tcp_arrives(void **state)
{
        netns_play(*state, &(struct play){ .program = dial_places, .gate = expect_places });
}

#define N_AT_ONCE 500

static void dial_many(const struct variant *v)
{
        int fds[N_AT_ONCE];

        for (int i = 0; i < N_AT_ONCE; i++) {
                union rv_netns_address a = address(i % 2 ? "2001:db8::7" : "203.0.113.7", (uint16_t)(1000 + i));

                fds[i] = socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
                CHECK(fds[i] >= 0);
                CHECK(connect(fds[i], &a.any, address_size(&a)) == 0 || errno == EINPROGRESS);
        }
        for (int i = 0; i < N_AT_ONCE; i++) {
                struct pollfd p = { .fd = fds[i], .events = POLLIN };
                uint16_t said = 0;

                CHECK(poll(&p, 1, ARRIVES_MS) == 1);
                CHECK(recv(fds[i], &said, sizeof(said), 0) == sizeof(said));
                CHECK(said == 1000 + i);
        }
}

/* The gate tells each client the port that it asked for. */
static void expect_many(const struct variant *v, const struct rv_netns *net)
{
        bool has_come[N_AT_ONCE] = { false };

        for (int i = 0; i < N_AT_ONCE; i++) {
                int fd = take_connection(net->fds[RV_NETNS_SOCKET_TCP]);
                union rv_netns_address a;
                uint16_t port;

                CHECK(rv_netns_destination(fd, v->mode, &a) == 0);
                port = ntohs(a.ipv4.sin_port);
                CHECK(port >= 1000 && port < 1000 + N_AT_ONCE && !has_come[port - 1000]);
                has_come[port - 1000] = true;
                CHECK(is_address(&a, port % 2 ? "2001:db8::7" : "203.0.113.7", port));
                CHECK(send(fd, &port, sizeof(port), MSG_NOSIGNAL) == sizeof(port));
                close(fd);
        }
        CHECK(is_quiet(net));
}

static void tcp_arrives_all_at_once(void **state)
{
        netns_play(*state, &(struct play){ .program = dial_many, .gate = expect_many });
}

static const struct place own_ports[] = {
        { "127.0.0.1", RV_NETNS_PORT, NULL },
        { "127.9.9.9", RV_NETNS_PORT, NULL },
        { "8.8.8.8", RV_NETNS_PORT, NULL },
        { "::1", RV_NETNS_PORT, NULL },
        { "2001:db8::1", RV_NETNS_PORT, NULL },
};

static void dial_own_port(const struct variant *v)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(own_ports); i++)
                echo(dial(SOCK_STREAM, own_ports[i].dialled, own_ports[i].port));
}

static void expect_own_port(const struct variant *v, const struct rv_netns *net)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(own_ports); i++) {
                int fd = take_connection(net->fds[RV_NETNS_SOCKET_TCP]);
                union rv_netns_address a;

                CHECK(rv_netns_destination(fd, v->mode, &a) == RV_NETNS_E_OWN_PORT);
                CHECK(is_address(&a, own_ports[i].dialled, own_ports[i].port));
                serve_echo(fd);
        }
}

static void own_port_is_recognised(void **state)
{
        netns_play(*state, &(struct play){ .program = dial_own_port, .gate = expect_own_port });
}

static int listen_at(const char *text, uint16_t port)
{
        union rv_netns_address a = address(text, port);
        int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        CHECK(fd >= 0);
        CHECK(bind(fd, &a.any, address_size(&a)) == 0);
        CHECK(listen(fd, 8) == 0);
        return fd;
}

/* A program that serves itself, with a port that it also dials elsewhere. */
static void serve_within(const struct variant *v)
{
        static const struct place within[] = { { "127.0.0.1", 8080, NULL }, { "127.5.6.7", 8080, NULL }, { "::1", 8080, NULL }, { "0.0.0.0", 8080, NULL } };
        int listener = listen_at("::", 8080);

        for (size_t i = 0; i < RV_N_ELEMENTS(within); i++) {
                int fd = dial(SOCK_STREAM, within[i].dialled, within[i].port);

                CHECK(fd >= 0);
                serve_echo((send(fd, "x", 1, MSG_NOSIGNAL), take_connection(listener)));
                close(fd);
        }
        CHECK(dial(SOCK_STREAM, "127.0.0.1", 9) == -ECONNREFUSED);
        CHECK(dial(SOCK_STREAM, "::1", 9) == -ECONNREFUSED);
        echo(dial(SOCK_STREAM, "93.184.216.34", 8080));
        echo(dial(SOCK_STREAM, "2001:db8::8", 8080));
        CHECK(poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 0) == 0);
}

static void expect_elsewhere(const struct variant *v, const struct rv_netns *net)
{
        union rv_netns_address a;
        int fd = take_connection(net->fds[RV_NETNS_SOCKET_TCP]);

        CHECK(rv_netns_destination(fd, v->mode, &a) == 0);
        CHECK(is_address(&a, "93.184.216.34", 8080));
        serve_echo(fd);
        fd = take_connection(net->fds[RV_NETNS_SOCKET_TCP]);
        CHECK(rv_netns_destination(fd, v->mode, &a) == 0);
        CHECK(is_address(&a, "2001:db8::8", 8080));
        serve_echo(fd);
        CHECK(is_quiet(net));
}

static void loopback_stays_within(void **state)
{
        netns_play(*state, &(struct play){ .program = serve_within, .gate = expect_elsewhere });
}

/* One port to dial from, the same as the destination's: the connection must not have itself as its other end. */
static void leave_one_port(void)
{
        CHECK(write_text("/proc/sys/net/ipv4/ip_local_port_range", "40000 40000") == 0);
}

static void dial_from_that_port(const struct variant *v)
{
        union rv_netns_address from;
        socklen_t n = sizeof(from);
        int fd = dial(SOCK_STREAM, "93.184.216.34", 40000);

        CHECK(fd >= 0);
        CHECK(getsockname(fd, &from.any, &n) == 0);
        CHECK(is_address(&from, "127.0.0.1", 40000));
        echo(fd);
}

static void expect_that_port(const struct variant *v, const struct rv_netns *net)
{
        int fd = take_connection(net->fds[RV_NETNS_SOCKET_TCP]);
        union rv_netns_address a;

        CHECK(rv_netns_destination(fd, v->mode, &a) == 0);
        CHECK(is_address(&a, "93.184.216.34", 40000));
        serve_echo(fd);
}

static void tcp_does_not_meet_itself(void **state)
{
        netns_play(*state,
                &(struct play){ .prepare = leave_one_port, .program = dial_from_that_port, .gate = expect_that_port });
}

/* A client that asks for addresses of families that are configured (AI_ADDRCONFIG) asks for both. */
static void look_up_configured(const struct variant *v)
{
        static const struct {
                int family;
                const char *address;
        } rows[] = { { AF_INET, "93.184.216.34" }, { AF_INET6, "2606:4700::6" }, { AF_UNSPEC, "2606:4700::6" }, { AF_UNSPEC, "93.184.216.34" } };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const struct addrinfo hints = {
                        .ai_family = rows[i].family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG
                };
                struct addrinfo *found = NULL;

                if (getaddrinfo(rows[i].address, NULL, &hints, &found) != 0)
                        fprintf(stderr, "row %zu\n", i);
                CHECK(found);
                freeaddrinfo(found);
        }
}

static void families_are_configured(void **state)
{
        netns_play(*state, &(struct play){ .program = look_up_configured });
}

/* ---- DNS ---- */

static const struct place servers[] = {
        { "8.8.8.8", RV_NETNS_DNS_PORT, NULL },
        { "127.0.0.1", RV_NETNS_DNS_PORT, NULL },
        { "127.0.0.53", RV_NETNS_DNS_PORT, NULL },
        { "169.254.169.253", RV_NETNS_DNS_PORT, NULL },
        { "::ffff:9.9.9.9", RV_NETNS_DNS_PORT, "9.9.9.9" },
        { "::1", RV_NETNS_DNS_PORT, NULL },
        { "2001:4860:4860::8888", RV_NETNS_DNS_PORT, NULL },
        { "fd00::53", RV_NETNS_DNS_PORT, NULL },
};

static void ask_connected(const char *server)
{
        char answer[64] = "";
        int fd = dial(SOCK_DGRAM, server, RV_NETNS_DNS_PORT);

        CHECK(fd >= 0);
        CHECK(send(fd, SOME_PAYLOAD, strlen(SOME_PAYLOAD), 0) > 0);
        CHECK(recv(fd, answer, sizeof(answer) - 1, 0) > 0);
        CHECK(!strcmp(answer, SOME_PAYLOAD));
        close(fd);
}

static void ask_unconnected(const char *server)
{
        const struct timeval t = { .tv_sec = ARRIVES_MS / 1000 };
        union rv_netns_address a = address(server, RV_NETNS_DNS_PORT), from;
        socklen_t n = sizeof(from);
        char answer[64] = "";
        int fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        CHECK(fd >= 0);
        CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0);
        CHECK(sendto(fd, SOME_PAYLOAD, strlen(SOME_PAYLOAD), 0, &a.any, address_size(&a)) > 0);
        CHECK(recvfrom(fd, answer, sizeof(answer) - 1, 0, &from.any, &n) > 0);
        CHECK(!strcmp(answer, SOME_PAYLOAD));
        CHECK(is_address(&from, server, RV_NETNS_DNS_PORT));
        close(fd);
}

static void ask_servers(const struct variant *v)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(servers); i++) {
                ask_connected(servers[i].dialled);
                ask_unconnected(servers[i].dialled);
        }
}

/* Sends back what came, from the address that it was sent to. */
static void answer(int fd, const char *expected)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };
        union rv_netns_address from, to = address("0.0.0.0", RV_NETNS_DNS_PORT);
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
        } control;
        char text[64];
        struct iovec iov = { .iov_base = text, .iov_len = sizeof(text) };
        struct msghdr m = { .msg_name = &from,
                .msg_namelen = sizeof(from),
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control) };
        ssize_t n;

        CHECK(poll(&p, 1, ARRIVES_MS) == 1);
        n = recvmsg(fd, &m, 0);
        CHECK(n == (ssize_t)strlen(SOME_PAYLOAD) && CMSG_FIRSTHDR(&m));
        iov.iov_len = (size_t)n;
        if (control.head.cmsg_level == SOL_IP) {
                struct in_pktinfo info;

                CHECK(control.head.cmsg_type == IP_PKTINFO);
                memcpy(&info, CMSG_DATA(&control.head), sizeof(info));
                to.ipv4.sin_addr = info.ipi_addr;
                info = (struct in_pktinfo){ .ipi_spec_dst = info.ipi_addr };
                memcpy(CMSG_DATA(&control.head), &info, sizeof(info));
        } else {
                struct in6_pktinfo info;

                CHECK(control.head.cmsg_level == SOL_IPV6 && control.head.cmsg_type == IPV6_PKTINFO);
                memcpy(&info, CMSG_DATA(&control.head), sizeof(info));
                to = address("::", RV_NETNS_DNS_PORT);
                to.ipv6.sin6_addr = info.ipi6_addr;
        }
        CHECK(is_address(&to, expected, RV_NETNS_DNS_PORT));
        CHECK(sendmsg(fd, &m, 0) == n);
}

static void answer_servers(const struct variant *v, const struct rv_netns *net)
{
        for (size_t i = 0; i < 2 * RV_N_ELEMENTS(servers); i++) {
                const struct place *s = &servers[i / 2];
                const char *told = s->told ? s->told : s->dialled;

                answer(net->fds[strchr(told, ':') ? RV_NETNS_SOCKET_DNS_UDP6 : RV_NETNS_SOCKET_DNS_UDP4], told);
        }
        CHECK(is_quiet(net));
}

static void dns_over_udp_is_answered(void **state)
{
        netns_play(*state, &(struct play){ .program = ask_servers, .gate = answer_servers });
}

static void dial_servers(const struct variant *v)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(servers); i++)
                echo(dial(SOCK_STREAM, servers[i].dialled, servers[i].port));
}

static void expect_servers(const struct variant *v, const struct rv_netns *net)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(servers); i++) {
                int fd = take_connection(net->fds[RV_NETNS_SOCKET_DNS_TCP]);
                union rv_netns_address a;

                /* It is no connection that was brought there: its own address is what was dialled, whatever the mode. */
                CHECK(rv_netns_destination(fd, RV_NETNS_TPROXY, &a) == 0);
                CHECK(is_address(&a, servers[i].told ? servers[i].told : servers[i].dialled, servers[i].port));
                serve_echo(fd);
        }
        CHECK(is_quiet(net));
}

static void dns_over_tcp_arrives(void **state)
{
        netns_play(*state, &(struct play){ .program = dial_servers, .gate = expect_servers });
}

/* ---- Other UDP ---- */

static void send_elsewhere(const struct variant *v)
{
        static const struct place refused[] = {
                { "93.184.216.34", 443, NULL }, { "8.8.8.8", 54, NULL }, { "1.1.1.1", 853, NULL }, { "10.0.0.1", 123, NULL }, { "169.254.169.254", 80, NULL },
                { "127.0.0.1", 5353, NULL }, { "8.8.8.8", RV_NETNS_PORT, NULL }, { "240.0.0.1", 443, NULL }, { "::ffff:1.2.3.4", 443, NULL },
                { "2001:4860:4860::8888", 443, NULL }, { "::1", 443, NULL }, { "fd00::1", 33434, NULL },
        };
        static const char *const unreachable[] = { "224.0.0.251", "239.255.255.250", "255.255.255.255", "ff0e::1", "ff05::2" };

        for (int again = 0; again < 20; again++)
                for (size_t i = 0; i < RV_N_ELEMENTS(refused); i++) {
                        int fd = dial(SOCK_DGRAM, refused[i].dialled, refused[i].port);
                        int64_t start = now_ms();
                        char c;

                        CHECK(fd >= 0);
                        CHECK(send(fd, "x", 1, 0) == 1);
                        CHECK(recv(fd, &c, 1, 0) < 0 && errno == ECONNREFUSED);
                        CHECK(now_ms() - start < AT_ONCE_MS);
                        close(fd);
                }
        for (size_t i = 0; i < RV_N_ELEMENTS(unreachable); i++) {
                CHECK(dial(SOCK_DGRAM, unreachable[i], 5353) == -ENETUNREACH);
                CHECK(dial(SOCK_STREAM, unreachable[i], 5353) == -ENETUNREACH);
        }
}

static void expect_nothing(const struct variant *v, const struct rv_netns *net)
{
        CHECK(is_quiet(net));
}

static void other_udp_is_refused(void **state)
{
        netns_play(*state, &(struct play){ .program = send_elsewhere, .gate = expect_nothing });
}

/* ---- How TCP sends ---- */

/* A host whose default paces, or one that has nothing else: then the test says nothing, and passes. */
static void have_another_control(void)
{
        static const char *const others[] = { "bbr", "cubic" };

        for (size_t i = 0; i < RV_N_ELEMENTS(others); i++)
                if (write_text("/proc/sys/net/ipv4/tcp_congestion_control", others[i]) == 0)
                        return;
        printf("# this kernel has no other congestion control for a namespace\n");
}

static void check_control(int fd)
{
        char name[16] = "";
        socklen_t n = sizeof(name);

        CHECK(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n) == 0);
        CHECK(strcmp(name, RV_NETNS_CONTROL) == 0);
}

static const char *const controlled[] = { "93.184.216.34", "2001:db8::1" };

static void dial_controlled(const struct variant *v)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(controlled); i++) {
                int fd = dial(SOCK_STREAM, controlled[i], 443);

                CHECK(fd >= 0);
                check_control(fd);
                echo(fd);
        }
}

static void accept_controlled(const struct variant *v, const struct rv_netns *net)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(controlled); i++) {
                int fd = take_connection(net->fds[RV_NETNS_SOCKET_TCP]);

                check_control(fd);
                serve_echo(fd);
        }
}

static void nothing_is_paced(void **state)
{
        netns_play(*state,
                &(struct play){
                        .prepare = have_another_control, .program = dial_controlled, .gate = accept_controlled });
}

/* ---- When something is not there ---- */

static void dial_nowhere(const struct variant *v)
{
        static const struct place nowhere[] = { { "93.184.216.34", 443, NULL }, { "169.254.169.254", 80, NULL }, { "2001:db8::1", 443, NULL }, { "127.0.0.1", 443, NULL } };

        for (size_t i = 0; i < RV_N_ELEMENTS(nowhere); i++) {
                int64_t start = now_ms();

                CHECK(dial(SOCK_STREAM, nowhere[i].dialled, nowhere[i].port) == -ECONNREFUSED);
                CHECK(now_ms() - start < AT_ONCE_MS);
        }
}

/* The death of the gate: its sockets are closed, and nobody else has them. */
static void without_a_gate_nothing_connects(void **state)
{
        netns_play(*state, &(struct play){ .program = dial_nowhere, .is_gate_first = true });
}

static void disable_ipv6(void)
{
        CHECK(write_text("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1") == 0);
        CHECK(write_text("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "1") == 0);
}

static void dial_by_ipv4(const struct variant *v)
{
        int64_t start = now_ms();
        int r = dial(SOCK_STREAM, "2001:db8::1", 443);

        CHECK(r == -ENETUNREACH || r == -EADDRNOTAVAIL);
        CHECK(now_ms() - start < AT_ONCE_MS);
        echo(dial(SOCK_STREAM, "93.184.216.34", 443));
        echo(dial(SOCK_STREAM, "8.8.8.8", RV_NETNS_DNS_PORT));
        ask_connected("8.8.8.8");
}

static void expect_ipv4(const struct variant *v, const struct rv_netns *net)
{
        union rv_netns_address a;
        int fd;

        CHECK(!net->has_ipv6);
        fd = take_connection(net->fds[RV_NETNS_SOCKET_TCP]);
        CHECK(rv_netns_destination(fd, v->mode, &a) == 0);
        CHECK(is_address(&a, "93.184.216.34", 443));
        serve_echo(fd);
        serve_echo(take_connection(net->fds[RV_NETNS_SOCKET_DNS_TCP]));
        answer(net->fds[RV_NETNS_SOCKET_DNS_UDP4], "8.8.8.8");
        CHECK(is_quiet(net));
}

static void without_ipv6(void **state)
{
        netns_play(*state, &(struct play){ .prepare = disable_ipv6, .program = dial_by_ipv4, .gate = expect_ipv4 });
}

static const struct variant variants[] = {
        { "root, tproxy", WHO_ROOT, RV_NETNS_TPROXY },
        { "root, redirect", WHO_ROOT, RV_NETNS_REDIRECT },
        { "root in a user namespace, tproxy", WHO_ROOT_IN_USERNS, RV_NETNS_TPROXY },
        { "root in a user namespace, redirect", WHO_ROOT_IN_USERNS, RV_NETNS_REDIRECT },
        { "user, tproxy", WHO_USER, RV_NETNS_TPROXY },
        { "user, redirect", WHO_USER, RV_NETNS_REDIRECT },
};

#define ROW(test) { #test, test }

int main(void)
{
        static const struct {
                const char *name;
                CMUnitTestFunction run;
        } rows[] = {
                ROW(tcp_arrives),
                ROW(tcp_arrives_all_at_once),
                ROW(own_port_is_recognised),
                ROW(loopback_stays_within),
                ROW(tcp_does_not_meet_itself),
                ROW(families_are_configured),
                ROW(dns_over_udp_is_answered),
                ROW(dns_over_tcp_arrives),
                ROW(other_udp_is_refused),
                ROW(nothing_is_paced),
                ROW(without_a_gate_nothing_connects),
                ROW(without_ipv6),
        };
        static char names[RV_N_ELEMENTS(rows) * RV_N_ELEMENTS(variants)][128];
        struct CMUnitTest tests[RV_N_ELEMENTS(names)];

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                const struct variant *v = &variants[i % RV_N_ELEMENTS(variants)];

                snprintf(names[i], sizeof(names[i]), "%s (%s)", rows[i / RV_N_ELEMENTS(variants)].name, v->name);
                tests[i] = (struct CMUnitTest){
                        .name = names[i], .test_func = rows[i / RV_N_ELEMENTS(variants)].run, .initial_state = (void *)v
                };
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
