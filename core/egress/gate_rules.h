/*
 * gate_rules.h - what one run may reach, as the gate is told it: one JSON object, read strictly
 *
 *     {"mode":"domains", "domains":["example.com"], "ports":[443], "original":"tproxy", "listen_port":1,
 *      "resolve":{"api.example.com":"10.0.0.5"}, "deny":["bad.example.com","192.0.2.0/24"],
 *      "registries":[{"host":"registry.example","port":443}], "proxy":{"host":"proxy.example","port":3128},
 *      "limits":{"connections":256,"connections_per_s":100,"bytes":0,"idle_ms":120000,"names":4096,"dns_per_s":200}}
 *
 * Only `mode` has to be there. A domain that has ports of its own is {"name":"example.com","ports":[443]}; a registry's
 * host that nobody but the index's page names has "is_learned":true, and has to be public. `domains` counts in mode
 * `domains` alone, `registries` and `proxy` in mode `registries` alone. An unknown member, a wrong type and a value out of its range are errors: what is not understood
 * is not served. The rules live with their run: read, use, free. Any thread.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "egress/names.h"

/* X(member, least, most, default): `limits`. What they bound is one run. */
/* clang-format off */
#define RV_GATE_LIMITS(X) \
        X(connections,        1, 16384,       256)      /* open at once */ \
        X(connections_per_s,  1, 1000000,     100)      /* a run that asks for more waits; as many may come at once */ \
        X(bytes,              0, INT64_MAX,   0)        /* both ways together; 0: without bound */ \
        X(idle_ms,            100, 86400000,  120000)   /* without a byte, then it ends */ \
        X(names,              1, 4096,        4096)     /* that DNS gives an address */ \
        X(dns_per_s,          1, 1000000,     200)      /* as connections_per_s */
/* clang-format on */

struct rv_gate_limits {
#define X(member, least, most, otherwise) uint64_t member;
        RV_GATE_LIMITS(X)
#undef X
};

struct rv_gate_resolve {
        const char *name;
        struct rv_address address;
};

struct rv_gate_rules {
        struct rv_names names;                    /* mode, allowed, denied, ports */
        struct rv_network *denied;                /* of `deny` what is no name */
        size_t n_denied;
        struct rv_gate_resolve *resolve;
        size_t n_resolve;
        const char *proxy_host;                   /* NULL: none; a name or an address */
        uint16_t proxy_port;
        bool is_redirect;                         /* `original` */
        uint16_t listen_port;
        struct rv_gate_limits limits;
        struct rv_arena arena;                    /* of all of it */
};

/**
 * rv_gate_rules_read() - parse them
 * @ret: untouched on failure
 *
 * Context:   any
 * Ownership: *@ret is the caller's (rv_gate_rules_free)
 * Return:    0; -EINVAL with the member in @err; -ENOMEM
 */
int rv_gate_rules_read(const char *text, size_t n, struct rv_gate_rules **ret, struct rv_error *err);
/** rv_gate_rules_free() - release rules or NULL. Context: any. Ownership: takes them. Return: none */
void rv_gate_rules_free(struct rv_gate_rules *rules);
RV_DEFINE_CLEANUP(struct rv_gate_rules, rv_gate_rules_free)

/** rv_gate_rules_resolve() - the address that the operator gave a name. Context: any. Ownership: the rules'. Return: it, or NULL */
const struct rv_address *rv_gate_rules_resolve(const struct rv_gate_rules *rules, const char *name);
/** rv_gate_rules_is_registry() - is it a registry's host and that registry's port, in mode `registries`, and not learned? Context: any. Ownership: borrows. Return: as named */
bool rv_gate_rules_is_registry(const struct rv_gate_rules *rules, const char *name, uint16_t port);
