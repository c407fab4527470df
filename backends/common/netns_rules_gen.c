/*
 * netns_rules_gen.c - makes the rules of netns_rules.h into netlink messages, at build time
 *
 * Making them in a run would load two libraries (Debian has no archive of libmnl) and allocate memory between
 * clone and exec. Prints a header with one transaction for each mode, and the request that lists the rules. The
 * messages are in the byte order and the alignment of the machine that they are built for.
 */
#include "netns_rules.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MAX 8192
#define PRIORITY_MANGLE (-150)
#define PRIORITY_DST_NAT (-100)
#define IPV4_DESTINATION 16       /* in the network header */
#define IPV6_DESTINATION 24
#define PORT_DESTINATION 2        /* in the transport header */

static void *need(void *p)
{
        if (p)
                return p;
        fprintf(stderr, "netns_rules_gen: out of memory\n");
        exit(1);
}

/* ---- Rules ---- */

static struct nftnl_expr *add(struct nftnl_rule *rule, const char *kind)
{
        struct nftnl_expr *e = need(nftnl_expr_alloc(kind));

        nftnl_rule_add_expr(rule, e);
        return e;
}

static void load_meta(struct nftnl_rule *rule, uint32_t key)
{
        struct nftnl_expr *e = add(rule, "meta");

        nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
        nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
}

static void load_payload(struct nftnl_rule *rule, uint32_t base, uint32_t offset, uint32_t n)
{
        struct nftnl_expr *e = add(rule, "payload");

        nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
        nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
        nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, n);
        nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
}

static void need_equal(struct nftnl_rule *rule, const void *data, uint32_t n)
{
        struct nftnl_expr *e = add(rule, "cmp");

        nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
        nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
        nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, data, n);
}

static void need_byte(struct nftnl_rule *rule, uint32_t meta_key, uint8_t value)
{
        load_meta(rule, meta_key);
        need_equal(rule, &value, sizeof(value));
}

static void accept_it(struct nftnl_rule *rule)
{
        struct nftnl_expr *e = add(rule, "immediate");

        nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
        nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT);
}

static void loopback_ipv4(struct nftnl_rule *rule)
{
        need_byte(rule, NFT_META_NFPROTO, NFPROTO_IPV4);
        load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IPV4_DESTINATION, 1);
        need_equal(rule, &(uint8_t){ IN_LOOPBACKNET }, 1);
        accept_it(rule);
}

static void loopback_ipv6(struct nftnl_rule *rule)
{
        need_byte(rule, NFT_META_NFPROTO, NFPROTO_IPV6);
        load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IPV6_DESTINATION, sizeof(in6addr_loopback));
        need_equal(rule, &in6addr_loopback, sizeof(in6addr_loopback));
        accept_it(rule);
}

static void dns(struct nftnl_rule *rule)
{
        need_byte(rule, NFT_META_L4PROTO, IPPROTO_TCP);
        load_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, PORT_DESTINATION, sizeof(uint16_t));
        need_equal(rule, &(uint16_t){ htons(RV_NETNS_DNS_PORT) }, sizeof(uint16_t));
        accept_it(rule);
}

static void load_port(struct nftnl_rule *rule)
{
        struct nftnl_expr *e;

        need_byte(rule, NFT_META_L4PROTO, IPPROTO_TCP);
        e = add(rule, "immediate");
        nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
        nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, &(uint16_t){ htons(RV_NETNS_PORT) }, sizeof(uint16_t));
}

static void tproxy(struct nftnl_rule *rule)
{
        struct nftnl_expr *e;

        load_port(rule);
        e = add(rule, "tproxy");
        nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, NFPROTO_UNSPEC);
        nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_1);
}

static void redirect(struct nftnl_rule *rule)
{
        struct nftnl_expr *e;

        load_port(rule);
        e = add(rule, "redir");
        nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_REG_PROTO_MIN, NFT_REG_1);
        nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_FLAGS, NF_NAT_RANGE_PROTO_SPECIFIED);
}

/* ---- The batch ---- */

struct batch {
        char bytes[BATCH_MAX];
        size_t n;
        uint32_t n_objects;
};

