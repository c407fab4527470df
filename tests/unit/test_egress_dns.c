/* The DNS that a run sees: messages as bytes, what comes back, and what is reported. */
#include "egress/dns.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define Q(flags) "\x12\x34" flags "\0\1\0\0\0\0\0\0"           /* one question */
#define QE(flags) "\x12\x34" flags "\0\1\0\0\0\0\0\1"          /* and one additional record */
#define RD "\1\0"
#define EXAMPLE "\7example\3com\0"
#define A_IN "\0\1\0\1"
#define OPT "\0\0\x29\4\xd0\0\0\0\0\0\0"
#define OPT_DO "\0\0\x29\x10\0\0\0\x80\0\0\0"
#define RR_A "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\0\1"
#define OPT_BACK "\0\0\x29\4\xd0\0\0\0\0\0\0"
#define L63 "\x3f" "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0"

static const struct row {
        const char *name, *message;
        size_t n;
        const char *answer;   /* NULL: none */
        size_t n_answer;
        const char *word, *shown;
} rows[] = {
#define BYTES(text) text, sizeof(text) - 1
#define ROW(name, message, answer, word, shown) { name, BYTES(message), BYTES(answer), word, shown }
#define SILENT(name, message) { name, BYTES(message), NULL, 0, "dns-query", "" }
        /* allowed */
        ROW("A", Q(RD) EXAMPLE A_IN, "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" EXAMPLE A_IN RR_A, "", "example.com"),
        ROW("A without RD", Q("\0\0") EXAMPLE A_IN, "\x12\x34\x80\x80\0\1\0\1\0\0\0\0" EXAMPLE A_IN RR_A, "", "example.com"),
        ROW("A, case kept", Q(RD) "\7eXAMple\3CoM\0" A_IN, "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" "\7eXAMple\3CoM\0" A_IN RR_A, "", "example.com"),
        ROW("A below", Q(RD) "\1a" EXAMPLE A_IN, "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" "\1a" EXAMPLE A_IN RR_A, "", "a.example.com"),
        ROW("CD is copied, AD and Z are not", Q("\1\x70") EXAMPLE A_IN, "\x12\x34\x81\x90\0\1\0\1\0\0\0\0" EXAMPLE A_IN RR_A, "", "example.com"),
        ROW("EDNS", QE(RD) EXAMPLE A_IN OPT, "\x12\x34\x81\x80\0\1\0\1\0\0\0\1" EXAMPLE A_IN RR_A OPT_BACK, "", "example.com"),
        ROW("EDNS with DO", QE(RD) EXAMPLE A_IN OPT_DO,
                "\x12\x34\x81\x80\0\1\0\1\0\0\0\1" EXAMPLE A_IN RR_A "\0\0\x29\4\xd0\0\0\x80\0\0\0", "", "example.com"),
        ROW("EDNS with a cookie, which is not returned", QE(RD) EXAMPLE A_IN "\0\0\x29\2\0\0\0\0\0\0\x0c\0\x0a\0\x08" "12345678",
                "\x12\x34\x81\x80\0\1\0\1\0\0\0\1" EXAMPLE A_IN RR_A OPT_BACK, "", "example.com"),
        ROW("EDNS with size 0", QE(RD) EXAMPLE A_IN "\0\0\x29\0\0\0\0\0\0\0\0",
                "\x12\x34\x81\x80\0\1\0\1\0\0\0\1" EXAMPLE A_IN RR_A OPT_BACK, "", "example.com"),
        ROW("additional record that is not OPT", QE(RD) EXAMPLE A_IN "\xc0\x0c\0\1\0\1\0\0\0\0\0\4" "1234",
                "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" EXAMPLE A_IN RR_A, "", "example.com"),
        /* every other type: it exists, and has nothing */
        ROW("AAAA", Q(RD) EXAMPLE "\0\x1c\0\1", "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" EXAMPLE "\0\x1c\0\1", "", "example.com"),
        ROW("HTTPS", QE(RD) EXAMPLE "\0\x41\0\1" OPT, "\x12\x34\x81\x80\0\1\0\0\0\0\0\1" EXAMPLE "\0\x41\0\1" OPT_BACK, "", "example.com"),
        ROW("SVCB", Q(RD) EXAMPLE "\0\x40\0\1", "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" EXAMPLE "\0\x40\0\1", "", "example.com"),
        ROW("ANY", Q(RD) EXAMPLE "\0\xff\0\1", "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" EXAMPLE "\0\xff\0\1", "", "example.com"),
        ROW("TXT", Q(RD) EXAMPLE "\0\x10\0\1", "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" EXAMPLE "\0\x10\0\1", "", "example.com"),
        ROW("MX", Q(RD) EXAMPLE "\0\x0f\0\1", "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" EXAMPLE "\0\x0f\0\1", "", "example.com"),
        ROW("CNAME", Q(RD) EXAMPLE "\0\5\0\1", "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" EXAMPLE "\0\5\0\1", "", "example.com"),
        ROW("SRV", Q(RD) "\4_sip\4_tcp" EXAMPLE "\0\x21\0\1", "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" "\4_sip\4_tcp" EXAMPLE "\0\x21\0\1", "", "_sip._tcp.example.com"),
        ROW("AXFR", Q(RD) EXAMPLE "\0\xfc\0\1", "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" EXAMPLE "\0\xfc\0\1", "", "example.com"),
        ROW("type 0", Q(RD) EXAMPLE "\0\0\0\1", "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" EXAMPLE "\0\0\0\1", "", "example.com"),
        ROW("type 65535", Q(RD) EXAMPLE "\xff\xff\0\1", "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" EXAMPLE "\xff\xff\0\1", "", "example.com"),
        /* every other name: there is none */
        ROW("denied A", Q(RD) "\4evil\4test\0" A_IN, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\4evil\4test\0" A_IN, "name", "evil.test"),
        ROW("denied, EDNS", QE(RD) "\4evil\4test\0" A_IN OPT, "\x12\x34\x81\x83\0\1\0\0\0\0\0\1" "\4evil\4test\0" A_IN OPT_BACK, "name", "evil.test"),
        ROW("denied TXT", Q(RD) "\6secret\4evil\4test\0" "\0\x10\0\1", "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\6secret\4evil\4test\0" "\0\x10\0\1", "name", "secret.evil.test"),
        ROW("label boundary", Q(RD) "\13evilexample\3com\0" A_IN, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\13evilexample\3com\0" A_IN, "name", "evilexample.com"),
        ROW("configured away", Q(RD) "\3bad" EXAMPLE A_IN, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\3bad" EXAMPLE A_IN, "egress.deny", "bad.example.com"),
        ROW("one label", Q(RD) "\x09localhost\0" A_IN, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\x09localhost\0" A_IN, "single-label", "localhost"),
        ROW("the root", Q(RD) "\0\0\2\0\1", "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\0\0\2\0\1", "not-a-name", "."),
        ROW("PTR", Q(RD) "\1""1\1""0\2""18\3""198\7in-addr\4arpa\0" "\0\x0c\0\1",
                "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\1""1\1""0\2""18\3""198\7in-addr\4arpa\0" "\0\x0c\0\1", "name", "1.0.18.198.in-addr.arpa"),
        ROW("address as a name", Q(RD) "\2""10\1""0\1""0\1""1\0" A_IN, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\2""10\1""0\1""0\1""1\0" A_IN, "literal", "10.0.0.1"),
        ROW("NUL in a label", Q(RD) "\4a\0b\xff" EXAMPLE A_IN, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\4a\0b\xff" EXAMPLE A_IN, "not-a-name", "a\\000b\\255.example.com"),
        ROW("dot in a label", Q(RD) "\x0b" "example.com\0" A_IN, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\x0b" "example.com\0" A_IN, "not-a-name", "example\\046com"),
        ROW("dot at a label's end", Q(RD) "\7example\4com.\0" A_IN, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\7example\4com.\0" A_IN, "not-a-name", "example.com\\046"),
        ROW("dot and space in a label", Q(RD) "\3a .\1b\0" A_IN, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" "\3a .\1b\0" A_IN, "not-a-name", "a\\032\\046.b"),
        ROW("label of 63", Q(RD) L63 EXAMPLE A_IN, "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" L63 EXAMPLE A_IN RR_A, "",
                "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0.example.com"),
        /* other kinds of questions */
        ROW("class CH", Q(RD) "\7version\4bind\0" "\0\x10\0\3", "\x12\x34\x81\x85\0\1\0\0\0\0\0\0" "\7version\4bind\0" "\0\x10\0\3", "dns-query", "version.bind"),
        ROW("class ANY", Q(RD) EXAMPLE "\0\1\0\xff", "\x12\x34\x81\x85\0\1\0\0\0\0\0\0" EXAMPLE "\0\1\0\xff", "dns-query", "example.com"),
        ROW("opcode STATUS", Q("\x10\0") EXAMPLE A_IN, "\x12\x34\x90\x84\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("opcode UPDATE", "\x12\x34\x28\0\0\1\0\0\0\1\0\0" EXAMPLE "\0\6\0\1", "\x12\x34\xa8\x84\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("EDNS 1", QE(RD) EXAMPLE A_IN "\0\0\x29\4\xd0\0\1\0\0\0\0",
                "\x12\x34\x81\x80\0\1\0\0\0\0\0\1" EXAMPLE A_IN "\0\0\x29\4\xd0\1\0\0\0\0\0", "dns-query", "example.com"),
        /* ill-formed */
        ROW("no question", "\x12\x34\1\0\0\0\0\0\0\0\0\0", "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("two questions", "\x12\x34\1\0\0\2\0\0\0\0\0\0" EXAMPLE A_IN EXAMPLE A_IN, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("an answer in a question", "\x12\x34\1\0\0\1\0\1\0\0\0\0" EXAMPLE A_IN RR_A, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("authority in a question", "\x12\x34\1\0\0\1\0\0\0\1\0\0" EXAMPLE A_IN RR_A, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("header alone", Q(RD), "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("name not ended", Q(RD) "\7example", "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("label past the end", Q(RD) "\7exam", "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("no type", Q(RD) EXAMPLE, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("half a class", Q(RD) EXAMPLE "\0\1\0", "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("pointer to itself", Q(RD) "\xc0\x0c" A_IN, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("pointer after a label", Q(RD) "\1a\xc0\x0c" A_IN, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("pointer into the header", Q(RD) "\xc0\0" A_IN, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("label type 01", Q(RD) "\x41" "a\0" A_IN, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("label type 10", Q(RD) "\x81" "a\0" A_IN, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("label of 64", Q(RD) "\x40" L63 "xx" EXAMPLE A_IN, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("name of 256", Q(RD) L63 L63 L63 "\x3e" "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz" "\0" A_IN,
                "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", "dns-query", ""),
        ROW("bytes after the end", Q(RD) EXAMPLE A_IN "\0", "\x12\x34\x81\x81\0\1\0\0\0\0\0\0" EXAMPLE A_IN, "dns-query", "example.com"),
        ROW("record missing", QE(RD) EXAMPLE A_IN, "\x12\x34\x81\x81\0\1\0\0\0\0\0\0" EXAMPLE A_IN, "dns-query", "example.com"),
        ROW("record cut", QE(RD) EXAMPLE A_IN "\0\0\x29\4\xd0\0\0\0\0\0", "\x12\x34\x81\x81\0\1\0\0\0\0\0\0" EXAMPLE A_IN, "dns-query", "example.com"),
        ROW("record's data cut", QE(RD) EXAMPLE A_IN "\0\0\x29\4\xd0\0\0\0\0\0\4" "123", "\x12\x34\x81\x81\0\1\0\0\0\0\0\0" EXAMPLE A_IN, "dns-query", "example.com"),
        ROW("pointer cut", QE(RD) EXAMPLE A_IN "\xc0", "\x12\x34\x81\x81\0\1\0\0\0\0\0\0" EXAMPLE A_IN, "dns-query", "example.com"),
        ROW("two OPT", "\x12\x34\1\0\0\1\0\0\0\0\0\2" EXAMPLE A_IN OPT OPT,
                "\x12\x34\x81\x81\0\1\0\0\0\0\0\1" EXAMPLE A_IN OPT_BACK, "dns-query", "example.com"),
        ROW("OPT of a name", QE(RD) EXAMPLE A_IN "\1a\0\0\x29\4\xd0\0\0\0\0\0\0", "\x12\x34\x81\x81\0\1\0\0\0\0\0\0" EXAMPLE A_IN, "dns-query", "example.com"),
        ROW("65535 records", "\x12\x34\1\0\0\1\0\0\0\0\xff\xff" EXAMPLE A_IN, "\x12\x34\x81\x81\0\1\0\0\0\0\0\0" EXAMPLE A_IN, "dns-query", "example.com"),
        /* no answer */
        SILENT("empty", ""),
        SILENT("eleven bytes", "\x12\x34\1\0\0\1\0\0\0\0\0"),
        SILENT("an answer", Q("\x81\x80") EXAMPLE A_IN),
        SILENT("an answer, opcode 2", Q("\x90\0") EXAMPLE A_IN),
#undef SILENT
#undef ROW
};

static const struct rv_name_rule allowed[] = { { .name = "example.com" } };
static const char *const denied[] = { "bad.example.com" };
static const struct rv_names names = {
        .mode = RV_NETWORK_DOMAINS, .allowed = allowed, .n_allowed = 1, .denied = denied, .n_denied = 1
};

static int answer(const struct rv_names *n, struct rv_synth *synth, const void *message, size_t size,
        uint8_t ret[RV_DNS_ANSWER_MAX], size_t *ret_n, struct rv_dns_report *report)
{
        char *exact = malloc(size ? size : 1);
        int r;

        assert_non_null(exact);
        memcpy(exact, message, size);
        r = rv_dns_answer(n, synth, exact, size, ret, ret_n, report);
        free(exact);
        return r;
}

static void check(const struct row *row)
{
        _cleanup_(rv_synth_freep) struct rv_synth *synth = NULL;
        uint8_t got[RV_DNS_ANSWER_MAX];
        struct rv_dns_report report;
        size_t n = 7777;
        int r;

        assert_int_equal(rv_synth_new(1, &synth), 0);
        r = answer(&names, synth, row->message, row->n, got, &n, &report);
        if (r != (row->answer ? 0 : RV_DNS_E_SILENT))
                fail_msg("%s: %d", row->name, r);
        if (strcmp(rv_denial_word(report.denial), row->word) != 0 || strcmp(report.name, row->shown) != 0)
                fail_msg("%s: denial \"%s\", name \"%s\"", row->name, rv_denial_word(report.denial), report.name);
        if (!row->answer) {
                assert_int_equal(n, 7777);
                return;
        }
        if (n == row->n_answer && memcmp(got, row->answer, n) == 0)
                return;
        for (size_t i = 0; i < n; i++)
                print_error("%02x%s", got[i], i + 1 < n && i < row->n_answer && got[i] != (uint8_t)row->answer[i] ? "! " : " ");
        fail_msg("%s: %zu bytes for %zu", row->name, n, row->n_answer);
}

static void table(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                check(&rows[i]);
        print_message("%zu rows\n", RV_N_ELEMENTS(rows));
}

/* However a message is cut, it is refused or not answered, and no byte past its end is read. */
static void cut_everywhere(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                for (size_t n = 0; n < rows[i].n; n++) {
                        _cleanup_(rv_synth_freep) struct rv_synth *synth = NULL;
                        uint8_t got[RV_DNS_ANSWER_MAX];
                        struct rv_dns_report report;
                        size_t n_got = 0;
                        int r;

                        assert_int_equal(rv_synth_new(1, &synth), 0);
                        r = answer(&names, synth, rows[i].message, n, got, &n_got, &report);
                        assert_true(r == (n < 12 ? RV_DNS_E_SILENT : rows[i].answer ? 0 : RV_DNS_E_SILENT));
                        assert_true(n_got <= n + 16);
                }
        }
}

/* The longest name there is, allowed and asked for by EDNS: the largest answer, and it fits. */
static void largest_answer(void **state)
{
        static const char message[] = QE(RD) L63 L63 L63 "\x31" "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklm"
                EXAMPLE A_IN OPT;
        _cleanup_(rv_synth_freep) struct rv_synth *synth = NULL;
        uint8_t got[RV_DNS_ANSWER_MAX];
        struct rv_dns_report report;
        size_t n = 0;

        assert_int_equal(rv_synth_new(1, &synth), 0);
        assert_int_equal(answer(&names, synth, message, sizeof(message) - 1, got, &n, &report), 0);
        assert_int_equal(n, 12 + 255 + 4 + 16 + 11);
        assert_int_equal(strlen(report.name), 253);
        assert_true(report.has_address && report.denial == RV_DENIAL_NONE);
}

/* A name of 255 bytes none of which can be shown as it is. */
static void longest_shown(void **state)
{
        _cleanup_(rv_synth_freep) struct rv_synth *synth = NULL;
        char message[12 + 255 + 4] = "\x12\x34\1\0\0\1";
        uint8_t got[RV_DNS_ANSWER_MAX];
        struct rv_dns_report report;
        size_t at = 12, n = 0;

        assert_int_equal(rv_synth_new(1, &synth), 0);
        for (size_t left = 254; left > 0;) {
                size_t size = left > 64 ? 63 : left - 1;

                message[at] = (char)size;
                memset(message + at + 1, left == 254 ? '.' : 0xff, size);
                at += 1 + size;
                left -= 1 + size;
        }
        message[at + 2] = 1;
        message[at + 4] = 1;
        assert_int_equal(at + 5, sizeof(message));
        assert_int_equal(answer(&names, synth, message, sizeof(message), got, &n, &report), 0);
        assert_int_equal(report.denial, RV_DENIAL_NOT_A_NAME);
        assert_int_equal(strlen(report.name), 250 * 4 + 3);
        assert_memory_equal(report.name, "\\046\\046", 8);
}

static size_t question(const char *label, char *ret)
{
        static const char head[] = Q(RD), tail[] = EXAMPLE A_IN;
        size_t n = strlen(label);

        memcpy(ret, head, sizeof(head) - 1);
        ret[12] = (char)n;
        memcpy(ret + 13, label, n);
        memcpy(ret + 13 + n, tail, sizeof(tail) - 1);
        return 13 + n + sizeof(tail) - 1;
}

static void names_run_out(void **state)
{
        _cleanup_(rv_synth_freep) struct rv_synth *synth = NULL;
        uint8_t got[RV_DNS_ANSWER_MAX];
        struct rv_dns_report report;
        char message[64], label[16];
        size_t n = 0;

        assert_int_equal(rv_synth_new(1, &synth), 0);
        for (size_t i = 0; i <= RV_SYNTH_NAMES_MAX; i++) {
                snprintf(label, sizeof(label), "n%zu", i);
                assert_int_equal(answer(&names, synth, message, question(label, message), got, &n, &report), 0);
                assert_int_equal(report.denial, i < RV_SYNTH_NAMES_MAX ? RV_DENIAL_NONE : RV_DENIAL_NAME_LIMIT);
        }
        assert_int_equal(report.rcode, 2);
        assert_string_equal(report.name, "n4096.example.com");
        assert_int_equal(got[3] & 15, 2);
        assert_int_equal(answer(&names, synth, message, question("n0", message), got, &n, &report), 0);
        assert_int_equal(report.denial, RV_DENIAL_NONE);
        assert_memory_equal(got + n - 4, "\xc6\x12\0\1", 4);
}

/* A flood of names that are denied costs no memory, and one name keeps its address. */
static void denied_take_no_address(void **state)
{
        static const char evil[] = Q(RD) "\4evil\4test\0" A_IN, aaaa[] = Q(RD) EXAMPLE "\0\x1c\0\1", a[] = Q(RD) EXAMPLE A_IN;
        _cleanup_(rv_synth_freep) struct rv_synth *synth = NULL;
        uint8_t got[RV_DNS_ANSWER_MAX];
        struct rv_dns_report report;
        size_t n = 0;

        assert_int_equal(rv_synth_new(1, &synth), 0);
        assert_int_equal(answer(&names, synth, evil, sizeof(evil) - 1, got, &n, &report), 0);
        assert_int_equal(answer(&names, synth, aaaa, sizeof(aaaa) - 1, got, &n, &report), 0);
        assert_int_equal(rv_synth_count(synth), 0);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(answer(&names, synth, a, sizeof(a) - 1, got, &n, &report), 0);
                assert_memory_equal(got + n - 4, "\xc6\x12\0\1", 4);
                assert_string_equal(rv_synth_find(synth, &report.address), "example.com");
        }
        assert_int_equal(rv_synth_count(synth), 1);
}

/* Where every name passes, what is none still has no answer. */
static void mode_any(void **state)
{
        static const struct {
                const char *name, *message;
                size_t n;
                const char *word;
        } cases[] = {
                { "a name", BYTES(Q(RD) "\4evil\4test\0" A_IN), "" },
                { "an address", BYTES(Q(RD) "\3""127\1""1\0" A_IN), "literal" },
                { "a space", BYTES(Q(RD) "\3a b\4test\0" A_IN), "not-a-name" },
                { "a dot in a label", BYTES(Q(RD) "\x09" "evil.test\0" A_IN), "not-a-name" },
                { "configured away", BYTES(Q(RD) "\3bad" EXAMPLE A_IN), "egress.deny" },
        };
        const struct rv_names any = { .mode = RV_NETWORK_ANY, .denied = denied, .n_denied = 1 }, none = { 0 };

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                _cleanup_(rv_synth_freep) struct rv_synth *synth = NULL;
                uint8_t got[RV_DNS_ANSWER_MAX];
                struct rv_dns_report report;
                size_t n = 0;

                assert_int_equal(rv_synth_new(1, &synth), 0);
                assert_int_equal(answer(&any, synth, cases[i].message, cases[i].n, got, &n, &report), 0);
                if (strcmp(rv_denial_word(report.denial), cases[i].word) != 0 ||
                        report.rcode != (cases[i].word[0] ? 3 : 0) || report.has_address != !cases[i].word[0])
                        fail_msg("%s: \"%s\"", cases[i].name, rv_denial_word(report.denial));
                assert_int_equal(answer(&none, synth, cases[i].message, cases[i].n, got, &n, &report), 0);
                assert_int_equal(report.rcode, 3);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table), cmocka_unit_test(cut_everywhere), cmocka_unit_test(largest_answer),
                cmocka_unit_test(longest_shown), cmocka_unit_test(names_run_out),
                cmocka_unit_test(denied_take_no_address), cmocka_unit_test(mode_any),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
