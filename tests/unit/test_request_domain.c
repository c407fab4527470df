/* Domain names: RFC 1035 and 1123 for what is one, RFC 3986, WHATWG URL and inet_aton for what is an address. */
#include "request/domain.h"
#include "test_request_table.h"

#define L63 "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0"
#define L61 "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxy"

static const struct row rows[] = {
        /* names that people write */
        { "example.com", "example.com" },
        { "api.example.com", "api.example.com" },
        { "API.Example.COM.", "api.example.com" },
        { "EXAMPLE.COM", "example.com" },
        { "example.com.", "example.com" },
        { "a.b", "a.b" },
        { "a.b.c.d.e.f.g.h", "a.b.c.d.e.f.g.h" },
        { "registry.example", "registry.example" },
        { "files.registry.example", "files.registry.example" },
        { "service.internal", "service.internal" },
        { "printer.local", "printer.local" },
        { "host.test", "host.test" },
        { "www.example.co.uk", "www.example.co.uk" },
        { "my-host.example.com", "my-host.example.com" },
        { "r3---sn-abc.example.com", "r3---sn-abc.example.com" },
        { "ab--cd.example.com", "ab--cd.example.com" },
        { "my_bucket.storage.example.com", "my_bucket.storage.example.com" },
        { "_dmarc.example.com", "_dmarc.example.com" },
        { "_sip._tcp.example.com", "_sip._tcp.example.com" },
        { "a_.example.com", "a_.example.com" },
        { "__.example.com", "__.example.com" },
        { "3com.com", "3com.com" },
        { "1.example.com", "1.example.com" },
        { "127.0.0.1.example.com", "127.0.0.1.example.com" },
        { "0x7f.example.com", "0x7f.example.com" },
        { "10.0.0.1.in-addr.arpa", "10.0.0.1.in-addr.arpa" },
        { "8.b.d.0.1.0.0.2.ip6.arpa", "8.b.d.0.1.0.0.2.ip6.arpa" },
        { "4chan.example", "4chan.example" },
        { "x.1a", "x.1a" },
        { "x.a1", "x.a1" },
        { "x.0xg", "x.0xg" },
        { "x.0y1", "x.0y1" },
        { "x.x0", "x.x0" },
        { "x.1e", "x.1e" },
        { "x.1-2", "x.1-2" },
        { "0.0.0.0.a", "0.0.0.0.a" },
        { "xn--bcher-kva.example", "xn--bcher-kva.example" },
        { "XN--BCHER-KVA.EXAMPLE", "xn--bcher-kva.example" },
        { "xn--mnchen-3ya.de", "xn--mnchen-3ya.de" },
        { "example.xn--p1ai", "example.xn--p1ai" },
        { "xn--80akhbyknj4f.xn--p1ai", "xn--80akhbyknj4f.xn--p1ai" },
        { "xn--a.example", "xn--a.example" },
        { "xn-.example", "!pattern" },
        { "x.y", "x.y" },
        { "X.Y.", "x.y" },
        { "localhost.localdomain", "localhost.localdomain" },
        { "a-b.c-d", "a-b.c-d" },
        { "a.b-c", "a.b-c" },
        { "ec2-1-2-3-4.compute.example.com", "ec2-1-2-3-4.compute.example.com" },
        { "0.example", "0.example" },
        { "00.00.example", "00.00.example" },
        { "metadata.google.internal", "metadata.google.internal" },
        { "169.254.169.254.nip.example", "169.254.169.254.nip.example" },
        { L63 ".example", L63 ".example" },
        { "example." L63, "example." L63 },
        { L63 "." L63 "." L63 "." L61, L63 "." L63 "." L63 "." L61 },
        { L63 "." L63 "." L63 "." L61 ".", L63 "." L63 "." L63 "." L61 },

        /* too long */
        { L63 "." L63 "." L63 "." L61 "x", "!length" },
        { L63 "." L63 "." L63 "." L61 "x.", "!length" },
        { L63 "." L63 "." L63 "." L63 "." L63, "!length" },
        { L63 "x.example", "!length" },
        { "example." L63 "x", "!length" },
        { "a." L63 "abcdefgh.b", "!length" },

        /* single labels */
        { "localhost", "!unsupported" },
        { "localhost.", "!unsupported" },
        { "com", "!unsupported" },
        { "a", "!unsupported" },
        { "intranet", "!unsupported" },
        { "xn--p1ai", "!unsupported" },
        { "any", "!unsupported" },
        { L63, "!unsupported" },

        /* IPv4, in every spelling that some client takes */
        { "10.0.0.1", "!unsupported" },
        { "127.0.0.1", "!unsupported" },
        { "127.0.0.1.", "!unsupported" },
        { "169.254.169.254", "!unsupported" },
        { "255.255.255.255", "!unsupported" },
        { "0.0.0.0", "!unsupported" },
        { "256.256.256.256", "!unsupported" },
        { "999.1", "!unsupported" },
        { "0", "!unsupported" },
        { "1", "!unsupported" },
        { "127.1", "!unsupported" },
        { "127.0.1", "!unsupported" },
        { "1.2.3", "!unsupported" },
        { "1.2.3.4.5", "!unsupported" },
        { "2130706433", "!unsupported" },
        { "017700000001", "!unsupported" },
        { "0177.0.0.1", "!unsupported" },
        { "0x7f.1", "!unsupported" },
        { "0x7f000001", "!unsupported" },
        { "0X7F000001", "!unsupported" },
        { "0x7f.0x0.0x0.0x1", "!unsupported" },
        { "0x", "!unsupported" },
        { "0x.0x.0", "!unsupported" },
        { "127.0.0.0x1", "!unsupported" },
        { "127.0.0.0X1F", "!unsupported" },
        { "example.0x", "!unsupported" },
        { "example.0xAbC", "!unsupported" },
        { "example.com.1", "!unsupported" },
        { "example.com.08", "!unsupported" },
        { "example.com.09.", "!unsupported" },
        { "foo.123", "!unsupported" },
        { "a.0", "!unsupported" },
        { "999999999999999999999999", "!unsupported" },
        { "1.2.3.4:80", "!unsupported" },
        { "10.0.0.0/8", "!unsupported" },

        /* IPv6 */
        { "::1", "!unsupported" },
        { "::", "!unsupported" },
        { "[::1]", "!unsupported" },
        { "[::1]:443", "!unsupported" },
        { "[fe80::1%lo]", "!unsupported" },
        { "fe80::1%lo", "!unsupported" },
        { "fe80::1", "!unsupported" },
        { "2001:db8::1", "!unsupported" },
        { "2001:DB8:0:0:0:0:0:1", "!unsupported" },
        { "::ffff:10.0.0.1", "!unsupported" },
        { "64:ff9b::10.0.0.1", "!unsupported" },
        { "[example.com]", "!unsupported" },
        { "[", "!unsupported" },

        /* more than a host name */
        { "https://example.com", "!unsupported" },
        { "http://example.com/", "!unsupported" },
        { "HTTPS://EXAMPLE.COM:443/x?y#z", "!unsupported" },
        { "ftp://example.com", "!unsupported" },
        { "://example.com", "!unsupported" },
        { "//example.com", "!unsupported" },
        { "mailto:user@example.com", "!unsupported" },
        { "user@example.com", "!unsupported" },
        { "user:secret@example.com", "!unsupported" },
        { "@example.com", "!unsupported" },
        { "example.com@", "!unsupported" },
        { "example.com:443", "!unsupported" },
        { "example.com:", "!unsupported" },
        { ":443", "!unsupported" },
        { "example.com/", "!unsupported" },
        { "example.com/path", "!unsupported" },
        { "example.com?x=1", "!unsupported" },
        { "example.com#top", "!unsupported" },
        { "example.com\\path", "!unsupported" },
        { "\\\\example.com\\share", "!unsupported" },
        { "*.example.com", "!unsupported" },
        { "*", "!unsupported" },
        { "*.com", "!unsupported" },
        { "api.*.example.com", "!unsupported" },
        { "api*.example.com", "!unsupported" },
        { "**.example.com", "!unsupported" },

        /* other scripts, and what looks like ASCII */
        { "b\303\274cher.example", "!unsupported" },
        { "\320\277\321\200\320\270\320\274\320\265\321\200.\321\200\321\204", "!unsupported" },
        { "\344\276\213\345\255\220.example", "!unsupported" },
        { "\357\274\221\357\274\222\357\274\227.0.0.1", "!unsupported" },
        { "ex\305\277ample.com", "!unsupported" },
        { "example\343\200\202com", "!unsupported" },
        { "exam\302\255ple.com", "!unsupported" },
        { "\342\204\252elvin.example", "!unsupported" },
        { "example.com\302\240", "!unsupported" },
        { "\377.example", "!unsupported" },

        /* no name at all */
        { "", "!pattern" },
        { ".", "!pattern" },
        { "..", "!pattern" },
        { "...", "!pattern" },
        { ".example.com", "!pattern" },
        { "example..com", "!pattern" },
        { "example.com..", "!pattern" },
        { ".com", "!pattern" },
        { " ", "!pattern" },
        { "exa mple.com", "!pattern" },
        { " example.com", "!pattern" },
        { "example.com ", "!pattern" },
        { "example.com\n", "!pattern" },
        { "example\t.com", "!pattern" },
        { "example.com\r\nHost: x", "!unsupported" },
        { "exam\001ple.com", "!pattern" },
        { "exam\177ple.com", "!pattern" },
        { "-example.com", "!pattern" },
        { "example-.com", "!pattern" },
        { "a.-b.com", "!pattern" },
        { "a.b-.com", "!pattern" },
        { "-.example", "!pattern" },
        { "--.example", "!pattern" },
        { "example.-com", "!pattern" },
        { "example.com-", "!pattern" },
        { "example.c_m", "!pattern" },
        { "example._com", "!pattern" },
        { "xn--.example", "!pattern" },
        { "XN--.example", "!pattern" },
        { "example.xn--", "!pattern" },
        { "exam+ple.com", "!pattern" },
        { "exam,ple.com", "!pattern" },
        { "a.com,b.com", "!pattern" },
        { "a.com;b.com", "!pattern" },
        { "exam!ple.com", "!pattern" },
        { "exam$ple.com", "!pattern" },
        { "exam%70le.com", "!pattern" },
        { "%65xample.com", "!pattern" },
        { "exam&ple.com", "!pattern" },
        { "exam'ple.com", "!pattern" },
        { "\"example.com\"", "!pattern" },
        { "(example.com)", "!pattern" },
        { "<example.com>", "!pattern" },
        { "exam=ple.com", "!pattern" },
        { "exam~ple.com", "!pattern" },
        { "exam`ple.com", "!pattern" },
        { "exam|ple.com", "!pattern" },
        { "exam^ple.com", "!pattern" },
        { "{example.com}", "!pattern" },
        { "$HOST.example.com", "!pattern" },
};

