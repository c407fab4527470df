#include "audit/checkpoint.h"

#include <string.h>

int rv_checkpoint_public(const uint8_t secret[RV_CHECKPOINT_KEY_BYTES], uint8_t ret[RV_CHECKPOINT_KEY_BYTES])
{
        _cleanup_(rv_ed25519_key_freep) struct rv_ed25519_key *key = NULL;
        int r;

        r = rv_ed25519_key_new(secret, &key);
        if (r < 0)
                return rv_trace(r);
        memcpy(ret, rv_ed25519_key_public(key), RV_CHECKPOINT_KEY_BYTES);
        return 0;
}

int rv_checkpoint_sign_with(struct rv_checkpoint *c, const struct rv_ed25519_key *signer)
{
        _cleanup_(rv_buf_fini) struct rv_buf body = { 0 };
        struct rv_checkpoint_key key = { 0 };

        if (c->n_signatures == RV_CHECKPOINT_SIGNATURES_MAX)
                return rv_raise(-ENOSPC);
        if (rv_checkpoint_body(c, &body) < 0)
                return rv_raise(-ENOMEM);
        rv_ed25519_sign(signer, body.data, body.size, c->signatures[c->n_signatures].bytes);
        memcpy(key.log_id, c->log_id, sizeof(key.log_id));
        memcpy(key.public_key, rv_ed25519_key_public(signer), sizeof(key.public_key));
        rv_checkpoint_key_id(&key, c->signatures[c->n_signatures++].key_id);
        return 0;
}

int rv_checkpoint_sign(struct rv_checkpoint *c, const uint8_t secret[RV_CHECKPOINT_KEY_BYTES])
{
        _cleanup_(rv_ed25519_key_freep) struct rv_ed25519_key *signer = NULL;
        int r;

        r = rv_ed25519_key_new(secret, &signer);
        return r < 0 ? rv_trace(r) : rv_trace(rv_checkpoint_sign_with(c, signer));
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
                if (memcmp(c->signatures[i].key_id, id, sizeof(id)) != 0)
                        continue;
                if (rv_ed25519_verify(key->public_key, body.data, body.size, c->signatures[i].bytes))
                        return 0;
                result = RV_CHECKPOINT_E_BAD;
        }
        return result;
}
