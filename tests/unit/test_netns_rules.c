/* The rules as they are made, and the comparison of what the kernel lists with them: every difference counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include "netns_batch.h"
#include "netns_netlink.h"
#include "netns_rules.h"

static const struct {
        const char *name;
        const uint8_t *bytes;
        size_t size;
        uint32_t n_objects;
} batches[] = {
        { "tproxy", rv_netns_tproxy, sizeof(rv_netns_tproxy), RV_NETNS_TPROXY_N_OBJECTS },
        { "redirect", rv_netns_redirect, sizeof(rv_netns_redirect), RV_NETNS_REDIRECT_N_OBJECTS },
};

static union {
        struct nlmsghdr head;
        uint8_t bytes[4096];
} list;
static size_t list_size;

static const struct nlmsghdr *message_at(const uint8_t *bytes, size_t size, size_t offset)
{
        const struct nlmsghdr *m = (const void *)(bytes + offset);

        assert_true(offset + sizeof(*m) <= size && m->nlmsg_len >= sizeof(*m) && offset + m->nlmsg_len <= size);
        return m;
}

/* The rules of a batch alone, as a kernel that adds nothing would list them. */
static void list_rules(size_t batch)
{
        list_size = 0;
        for (size_t at = 0; at < batches[batch].size;) {
                const struct nlmsghdr *m = message_at(batches[batch].bytes, batches[batch].size, at);

                if (m->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE)) {
                        memcpy(list.bytes + list_size, m, m->nlmsg_len);
                        list_size += NLMSG_ALIGN(m->nlmsg_len);
                }
                at += NLMSG_ALIGN(m->nlmsg_len);
        }
}

static bool is_same(size_t batch)
{
        return rv_netns_rules_compare(batches[batch].bytes, batches[batch].size, list.bytes, list_size);
}

/* Whatever else, the numbers have to be those by which the answers are told apart. */
static void batches_are_well_formed(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(batches); i++) {
                uint32_t n = 0;
                size_t at = 0;

                assert_int_equal(message_at(batches[i].bytes, batches[i].size, 0)->nlmsg_type, NFNL_MSG_BATCH_BEGIN);
                while (at < batches[i].size) {
                        const struct nlmsghdr *m = message_at(batches[i].bytes, batches[i].size, at);
                        bool is_object = m->nlmsg_type >> 8 == NFNL_SUBSYS_NFTABLES;

                        assert_int_equal(m->nlmsg_seq, is_object ? ++n : 0);
                        assert_int_equal(!!(m->nlmsg_flags & NLM_F_ACK), is_object);
                        at += NLMSG_ALIGN(m->nlmsg_len);
                        if (at == batches[i].size)
                                assert_int_equal(m->nlmsg_type, NFNL_MSG_BATCH_END);
                }
                assert_int_equal(n, batches[i].n_objects);
                assert_true(n > RV_NETNS_OBJECT_RULES && n <= RV_NETLINK_MESSAGES_MAX);
        }
}

static void the_same_is_the_same(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(batches); i++) {
                list_rules(i);
                assert_true(list_size > 0);
                assert_true(is_same(i));
                assert_false(is_same(1 - i));
        }
}

/* Any byte of an expression is of weight; those of the heads, names and numbers before them are not compared. */
static void every_byte_counts(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(batches); i++) {
                list_rules(i);
                for (size_t at = 0, next; at < list_size; at = next) {
                        const struct nlmsghdr *m = message_at(list.bytes, list_size, at);
                        size_t expressions = NLMSG_HDRLEN + sizeof(struct nfgenmsg);
                        const struct nlattr *a;

                        next = at + NLMSG_ALIGN(m->nlmsg_len);
                        for (a = (const void *)(list.bytes + at + expressions);
                                (a->nla_type & NLA_TYPE_MASK) != NFTA_RULE_EXPRESSIONS;
                                a = (const void *)(list.bytes + at + expressions))
                                expressions += NLA_ALIGN(a->nla_len);
                        /* Where a value is padded to its alignment the bytes are nobody's; such there are, but few. */
                        unsigned n_ignored = 0, n_bytes = 0;

                        for (size_t b = at + expressions + sizeof(*a); b < next; b++) {
                                list.bytes[b] ^= 0x15;
                                n_ignored += is_same(i);
                                n_bytes++;
                                list.bytes[b] ^= 0x15;
                        }
                        assert_in_range(n_ignored, 0, n_bytes / 3);
                }
                assert_true(is_same(i));
        }
}

/* The kernel's answer cut anywhere is no answer, and nothing behind it is read. */
static void cut_lists_differ(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(batches); i++) {
                list_rules(i);
                for (size_t n = 0; n < list_size; n++) {
                        uint8_t *cut = malloc(n ? n : 1);

                        assert_non_null(cut);
                        memcpy(cut, list.bytes, n);
                        assert_false(rv_netns_rules_compare(batches[i].bytes, batches[i].size, cut, n));
                        free(cut);
                }
        }
}

static void other_numbers_of_rules_differ(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(batches); i++) {
                const struct nlmsghdr *first;
                size_t n;

                list_rules(i);
                first = message_at(list.bytes, list_size, 0);
                n = NLMSG_ALIGN(first->nlmsg_len);
                /* One more, at the end. */
                memcpy(list.bytes + list_size, first, n);
                list_size += n;
                assert_false(is_same(i));
                /* The same number, in another order. */
                memmove(list.bytes, list.bytes + n, list_size - n);
                list_size -= n;
                assert_false(is_same(i));
                /* One less. */
                list_size -= n;
                assert_false(is_same(i));
        }
}

/* What this kernel, or a later one, tells besides, such as a rule's handle before its expressions. */
static void additions_of_the_kernel_are_none(void **state)
{
        static const struct {
                struct nlattr head;
                uint64_t value;
        } __attribute__((packed)) handle = { { .nla_len = 12, .nla_type = NFTA_RULE_HANDLE }, 4 };

        for (size_t i = 0; i < RV_N_ELEMENTS(batches); i++) {
                size_t place = NLMSG_HDRLEN + sizeof(struct nfgenmsg);

                list_rules(i);
                memmove(list.bytes + place + sizeof(handle), list.bytes + place, list_size - place);
                memcpy(list.bytes + place, &handle, sizeof(handle));
                list.head.nlmsg_len += (uint32_t)sizeof(handle);
                list_size += sizeof(handle);
                assert_true(is_same(i));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(batches_are_well_formed),
                cmocka_unit_test(the_same_is_the_same),
                cmocka_unit_test(every_byte_counts),
                cmocka_unit_test(cut_lists_differ),
                cmocka_unit_test(other_numbers_of_rules_differ),
                cmocka_unit_test(additions_of_the_kernel_are_none),
        };

        (void)rv_netns_list;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
