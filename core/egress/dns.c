#include "egress/dns.h"

#include <string.h>

#define HEADER_SIZE 12
#define LABEL_MAX 63
#define EDNS_SIZE 1232u   /* what we take; the usual bound that no path fragments */

enum { FLAG_QR = 0x8000, FLAG_RD = 0x0100, FLAG_RA = 0x0080, FLAG_CD = 0x0010, OPCODE = 0x7800 };
enum { NOERROR = 0, FORMERR = 1, SERVFAIL = 2, NXDOMAIN = 3, NOTIMP = 4, REFUSED = 5, BADVERS = 16 };
enum { TYPE_A = 1, TYPE_OPT = 41, CLASS_IN = 1, EDNS_DO = 0x8000 };

struct query {
        const uint8_t *data;
        size_t n, at;
        uint16_t flags;
        size_t question_size;              /* 0: there is none to repeat */
        char name[RV_DNS_NAME_MAX + 1];    /* labels joined by dots; any bytes */
        size_t n_name;
        bool is_ambiguous;                 /* a label has a dot in it */
        uint16_t type, class;
        bool has_edns;
        uint8_t edns_version;
        uint16_t edns_flags;
};

static uint16_t get16(const uint8_t *p)
{
        return (uint16_t)(p[0] << 8 | p[1]);
}

static uint8_t *put16(uint8_t *p, unsigned value)
{
        p[0] = (uint8_t)(value >> 8);
        p[1] = (uint8_t)value;
        return p + 2;
}

/* The question's name, which precedes everything that a pointer could point at: there can be none in it. */
static bool read_name(struct query *q)
{
        size_t begin = q->at;

        for (;;) {
                uint8_t size;

                if (q->at >= q->n)
                        return false;
                size = q->data[q->at++];
                if (size == 0)
                        return true;
                if (size > LABEL_MAX || size > q->n - q->at || q->at + size - begin >= RV_DNS_NAME_MAX)
                        return false;
                if (q->n_name)
                        q->name[q->n_name++] = '.';
                q->is_ambiguous = q->is_ambiguous || memchr(q->data + q->at, '.', size);
                memcpy(q->name + q->n_name, q->data + q->at, size);
                q->n_name += size;
                q->at += size;
        }
}

static bool read_question(struct query *q)
{
        if (!read_name(q) || q->n - q->at < 4)
                return false;
        q->type = get16(q->data + q->at);
        q->class = get16(q->data + q->at + 2);
        q->at += 4;
        q->question_size = q->at - HEADER_SIZE;
        return true;
}

/* A name that does not matter: its end is all that is looked for, so a pointer need not be followed. */
static bool skip_name(struct query *q)
{
        while (q->at < q->n) {
                uint8_t size = q->data[q->at++];

                if (size == 0)
                        return true;
                if ((size & 0xc0) == 0xc0)
                        return q->at++ < q->n;
                if (size > LABEL_MAX || size > q->n - q->at)
                        return false;
                q->at += size;
        }
        return false;
}

/* One record of the additional section. Only OPT means anything: it is the root's, and there is one at most. */
static bool read_additional(struct query *q)
{
        bool is_root = q->at < q->n && q->data[q->at] == 0;
        const uint8_t *fixed;
        uint16_t type, size;

        if (!skip_name(q) || q->n - q->at < 10)
                return false;
        fixed = q->data + q->at;
        type = get16(fixed);
        size = get16(fixed + 8);
        q->at += 10;
        if (size > q->n - q->at)
                return false;
        q->at += size;
        if (type != TYPE_OPT)
                return true;
        if (q->has_edns || !is_root)
                return false;
        q->has_edns = true;
        q->edns_version = fixed[5];
        q->edns_flags = get16(fixed + 6);
        return true;
}

/* Returns the answer's code as far as the form of the message decides it. */
static unsigned read_query(struct query *q)
{
        uint16_t n_additional = get16(q->data + 10);

        if (q->flags & OPCODE)
                return NOTIMP;
        if (get16(q->data + 4) != 1 || get16(q->data + 6) || get16(q->data + 8))
                return FORMERR;
        q->at = HEADER_SIZE;
        if (!read_question(q))
                return FORMERR;
        for (unsigned i = 0; i < n_additional; i++)
                if (!read_additional(q))
                        return FORMERR;
        if (q->at != q->n)
                return FORMERR;
        if (q->has_edns && q->edns_version > 0)
                return BADVERS;
        return q->class == CLASS_IN ? NOERROR : REFUSED;
}

