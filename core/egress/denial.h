/*
 * denial.h - why something of a run's network is refused: the words of `denials[].rule`
 *
 * One table for every place that refuses: names, addresses, DNS, TLS, HTTP and the gate itself. 0 is not refused. The
 * words are part of the outcome, so they are added to and never changed. Plain values; any thread.
 */
#pragma once

#include "base/rv.h"

/* X(NAME, word, what it means to the person who reads the outcome) */
/* clang-format off */
#define RV_DENIALS(X) \
        X(NAME, "name", "the name is not one of those that the run may reach") \
        X(SINGLE_LABEL, "single-label", "a name of one label, which is no name of the public DNS") \
        X(NOT_A_NAME, "not-a-name", "what stands for a name is none") \
        X(LITERAL, "literal", "an IP address stands where a name is wanted") \
        X(PORT, "port", "policy or configuration does not allow this port") \
        X(CONFIGURED, "egress.deny", "the configuration names it among what no run may reach") \
        X(UNNAMED, "no-name", "a connection to an address that no name was given for") \
        X(NAME_LIMIT, "name-limit", "the run has asked for too many names") \
        X(PRIVATE, "private", "an address of a private network") \
        X(LOOPBACK, "loopback", "an address of the machine itself") \
        X(LINK_LOCAL, "link-local", "an address that is valid on one link only") \
        X(METADATA, "metadata", "an address at which clouds hand out credentials") \
        X(CGNAT, "cgnat", "an address shared behind a provider's NAT, or of an overlay network") \
        X(NAT64, "nat64", "an IPv6 address that stands for an IPv4 address (NAT64)") \
        X(6TO4, "6to4", "an IPv6 address that stands for an IPv4 address (6to4)") \
        X(TEREDO, "teredo", "an IPv6 address that stands for an IPv4 address (Teredo)") \
        X(DOCUMENTATION, "documentation", "an address for examples") \
        X(BENCHMARK, "benchmark", "an address for measurements, from which synthetic addresses are taken too") \
        X(MULTICAST, "multicast", "an address of a group") \
        X(RESERVED, "reserved", "an address that is not of the public Internet") \
        X(OWN, "own", "an address of the host that reeve runs on") \
        X(DNS_QUERY, "dns-query", "a DNS message that is ill-formed or of a kind that is not answered") \
        X(TLS_NO_NAME, "tls-no-name", "a TLS client that names no server (no SNI)") \
        X(TLS_NAMES, "tls-names", "a TLS client that names several servers, or one in a form that is not a host name") \
        X(TLS_MALFORMED, "tls-malformed", "it begins like TLS and is not a ClientHello") \
        X(TLS_TOO_LARGE, "tls-too-large", "the ClientHello is larger than 64 KiB") \
        X(SSLV2, "sslv2", "an SSLv2 hello, which can name no server") \
        X(HTTP_MALFORMED, "http-malformed", "an HTTP request that servers do not all read in the same way") \
        X(HTTP_HOST, "http-host", "an HTTP request without exactly one Host, or whose target names another") \
        X(HTTP_FRAMING, "http-framing", "an HTTP request whose end servers do not all see in the same place") \
        X(HTTP_CONNECT, "http-connect", "HTTP's CONNECT, which would open a tunnel") \
        X(HTTP_UPGRADE, "http-upgrade", "an upgrade from HTTP, after which no Host can be checked") \
        X(HTTP_EXPECT, "http-expect", "an expectation, such as 100-continue, which can leave open whether a body follows") \
        X(HTTP_VERSION, "http-version", "an HTTP version other than 1.0 and 1.1") \
        X(HTTP_TOO_LARGE, "http-too-large", "a request head above 64 KiB or 256 fields, or a trailer above its bounds") \
        X(HTTP2, "http2", "HTTP/2 without TLS, whose requests cannot be checked") \
        X(PROTOCOL, "protocol", "on ports 80 and 443 a client that speaks first has to speak TLS or HTTP/1") \
        X(GATE_PORT, "gate-port", "the port at which connections of the run are taken, of whatever address") \
        X(CONNECTION_LIMIT, "connection-limit", "the run has too many connections open") \
        X(BYTE_LIMIT, "byte-limit", "the run has moved as many bytes as it may") \
        X(UNRESOLVED, "unresolved", "the name may be reached and has no address, or its servers did not answer in time")
/* clang-format on */

enum rv_denial {
        RV_DENIAL_NONE,
#define X(name, word, text) RV_DENIAL_##name,
        RV_DENIALS(X)
#undef X
        _RV_DENIAL_MAX,
};

/** rv_denial_word() - as written in the outcome; "" for none. Context: any. Ownership: static. Return: the word */
const char *rv_denial_word(enum rv_denial denial);
/** rv_denial_text() - what it means, the end of a sentence; "" for none. Context: any. Ownership: static. Return: the text */
const char *rv_denial_text(enum rv_denial denial);
