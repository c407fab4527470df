/* Names that a client gave: one reading of every spelling, and whether the run may reach what it says. */
#include "egress/names.h"

#include "test_request_table.h"

#define L63 "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0"
#define L61 "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxy"

/* Mode domains, the run may reach example.com on every port and partner.test on 443; bad.example.com is configured away. */
static const struct {
        const char *text;
        size_t n;
        const char *word;   /* of the denial, "" if allowed */
} judged[] = {
#define ROW(text, word) { text, sizeof(text) - 1, word }
        /* allowed: the name itself and what is below it, in every spelling */
        ROW("example.com", ""),
        ROW("api.example.com", ""),
        ROW("a.b.c.example.com", ""),
        ROW("EXAMPLE.COM", ""),
        ROW("eXaMpLe.CoM", ""),
        ROW("API.Example.Com", ""),
        ROW("example.com.", ""),
        ROW("API.EXAMPLE.COM.", ""),
        ROW("_dmarc.example.com", ""),
        ROW("_443._tcp.example.com", ""),
        ROW("my_bucket.example.com", ""),
        ROW("a_.example.com", ""),
        ROW("1.example.com", ""),
        ROW("127.0.0.1.example.com", ""),
        ROW("0x7f.example.com", ""),
        ROW("r3---sn-x.example.com", ""),
        ROW("xn--bcher-kva.example.com", ""),
        ROW("XN--BCHER-KVA.example.com", ""),
        ROW("xn--80akhbyknj4f.example.com", ""),
        ROW("com.example.com", ""),
        ROW("evil.test.example.com", ""),
        ROW("example.com.example.com", ""),
        ROW(L63 ".example.com", ""),
        ROW(L63 "." L63 "." L63 "." "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklm" ".example.com", ""),
        ROW("partner.test", ""),
        ROW("a.partner.test", ""),

        /* label boundaries and names that only look alike */
        ROW("notexample.com", "name"),
        ROW("evilexample.com", "name"),
        ROW("-example.com", "not-a-name"),
        ROW("my-example.com", "name"),
        ROW("my_example.com", "name"),
        ROW("xn--example.com", "name"),
        ROW("example.com.evil.test", "name"),
        ROW("example.comevil.test", "name"),
        ROW("example.com-evil.test", "name"),
        ROW("example.com.test", "name"),
        ROW("example.co", "name"),
        ROW("example.comm", "name"),
        ROW("xample.com", "name"),
        ROW("example.net", "name"),
        ROW("examp1e.com", "name"),
        ROW("example-com.test", "name"),
        ROW("com.example", "name"),
        ROW("partner.test.example", "name"),
        ROW("apartner.test", "name"),
        ROW("registry.example", "name"),
        ROW("metadata.internal", "name"),
        ROW("localhost.localdomain", "name"),
        ROW("1.0.0.127.in-addr.arpa", "name"),
        ROW("8.b.d.0.1.0.0.2.ip6.arpa", "name"),
        ROW("xn--exmple-cua.com", "name"),
        ROW("bad.example.com", "egress.deny"),
        ROW("very.bad.example.com", "egress.deny"),
        ROW("BAD.EXAMPLE.COM.", "egress.deny"),
        ROW("notbad.example.com", ""),
        ROW("bad.example.com.example.com", ""),

        /* one label */
        ROW("com", "single-label"),
        ROW("com.", "single-label"),
        ROW("localhost", "single-label"),
        ROW("LOCALHOST.", "single-label"),
        ROW("example", "single-label"),
        ROW("metadata", "single-label"),
        ROW("xn--p1ai", "single-label"),
        ROW("a", "single-label"),
        ROW("wpad", "single-label"),

        /* IPv4, in every spelling that some client or resolver takes */
        ROW("10.0.0.1", "literal"),
        ROW("127.0.0.1", "literal"),
        ROW("127.0.0.1.", "literal"),
        ROW("169.254.169.254", "literal"),
        ROW("8.8.8.8", "literal"),
        ROW("127.1", "literal"),
        ROW("127.0.1", "literal"),
        ROW("0", "literal"),
        ROW("2130706433", "literal"),
        ROW("017700000001", "literal"),
        ROW("0177.0.0.1", "literal"),
        ROW("0177.1", "literal"),
        ROW("0x7f000001", "literal"),
        ROW("0X7F000001", "literal"),
        ROW("0x7f.1", "literal"),
        ROW("0x7f.0x0.0x0.0x1", "literal"),
        ROW("0x7F.0.0.0X1", "literal"),
        ROW("0xa9.0xfe.0xa9.0xfe", "literal"),
        ROW("0251.0376.0251.0376", "literal"),
        ROW("2852039166", "literal"),
        ROW("0x", "literal"),
        ROW("256.256.256.256", "literal"),
        ROW("1.2.3.4.5", "literal"),
        ROW("999999999999999999999", "literal"),
        ROW("08.08.08.08", "literal"),
        ROW("example.com.1", "literal"),
        ROW("example.com.0x1", "literal"),
        ROW("example.com.08.", "literal"),
        ROW("0x7f.1.", "literal"),
        ROW("4294967295", "literal"),
        ROW("4294967296", "literal"),
        ROW("0000000000000000000177.0.0.1", "literal"),
        ROW("127.0.0.01", "literal"),
        ROW("0Xa9FeA9Fe.", "literal"),
        ROW("127.0.0.1 ", "not-a-name"),
        ROW(" 127.0.0.1", "literal"),
        ROW("127.0.0.1\n", "not-a-name"),
        ROW("127.0.0.1\0.example.com", "not-a-name"),
        ROW("+127.0.0.1", "literal"),
        ROW("-1", "not-a-name"),
        ROW("1-1", "single-label"),

        /* IPv6, v4-mapped, NAT64, zones, brackets */
        ROW("::1", "literal"),
        ROW("::", "literal"),
        ROW("fe80::1", "literal"),
        ROW("fe80::1%lo", "literal"),
        ROW("2001:db8::1", "literal"),
        ROW("::ffff:10.0.0.1", "literal"),
        ROW("::FFFF:A00:1", "literal"),
        ROW("0:0:0:0:0:ffff:127.0.0.1", "literal"),
        ROW("::127.0.0.1", "literal"),
        ROW("64:ff9b::10.0.0.1", "literal"),
        ROW("64:ff9b::a9fe:a9fe", "literal"),
        ROW("2002:7f00:1::", "literal"),
        ROW("[::1]", "literal"),
        ROW("[::ffff:10.0.0.1]", "literal"),
        ROW("[fe80::1%25lo]", "literal"),
        ROW("[example.com]", "literal"),
        ROW("[", "literal"),
        ROW("[]", "literal"),
        ROW("[v1.x]", "literal"),
        ROW("[::1%lo]", "literal"),
        ROW("[::ffff:7f00:1].", "literal"),
        ROW("::ffff:0:10.0.0.1", "literal"),
        ROW("64:ff9b:1::10.0.0.1", "literal"),
        ROW("user@[::1]", "literal"),
        ROW("[::1]@example.com", "literal"),
        ROW("example.com]", "not-a-name"),

        /* no name: other bytes */
        ROW("", "not-a-name"),
        ROW(".", "not-a-name"),
        ROW("..", "not-a-name"),
        ROW(".example.com", "not-a-name"),
        ROW("example..com", "not-a-name"),
        ROW("example.com..", "not-a-name"),
        ROW("a..example.com", "not-a-name"),
        ROW("example.com\0", "not-a-name"),
        ROW("\0example.com", "not-a-name"),
        ROW("evil.test\0.example.com", "not-a-name"),
        ROW("example.com\0.evil.test", "not-a-name"),
        ROW("user@example.com", "not-a-name"),
        ROW("example.com@evil.test", "not-a-name"),
        ROW("evil.test@example.com", "not-a-name"),
        ROW("evil.test#.example.com", "not-a-name"),
        ROW("evil.test/.example.com", "not-a-name"),
        ROW("evil.test?.example.com", "not-a-name"),
        ROW("evil.test\\.example.com", "not-a-name"),
        ROW("evil.test%00.example.com", "not-a-name"),
        ROW("example.com ", "not-a-name"),
        ROW(" example.com", "not-a-name"),
        ROW("exam ple.com", "not-a-name"),
        ROW("example.com\t", "not-a-name"),
        ROW("example.com\r\n", "not-a-name"),
        ROW("example.com\r\nHost: evil.test", "not-a-name"),
        ROW("example.com,evil.test", "not-a-name"),
        ROW("example.com;evil.test", "not-a-name"),
        ROW("*.example.com", "not-a-name"),
        ROW("a*.example.com", "not-a-name"),
        ROW("a%2eexample.com", "not-a-name"),
        ROW("http://example.com", "not-a-name"),
        ROW("a--.example.com", "not-a-name"),
        ROW("-a.example.com", "not-a-name"),
        ROW("a-.example.com", "not-a-name"),
        ROW("xn--.example.com", "not-a-name"),
        ROW("example.c_m", "not-a-name"),
        ROW("b\303\274cher.example.com", "not-a-name"),
        ROW("b\374cher.example.com", "not-a-name"),
        ROW("example\343\200\202com", "not-a-name"),
        ROW("example.com\343\200\202", "not-a-name"),
        ROW("\357\275\205xample.com", "not-a-name"),
        ROW("\357\274\221\357\274\220.0.0.1", "literal"),
        ROW("exam\302\255ple.com", "not-a-name"),
        ROW("exam\342\200\215ple.com", "not-a-name"),
        ROW("xn--n3h.example.com", ""),
        ROW("xn--example-.com", "not-a-name"),
        ROW("ex\305\277mple.com", "not-a-name"),
        ROW("\377\377.example.com", "not-a-name"),

        /* too long: a label, the name */
        ROW(L63 "x.example.com", "not-a-name"),
        ROW("example." L63 "x", "not-a-name"),
        ROW(L63 "." L63 "." L63 "." "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmn" ".example.com", "not-a-name"),
        ROW(L63 "." L63 "." L63 "." L61, "name"),
        ROW(L63 "." L63 "." L63 "." L61 ".", "name"),
        ROW(L63 "." L63 "." L63 "." L61 "x", "not-a-name"),

        /* a port where there can be none */
        ROW("example.com:443", "not-a-name"),
        ROW("example.com:", "not-a-name"),
        ROW(":443", "not-a-name"),
        ROW("10.0.0.1:80", "not-a-name"),
#undef ROW
};