/* For a person. A dot inside a label must not look like one between two. */
static void print_name(const struct query *q, char ret[RV_NAME_TEXT_SIZE])
{
        char part[RV_NAME_TEXT_SIZE];
        size_t at = HEADER_SIZE, used = 0;

        if (!q->is_ambiguous || q->question_size == 0) {
                rv_name_print(q->n_name ? q->name : ".", q->n_name ? q->n_name : 1, ret);
                return;
        }
        for (uint8_t size; (size = q->data[at]) != 0; at += 1u + size) {
                if (used)
                        ret[used++] = '.';
                for (uint8_t i = 0; i < size; i++) {
                        char c = (char)q->data[at + 1u + i];
                        const char *text = c == '.' ? "\\046" : rv_name_print(&c, 1, part);
                        size_t n = strlen(text);

                        memcpy(ret + used, text, n);
                        used += n;
                }
        }
        ret[used] = 0;
}

static int judge(
        const struct rv_names *names, struct rv_synth *synth, const struct query *q, struct rv_dns_report *report)
{
        struct rv_hostname host;
        int r;

        report->type = q->type;
        rv_hostname_parse(q->name, q->n_name, RV_HOSTNAME_BARE, &host);
        report->denial = rv_names_judge(names, &host, 0);
        /* Where every Host passes, a question that is no name's still has no answer. */
        if (host.kind != RV_HOSTNAME_DOMAIN || q->is_ambiguous)
                report->denial = host.kind == RV_HOSTNAME_LITERAL ? RV_DENIAL_LITERAL : RV_DENIAL_NOT_A_NAME;
        if (report->denial) {
                print_name(q, report->name);
                report->rcode = NXDOMAIN;
                return 0;
        }
        memcpy(report->name, host.name, sizeof(host.name));
        report->rcode = NOERROR;
        if (q->type != TYPE_A)
                return 0;
        r = rv_synth_get(synth, host.name, &report->address);
        if (r < 0)
                return rv_trace(r);
        if (r == RV_SYNTH_E_FULL) {
                report->denial = RV_DENIAL_NAME_LIMIT;
                report->rcode = SERVFAIL;
                return 0;
        }
        report->has_address = true;
        return 0;
}

/* Header, the question byte for byte (clients compare its case), one record or none, OPT if there was one. */
static size_t write_answer(const struct query *q, const struct rv_dns_report *report, uint8_t *ret)
{
        unsigned flags = FLAG_QR | FLAG_RA | (q->flags & (OPCODE | FLAG_RD | FLAG_CD)) | (report->rcode & 0xf);
        uint8_t *p = ret;

        memcpy(p, q->data, 2);
        p = put16(p + 2, flags);
        p = put16(p, q->question_size > 0);
        p = put16(p, report->has_address);
        p = put16(p, 0);
        p = put16(p, q->has_edns);
        memcpy(p, q->data + HEADER_SIZE, q->question_size);
        p += q->question_size;
        if (report->has_address) {
                p = put16(p, 0xc000 | HEADER_SIZE);
                p = put16(p, TYPE_A);
                p = put16(p, CLASS_IN);
                p = put16(p, 0);
                p = put16(p, RV_DNS_TTL_S);
                p = put16(p, 4);
                memcpy(p, report->address.bytes, 4);
                p += 4;
        }
        if (q->has_edns) {
                *p++ = 0;
                p = put16(p, TYPE_OPT);
                p = put16(p, EDNS_SIZE);
                *p++ = (uint8_t)(report->rcode >> 4);
                *p++ = 0;
                p = put16(p, q->edns_flags & EDNS_DO);
                p = put16(p, 0);
        }
        return (size_t)(p - ret);
}

int rv_dns_answer(const struct rv_names *names, struct rv_synth *synth, const void *message, size_t n,
        uint8_t ret_answer[RV_DNS_ANSWER_MAX], size_t *ret_n, struct rv_dns_report *ret_report)
{
        struct query q = { .data = message, .n = n };
        int r;

        *ret_report = (struct rv_dns_report){ .denial = RV_DENIAL_DNS_QUERY };
        if (n < HEADER_SIZE)
                return RV_DNS_E_SILENT;
        q.flags = get16(q.data + 2);
        if (q.flags & FLAG_QR)
                return RV_DNS_E_SILENT;
        ret_report->rcode = (uint16_t)read_query(&q);
        if (ret_report->rcode == NOERROR) {
                r = judge(names, synth, &q, ret_report);
                if (r < 0)
                        return rv_trace(r);
        } else if (q.question_size) {
                ret_report->type = q.type;
                print_name(&q, ret_report->name);
        }
        *ret_n = write_answer(&q, ret_report, ret_answer);
        return 0;
}
