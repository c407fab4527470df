#include "netns_link.h"

#include "netns_netlink.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
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

struct control {
        struct rtattr metrics, head;
        char name[RTA_ALIGN(sizeof(RV_NETNS_CONTROL))];
};

struct route_all {
        struct nlmsghdr head;
        struct rtmsg route;
        struct number attributes[2];
        struct control control;
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

struct own {
        struct nlmsghdr head;
        struct ifaddrmsg own;
        struct number address;
};

struct own_ipv6 {
        struct nlmsghdr head;
        struct ifaddrmsg own;
        struct address address;
};

#define HEAD(type, what, number)                                                                        \
        { .nlmsg_len = sizeof(what), .nlmsg_type = (type), .nlmsg_seq = (number) + 1,                   \
          .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL }
#define ROUTE_HEAD(what, number) HEAD(RTM_NEWROUTE, what, number)
#define OWN(family, bits) { .ifa_family = (family), .ifa_prefixlen = (bits), .ifa_scope = RT_SCOPE_HOST, .ifa_index = LO_INDEX }
#define ROUTE(family, bits, type)                                                                                \
        { .rtm_family = (family), .rtm_dst_len = (bits), .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_STATIC, \
          .rtm_scope = RT_SCOPE_HOST, .rtm_type = (type) }
#define NUMBER(type, n) { .head = { .rta_len = sizeof(struct number), .rta_type = (type) }, .value = (n) }
#define CONTROL \
        { \
                .metrics = { .rta_len = sizeof(struct control), .rta_type = RTA_METRICS }, \
                .head = { .rta_len = RTA_LENGTH(sizeof(RV_NETNS_CONTROL)), .rta_type = RTAX_CC_ALGO }, \
                .name = RV_NETNS_CONTROL \
        }
#define VIA_LO NUMBER(RTA_OIF, LO_INDEX)
#define TABLE NUMBER(RTA_TABLE, RT_TABLE_LOCAL)

enum { IPV4, MULTICAST, BROADCAST, OWN_IPV4, IPV6, IPV6_MULTICAST, OWN_IPV6, N_REQUESTS };

int rv_netns_route_all(bool *ret_has_ipv6)
{
        /*
         * The source of IPv4 connections is 127.0.0.1, as it is ::1 of IPv6 ones by itself. The kernel would take
         * the destination, and a connection whose own port happened to be the destination's would be one with itself.
         * `throw` goes on to the next table, which has no route. The addresses 127.0.0.2 and ::2 are there for
         * AI_ADDRCONFIG alone: by it a client looks up only families that have an address which is not 127.0.0.1 or ::1.
         */
        const struct {
                struct route_all ipv4;
                struct route multicast, broadcast;
                struct own own;
                struct route_all ipv6;
                struct route_to ipv6_multicast;
                struct own_ipv6 own_ipv6;
        } requests = {
                .ipv4 = { ROUTE_HEAD(struct route_all, IPV4), ROUTE(AF_INET, 0, RTN_LOCAL),
                          { VIA_LO, NUMBER(RTA_PREFSRC, htonl(INADDR_LOOPBACK)) }, CONTROL },
                .multicast = { ROUTE_HEAD(struct route, MULTICAST), ROUTE(AF_INET, 4, RTN_THROW),
                               { TABLE, NUMBER(RTA_DST, htonl(0xe0000000)) } },
                .broadcast = { ROUTE_HEAD(struct route, BROADCAST), ROUTE(AF_INET, 32, RTN_THROW),
                               { TABLE, NUMBER(RTA_DST, htonl(INADDR_BROADCAST)) } },
                .own = { HEAD(RTM_NEWADDR, struct own, OWN_IPV4), OWN(AF_INET, 32),
                         NUMBER(IFA_LOCAL, htonl(INADDR_LOOPBACK + 1)) },
                .ipv6 = { ROUTE_HEAD(struct route_all, IPV6), ROUTE(AF_INET6, 0, RTN_LOCAL), { VIA_LO, TABLE },
                          CONTROL },
                .ipv6_multicast = { ROUTE_HEAD(struct route_to, IPV6_MULTICAST), ROUTE(AF_INET6, 8, RTN_THROW),
                                    { .head = { .rta_len = sizeof(struct address), .rta_type = RTA_DST },
                                      .value.s6_addr = { 0xff } } },
                .own_ipv6 = { HEAD(RTM_NEWADDR, struct own_ipv6, OWN_IPV6), OWN(AF_INET6, 128),
                              { .head = { .rta_len = sizeof(struct address), .rta_type = IFA_LOCAL },
                                .value.s6_addr = { [15] = 2 } } },
        };
        int errors[N_REQUESTS], fd = rv_netlink_open(NETLINK_ROUTE), r;

        if (fd < 0)
                return fd;
        r = rv_netlink_request(fd, &requests, sizeof(requests), N_REQUESTS, errors);
        close(fd);
        /* There already: an attempt in another mode was before this. */
        for (int i = 0; i < N_REQUESTS && r == 0; i++)
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
        for (int i = IPV6_MULTICAST; i < N_REQUESTS && r == 0; i++)
                r = errors[i];
        if (r == 0)
                *ret_has_ipv6 = true;
        return r;
}
