#include "netns_sockets.h"

#include "netns_link.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024      /* a program may dial 500 times at once before the gate has its turn */

struct option {
        int level, name, value;
};

#define OPTIONS_MAX 3

struct plan {
        const char *step;
        int type;
        uint16_t port;
        struct option ipv4[OPTIONS_MAX], ipv6[OPTIONS_MAX];      /* up to one whose name is 0 */
};

/*
 * What is bound by IPv6 takes IPv4 too, but for DNS over UDP: an answer's source is told by each family in its own way.
 * IPV6_FREEBIND lets an answer have a source that is no address of a link; IPv4 asks the routes, which have it.
 */
static const struct plan plans[] = {
        [RV_NETNS_SOCKET_TCP] = { "listen for connections", SOCK_STREAM, RV_NETNS_PORT, { { 0 } },
                { { SOL_IPV6, IPV6_V6ONLY, 0 } } },
        [RV_NETNS_SOCKET_DNS_TCP] = { "listen for DNS over TCP", SOCK_STREAM, RV_NETNS_DNS_PORT, { { 0 } },
                { { SOL_IPV6, IPV6_V6ONLY, 0 } } },
        [RV_NETNS_SOCKET_DNS_UDP4] = { "make the DNS socket for IPv4", SOCK_DGRAM, RV_NETNS_DNS_PORT,
                { { SOL_IP, IP_PKTINFO, 1 } }, { { 0 } } },
        [RV_NETNS_SOCKET_DNS_UDP6] = { "make the DNS socket for IPv6", SOCK_DGRAM, RV_NETNS_DNS_PORT, { { 0 } },
                { { SOL_IPV6, IPV6_V6ONLY, 1 }, { SOL_IPV6, IPV6_RECVPKTINFO, 1 }, { SOL_IPV6, IPV6_FREEBIND, 1 } } },
};

static int bind_to(int fd, int family, uint16_t port)
{
        const struct sockaddr_in ipv4 = { .sin_family = AF_INET, .sin_port = htons(port) };
        const struct sockaddr_in6 ipv6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

        return family == AF_INET ? bind(fd, (const struct sockaddr *)&ipv4, sizeof(ipv4))
                                 : bind(fd, (const struct sockaddr *)&ipv6, sizeof(ipv6));
}

static int make(const struct plan *plan, int family, bool is_transparent)
{
        const struct option *options = family == AF_INET ? plan->ipv4 : plan->ipv6;
        int one = 1, fd = socket(family, plan->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

        if (fd < 0)
                return -errno;
        for (size_t i = 0; i < OPTIONS_MAX && options[i].name; i++)
                if (setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int)) < 0)
                        goto fail;
        if (is_transparent &&
                setsockopt(fd, family == AF_INET ? SOL_IP : SOL_IPV6,
                        family == AF_INET ? IP_TRANSPARENT : IPV6_TRANSPARENT, &one, sizeof(one)) < 0)
                goto fail;
        if (bind_to(fd, family, plan->port) < 0)
                goto fail;
        if (plan->type == SOCK_STREAM) {
                /* What is accepted has it from the listener. Without it a stream is slow, no more. */
                (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, RV_NETNS_CONTROL, strlen(RV_NETNS_CONTROL));
                if (listen(fd, BACKLOG) < 0)
                        goto fail;
        }
        return fd;
fail:
        r = -errno;
        close(fd);
        return r;
}

int rv_netns_sockets_open(enum rv_netns_mode mode, struct rv_netns *ret, const char **ret_step)
{
        int n = ret->has_ipv6 ? RV_NETNS_SOCKET_MAX_ : RV_NETNS_SOCKET_DNS_UDP6;

        ret->n_fds = 0;
        for (int i = 0; i < n; i++) {
                int family = ret->has_ipv6 && i != RV_NETNS_SOCKET_DNS_UDP4 ? AF_INET6 : AF_INET;
                int fd = make(&plans[i], family, mode == RV_NETNS_TPROXY && i == RV_NETNS_SOCKET_TCP);

                if (fd < 0) {
                        *ret_step = plans[i].step;
                        rv_netns_close(ret);
                        return fd;
                }
                ret->fds[ret->n_fds++] = fd;
        }
        return 0;
}

void rv_netns_close(struct rv_netns *net)
{
        for (size_t i = 0; i < net->n_fds; i++)
                net->fds[i] = rv_close(net->fds[i]);
        net->n_fds = 0;
}
