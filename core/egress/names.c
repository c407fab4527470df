#include "egress/names.h"

#include <string.h>

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* 1 to 65535, in at most five digits. */
static bool parse_port(const char *text, size_t n, uint16_t *ret)
{
        uint32_t port = 0;

        if (n < 1 || n > 5)
                return false;
        for (size_t i = 0; i < n; i++) {
                if (!is_digit(text[i]))
                        return false;
                port = port * 10 + (uint32_t)(text[i] - '0');
        }
        if (port < 1 || port > 65535)
                return false;
        *ret = (uint16_t)port;
        return true;
}

/* Cuts ":PORT" off the end. Without brackets a second colon makes an IPv6 address, which has no port. */
static bool split_port(const char *text, size_t *n, struct rv_hostname *ret)
{
        const char *colon = *n ? memrchr(text, ':', *n) : NULL;
        size_t n_host;

        if (!colon)
                return true;
        n_host = (size_t)(colon - text);
        if (text[0] == '[' ? text[n_host ? n_host - 1 : 0] != ']' : memchr(text, ':', n_host) != NULL)
                return true;
        if (!parse_port(colon + 1, *n - n_host - 1, &ret->port))
                return false;
        ret->has_port = true;
        *n = n_host;
        return true;
}

/* An IPv6 address, perhaps in brackets or with a zone, an IPv4 address, or what ends in a number. */
static bool is_literal(const char *text, size_t n)
{
        const char *colon = memchr(text, ':', n);

        if (text[0] == '[' || (colon && memchr(colon + 1, ':', n - (size_t)(colon + 1 - text))))
                return true;
        return rv_domain_ends_in_number(text, n);
}

static void take_literal(const char *text, size_t n, enum rv_hostname_form form, struct rv_hostname *ret)
{
        bool is_bracketed = n >= 2 && text[0] == '[' && text[n - 1] == ']';

        ret->kind = RV_HOSTNAME_LITERAL;
        if (form == RV_HOSTNAME_AUTHORITY && is_bracketed != (memchr(text, ':', n) != NULL))
                return;
        if (is_bracketed && form == RV_HOSTNAME_AUTHORITY) {
                text++;
                n -= 2;
        }
        if (rv_address_parse(text, n, &ret->address) < 0)
                return;
        ret->has_address = true;
        rv_address_print(&ret->address, ret->name);
}

enum rv_hostname_kind rv_hostname_parse(const char *text, size_t n, enum rv_hostname_form form, struct rv_hostname *ret)
{
        *ret = (struct rv_hostname){ .kind = RV_HOSTNAME_INVALID };
        if (form == RV_HOSTNAME_AUTHORITY && !split_port(text, &n, ret)) {
                *ret = (struct rv_hostname){ .kind = RV_HOSTNAME_INVALID };
                return ret->kind;
        }
        if (n == 0)
                return ret->kind;
        if (rv_domain_parse_host(text, n, ret->name, NULL) == 0)
                ret->kind = RV_HOSTNAME_DOMAIN;
        else if (is_literal(text, n))
                take_literal(text, n, form, ret);
        return ret->kind;
}

bool rv_hostname_is_same(const struct rv_hostname *a, const struct rv_hostname *b, uint16_t default_port)
{
        if (a->kind != b->kind || a->name[0] == 0 || strcmp(a->name, b->name) != 0)
                return false;
        return (a->has_port ? a->port : default_port) == (b->has_port ? b->port : default_port);
}

static bool has_port(const uint16_t *ports, size_t n, uint16_t port)
{
        if (!ports || port == 0)
                return true;
        for (size_t i = 0; i < n; i++)
                if (ports[i] == port)
                        return true;
        return false;
}

/* What the list says: allowed, allowed on other ports, or not there. */
static enum rv_denial judge_list(const struct rv_names *names, const struct rv_hostname *host, uint16_t port)
{
        bool is_below_enough = names->mode == RV_NETWORK_DOMAINS && host->kind == RV_HOSTNAME_DOMAIN;
        enum rv_denial denial = RV_DENIAL_NAME;

        if (host->name[0] == 0)
                return denial;
        for (size_t i = 0; i < names->n_allowed; i++) {
                const struct rv_name_rule *rule = &names->allowed[i];

                if (is_below_enough ? !rv_domain_is_within(host->name, rule->name)
                                    : strcmp(host->name, rule->name) != 0)
                        continue;
                if (has_port(rule->ports, rule->n_ports, port))
                        return RV_DENIAL_NONE;
                denial = RV_DENIAL_PORT;
        }
        return denial;
}

/* The same, but the reason is what the text is where it is on no list. */
static enum rv_denial judge_kind(const struct rv_names *names, const struct rv_hostname *host, uint16_t port)
{
        enum rv_denial denial = judge_list(names, host, port);

        if (denial != RV_DENIAL_NAME)
                return denial;
        if (host->kind == RV_HOSTNAME_DOMAIN && !strchr(host->name, '.'))
                return RV_DENIAL_SINGLE_LABEL;
        if (names->mode == RV_NETWORK_ANY)
                return RV_DENIAL_NONE;
        switch (host->kind) {
        case RV_HOSTNAME_LITERAL: return RV_DENIAL_LITERAL;
        case RV_HOSTNAME_INVALID: return RV_DENIAL_NOT_A_NAME;
        case RV_HOSTNAME_DOMAIN: break;
        }
        return RV_DENIAL_NAME;
}

enum rv_denial rv_names_judge(const struct rv_names *names, const struct rv_hostname *host, uint16_t port)
{
        enum rv_denial denial;

        if (host->kind == RV_HOSTNAME_DOMAIN)
                for (size_t i = 0; i < names->n_denied; i++)
                        if (rv_domain_is_within(host->name, names->denied[i]))
                                return RV_DENIAL_CONFIGURED;
        if (names->mode == RV_NETWORK_NONE)
                return RV_DENIAL_NAME;
        denial = judge_kind(names, host, port);
        if (denial)
                return denial;
        return has_port(names->ports, names->n_ports, port) ? RV_DENIAL_NONE : RV_DENIAL_PORT;
}

const char *rv_name_print(const void *text, size_t n, char ret[RV_NAME_TEXT_SIZE])
{
        size_t shown = RV_MIN(n, (size_t)RV_NAME_TEXT_BYTES), at = 0;
        const uint8_t *p = text;

        for (size_t i = 0; i < shown; i++) {
                uint8_t c = p[i];

                if (c > 0x20 && c < 0x7f && c != '\\' && c != '"') {
                        ret[at++] = (char)c;
                        continue;
                }
                ret[at++] = '\\';
                ret[at++] = (char)('0' + c / 100);
                ret[at++] = (char)('0' + c / 10 % 10);
                ret[at++] = (char)('0' + c % 10);
        }
        memcpy(ret + at, "...", 4);
        if (shown == n)
                ret[at] = 0;
        return ret;
}