static const uint16_t https[] = { 443 };
static const struct rv_name_rule rules[] = { { "example.com", NULL, 0, false }, { "partner.test", https, 1, false } };
static const char *const denied[] = { "bad.example.com" };
static const struct rv_names names = { .mode = RV_NETWORK_DOMAINS, .allowed = rules, .n_allowed = RV_N_ELEMENTS(rules),
                                       .denied = denied, .n_denied = 1 };

static const char *judge(
        const struct rv_names *n, const char *text, size_t size, enum rv_hostname_form form, uint16_t port)
{
        struct rv_hostname host;
        char *copy = exact_copy(text, size);

        rv_hostname_parse(copy, size, form, &host);
        free(copy);
        return rv_denial_word(rv_names_judge(n, &host, port));
}

static void table(void **state)
{
        size_t n_failed = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(judged); i++) {
                const char *word = judge(&names, judged[i].text, judged[i].n, RV_HOSTNAME_BARE, 0);
                char shown[RV_NAME_TEXT_SIZE];

                if (strcmp(word, judged[i].word) == 0)
                        continue;
                n_failed++;
                print_error("%s: \"%s\" wanted, got \"%s\"\n", rv_name_print(judged[i].text, judged[i].n, shown),
                            judged[i].word, word);
        }
        assert_int_equal(n_failed, 0);
}

