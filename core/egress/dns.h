/*
 * dns.h - the DNS that a run sees: every question is answered from policy, none is passed on
 *
 * One message in, at most one out (RFC 1035, 6891). A name that the run may reach has one A record, its synthetic
 * address (synth.h), and for every other type NOERROR without records: without AAAA, HTTPS and SVCB there is nothing
 * by which a client could go round the gate (IPv6, ECH, QUIC). Every other name does not exist, and nobody outside is
 * told that it was asked for. What is ill-formed or of another kind gets the answer that says so; what is itself an
 * answer, or has no whole header, gets none. An answer has at most RV_DNS_ANSWER_MAX bytes, which fits every
 * transport: nothing is ever truncated, and a message brings no more than its own size and 16 bytes back.
 *
 * The caller has the sockets: over UDP a datagram is a message, over TCP two bytes of length precede it. Plain
 * functions; one thread for a run, since a question can give a name its address.
 */
#pragma once

#include "egress/names.h"
#include "egress/synth.h"

#define RV_DNS_ANSWER_MAX 512
#define RV_DNS_NAME_MAX 255   /* octets of a name in a message, its lengths and the root included */

/*
 * Seconds that a client may keep an answer. It stays true for all of the run, so any number is right; a minute spares
 * a client that asks before each connection, and none is known to object to it as some do to 0.
 */
#define RV_DNS_TTL_S 60

#define RV_DNS_E_SILENT 1

/* What was asked and what came of it, for the lists of the outcome. */
struct rv_dns_report {
        enum rv_denial denial;            /* DNS_QUERY: `name` and `type` may be empty */
        char name[RV_NAME_TEXT_SIZE];     /* canonical if it was allowed, else fit to be shown; "." is the root */
        uint16_t type;
        uint16_t rcode;                   /* of the answer; above 15 as EDNS has it */
        bool has_address;
        struct rv_address address;        /* of an A record */
};

/**
 * rv_dns_answer() - answer one message
 * @names, @synth: of the run
 * @message:       without TCP's length
 * @ret_answer, @ret_n: the answer; set on 0 only
 * @ret_report:    always set
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; RV_DNS_E_SILENT: there is to be no answer; -ENOMEM
 */
int rv_dns_answer(const struct rv_names *names, struct rv_synth *synth, const void *message, size_t n,
        uint8_t ret_answer[RV_DNS_ANSWER_MAX], size_t *ret_n, struct rv_dns_report *ret_report);
