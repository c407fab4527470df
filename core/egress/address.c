#include "egress/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define V4(a, b, c, d, bits) false, { a, b, c, d }, bits
#define V6(bits, ...) true, { __VA_ARGS__ }, bits

/*
 * The first row that holds the address says what it is. Cloud metadata comes first: it lies in other rows, or (the
 * fourth) in public space, where one provider answers it inside its networks. RFC 6890 and its successors; IPv6
 * outside 2000::/3 is not allocated, so the last row of IPv6 is the rest of it.
 */
static const struct {
        bool is_v6;
        uint8_t bytes[16];
        unsigned bits;
        enum rv_denial denial;
} table[] = {
        { V4(169, 254, 169, 254, 32), RV_DENIAL_METADATA },
        { V4(169, 254, 170, 2, 32), RV_DENIAL_METADATA },
        { V4(169, 254, 170, 23, 32), RV_DENIAL_METADATA },
        { V4(168, 63, 129, 16, 32), RV_DENIAL_METADATA },
        { V4(100, 100, 100, 200, 32), RV_DENIAL_METADATA },
        { V4(192, 0, 0, 192, 32), RV_DENIAL_METADATA },
        { V4(0, 0, 0, 0, 8), RV_DENIAL_RESERVED },
        { V4(10, 0, 0, 0, 8), RV_DENIAL_PRIVATE },
        { V4(100, 64, 0, 0, 10), RV_DENIAL_CGNAT },
        { V4(127, 0, 0, 0, 8), RV_DENIAL_LOOPBACK },
        { V4(169, 254, 0, 0, 16), RV_DENIAL_LINK_LOCAL },
        { V4(172, 16, 0, 0, 12), RV_DENIAL_PRIVATE },
        { V4(192, 0, 0, 0, 24), RV_DENIAL_RESERVED },
        { V4(192, 0, 2, 0, 24), RV_DENIAL_DOCUMENTATION },
        { V4(192, 88, 99, 0, 24), RV_DENIAL_6TO4 },
        { V4(192, 168, 0, 0, 16), RV_DENIAL_PRIVATE },
        { V4(198, 18, 0, 0, 15), RV_DENIAL_BENCHMARK },
        { V4(198, 51, 100, 0, 24), RV_DENIAL_DOCUMENTATION },
        { V4(203, 0, 113, 0, 24), RV_DENIAL_DOCUMENTATION },
        { V4(224, 0, 0, 0, 4), RV_DENIAL_MULTICAST },
        { V4(240, 0, 0, 0, 4), RV_DENIAL_RESERVED },
        { V6(128, 0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54), RV_DENIAL_METADATA },
        { V6(128, 0xfd, 0, 0x0e, 0xc2, [15] = 0x23), RV_DENIAL_METADATA },
        { V6(128, 0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54), RV_DENIAL_METADATA },
        { V6(128, 0xfe, 0x80, [12] = 0xa9, [13] = 0xfe, [14] = 0xa9, [15] = 0xfe), RV_DENIAL_METADATA },
        { V6(128, [15] = 1), RV_DENIAL_LOOPBACK },
        { V6(96, 0, 0x64, 0xff, 0x9b), RV_DENIAL_NAT64 },
        { V6(48, 0, 0x64, 0xff, 0x9b, 0, 1), RV_DENIAL_NAT64 },
        { V6(32, 0x20, 0x01, 0, 0), RV_DENIAL_TEREDO },
        { V6(48, 0x20, 0x01, 0, 0x02), RV_DENIAL_BENCHMARK },
        { V6(23, 0x20, 0x01), RV_DENIAL_RESERVED },
        { V6(32, 0x20, 0x01, 0x0d, 0xb8), RV_DENIAL_DOCUMENTATION },
        { V6(16, 0x20, 0x02), RV_DENIAL_6TO4 },
        { V6(20, 0x3f, 0xff), RV_DENIAL_DOCUMENTATION },
        { V6(3, 0x20), RV_DENIAL_NONE },
        { V6(7, 0xfc), RV_DENIAL_PRIVATE },
        { V6(10, 0xfe, 0x80), RV_DENIAL_LINK_LOCAL },
        { V6(10, 0xfe, 0xc0), RV_DENIAL_PRIVATE },
        { V6(8, 0xff), RV_DENIAL_MULTICAST },
        { V6(0, 0), RV_DENIAL_RESERVED },
};

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

/* Do the first @bits agree? */
static bool is_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
        unsigned whole = bits / 8, rest = bits % 8;

        if (memcmp(a, b, whole) != 0)
                return false;
        return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

int rv_address_make(const void *bytes, size_t n_bytes, struct rv_address *ret)
{
        const uint8_t *p = bytes;
        struct rv_address a = { .is_v6 = n_bytes == 16 };

        if (n_bytes != 4 && n_bytes != 16)
                return rv_raise(-EINVAL);
        if (n_bytes == 16 && memcmp(p, mapped, sizeof(mapped)) == 0) {
                a.is_v6 = false;
                p += sizeof(mapped);
                n_bytes = 4;
        }
        memcpy(a.bytes, p, n_bytes);
        *ret = a;
        return 0;
}