static void table_has_enough_different_rows(void **state)
{
        assert_true(RV_N_ELEMENTS(judged) >= 120);
        for (size_t i = 0; i < RV_N_ELEMENTS(judged); i++)
                for (size_t k = 0; k < i; k++)
                        if (judged[i].n == judged[k].n && memcmp(judged[i].text, judged[k].text, judged[i].n) == 0)
                                fail_msg("row %zu is row %zu", i, k);
        print_message("%zu rows\n", RV_N_ELEMENTS(judged));
}

/* A Host: what it comes to as "kind name port", with the port -1 where there is none. */
static const struct row authorities[] = {
        { "example.com", "domain example.com -1" },
        { "Example.COM.", "domain example.com -1" },
        { "example.com:80", "domain example.com 80" },
        { "example.com.:8443", "domain example.com 8443" },
        { "example.com:1", "domain example.com 1" },
        { "example.com:65535", "domain example.com 65535" },
        { "example.com:00080", "domain example.com 80" },
        { "localhost:3000", "domain localhost 3000" },
        { "example.com:", "invalid  -1" },
        { "example.com:0", "invalid  -1" },
        { "example.com:65536", "invalid  -1" },
        { "example.com:000080", "invalid  -1" },
        { "example.com:+80", "invalid  -1" },
        { "example.com:80 ", "invalid  -1" },
        { "example.com:8x", "invalid  -1" },
        { "example.com:80:80", "literal  -1" },
        { "example.com:@evil.test", "invalid  -1" },
        { "user:80@example.com", "invalid  -1" },
        { ":80", "invalid  80" },
        { "", "invalid  -1" },
        { "example.com/", "invalid  -1" },
        { "10.0.0.1", "literal 10.0.0.1 -1" },
        { "10.0.0.1:80", "literal 10.0.0.1 80" },
        { "0x7f.1:80", "literal  80" },
        { "010.0.0.1", "literal  -1" },
        { "[::1]", "literal ::1 -1" },
        { "[::1]:8080", "literal ::1 8080" },
        { "[0:0:0:0:0:0:0:1]:8080", "literal ::1 8080" },
        { "[::ffff:10.0.0.1]:80", "literal 10.0.0.1 80" },
        { "[64:FF9B::A9FE:A9FE]", "literal 64:ff9b::a9fe:a9fe -1" },
        { "[fe80::1%25lo]:80", "literal  80" },
        { "[::1]:", "invalid  -1" },
        { "[::1]:99999", "invalid  -1" },
        { "[::1]80", "literal  -1" },
        { "[10.0.0.1]:80", "literal  80" },
        { "[example.com]:80", "literal  80" },
        { "[::1", "literal  -1" },
        { "[:80", "literal  -1" },
        { "::1", "literal  -1" },
        { "::1:80", "literal  -1" },
};

