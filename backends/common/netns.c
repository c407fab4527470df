#include "netns.h"

#include "netns_link.h"
#include "netns_rules.h"
#include "netns_sockets.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *rv_netns_mode_name(enum rv_netns_mode mode)
{
        switch (mode) {
        case RV_NETNS_TPROXY:
                return "tproxy";
        case RV_NETNS_REDIRECT:
                return "redirect";
        default:
                return "none";
        }
}

/* Which of the rules' transaction failed, in the words of a step. */
static const char *name_object(enum rv_netns_mode mode, uint32_t object)
{
        if (object == RV_NETNS_OBJECT_TABLE)
                return "make the nftables table";
        if (mode == RV_NETNS_TPROXY)
                return object == RV_NETNS_OBJECT_CHAIN ? "make the nftables filter chain" : "make the nftables tproxy rules";
        return object == RV_NETNS_OBJECT_CHAIN ? "make the nftables nat chain" : "make the nftables redirect rules";
}

static int add_rules(enum rv_netns_mode mode, const char **ret_step)
{
        uint32_t object = RV_NETNS_OBJECT_TABLE;
        int r = rv_netns_rules_add(mode, &object);

        if (r < 0) {
                *ret_step = name_object(mode, object);
                return r;
        }
        r = rv_netns_rules_check(mode);
        if (r < 0)
                *ret_step = "read the nftables rules back";
        return r;
}

int rv_netns_open(enum rv_netns_mode mode, struct rv_netns *ret, const char **ret_step)
{
        struct rv_netns net = { .mode = mode };
        int r;

        if (mode != RV_NETNS_TPROXY && mode != RV_NETNS_REDIRECT) {
                *ret_step = "choose how connections reach the gate";
                return -EINVAL;
        }
        *ret_step = "bring up lo";
        r = rv_netns_loopback_up();
        if (r < 0)
                return r;
        *ret_step = "make local routes";
        r = rv_netns_route_all(&net.has_ipv6);
        if (r < 0)
                return r;
        r = rv_netns_sockets_open(mode, &net, ret_step);
        if (r < 0)
                return r;
        r = add_rules(mode, ret_step);
        if (r < 0) {
                rv_netns_close(&net);
                return r;
        }
        *ret = net;
        return 0;
}

int rv_netns_open_best(enum rv_netns_mode first, struct rv_netns *ret, const char **ret_step)
{
        int r = rv_netns_open(first, ret, ret_step);

        for (enum rv_netns_mode mode = first + 1; r < 0 && r != -EINVAL && mode < RV_NETNS_MODE_MAX_; mode++)
                r = rv_netns_open(mode, ret, ret_step);
        return r;
}

int rv_netns_drop_capabilities(void)
{
        const uint32_t mask = 1u << CAP_NET_ADMIN | 1u << CAP_NET_BIND_SERVICE | 1u << CAP_NET_RAW;
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2];

        if (syscall(SYS_capget, &head, data) < 0)
                return -errno;
        data[0].effective &= ~mask;
        data[0].permitted &= ~mask;
        data[0].inheritable &= ~mask;
        return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}
