#include "base/hash.h"

#include <string.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"   /* see hash.h */

void rv_sha256_init(struct rv_sha256 *h)
{
        SHA256_Init(&h->ctx);
}

void rv_sha256_update(struct rv_sha256 *h, const void *data, size_t n)
{
        SHA256_Update(&h->ctx, data, n);
}

void rv_sha256_final(struct rv_sha256 *h, uint8_t ret_digest[RV_SHA256_SIZE])
{
        SHA256_Final(ret_digest, &h->ctx);
}

void rv_sha512_init(struct rv_sha512 *h)
{
        SHA512_Init(&h->ctx);
}

void rv_sha384_init(struct rv_sha512 *h)
{
        SHA384_Init(&h->ctx);
}

void rv_sha512_update(struct rv_sha512 *h, const void *data, size_t n)
{
        SHA512_Update(&h->ctx, data, n);
}

void rv_sha512_final(struct rv_sha512 *h, uint8_t ret_digest[RV_SHA512_SIZE])
{
        /* The context knows which of the two it is. */
        SHA512_Final(ret_digest, &h->ctx);
}

void rv_sha256(const void *data, size_t n, uint8_t ret_digest[RV_SHA256_SIZE])
{
        struct rv_sha256 h;

        rv_sha256_init(&h);
        rv_sha256_update(&h, data, n);
        rv_sha256_final(&h, ret_digest);
}

void rv_hex(const void *data, size_t n, char *ret)
{
        static const char digits[] = "0123456789abcdef";
        const uint8_t *p = data;

        for (size_t i = 0; i < n; i++) {
                ret[2 * i] = digits[p[i] >> 4];
                ret[2 * i + 1] = digits[p[i] & 15];
        }
        ret[2 * n] = 0;
}

void rv_sha256_hex(const void *data, size_t n, char ret_hex[RV_SHA256_HEX_SIZE])
{
        uint8_t digest[RV_SHA256_SIZE];

        rv_sha256(data, n, digest);
        rv_hex(digest, sizeof(digest), ret_hex);
}

int rv_sha256_fd(int fd, char ret_hex[RV_SHA256_HEX_SIZE])
{
        enum { PIECE = 256 * 1024 };
        _cleanup_(rv_freep) char *piece = malloc(PIECE);
        uint8_t digest[RV_SHA256_SIZE];
        struct rv_sha256 h;
        ssize_t n;

        if (!piece)
                return rv_raise(-ENOMEM);
        rv_sha256_init(&h);
        while ((n = read(fd, piece, PIECE)) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return rv_raise(-errno);
                rv_sha256_update(&h, piece, (size_t)n);
        }
        rv_sha256_final(&h, digest);
        rv_hex(digest, sizeof(digest), ret_hex);
        return 0;
}

void rv_hmac_sha256(const void *key, size_t n_key, const void *data, size_t n, uint8_t ret_mac[RV_SHA256_SIZE])
{
        uint8_t block[64] = { 0 }, inner[RV_SHA256_SIZE];
        struct rv_sha256 h;

        if (n_key > sizeof(block))
                rv_sha256(key, n_key, block);
        else if (n_key)
                memcpy(block, key, n_key);
        for (size_t i = 0; i < sizeof(block); i++)
                block[i] ^= 0x36;
        rv_sha256_init(&h);
        rv_sha256_update(&h, block, sizeof(block));
        rv_sha256_update(&h, data, n);
        rv_sha256_final(&h, inner);
        for (size_t i = 0; i < sizeof(block); i++)
                block[i] ^= 0x36 ^ 0x5c;
        rv_sha256_init(&h);
        rv_sha256_update(&h, block, sizeof(block));
        rv_sha256_update(&h, inner, sizeof(inner));
        rv_sha256_final(&h, ret_mac);
}