static void parse_authority(const char *text, size_t n, char *ret, size_t size, const char **ret_message)
{
        static const char *const kinds[] = { "invalid", "domain", "literal" };
        struct rv_hostname host;
        enum rv_hostname_kind kind = rv_hostname_parse(text, n, RV_HOSTNAME_AUTHORITY, &host);

        assert_int_equal(kind, host.kind);
        assert_true(host.has_address == (host.kind == RV_HOSTNAME_LITERAL && host.name[0]));
        snprintf(ret, size, "%s %s %d", kinds[host.kind], host.name, host.has_port ? host.port : -1);
}

static void authority_table(void **state)
{
        check_rows(authorities, RV_N_ELEMENTS(authorities), parse_authority);
        check_rows_differ(authorities, RV_N_ELEMENTS(authorities), 40);
}

static void modes_and_ports(void **state)
{
        static const uint16_t web[] = { 80, 443 };
        static const struct rv_name_rule hosts[] = { { "registry.example", https, 1, false }, { "localhost", NULL, 0, false },
                                                     { "10.0.0.5", https, 1, false }, { "registry.example", web, 2, false } };
        static const struct {
                const char *name, *host;
                enum rv_network_mode mode;
                const uint16_t *ports;
                uint16_t port;
                const char *word;
        } rows[] = {
                { "none", "registry.example", RV_NETWORK_NONE, NULL, 0, "name" },
                { "none, literal", "10.0.0.5", RV_NETWORK_NONE, NULL, 0, "name" },
                { "registries", "registry.example", RV_NETWORK_REGISTRIES, NULL, 443, "" },
                { "registries, asked by DNS", "registry.example", RV_NETWORK_REGISTRIES, NULL, 0, "" },
                { "registries, a second rule's port", "registry.example", RV_NETWORK_REGISTRIES, NULL, 80, "" },
                { "registries, no rule's port", "registry.example", RV_NETWORK_REGISTRIES, NULL, 22, "port" },
                { "registries hold nothing below", "evil.registry.example", RV_NETWORK_REGISTRIES, NULL, 443, "name" },
                { "registries, one label that is listed", "localhost", RV_NETWORK_REGISTRIES, NULL, 3141, "" },
                { "registries, another", "otherhost", RV_NETWORK_REGISTRIES, NULL, 3141, "single-label" },
                { "registries, a literal that is listed", "10.0.0.5", RV_NETWORK_REGISTRIES, NULL, 443, "" },
                { "the same otherwise written", "10.0.5", RV_NETWORK_REGISTRIES, NULL, 443, "literal" },
                { "its other port", "10.0.0.5", RV_NETWORK_REGISTRIES, NULL, 80, "port" },
                { "another literal", "10.0.0.6", RV_NETWORK_REGISTRIES, NULL, 443, "literal" },
                { "a literal has no subdomains", "1.10.0.0.5", RV_NETWORK_DOMAINS, NULL, 443, "literal" },
                { "domains hold what is below", "a.registry.example", RV_NETWORK_DOMAINS, NULL, 443, "" },
                { "domains, port", "a.registry.example", RV_NETWORK_DOMAINS, NULL, 8080, "port" },
                { "policy's ports", "registry.example", RV_NETWORK_DOMAINS, https, 80, "port" },
                { "policy's ports, fitting", "registry.example", RV_NETWORK_DOMAINS, https, 443, "" },
                { "policy's ports, asked by DNS", "registry.example", RV_NETWORK_DOMAINS, https, 0, "" },
                { "any", "whatever.test", RV_NETWORK_ANY, NULL, 22, "" },
                { "any, policy's ports", "whatever.test", RV_NETWORK_ANY, https, 22, "port" },
                { "any, literal", "93.184.216.34", RV_NETWORK_ANY, NULL, 80, "" },
                { "any, literal, policy's ports", "93.184.216.34", RV_NETWORK_ANY, https, 80, "port" },
                { "any, no name", "a b", RV_NETWORK_ANY, NULL, 80, "" },
                { "any, one label", "intranet", RV_NETWORK_ANY, NULL, 80, "single-label" },
                { "any, configured away", "bad.example.com", RV_NETWORK_ANY, NULL, 80, "egress.deny" },
                { "any, below that", "a.bad.example.com", RV_NETWORK_ANY, NULL, 80, "egress.deny" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_names n = { .mode = rows[i].mode, .allowed = hosts, .n_allowed = RV_N_ELEMENTS(hosts),
                                      .denied = denied, .n_denied = 1, .ports = rows[i].ports, .n_ports = 1 };
                const char *word = judge(&n, rows[i].host, strlen(rows[i].host), RV_HOSTNAME_BARE, rows[i].port);

                if (strcmp(word, rows[i].word) != 0)
                        fail_msg("%s: \"%s\" wanted, got \"%s\"", rows[i].name, rows[i].word, word);
        }
}

static void same_host(void **state)
{
        static const struct {
                const char *a, *b;
                bool is_same;
        } rows[] = {
                { "example.com", "EXAMPLE.com.", true }, { "example.com:80", "example.com", true },
                { "example.com", "example.com:080", true }, { "example.com:81", "example.com", false },
                { "a.example.com", "example.com", false }, { "[::1]:80", "[0::1]", true },
                { "10.0.0.1", "[::ffff:10.0.0.1]", true }, { "0x7f.1", "0x7f.1", false }, { "a b", "a b", false },
                { "", "", false },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_hostname a, b;

                rv_hostname_parse(rows[i].a, strlen(rows[i].a), RV_HOSTNAME_AUTHORITY, &a);
                rv_hostname_parse(rows[i].b, strlen(rows[i].b), RV_HOSTNAME_AUTHORITY, &b);
                if (rv_hostname_is_same(&a, &b, 80) != rows[i].is_same ||
                        rv_hostname_is_same(&b, &a, 80) != rows[i].is_same)
                        fail_msg("\"%s\" and \"%s\"", rows[i].a, rows[i].b);
        }
}

static void printed(void **state)
{
        static const struct {
                const char *text;
                size_t n;
                const char *shown;
        } rows[] = {
                { "example.com", 11, "example.com" }, { "", 0, "" }, { "a b", 3, "a\\032b" }, { "a\0b", 3, "a\\000b" },
                { "a\\000b", 6, "a\\092000b" }, { "\"x\"", 3, "\\034x\\034" }, { "\33[2J\n", 5, "\\027[2J\\010" },
                { "\177\200\377", 3, "\\127\\128\\255" }, { "~!*", 3, "~!*" },
        };
        char shown[RV_NAME_TEXT_SIZE], longest[300];

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                assert_string_equal(rv_name_print(rows[i].text, rows[i].n, shown), rows[i].shown);
        memset(longest, 0xff, sizeof(longest));
        assert_int_equal(strlen(rv_name_print(longest, 255, shown)), 1020);
        assert_int_equal(strlen(rv_name_print(longest, 256, shown)), 1023);
        assert_string_equal(shown + 1020, "...");
}

/* The words are what the outcome says: each its own, of one kind, with a text. */
static void words(void **state)
{
        assert_string_equal(rv_denial_word(RV_DENIAL_NONE), "");
        assert_string_equal(rv_denial_word((enum rv_denial)9999), "");
        assert_string_equal(rv_denial_text((enum rv_denial)9999), "");
        for (int i = 1; i < _RV_DENIAL_MAX; i++) {
                const char *word = rv_denial_word((enum rv_denial)i);

                assert_true(word[0] && word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-.")] == 0);
                assert_true(rv_denial_text((enum rv_denial)i)[0]);
                for (int k = 1; k < i; k++)
                        assert_string_not_equal(word, rv_denial_word((enum rv_denial)k));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table), cmocka_unit_test(table_has_enough_different_rows),
                cmocka_unit_test(authority_table), cmocka_unit_test(modes_and_ports), cmocka_unit_test(same_host),
                cmocka_unit_test(printed), cmocka_unit_test(words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
