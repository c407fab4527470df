#include "netns_rules.h"

#include "netns_netlink.h"
#include "netns_batch.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <unistd.h>

static const struct {
        const void *messages;
        size_t size;
        uint32_t n_objects;
} batches[] = {
        [RV_NETNS_TPROXY] = { rv_netns_tproxy, sizeof(rv_netns_tproxy), RV_NETNS_TPROXY_N_OBJECTS },
        [RV_NETNS_REDIRECT] = { rv_netns_redirect, sizeof(rv_netns_redirect), RV_NETNS_REDIRECT_N_OBJECTS },
};

static bool is_mode(enum rv_netns_mode mode)
{
        return mode == RV_NETNS_TPROXY || mode == RV_NETNS_REDIRECT;
}

int rv_netns_rules_add(enum rv_netns_mode mode, uint32_t *ret_object)
{
        int errors[RV_NETLINK_MESSAGES_MAX], fd, r;

        if (!is_mode(mode))
                return -EINVAL;
        fd = rv_netlink_open(NETLINK_NETFILTER);
        if (fd < 0)
                return fd;
        r = rv_netlink_request(fd, batches[mode].messages, batches[mode].size, batches[mode].n_objects, errors);
        for (uint32_t i = 0; r == 0 && i < batches[mode].n_objects; i++) {
                r = errors[i];
                if (r < 0)
                        *ret_object = i;
        }
        close(fd);
        return r;
}

/* ---- Reading back ---- */

/* Attributes, or messages, that follow each other. */
struct span {
        const char *p;
        size_t left;
};

/* The next one, and what it holds; false at the end or if the rest is none. */
static bool take_attribute(struct span *s, const struct nlattr **ret, struct span *ret_content)
{
        const struct nlattr *a = (const void *)s->p;
        size_t n;

        if (s->left < sizeof(*a) || a->nla_len < sizeof(*a) || a->nla_len > s->left)
                return false;
        n = RV_MIN((size_t)NLA_ALIGN(a->nla_len), s->left);
        *ret = a;
        *ret_content = (struct span){ (const char *)(a + 1), a->nla_len - sizeof(*a) };
        s->p += n;
        s->left -= n;
        return true;
}

static bool find_attribute(struct span s, int type, struct span *ret_content)
{
        const struct nlattr *a;

        while (take_attribute(&s, &a, ret_content))
                if ((a->nla_type & NLA_TYPE_MASK) == type)
                        return true;
        return false;
}

/* Is each attribute of @want in @got, with the same value? Depth is that of @want, which is our own. */
static bool holds(struct span got, struct span want)
{
        struct span wanted, found;
        const struct nlattr *a;

        while (take_attribute(&want, &a, &wanted)) {
                if (!find_attribute(got, a->nla_type & NLA_TYPE_MASK, &found))
                        return false;
                if (a->nla_type & NLA_F_NESTED) {
                        if (!holds(found, wanted))
                                return false;
                } else if (found.left != wanted.left || memcmp(found.p, wanted.p, wanted.left)) {
                        return false;
                }
        }
        return want.left == 0;
}

/* The expressions, one by one: none may be missing, none added. */
static bool is_same_rule(struct span got, struct span want)
{
        struct span got_list, want_list;

        if (!find_attribute(want, NFTA_RULE_EXPRESSIONS, &want_list) ||
                !find_attribute(got, NFTA_RULE_EXPRESSIONS, &got_list))
                return false;
        for (;;) {
                const struct nlattr *a;
                struct span wanted, found;
                bool has_want = take_attribute(&want_list, &a, &wanted),
                     has_got = take_attribute(&got_list, &a, &found);

                if (!has_want || !has_got)
                        return has_want == has_got && want_list.left == 0 && got_list.left == 0;
                if (!holds(found, wanted))
                        return false;
        }
}

/* The next rule of messages that follow each other, as its attributes; false at the end, where nothing is left. */
static bool take_rule(struct span *s, struct span *ret)
{
        while (s->left >= sizeof(struct nlmsghdr)) {
                const struct nlmsghdr *m = (const void *)s->p;
                size_t head = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg)), n;

                if (m->nlmsg_len < sizeof(*m) || m->nlmsg_len > s->left)
                        return false;
                n = RV_MIN((size_t)NLMSG_ALIGN(m->nlmsg_len), s->left);
                if (m->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE) && m->nlmsg_len >= head) {
                        *ret = (struct span){ s->p + head, m->nlmsg_len - head };
                        s->p += n;
                        s->left -= n;
                        return true;
                }
                s->p += n;
                s->left -= n;
        }
        return false;
}

bool rv_netns_rules_compare(const void *want, size_t want_size, const void *got, size_t got_size)
{
        struct span w = { want, want_size }, g = { got, got_size }, want_rule, got_rule;

        for (;;) {
                bool has_want = take_rule(&w, &want_rule), has_got = take_rule(&g, &got_rule);

                if (!has_want || !has_got)
                        return has_want == has_got && w.left == 0 && g.left == 0;
                if (!is_same_rule(got_rule, want_rule))
                        return false;
        }
}

int rv_netns_rules_check(enum rv_netns_mode mode)
{
        union {
                struct nlmsghdr head;
                char bytes[8192];
        } list;
        size_t n = 0;
        int fd, r;

        if (!is_mode(mode))
                return -EINVAL;
        fd = rv_netlink_open(NETLINK_NETFILTER);
        if (fd < 0)
                return fd;
        r = rv_netlink_dump(fd, rv_netns_list, sizeof(rv_netns_list), &list, sizeof(list), &n);
        close(fd);
        if (r < 0)
                return r;
        return rv_netns_rules_compare(batches[mode].messages, batches[mode].size, &list, n) ? 0 : -EBADE;
}
