/* Addresses: the first, the last, the one before and the one after of every range that is not public. */
#include "egress/address.h"

#include <netinet/in.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
        const char *address, *word;
} rows[] = {
        { "0.0.0.0", "reserved" }, { "0.255.255.255", "reserved" }, { "1.0.0.0", "" },
        { "9.255.255.255", "" }, { "10.0.0.0", "private" }, { "10.255.255.255", "private" }, { "11.0.0.0", "" },
        { "100.63.255.255", "" }, { "100.64.0.0", "cgnat" }, { "100.127.255.255", "cgnat" }, { "100.128.0.0", "" },
        { "100.100.100.199", "cgnat" }, { "100.100.100.200", "metadata" }, { "100.100.100.201", "cgnat" },
        { "126.255.255.255", "" }, { "127.0.0.0", "loopback" }, { "127.0.0.1", "loopback" },
        { "127.255.255.255", "loopback" }, { "128.0.0.0", "" },
        { "168.63.129.15", "" }, { "168.63.129.16", "metadata" }, { "168.63.129.17", "" },
        { "169.253.255.255", "" }, { "169.254.0.0", "link-local" }, { "169.254.255.255", "link-local" }, { "169.255.0.0", "" },
        { "169.254.169.253", "link-local" }, { "169.254.169.254", "metadata" }, { "169.254.169.255", "link-local" },
        { "169.254.170.2", "metadata" }, { "169.254.170.23", "metadata" }, { "169.254.170.3", "link-local" },
        { "172.15.255.255", "" }, { "172.16.0.0", "private" }, { "172.31.255.255", "private" }, { "172.32.0.0", "" },
        { "191.255.255.255", "" }, { "192.0.0.0", "reserved" }, { "192.0.0.255", "reserved" }, { "192.0.1.0", "" },
        { "192.0.0.191", "reserved" }, { "192.0.0.192", "metadata" }, { "192.0.0.193", "reserved" },
        { "192.0.1.255", "" }, { "192.0.2.0", "documentation" }, { "192.0.2.255", "documentation" }, { "192.0.3.0", "" },
        { "192.88.98.255", "" }, { "192.88.99.0", "6to4" }, { "192.88.99.255", "6to4" }, { "192.88.100.0", "" },
        { "192.167.255.255", "" }, { "192.168.0.0", "private" }, { "192.168.255.255", "private" }, { "192.169.0.0", "" },
        { "198.17.255.255", "" }, { "198.18.0.0", "benchmark" }, { "198.19.255.255", "benchmark" }, { "198.20.0.0", "" },
        { "198.51.99.255", "" }, { "198.51.100.0", "documentation" }, { "198.51.100.255", "documentation" }, { "198.51.101.0", "" },
        { "203.0.112.255", "" }, { "203.0.113.0", "documentation" }, { "203.0.113.255", "documentation" }, { "203.0.114.0", "" },
        { "223.255.255.255", "" }, { "224.0.0.0", "multicast" }, { "239.255.255.255", "multicast" },
        { "240.0.0.0", "reserved" }, { "255.255.255.255", "reserved" },
        { "8.8.8.8", "" }, { "93.184.216.34", "" },

        /* IPv6 is public in 2000::/3 and nowhere else */
        { "::", "reserved" }, { "::1", "loopback" }, { "::2", "reserved" }, { "::127.0.0.1", "reserved" },
        { "::8.8.8.8", "reserved" }, { "::ffff:ffff", "reserved" }, { "::1:0:0", "reserved" },
        { "::fffe:ffff:ffff", "reserved" }, { "::1:0:0:0", "reserved" }, { "::ffff:0:8.8.8.8", "reserved" },
        { "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "reserved" },
        { "64:ff9b::", "nat64" }, { "64:ff9b::8.8.8.8", "nat64" }, { "64:ff9b::a9fe:a9fe", "nat64" },
        { "64:ff9b::ffff:ffff", "nat64" }, { "64:ff9b::1:0:0", "reserved" },
        { "64:ff9b:0:ffff:ffff:ffff:ffff:ffff", "reserved" }, { "64:ff9b:1::", "nat64" },
        { "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "nat64" }, { "64:ff9b:2::", "reserved" },
        { "100::", "reserved" }, { "100::ffff:ffff:ffff:ffff", "reserved" }, { "100:0:0:1::", "reserved" },
        { "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved" }, { "2000::", "" },
        { "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "" },
        { "2001::", "teredo" }, { "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "teredo" }, { "2001:1::", "reserved" },
        { "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "reserved" }, { "2001:2::", "benchmark" },
        { "2001:2:0:ffff:ffff:ffff:ffff:ffff", "benchmark" }, { "2001:2:1::", "reserved" }, { "2001:10::", "reserved" },
        { "2001:20::1", "reserved" }, { "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved" }, { "2001:200::", "" },
        { "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "" }, { "2001:db8::", "documentation" },
        { "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation" }, { "2001:db9::", "" },
        { "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "" }, { "2002::", "6to4" }, { "2002:7f00:1::", "6to4" },
        { "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "6to4" }, { "2003::", "" },
        { "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "" }, { "3fff::", "documentation" },
        { "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "documentation" }, { "3fff:1000::", "" },
        { "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "" }, { "4000::", "reserved" }, { "5f00::", "reserved" },
        { "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved" }, { "fc00::", "private" },
        { "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private" }, { "fe00::", "reserved" },
        { "fd00:ec2::253", "private" }, { "fd00:ec2::254", "metadata" }, { "fd00:ec2::255", "private" },
        { "fd00:ec2::23", "metadata" }, { "fd20:ce::254", "metadata" },
        { "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved" }, { "fe80::", "link-local" }, { "fe80::1", "link-local" },
        { "fe80::a9fe:a9fe", "metadata" }, { "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local" },
        { "fec0::", "private" }, { "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private" }, { "ff00::", "multicast" },
        { "ff02::1", "multicast" }, { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast" },
        { "2606:2800:220:1::1", "" }, { "2a00:1450::1", "" },

        /* IPv4 in IPv6's clothes is judged as IPv4 */
        { "::ffff:8.8.8.8", "" }, { "::ffff:0:0", "reserved" }, { "::ffff:10.0.0.1", "private" },
        { "::ffff:127.0.0.1", "loopback" }, { "::ffff:a9fe:a9fe", "metadata" }, { "::ffff:255.255.255.255", "reserved" },

        /* the host's own */
        { "93.184.216.33", "own" }, { "::ffff:93.184.216.33", "own" }, { "2606:2800:220:1::5", "own" },
        { "2606:2800:220:1::6", "" }, { "192.168.7.7", "private" },
};

static struct rv_address parse(const char *text)
{
        struct rv_address a;

        if (rv_address_parse(text, strlen(text), &a) < 0)
                fail_msg("\"%s\" is not taken", text);
        return a;
}

static void table(void **state)
{
        const struct rv_address own[] = { parse("93.184.216.33"), parse("2606:2800:220:1::5"), parse("192.168.7.7") };
        const struct rv_address_rules rules = { .own = own, .n_own = RV_N_ELEMENTS(own) };
        size_t n_failed = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_address a = parse(rows[i].address);
                const char *word = rv_denial_word(rv_address_judge(&rules, &a, 443));

                if (strcmp(word, rows[i].word) != 0) {
                        n_failed++;
                        print_error("%s: \"%s\" wanted, got \"%s\"\n", rows[i].address, rows[i].word, word);
                }
        }
        assert_int_equal(n_failed, 0);
        print_message("%zu rows\n", RV_N_ELEMENTS(rows));
}

static void exempt_and_denied(void **state)
{
        static const struct {
                const char *name, *address;
                uint16_t port;
                const char *word;
        } cases[] = {
                { "exempt on every port", "10.0.0.5", 22, "" },
                { "exempt as IPv4 in IPv6's clothes", "::ffff:10.0.0.5", 22, "" },
                { "beside it", "10.0.0.6", 22, "private" },
                { "exempt on one port", "127.0.0.5", 8443, "" },
                { "on another", "127.0.0.5", 8444, "loopback" },
                { "exempt, the host's own", "93.184.216.33", 443, "" },
                { "exempt IPv6", "fd00::5", 443, "" },
                { "the same bytes as IPv4", "253.0.0.0", 443, "reserved" },
                { "and as IPv6", "a00:5::", 443, "reserved" },
                { "denied outranks exempt", "10.0.9.1", 443, "egress.deny" },
                { "denied network, first", "8.8.0.0", 443, "egress.deny" },
                { "last", "8.8.255.255", 443, "egress.deny" },
                { "one after", "8.9.0.0", 443, "" },
                { "one before", "8.7.255.255", 443, "" },
                { "denied in IPv6's clothes", "::ffff:8.8.8.8", 443, "egress.deny" },
                { "denied address", "1.1.1.1", 443, "egress.deny" },
                { "beside it, public", "1.1.1.2", 443, "" },
                { "denied IPv6 network, odd bits", "2a00:1450:3fff::1", 443, "egress.deny" },
                { "past it", "2a00:1450:4000::1", 443, "" },
                { "denied, written in IPv6's clothes", "9.9.9.200", 443, "egress.deny" },
        };
        const struct rv_exemption exempt[] = { { parse("10.0.0.5"), 0 },        { parse("127.0.0.5"), 8443 },
                                               { parse("93.184.216.33"), 443 }, { parse("fd00::5"), 0 },
                                               { parse("10.0.9.1"), 0 },        { parse("fd00::"), 0 } };
        static const char *const denied_text[] = { "10.0.9.0/24", "8.8.0.0/16", "1.1.1.1", "2a00:1450::/34", "::ffff:9.9.9.0/120" };
        const struct rv_address own[] = { parse("93.184.216.33") };
        struct rv_network denied[RV_N_ELEMENTS(denied_text)];
        const struct rv_address_rules rules = { .denied = denied, .n_denied = RV_N_ELEMENTS(denied), .exempt = exempt,
                                                .n_exempt = RV_N_ELEMENTS(exempt), .own = own, .n_own = 1 };

        for (size_t i = 0; i < RV_N_ELEMENTS(denied); i++)
                assert_int_equal(rv_network_parse(denied_text[i], strlen(denied_text[i]), &denied[i]), 0);
        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                struct rv_address a = parse(cases[i].address);
                const char *word = rv_denial_word(rv_address_judge(&rules, &a, cases[i].port));

                if (strcmp(word, cases[i].word) != 0)
                        fail_msg("%s: \"%s\" wanted, got \"%s\"", cases[i].name, cases[i].word, word);
        }
}

static void texts(void **state)
{
        static const char *const bad[] = { "",          "1",       "127.1",   "01.2.3.4", "1.2.3.4 ", " 1.2.3.4",    "1.2.3.256",
                                           "0x7f.0.0.1", "1.2.3",   "1.2.3.4.", "[::1]",   ":::",      "fe80::1%lo",  "1::2::3",
                                           "g::1",      "1.2.3.4/", "::1/64",
                                           "0000:0000:0000:0000:0000:ffff:255.255.255.2550000" };
        static const char *const bad_networks[] = { "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/+1", "1.2.3.4/a", "::/129",
                                                    "::/0128", "/8", "", "1.2.3.4/8/8", "1.2.3/8", "::ffff:1.2.3.4/129" };
        struct rv_address a = { .bytes = { 7 } };
        struct rv_network network = { .bits = 7 };
        char text[RV_ADDRESS_TEXT_SIZE];

        for (size_t i = 0; i < RV_N_ELEMENTS(bad); i++)
                if (rv_address_parse(bad[i], strlen(bad[i]), &a) != -EINVAL)
                        fail_msg("\"%s\" is taken", bad[i]);
        for (size_t i = 0; i < RV_N_ELEMENTS(bad_networks); i++)
                if (rv_network_parse(bad_networks[i], strlen(bad_networks[i]), &network) != -EINVAL)
                        fail_msg("\"%s\" is taken", bad_networks[i]);
        assert_int_equal(rv_address_parse("1.2.3.4\0", 8, &a), -EINVAL);
        assert_int_equal(rv_address_make("abcde", 5, &a), -EINVAL);
        assert_int_equal(a.bytes[0], 7);
        assert_int_equal(network.bits, 7);
        a = parse("2001:0DB8:0:0:0:0:0:1");
        assert_string_equal(rv_address_print(&a, text), "2001:db8::1");
        a = parse("::ffff:1.2.3.4");
        assert_string_equal(rv_address_print(&a, text), "1.2.3.4");
        /* Part of the clothes is no whole suit: it holds IPv6 addresses only. */
        assert_int_equal(rv_network_parse("::ffff:0:0/80", 13, &network), 0);
        assert_true(network.address.is_v6 && network.bits == 80);
        assert_int_equal(rv_network_parse("0.0.0.0/0", 9, &network), 0);
        a = parse("255.255.255.255");
        assert_true(rv_network_holds(&network, &a));
        a = parse("ffff::");
        assert_false(rv_network_holds(&network, &a));
}

static void sockaddrs(void **state)
{
        static const char *const texts[] = { "1.2.3.4", "2001:db8::1", "::ffff:1.2.3.4" };
        struct sockaddr_storage ss;
        struct rv_address a, b;
        uint16_t port = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++) {
                socklen_t n;

                a = parse(texts[i]);
                n = rv_address_to_sockaddr(&a, 8443, &ss);
                assert_int_equal(rv_address_from_sockaddr((struct sockaddr *)&ss, n, &b, &port), 0);
                assert_true(rv_address_is_equal(&a, &b) && port == 8443);
                assert_int_equal(rv_address_from_sockaddr((struct sockaddr *)&ss, n - 1, &b, NULL), -EINVAL);
        }
        /* What a listener of both families shows of an IPv4 connection. */
        ss = (struct sockaddr_storage){ 0 };
        *(struct sockaddr_in6 *)&ss = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr.s6_addr = { [10] = 0xff, 0xff, 10, 0, 0, 1 } };
        assert_int_equal(rv_address_from_sockaddr((struct sockaddr *)&ss, sizeof(struct sockaddr_in6), &b, NULL), 0);
        assert_true(!b.is_v6 && b.bytes[0] == 10 && b.bytes[3] == 1);
        ss.ss_family = AF_UNIX;
        assert_int_equal(rv_address_from_sockaddr((struct sockaddr *)&ss, sizeof(ss), &b, NULL), -EAFNOSUPPORT);
        assert_int_equal(rv_address_from_sockaddr((struct sockaddr *)&ss, 0, &b, NULL), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table),
                cmocka_unit_test(exempt_and_denied),
                cmocka_unit_test(texts),
                cmocka_unit_test(sockaddrs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
