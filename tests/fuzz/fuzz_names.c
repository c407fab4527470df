/*
 * Names that clients give: one reading of each, that no reader of libc's takes for an address, within the list if it is
 * allowed, and shown so that it can be read back. The first byte of an input says in which form it came.
 */
#include "fuzz.h"

#include "egress/names.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>

static const char *const denied[] = { "bad.example.com" };
static const struct rv_name_rule allowed[] = { { "example.com", NULL, 0, false }, { "10.0.0.5", NULL, 0, false }, { "localhost", NULL, 0, false } };

static bool is_address(const char *text)
{
        struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *found = NULL;
        struct in_addr four;

        if (getaddrinfo(text, NULL, &hints, &found) == 0) {
                freeaddrinfo(found);
                return true;
        }
        return inet_aton(text, &four) != 0;
}

static void check_domain(const struct rv_hostname *host)
{
        struct rv_hostname again;
        char text[RV_DOMAIN_SIZE + 8];
        size_t n = strlen(host->name);

        FUZZ_CHECK(!is_address(host->name), "%s", host->name);
        for (size_t i = 0; i < n; i++)
                text[i] = (char)toupper((unsigned char)host->name[i]);
        memcpy(text + n, ".:80", 5);
        FUZZ_CHECK(rv_hostname_parse(text, n + 1, RV_HOSTNAME_BARE, &again) == RV_HOSTNAME_DOMAIN, "%s", text);
        FUZZ_CHECK(strcmp(again.name, host->name) == 0 && !again.has_port, "%s", text);
        FUZZ_CHECK(rv_hostname_parse(text, n + 4, RV_HOSTNAME_AUTHORITY, &again) == RV_HOSTNAME_DOMAIN, "%s", text);
        FUZZ_CHECK(strcmp(again.name, host->name) == 0 && again.has_port && again.port == 80, "%s", text);
}

static void check_literal(const struct rv_hostname *host)
{
        struct rv_hostname again;

        if (!host->has_address) {
                FUZZ_CHECK(host->name[0] == 0);
                return;
        }
        FUZZ_CHECK(is_address(host->name), "%s", host->name);
        FUZZ_CHECK(!host->address.is_v6 || !IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)host->address.bytes), "%s", host->name);
        FUZZ_CHECK(rv_hostname_parse(host->name, strlen(host->name), RV_HOSTNAME_BARE, &again) == RV_HOSTNAME_LITERAL);
        FUZZ_CHECK(again.has_address && rv_address_is_equal(&again.address, &host->address), "%s", host->name);
}

static bool is_listed(const struct rv_hostname *host, enum rv_network_mode mode)
{
        const char *name = host->name;
        size_t n = strlen(name), n_suffix = strlen(".example.com");

        if (host->kind == RV_HOSTNAME_DOMAIN && mode == RV_NETWORK_DOMAINS &&
            ((n > n_suffix && strcmp(name + n - n_suffix, ".example.com") == 0) ||
             (n > 10 && strcmp(name + n - 10, ".localhost") == 0)))
                return true;
        return strcmp(name, "example.com") == 0 || strcmp(name, "10.0.0.5") == 0 || strcmp(name, "localhost") == 0;
}

static void check_verdicts(const struct rv_hostname *host)
{
        for (int mode = RV_NETWORK_NONE; mode <= RV_NETWORK_ANY; mode++) {
                const struct rv_names names = { .mode = (enum rv_network_mode)mode, .allowed = allowed,
                                                .n_allowed = RV_N_ELEMENTS(allowed), .denied = denied, .n_denied = 1 };
                enum rv_denial denial = rv_names_judge(&names, host, 443);
                bool is_denied = strcmp(host->name, denied[0]) == 0 || strstr(host->name, ".bad.example.com");

                FUZZ_CHECK(rv_names_judge(&names, host, 0) == denial);
                if (mode == RV_NETWORK_NONE)
                        FUZZ_CHECK(denial != RV_DENIAL_NONE);
                else if (mode != RV_NETWORK_ANY && !is_denied)
                        FUZZ_CHECK((denial == RV_DENIAL_NONE) == is_listed(host, names.mode), "%s: %s", host->name, rv_denial_word(denial));
        }
}

/* Every byte comes back. */
static void check_shown(const uint8_t *data, size_t size)
{
        char text[RV_NAME_TEXT_SIZE];
        const char *p = rv_name_print(data, size, text);

        for (size_t i = 0; i < RV_MIN(size, (size_t)RV_NAME_TEXT_BYTES); i++) {
                unsigned byte = (uint8_t)*p;
                int n = 1;

                FUZZ_CHECK(*p > ' ' && *p < 0x7f, "%s", text);
                if (*p == '\\') {
                        FUZZ_CHECK(sscanf(p, "\\%3u%n", &byte, &n) == 1 && n == 4, "%s", text);
                }
                FUZZ_CHECK(byte == data[i], "%s", text);
                p += n;
        }
        FUZZ_CHECK(strcmp(p, size > RV_NAME_TEXT_BYTES ? "..." : "") == 0, "%s", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        enum rv_hostname_form form = fuzz_byte(&in) & 1 ? RV_HOSTNAME_AUTHORITY : RV_HOSTNAME_BARE;
        struct rv_hostname host;

        rv_hostname_parse((const char *)in.data, in.size, form, &host);
        FUZZ_CHECK(form == RV_HOSTNAME_AUTHORITY || !host.has_port);
        FUZZ_CHECK(!host.has_port || host.port > 0);
        switch (host.kind) {
        case RV_HOSTNAME_DOMAIN: check_domain(&host); break;
        case RV_HOSTNAME_LITERAL: check_literal(&host); break;
        case RV_HOSTNAME_INVALID: FUZZ_CHECK(host.name[0] == 0 && !host.has_address); break;
        }
        check_verdicts(&host);
        check_shown(in.data, in.size);
        return 0;
}