static void parse_domain(const char *text, size_t n, char *ret, size_t size, const char **ret_message)
{
        static struct rv_fault fault;
        char name[RV_DOMAIN_SIZE] = "untouched";
        int r;

        fault = (struct rv_fault){ 0 };
        r = rv_domain_parse(text, n, name, &fault);
        if (r == 0) {
                snprintf(ret, size, "%s", name);
                return;
        }
        assert_int_equal(r, RV_DOMAIN_E_INVALID);
        assert_string_equal(name, "untouched");
        assert_int_equal(rv_domain_parse(text, n, name, NULL), RV_DOMAIN_E_INVALID);
        assert_true(strlen(fault.message) > 0);
        snprintf(ret, size, "!%s", rv_fault_code_name(fault.code));
        *ret_message = fault.message;
}

static void table(void **state)
{
        check_rows(rows, RV_N_ELEMENTS(rows), parse_domain);
}

static void table_has_enough_different_rows(void **state)
{
        check_rows_differ(rows, RV_N_ELEMENTS(rows), 150);
}

/* What comes out is taken again, and comes out the same. */
static void canonical_is_stable(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                char again[RV_DOMAIN_SIZE];

                if (rows[i].expected[0] == '!')
                        continue;
                assert_int_equal(rv_domain_parse(rows[i].expected, strlen(rows[i].expected), again, NULL), 0);
                assert_string_equal(again, rows[i].expected);
        }
}

