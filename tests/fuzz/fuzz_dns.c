/*
 * DNS messages: what is answered, libresolv reads as an answer to the same question; it is small, says no more than
 * policy allows, and the same question has the same answer. The first byte of an input is the run's mode.
 */
#include "fuzz.h"

#include "egress/dns.h"

#include <arpa/nameser.h>
#include <strings.h>

static const char *const denied[] = { "bad.example.com" };
static const struct rv_name_rule allowed[] = { { "example.com", NULL, 0, false } };

static bool is_printable(const char *text)
{
        for (; *text; text++)
                if (*text <= ' ' || *text >= 0x7f)
                        return false;
        return true;
}

/* The one record there can be. */
static void check_record(ns_msg *answer, const struct rv_dns_report *report, const struct rv_synth *synth)
{
        struct rv_address address;
        ns_rr rr;

        FUZZ_CHECK(ns_msg_count(*answer, ns_s_an) == 1 && report->type == ns_t_a && report->denial == RV_DENIAL_NONE);
        FUZZ_CHECK(ns_parserr(answer, ns_s_an, 0, &rr) == 0);
        FUZZ_CHECK(ns_rr_type(rr) == ns_t_a && ns_rr_class(rr) == ns_c_in && ns_rr_rdlen(rr) == 4 &&
                ns_rr_ttl(rr) == RV_DNS_TTL_S);
        FUZZ_CHECK(
                rv_address_make(ns_rr_rdata(rr), 4, &address) == 0 && rv_address_is_equal(&address, &report->address));
        FUZZ_CHECK(strcasecmp(ns_rr_name(rr), report->name) == 0, "%s", ns_rr_name(rr));
        FUZZ_CHECK(strcmp(rv_synth_find(synth, &address), report->name) == 0);
}

static void check_answer(const uint8_t *message, size_t n, const uint8_t *data, size_t size,
        const struct rv_dns_report *report, const struct rv_synth *synth)
{
        ns_msg answer;

        FUZZ_CHECK(size >= 12 && size <= n + 16 && size <= RV_DNS_ANSWER_MAX, "%zu for %zu", size, n);
        FUZZ_CHECK(memcmp(data, message, 2) == 0);
        FUZZ_CHECK(ns_initparse(data, (int)size, &answer) == 0, "%zu bytes", size);
        FUZZ_CHECK(ns_msg_getflag(answer, ns_f_qr) == 1 && ns_msg_getflag(answer, ns_f_tc) == 0);
        FUZZ_CHECK(ns_msg_getflag(answer, ns_f_rcode) == (report->rcode & 15));
        FUZZ_CHECK(ns_msg_count(answer, ns_s_ns) == 0 && ns_msg_count(answer, ns_s_ar) <= 1 &&
                ns_msg_count(answer, ns_s_qd) <= 1);
        if (ns_msg_count(answer, ns_s_qd)) {
                size_t end = 12;

                FUZZ_CHECK(report->name[0] != 0);
                for (; data[end]; end += 1u + data[end])
                        FUZZ_CHECK(data[end] < 64 && end + data[end] < size);
                FUZZ_CHECK(end + 5 <= n && memcmp(data + 12, message + 12, end + 5 - 12) == 0);
        }
        if (report->has_address)
                check_record(&answer, report, synth);
        else
                FUZZ_CHECK(ns_msg_count(answer, ns_s_an) == 0);
        FUZZ_CHECK((report->rcode == 0) == (report->denial == RV_DENIAL_NONE), "%u, %s", report->rcode, rv_denial_word(report->denial));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(rv_synth_freep) struct rv_synth *synth = NULL;
        struct fuzz_cursor in = { data, size };
        struct rv_names names = { .mode = (enum rv_network_mode)(fuzz_byte(&in) & 3),
                .allowed = allowed,
                .n_allowed = 1,
                .denied = denied,
                .n_denied = 1 };
        uint8_t answer[RV_DNS_ANSWER_MAX], again[RV_DNS_ANSWER_MAX];
        struct rv_dns_report report;
        size_t n = 0, n_again = 0;
        int r;

        FUZZ_CHECK(rv_synth_new(1, &synth) == 0);
        r = rv_dns_answer(&names, synth, in.data, in.size, answer, &n, &report);
        FUZZ_CHECK(r == 0 || r == RV_DNS_E_SILENT);
        FUZZ_CHECK(is_printable(report.name) && strlen(report.name) < RV_NAME_TEXT_SIZE, "%s", report.name);
        FUZZ_CHECK(rv_synth_count(synth) == report.has_address);
        if (r == RV_DNS_E_SILENT) {
                FUZZ_CHECK(in.size < 12 || in.data[2] & 0x80);
                return 0;
        }
        check_answer(in.data, in.size, answer, n, &report, synth);
        if (report.denial == RV_DENIAL_NONE && names.mode != RV_NETWORK_ANY) {
                FUZZ_CHECK(names.mode != RV_NETWORK_NONE);
                FUZZ_CHECK(rv_domain_is_within(report.name, "example.com") && !rv_domain_is_within(report.name, denied[0]), "%s", report.name);
        }
        FUZZ_CHECK(rv_dns_answer(&names, synth, in.data, in.size, again, &n_again, &report) == 0);
        FUZZ_CHECK(n == n_again && memcmp(answer, again, n) == 0);
        return 0;
}
