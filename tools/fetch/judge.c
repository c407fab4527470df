#include "judge.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>

static bool is_own(const struct rv_address *address, const struct ifaddrs *all)
{
        for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
                struct rv_address own;
                size_t n = !i->ifa_addr                      ? 0
                        : i->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                             : sizeof(struct sockaddr_in);

                if (n && rv_address_from_sockaddr(i->ifa_addr, n, &own, NULL) == 0 &&
                        rv_address_is_equal(&own, address))
                        return true;
        }
        return false;
}

bool judge_is_public(const struct rv_address *address, char *ret_why, size_t size)
{
        static const struct rv_address_rules none = { 0 };
        enum rv_denial denial = rv_address_judge(&none, address, 0);
        char text[RV_ADDRESS_TEXT_SIZE];
        struct ifaddrs *all = NULL;

        if (!denial && getifaddrs(&all) < 0) {
                snprintf(ret_why, size, "%s, as this host's own cannot be told", rv_address_print(address, text));
                return false;
        }
        if (!denial && is_own(address, all))
                denial = RV_DENIAL_OWN;
        if (all)
                freeifaddrs(all);
        if (denial)
                snprintf(ret_why, size, "%s (%s)", rv_address_print(address, text), rv_denial_word(denial));
        return !denial;
}