static void nul_is_no_part_of_a_name(void **state)
{
        static const struct {
                const char *name, *text;
                size_t n;
        } cases[] = {
                { "in the middle", "exam\0ple.com", 12 }, { "at the end", "example.com\0", 12 },
                { "before an allowed suffix", "evil.example\0.example.com", 25 }, { "alone", "\0", 1 },
        };
        struct rv_fault fault;
        char name[RV_DOMAIN_SIZE];

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                char *text = exact_copy(cases[i].text, cases[i].n);

                if (rv_domain_parse(text, cases[i].n, name, &fault) != RV_DOMAIN_E_INVALID)
                        fail_msg("NUL %s was taken", cases[i].name);
                assert_int_equal(fault.code, RV_FAULT_PATTERN);
                free(text);
        }
}

static void within_goes_by_whole_labels(void **state)
{
        static const struct {
                const char *name, *suffix;
                bool is_within;
        } cases[] = {
                { "example.com", "example.com", true },
                { "a.example.com", "example.com", true },
                { "a.b.example.com", "example.com", true },
                { "a.b.example.com", "b.example.com", true },
                { "notexample.com", "example.com", false },
                { "example.com.evil.test", "example.com", false },
                { "example.org", "example.com", false },
                { "com", "example.com", false },
                { "example.com", "a.example.com", false },
                { "ample.com", "example.com", false },
                { "xexample.com", "example.com", false },
                { "a.example.com", "xample.com", false },
                { "a.example.com", "com", true },
                { "example.com", "", false },
                { "", "example.com", false },
                { "", "", false },
                { "a.example.com", ".example.com", false },
                { "a-example.com", "example.com", false },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++)
                if (rv_domain_is_within(cases[i].name, cases[i].suffix) != cases[i].is_within)
                        fail_msg("\"%s\" within \"%s\"", cases[i].name, cases[i].suffix);
}