static struct nlmsghdr *begin(struct batch *b, uint16_t type, uint16_t flags)
{
        return nftnl_nlmsg_build_hdr(
                b->bytes + b->n, type, NFPROTO_INET, (uint16_t)(NLM_F_CREATE | NLM_F_ACK | flags), ++b->n_objects);
}

static void end(struct batch *b, const struct nlmsghdr *m)
{
        b->n += MNL_ALIGN(m->nlmsg_len);
}

static void add_table(struct batch *b)
{
        struct nftnl_table *t = need(nftnl_table_alloc());
        struct nlmsghdr *m = begin(b, NFT_MSG_NEWTABLE, NLM_F_EXCL);

        nftnl_table_set_str(t, NFTNL_TABLE_NAME, RV_NETNS_TABLE);
        nftnl_table_nlmsg_build_payload(m, t);
        nftnl_table_free(t);
        end(b, m);
}

static void add_chain(struct batch *b, const char *type, uint32_t hook, int32_t priority)
{
        struct nftnl_chain *c = need(nftnl_chain_alloc());
        struct nlmsghdr *m = begin(b, NFT_MSG_NEWCHAIN, NLM_F_EXCL);

        nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, RV_NETNS_TABLE);
        nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, RV_NETNS_CHAIN);
        nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, type);
        nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, hook);
        nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, priority);
        nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, NF_ACCEPT);
        nftnl_chain_nlmsg_build_payload(m, c);
        nftnl_chain_free(c);
        end(b, m);
}

static void add_rule(struct batch *b, void (*fill)(struct nftnl_rule *rule))
{
        struct nftnl_rule *rule = need(nftnl_rule_alloc());
        struct nlmsghdr *m = begin(b, NFT_MSG_NEWRULE, NLM_F_APPEND);

        nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, RV_NETNS_TABLE);
        nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, RV_NETNS_CHAIN);
        fill(rule);
        nftnl_rule_nlmsg_build_payload(m, rule);
        nftnl_rule_free(rule);
        end(b, m);
}

static void print(const struct batch *b, const char *name)
{
        printf("static const uint8_t %s[] __attribute__((aligned(NLMSG_ALIGNTO))) = {", name);
        for (size_t i = 0; i < b->n; i++)
                printf("%s0x%02x,", i % 16 ? " " : "\n        ", (uint8_t)b->bytes[i]);
        printf("\n};\n");
}

static void print_batch(const char *name, const char *macro, const char *type, uint32_t hook, int32_t priority,
                        void (*last)(struct nftnl_rule *rule))
{
        static struct batch b;

        b = (struct batch){ 0 };
        end(&b, nftnl_batch_begin(b.bytes, 0));
        add_table(&b);
        add_chain(&b, type, hook, priority);
        add_rule(&b, loopback_ipv4);
        add_rule(&b, loopback_ipv6);
        add_rule(&b, dns);
        add_rule(&b, last);
        end(&b, nftnl_batch_end(b.bytes + b.n, 0));
        print(&b, name);
        printf("#define %s_N_OBJECTS %u\n", macro, b.n_objects);
}

static void print_list(void)
{
        static struct batch b;
        struct nftnl_rule *rule = need(nftnl_rule_alloc());
        struct nlmsghdr *m = nftnl_nlmsg_build_hdr(b.bytes, NFT_MSG_GETRULE, NFPROTO_INET, NLM_F_DUMP, 1);

        nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, RV_NETNS_TABLE);
        nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, RV_NETNS_CHAIN);
        nftnl_rule_nlmsg_build_payload(m, rule);
        nftnl_rule_free(rule);
        end(&b, m);
        print(&b, "rv_netns_list");
}

int main(void)
{
        printf("#include <linux/netlink.h>\n#include <stdint.h>\n");
        print_batch("rv_netns_tproxy", "RV_NETNS_TPROXY", "filter", NF_INET_PRE_ROUTING, PRIORITY_MANGLE, tproxy);
        print_batch("rv_netns_redirect", "RV_NETNS_REDIRECT", "nat", NF_INET_LOCAL_OUT, PRIORITY_DST_NAT, redirect);
        print_list();
        return fflush(stdout) == 0 ? 0 : 1;
}
