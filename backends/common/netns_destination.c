#include "netns.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#define ORIGINAL_DESTINATION 80      /* SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST: of conntrack, at the family's own level */

static void drop_clothing(union rv_netns_address *a)
{
        struct sockaddr_in ipv4 = { .sin_family = AF_INET, .sin_port = a->ipv6.sin6_port };

        if (a->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->ipv6.sin6_addr))
                return;
        memcpy(&ipv4.sin_addr, &a->ipv6.sin6_addr.s6_addr[12], sizeof(ipv4.sin_addr));
        a->ipv4 = ipv4;
}

int rv_netns_destination(int fd, enum rv_netns_mode mode, union rv_netns_address *ret)
{
        union rv_netns_address a = { 0 };
        socklen_t n = sizeof(a);
        uint16_t port;

        if (getsockname(fd, &a.any, &n) < 0)
                return rv_raise(-errno);
        drop_clothing(&a);
        if (mode == RV_NETNS_REDIRECT) {
                int level = a.any.sa_family == AF_INET ? SOL_IP : SOL_IPV6;

                n = sizeof(a);
                if (getsockopt(fd, level, ORIGINAL_DESTINATION, &a, &n) < 0)
                        return rv_raise(-errno);
        }
        if (a.any.sa_family != AF_INET && a.any.sa_family != AF_INET6)
                return rv_raise(-EAFNOSUPPORT);
        port = ntohs(a.any.sa_family == AF_INET ? a.ipv4.sin_port : a.ipv6.sin6_port);
        *ret = a;
        return port == RV_NETNS_PORT ? RV_NETNS_E_OWN_PORT : 0;
}
