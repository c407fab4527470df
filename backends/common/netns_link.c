#include "netns_link.h"

#include "netns_netlink.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LO_INDEX 1      /* in every network namespace */

int rv_netns_loopback_up(void)
{
        struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r = 0;

        if (fd < 0 && errno == EAFNOSUPPORT)
                fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
                r = -errno;
        close(fd);
        return r;
}

/* A request as the kernel reads it: attributes of numbers, or of one IPv6 address, without gaps. */
struct number {
        struct rtattr head;
        uint32_t value;
};

struct address {
        struct rtattr head;
        struct in6_addr value;
};

struct route {
        struct nlmsghdr head;
        struct rtmsg route;
        struct number attributes[2];
};

struct route_to {
        struct nlmsghdr head;
        struct rtmsg route;
        struct address to;
};

#define HEAD(what, number)                                                                              \
        { .nlmsg_len = sizeof(what), .nlmsg_type = RTM_NEWROUTE, .nlmsg_seq = (number) + 1,             \
          .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL }
#define ROUTE(family, bits, type)                                                                                \
        { .rtm_family = (family), .rtm_dst_len = (bits), .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_STATIC, \
          .rtm_scope = RT_SCOPE_HOST, .rtm_type = (type) }
#define NUMBER(type, n) { .head = { .rta_len = sizeof(struct number), .rta_type = (type) }, .value = (n) }
#define VIA_LO NUMBER(RTA_OIF, LO_INDEX)
#define TABLE NUMBER(RTA_TABLE, RT_TABLE_LOCAL)

enum { IPV4, MULTICAST, BROADCAST, IPV6, IPV6_MULTICAST, N_ROUTES };

int rv_netns_route_all(bool *ret_has_ipv6)
{
        /*
         * The source of IPv4 connections is 127.0.0.1, as it is ::1 of IPv6 ones by itself. The kernel would take
         * the destination, and a connection whose own port happened to be the destination's would be one with itself.
         * `throw` goes on to the next table, which has no route.
         */
        const struct {
                struct route part[N_ROUTES - 1];
                struct route_to ipv6_multicast;
        } routes = {
                .part = {
                        [IPV4] = { HEAD(struct route, IPV4), ROUTE(AF_INET, 0, RTN_LOCAL),
                                   { VIA_LO, NUMBER(RTA_PREFSRC, htonl(INADDR_LOOPBACK)) } },
                        [MULTICAST] = { HEAD(struct route, MULTICAST), ROUTE(AF_INET, 4, RTN_THROW),
                                        { TABLE, NUMBER(RTA_DST, htonl(0xe0000000)) } },
                        [BROADCAST] = { HEAD(struct route, BROADCAST), ROUTE(AF_INET, 32, RTN_THROW),
                                        { TABLE, NUMBER(RTA_DST, htonl(INADDR_BROADCAST)) } },
                        [IPV6] = { HEAD(struct route, IPV6), ROUTE(AF_INET6, 0, RTN_LOCAL), { VIA_LO, TABLE } },
                },
                .ipv6_multicast = { HEAD(struct route_to, IPV6_MULTICAST), ROUTE(AF_INET6, 8, RTN_THROW),
                                    { .head = { .rta_len = sizeof(struct address), .rta_type = RTA_DST },
                                      .value.s6_addr = { 0xff } } },
        };
        int errors[N_ROUTES], fd = rv_netlink_open(NETLINK_ROUTE), r;

        if (fd < 0)
                return fd;
        r = rv_netlink_request(fd, &routes, sizeof(routes), N_ROUTES, errors);
        close(fd);
        /* There already: an attempt in another mode was before this. */
        for (int i = 0; i < N_ROUTES && r == 0; i++)
                errors[i] = errors[i] == -EEXIST ? 0 : errors[i];
        for (int i = 0; i < IPV6 && r == 0; i++)
                r = errors[i];
        if (r < 0)
                return r;
        r = errors[IPV6];
        /* In this order: disabled on lo, no such protocol, no such routes. To lack the capability is EPERM. */
        if (r == -EACCES || r == -EAFNOSUPPORT || r == -EOPNOTSUPP) {
                *ret_has_ipv6 = false;
                return 0;
        }
        if (r == 0)
                r = errors[IPV6_MULTICAST];
        if (r == 0)
                *ret_has_ipv6 = true;
        return r;
}
