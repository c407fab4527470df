/*
 * What the gate is told: its rules, which are made from a program's request and the configuration, and the messages
 * that carry them. Rules that are taken hold nothing outside their bounds, and names in their one spelling; a message
 * of another size is none, and no descriptor is lost. With an odd first byte the rest is a message with as many
 * descriptors as its half says, else rules.
 */
#include "fuzz.h"

#include "base/fd.h"
#include "egress/gate_rules.h"
#include "message.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A name or an address, written in no other way than it would be read again. */
static void check_host(const char *host)
{
        struct rv_hostname again;

        FUZZ_CHECK(*host && rv_hostname_parse(host, strlen(host), RV_HOSTNAME_BARE, &again) != RV_HOSTNAME_INVALID, "%s", host);
        FUZZ_CHECK(strcmp(again.name, host) == 0, "%s is %s", host, again.name);
}

static void check_allowed(const struct rv_gate_rules *rules, const struct rv_name_rule *rule)
{
        uint16_t port = rule->ports ? rule->ports[0] : 443;
        struct rv_hostname host;
        enum rv_denial denial;

        check_host(rule->name);
        FUZZ_CHECK((rule->ports != NULL) == (rules->names.mode == RV_NETWORK_REGISTRIES) &&
                (!rule->ports || (rule->n_ports == 1 && port)));
        rv_hostname_parse(rule->name, strlen(rule->name), RV_HOSTNAME_BARE, &host);
        denial = rv_names_judge(&rules->names, &host, port);
        FUZZ_CHECK(denial == RV_DENIAL_NONE || denial == RV_DENIAL_CONFIGURED || denial == RV_DENIAL_PORT, "%s: %s", rule->name,
                rv_denial_word(denial));
        if (rules->names.mode == RV_NETWORK_REGISTRIES)
                FUZZ_CHECK(rv_gate_rules_is_registry(rules, rule->name, port));
}

static void check_rules(const struct rv_gate_rules *rules)
{
        const struct rv_names *names = &rules->names;
        struct rv_hostname host;

        FUZZ_CHECK(names->mode > RV_NETWORK_NONE && names->mode <= RV_NETWORK_ANY);
        FUZZ_CHECK(names->mode == RV_NETWORK_ANY ? names->n_allowed == 0
                                                 : names->mode != RV_NETWORK_DOMAINS || names->n_allowed);
        FUZZ_CHECK(names->mode == RV_NETWORK_REGISTRIES || !rules->proxy_host);
        for (size_t i = 0; i < names->n_allowed; i++)
                check_allowed(rules, &names->allowed[i]);
        for (size_t i = 0; i < names->n_denied; i++) {
                check_host(names->denied[i]);
                rv_hostname_parse(names->denied[i], strlen(names->denied[i]), RV_HOSTNAME_BARE, &host);
                FUZZ_CHECK(rv_names_judge(names, &host, 443) == RV_DENIAL_CONFIGURED, "%s", names->denied[i]);
        }
        for (size_t i = 0; i < names->n_ports; i++)
                FUZZ_CHECK(names->ports[i]);
        for (size_t i = 0; i < rules->n_denied; i++)
                FUZZ_CHECK(rules->denied[i].bits <= (rules->denied[i].address.is_v6 ? 128u : 32u));
        for (size_t i = 0; i < rules->n_resolve; i++) {
                check_host(rules->resolve[i].name);
                FUZZ_CHECK(rv_gate_rules_resolve(rules, rules->resolve[i].name));
        }
        if (rules->proxy_host)
                check_host(rules->proxy_host);
        FUZZ_CHECK(!rules->proxy_host || rules->proxy_port);
        FUZZ_CHECK(rules->listen_port);
#define X(member, least, most, otherwise) FUZZ_CHECK(rules->limits.member + 1 > (least) && rules->limits.member <= (uint64_t)(most), #member);
        RV_GATE_LIMITS(X)
#undef X
}

static void feed_rules(const char *text, size_t n)
{
        _cleanup_(rv_gate_rules_freep) struct rv_gate_rules *rules = NULL;
        struct rv_error err = { 0 };
        int r = rv_gate_rules_read(text, n, &rules, &err);

        if (r == 0) {
                check_rules(rules);
                return;
        }
        FUZZ_CHECK(r == -EINVAL && !rules && fuzz_is_line(err.message), "%d %s", r, err.message);
}

static void feed_message(const uint8_t *data, size_t size, size_t n_sent)
{
        int pair[2], sent[RV_SEND_FDS_MAX], next_before, next_after, r;
        struct {
                int before, fds[RV_GATE_FDS_MAX], after;
        } got = { .before = 0x5a5a5a5a, .after = 0x5a5a5a5a };
        struct rv_gate_message m;
        size_t n_fds = SIZE_MAX;

        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        for (size_t i = 0; i < RV_SEND_FDS_MAX; i++)
                sent[i] = pair[0];
        next_before = dup(pair[0]);
        close(next_before);
        FUZZ_CHECK(message_receive(pair[1], &m, got.fds, &n_fds) == -EAGAIN && n_fds == 0);
        FUZZ_CHECK(rv_send_with_fds(pair[0], data, size, sent, n_sent) == 0);
        r = message_receive(pair[1], &m, got.fds, &n_fds);
        FUZZ_CHECK(got.before == 0x5a5a5a5a && got.after == 0x5a5a5a5a && n_fds == (n_sent > RV_GATE_FDS_MAX || size > sizeof(m) ? 0 : n_sent), "%zu", n_fds);
        for (size_t i = 0; i < n_fds; i++)
                FUZZ_CHECK(fcntl(got.fds[i], F_GETFD) == FD_CLOEXEC && close(got.fds[i]) == 0);
        next_after = dup(pair[0]);
        FUZZ_CHECK(next_after == next_before, "%d descriptors stay open", next_after - next_before);
        close(next_after);
        if (n_sent > RV_GATE_FDS_MAX)
                FUZZ_CHECK(r == -EBADMSG, "%d", r);
        else if (size == 0)
                FUZZ_CHECK(r == 0, "an empty message is the channel's end");
        else if (size != sizeof(m))
                FUZZ_CHECK(r == -EBADMSG, "%d", r);
        else
                FUZZ_CHECK(r == 1 && memcmp(&m, data, sizeof(m)) == 0, "%d", r);
        close(pair[0]);
        FUZZ_CHECK(message_receive(pair[1], &m, got.fds, &n_fds) == 0 && n_fds == 0);
        close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        uint8_t first = fuzz_byte(&in);

        if (first & 1)
                feed_message(in.data, in.size, (first >> 1) % (RV_SEND_FDS_MAX + 1));
        else
                feed_rules((const char *)in.data, in.size);
        return 0;
}