int rv_address_from_sockaddr(const struct sockaddr *sa, size_t n_sa, struct rv_address *ret, uint16_t *ret_port)
{
        union {
                struct sockaddr sa;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
        } u;
        int r;

        if (n_sa < sizeof(sa->sa_family))
                return rv_raise(-EINVAL);
        memset(&u, 0, sizeof(u));
        memcpy(&u, sa, RV_MIN(n_sa, sizeof(u)));
        if (u.sa.sa_family != AF_INET && u.sa.sa_family != AF_INET6)
                return rv_raise(-EAFNOSUPPORT);
        if (n_sa < (u.sa.sa_family == AF_INET ? sizeof(u.in) : sizeof(u.in6)))
                return rv_raise(-EINVAL);
        r = u.sa.sa_family == AF_INET ? rv_address_make(&u.in.sin_addr, 4, ret)
                                      : rv_address_make(&u.in6.sin6_addr, 16, ret);
        if (r == 0 && ret_port)
                *ret_port = ntohs(u.sa.sa_family == AF_INET ? u.in.sin_port : u.in6.sin6_port);
        return rv_trace(r);
}

socklen_t rv_address_to_sockaddr(const struct rv_address *address, uint16_t port, struct sockaddr_storage *ret)
{
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

        memset(ret, 0, sizeof(*ret));
        if (address->is_v6) {
                memcpy(&in6.sin6_addr, address->bytes, 16);
                memcpy(ret, &in6, sizeof(in6));
                return sizeof(in6);
        }
        memcpy(&in.sin_addr, address->bytes, 4);
        memcpy(ret, &in, sizeof(in));
        return sizeof(in);
}

int rv_address_parse(const char *text, size_t n, struct rv_address *ret)
{
        char copy[RV_ADDRESS_TEXT_SIZE];
        uint8_t bytes[16];

        if (n >= sizeof(copy) || memchr(text, 0, n))
                return rv_raise(-EINVAL);
        memcpy(copy, text, n);
        copy[n] = 0;
        if (inet_pton(AF_INET, copy, bytes) == 1)
                return rv_address_make(bytes, 4, ret);
        if (inet_pton(AF_INET6, copy, bytes) == 1)
                return rv_address_make(bytes, 16, ret);
        return rv_raise(-EINVAL);
}

const char *rv_address_print(const struct rv_address *address, char ret[RV_ADDRESS_TEXT_SIZE])
{
        if (!inet_ntop(address->is_v6 ? AF_INET6 : AF_INET, address->bytes, ret, RV_ADDRESS_TEXT_SIZE))
                ret[0] = 0;
        return ret;
}

bool rv_address_is_equal(const struct rv_address *a, const struct rv_address *b)
{
        return a->is_v6 == b->is_v6 && memcmp(a->bytes, b->bytes, a->is_v6 ? 16 : 4) == 0;
}

/* At most three digits, at most @max. */
static int parse_bits(const char *text, size_t n, unsigned max, unsigned *ret)
{
        unsigned bits = 0;

        if (n < 1 || n > 3)
                return rv_raise(-EINVAL);
        for (size_t i = 0; i < n; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return rv_raise(-EINVAL);
                bits = bits * 10 + (unsigned)(text[i] - '0');
        }
        if (bits > max)
                return rv_raise(-EINVAL);
        *ret = bits;
        return 0;
}

/* A network of IPv4 addresses in IPv6's clothes is the IPv4 network; one that holds them and more stays IPv6. */
int rv_network_parse(const char *text, size_t n, struct rv_network *ret)
{
        const char *slash = memchr(text, '/', n);
        size_t n_address = slash ? (size_t)(slash - text) : n;
        bool is_written_v6 = memchr(text, ':', n_address);
        unsigned written_max = is_written_v6 ? 128 : 32, bits = written_max;
        struct rv_network network = { 0 };
        int r = rv_address_parse(text, n_address, &network.address);

        if (r == 0 && slash)
                r = parse_bits(slash + 1, n - n_address - 1, written_max, &bits);
        if (r < 0)
                return rv_trace(r);
        if (is_written_v6 && !network.address.is_v6) {
                if (bits < 96) {
                        memcpy(network.address.bytes, mapped, sizeof(mapped));
                        network.address.is_v6 = true;
                        network.bits = bits;
                        *ret = network;
                        return 0;
                }
                bits -= 96;
        }
        network.bits = bits;
        *ret = network;
        return 0;
}

bool rv_network_holds(const struct rv_network *network, const struct rv_address *address)
{
        return network->address.is_v6 == address->is_v6 &&
                is_prefix(network->address.bytes, address->bytes, network->bits);
}

static enum rv_denial judge_kind(const struct rv_address *a)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++)
                if (table[i].is_v6 == a->is_v6 && is_prefix(table[i].bytes, a->bytes, table[i].bits))
                        return table[i].denial;
        return RV_DENIAL_NONE;
}

enum rv_denial rv_address_judge(const struct rv_address_rules *rules, const struct rv_address *address, uint16_t port)
{
        enum rv_denial denial;

        for (size_t i = 0; i < rules->n_denied; i++)
                if (rv_network_holds(&rules->denied[i], address))
                        return RV_DENIAL_CONFIGURED;
        for (size_t i = 0; i < rules->n_exempt; i++)
                if (rv_address_is_equal(&rules->exempt[i].address, address) &&
                    (rules->exempt[i].port == 0 || rules->exempt[i].port == port))
                        return RV_DENIAL_NONE;
        denial = judge_kind(address);
        if (denial)
                return denial;
        for (size_t i = 0; i < rules->n_own; i++)
                if (rv_address_is_equal(&rules->own[i], address))
                        return RV_DENIAL_OWN;
        return RV_DENIAL_NONE;
}
