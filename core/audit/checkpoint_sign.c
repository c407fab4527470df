#include "audit/checkpoint.h"

#include <openssl/evp.h>
#include <string.h>

RV_DEFINE_CLEANUP(EVP_PKEY, EVP_PKEY_free)
RV_DEFINE_CLEANUP(EVP_MD_CTX, EVP_MD_CTX_free)

int rv_checkpoint_public(const uint8_t secret[RV_CHECKPOINT_KEY_BYTES], uint8_t ret[RV_CHECKPOINT_KEY_BYTES])
{
        _cleanup_(EVP_PKEY_freep)
                EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, RV_CHECKPOINT_KEY_BYTES);
        size_t n = RV_CHECKPOINT_KEY_BYTES;

        return key && EVP_PKEY_get_raw_public_key(key, ret, &n) == 1 && n == RV_CHECKPOINT_KEY_BYTES ? 0
                                                                                                     : rv_raise(-EIO);
}

int rv_checkpoint_sign(struct rv_checkpoint *c, const uint8_t secret[RV_CHECKPOINT_KEY_BYTES])
{
        _cleanup_(EVP_PKEY_freep)
                EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, RV_CHECKPOINT_KEY_BYTES);
        _cleanup_(EVP_MD_CTX_freep) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        _cleanup_(rv_buf_fini) struct rv_buf body = { 0 };
        struct rv_checkpoint_signature *signature = &c->signatures[c->n_signatures];
        struct rv_checkpoint_key key = { 0 };
        size_t n = sizeof(signature->bytes);

        if (c->n_signatures == RV_CHECKPOINT_SIGNATURES_MAX)
                return rv_raise(-ENOSPC);
        if (rv_checkpoint_body(c, &body) < 0)
                return rv_raise(-ENOMEM);
        memcpy(key.log_id, c->log_id, sizeof(key.log_id));
        if (!pkey || !ctx || rv_checkpoint_public(secret, key.public_key) < 0 ||
                EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey) != 1 ||
                EVP_DigestSign(ctx, signature->bytes, &n, (const uint8_t *)body.data, body.size) != 1 ||
                n != sizeof(signature->bytes))
                return rv_raise(-EIO);
        rv_checkpoint_key_id(&key, signature->key_id);
        c->n_signatures++;
        return 0;
}

static int verify_one(const struct rv_checkpoint_signature *signature, const struct rv_buf *body,
        const struct rv_checkpoint_key *key)
{
        _cleanup_(EVP_PKEY_freep) EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(
                EVP_PKEY_ED25519, NULL, key->public_key, RV_CHECKPOINT_KEY_BYTES);
        _cleanup_(EVP_MD_CTX_freep) EVP_MD_CTX *ctx = EVP_MD_CTX_new();

        if (!pkey || !ctx || EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) != 1)
                return rv_raise(-EIO);
        return EVP_DigestVerify(
                       ctx, signature->bytes, sizeof(signature->bytes), (const uint8_t *)body->data, body->size) == 1
                ? 0
                : RV_CHECKPOINT_E_BAD;
}

/* Two keys can have the same id, so every signature with it is tried. */
int rv_checkpoint_verify(const struct rv_checkpoint *c, const struct rv_checkpoint_key *key)
{
        _cleanup_(rv_buf_fini) struct rv_buf body = { 0 };
        int result = RV_CHECKPOINT_E_UNSIGNED;
        uint8_t id[4];

        if (strcmp(c->log_id, key->log_id) != 0)
                return RV_CHECKPOINT_E_UNSIGNED;
        if (rv_checkpoint_body(c, &body) < 0)
                return rv_raise(-ENOMEM);
        rv_checkpoint_key_id(key, id);
        for (unsigned i = 0; i < c->n_signatures; i++) {
                int r;

                if (memcmp(c->signatures[i].key_id, id, sizeof(id)) != 0)
                        continue;
                r = verify_one(&c->signatures[i], &body, key);
                if (r <= 0)
                        return rv_trace(r);
                result = r;
        }
        return result;
}
