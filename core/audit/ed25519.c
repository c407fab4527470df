#include "audit/ed25519.h"

#include <sodium/crypto_sign_ed25519.h>
#include <string.h>

struct rv_ed25519_key {
        uint8_t public_key[RV_ED25519_KEY_BYTES];
        uint8_t secret[crypto_sign_ed25519_SECRETKEYBYTES];
};

int rv_ed25519_key_new(const uint8_t secret[RV_ED25519_KEY_BYTES], struct rv_ed25519_key **ret)
{
        struct rv_ed25519_key *key = calloc(1, sizeof(*key));

        if (!key)
                return rv_raise(-ENOMEM);
        (void)crypto_sign_ed25519_seed_keypair(key->public_key, key->secret, secret);
        *ret = key;
        return 0;
}

void rv_ed25519_key_free(struct rv_ed25519_key *key)
{
        if (!key)
                return;
        explicit_bzero(key, sizeof(*key));
        free(key);
}

const uint8_t *rv_ed25519_key_public(const struct rv_ed25519_key *key)
{
        return key->public_key;
}

void rv_ed25519_sign(
        const struct rv_ed25519_key *key, const void *data, size_t n, uint8_t ret[RV_ED25519_SIGNATURE_BYTES])
{
        (void)crypto_sign_ed25519_detached(ret, NULL, data, n, key->secret);
}

bool rv_ed25519_verify(const uint8_t public_key[RV_ED25519_KEY_BYTES], const void *data, size_t n,
        const uint8_t signature[RV_ED25519_SIGNATURE_BYTES])
{
        return crypto_sign_ed25519_verify_detached(signature, data, n, public_key) == 0;
}