/* What a client gives may be one label; all else is as in a request. */
static void hosts_may_have_one_label(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                char name[RV_DOMAIN_SIZE], host[RV_DOMAIN_SIZE];
                int r = rv_domain_parse(rows[i].text, strlen(rows[i].text), name, NULL);
                int r_host = rv_domain_parse_host(rows[i].text, strlen(rows[i].text), host, NULL);

                if (r == 0 ? r_host != 0 || strcmp(name, host) != 0 : r_host == 0 && strchr(host, '.'))
                        fail_msg("\"%s\": %d as a host", rows[i].text, r_host);
        }
        for (size_t i = 0; i < 2; i++) {
                static const char *const labels[] = { "LOCALHOST.", "localhost" };
                char host[RV_DOMAIN_SIZE];

                assert_int_equal(rv_domain_parse_host(labels[i], strlen(labels[i]), host, NULL), 0);
                assert_string_equal(host, "localhost");
        }
}

static void ends_in_number(void **state)
{
        static const struct {
                const char *text;
                bool is_number;
        } cases[] = {
                { "127.1", true }, { "127.1.", true }, { "0", true }, { "0x", true }, { "a.0xF", true }, { "a b.1", true },
                { "1.a", false }, { "a.0xg", false }, { "", false }, { ".", false }, { "a..", false }, { "1..", false },
                { "x0", false },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++)
                if (rv_domain_ends_in_number(cases[i].text, strlen(cases[i].text)) != cases[i].is_number)
                        fail_msg("\"%s\"", cases[i].text);
}

static void messages_quote_safely(void **state)
{
        struct rv_fault fault;
        char name[RV_DOMAIN_SIZE];

        assert_int_equal(rv_domain_parse("a\033[2J\n.com", 10, name, &fault), RV_DOMAIN_E_INVALID);
        assert_non_null(strstr(fault.message, "a\\027[2J\\010.com"));
        for (const char *p = fault.message; *p; p++)
                assert_in_range(*p, 0x20, 0x7e);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table),
                cmocka_unit_test(table_has_enough_different_rows),
                cmocka_unit_test(canonical_is_stable),
                cmocka_unit_test(nul_is_no_part_of_a_name),
                cmocka_unit_test(within_goes_by_whole_labels),
                cmocka_unit_test(hosts_may_have_one_label),
                cmocka_unit_test(ends_in_number),
                cmocka_unit_test(messages_quote_safely),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
