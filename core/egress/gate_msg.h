/*
 * gate_msg.h - the messages between the loop and the gate
 *
 * One SOCK_SEQPACKET pair, the gate's end its descriptor 3, fixed-size messages, native byte order (one machine). The
 * loop asks and the gate answers each message once:
 *
 *     ADD     -> READY the run is served, or REFUSED with the reason in `text`
 *     REMOVE  -> REPORT: every connection of the run is ended, its sockets are closed; with the evidence, or REFUSED
 *
 * What a program had written before it ended still goes to where it was sent: REMOVE closes the run's sockets and lets
 * its connections come to their end for `drain_ms`, after which they are reset. REPORT comes then, at once if there is
 * nothing left to send; what is asked of other runs meanwhile is answered before it.
 *
 * A message of another size or kind is REFUSED too. The end of the channel ends the gate. Rules and evidence are JSON
 * in a memfd each (gate_rules.h, evidence.h). `id` is the loop's name for a run on this channel. Plain values.
 */
#pragma once

#include <stdint.h>

#define RV_GATE_CHANNEL_FD 3
#define RV_GATE_RULES_BYTES_MAX (1u << 20)
#define RV_GATE_RUNS_MAX 1024
#define RV_GATE_DRAIN_MS 1000      /* of REMOVE's `drain_ms`, the most that counts */

enum rv_gate_kind {
        RV_GATE_ADD = 1,
        RV_GATE_REMOVE,
        RV_GATE_READY,
        RV_GATE_REFUSED,
        RV_GATE_REPORT,
};

/*
 * The descriptors of ADD: first the memfd with the rules, then the run's sockets, in any order as each is asked what
 * it is: the listener for TCP, the listener at port 53 for DNS over TCP, the DNS socket of IPv4 and, if the run has
 * IPv6, that of IPv6. REPORT has one: the memfd with the evidence.
 */
#define RV_GATE_FDS_MAX 5

struct rv_gate_message {
        uint32_t kind;         /* enum rv_gate_kind */
        uint32_t drain_ms;     /* REMOVE: for how long what was written may still go out; else 0 */
        uint64_t id;
        char text[256];        /* REFUSED: one line; else empty */
};
