#include "audit/ed25519.h"

#include <dlfcn.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcrypto.so." RV_STR(OPENSSL_SHLIB_VERSION)

/* X(function): all that is used of the library. */
#define FUNCTIONS(X) \
        X(OPENSSL_init_crypto) \
        X(EVP_PKEY_new_raw_private_key) \
        X(EVP_PKEY_new_raw_public_key) \
        X(EVP_PKEY_get_raw_public_key) \
        X(EVP_PKEY_free) \
        X(EVP_MD_CTX_new) \
        X(EVP_MD_CTX_free) \
        X(EVP_DigestSignInit) \
        X(EVP_DigestSign) \
        X(EVP_DigestVerifyInit) \
        X(EVP_DigestVerify)

static struct {
#define X(name) __typeof__(&name) name;
        FUNCTIONS(X)
#undef X
} crypto;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_loaded;
static char fault[256];

struct rv_ed25519_key {
        EVP_PKEY *pkey;
        uint8_t public_key[RV_ED25519_KEY_BYTES];
};

static void pkey_freep(EVP_PKEY **pkey)
{
        if (*pkey)
                crypto.EVP_PKEY_free(*pkey);
}

static void ctx_freep(EVP_MD_CTX **ctx)
{
        if (*ctx)
                crypto.EVP_MD_CTX_free(*ctx);
}

static void load(void)
{
        void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);

        if (!library) {
                snprintf(fault, sizeof(fault), "%s cannot be loaded, and nothing is signed or verified without it: %s; install it (Debian: libssl3)",
                         LIBRARY, dlerror());
                return;
        }
#define X(name) *(void **)&crypto.name = dlsym(library, #name);
        FUNCTIONS(X)
#undef X
#define X(name) && crypto.name
        if (!(true FUNCTIONS(X)) ||
                crypto.OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) != 1) {
                snprintf(fault, sizeof(fault), "%s is not the library that reeve was built for; install one of the same release", LIBRARY);
                return;
        }
#undef X
        is_loaded = true;
}

static int need_library(void)
{
        pthread_once(&once, load);
        return is_loaded ? 0 : rv_raise(-ENOSYS);
}

const char *rv_ed25519_fault(void)
{
        return fault;
}

int rv_ed25519_load(void)
{
        static const uint8_t nobody[RV_ED25519_KEY_BYTES];
        _cleanup_(rv_ed25519_key_freep) struct rv_ed25519_key *key = NULL;
        uint8_t signature[RV_ED25519_SIGNATURE_BYTES];
        int r;

        r = rv_ed25519_key_new(nobody, &key);
        return r < 0 ? rv_trace(r) : rv_trace(rv_ed25519_sign(key, "", 0, signature));
}

int rv_ed25519_key_new(const uint8_t secret[RV_ED25519_KEY_BYTES], struct rv_ed25519_key **ret)
{
        _cleanup_(rv_ed25519_key_freep) struct rv_ed25519_key *key = NULL;
        size_t n = sizeof(key->public_key);
        int r;

        r = need_library();
        if (r < 0)
                return rv_trace(r);
        key = calloc(1, sizeof(*key));
        if (!key)
                return rv_raise(-ENOMEM);
        key->pkey = crypto.EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, RV_ED25519_KEY_BYTES);
        if (!key->pkey || crypto.EVP_PKEY_get_raw_public_key(key->pkey, key->public_key, &n) != 1 ||
                n != sizeof(key->public_key))
                return rv_raise(-EIO);
        *ret = rv_take(&key);
        return 0;
}

void rv_ed25519_key_free(struct rv_ed25519_key *key)
{
        if (!key)
                return;
        crypto.EVP_PKEY_free(key->pkey);
        free(key);
}

const uint8_t *rv_ed25519_key_public(const struct rv_ed25519_key *key)
{
        return key->public_key;
}

int rv_ed25519_sign(const struct rv_ed25519_key *key, const void *data, size_t n,
        uint8_t ret[RV_ED25519_SIGNATURE_BYTES])
{
        _cleanup_(ctx_freep) EVP_MD_CTX *ctx = crypto.EVP_MD_CTX_new();
        uint8_t signature[RV_ED25519_SIGNATURE_BYTES];
        size_t size = sizeof(signature);

        if (!ctx || crypto.EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) != 1 ||
                crypto.EVP_DigestSign(ctx, signature, &size, data, n) != 1 || size != sizeof(signature))
                return rv_raise(-EIO);
        memcpy(ret, signature, sizeof(signature));
        return 0;
}

int rv_ed25519_verify(const uint8_t public_key[RV_ED25519_KEY_BYTES], const void *data, size_t n,
        const uint8_t signature[RV_ED25519_SIGNATURE_BYTES])
{
        _cleanup_(pkey_freep) EVP_PKEY *pkey = NULL;
        _cleanup_(ctx_freep) EVP_MD_CTX *ctx = NULL;
        int r;

        r = need_library();
        if (r < 0)
                return rv_trace(r);
        pkey = crypto.EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, RV_ED25519_KEY_BYTES);
        ctx = crypto.EVP_MD_CTX_new();
        if (!pkey || !ctx || crypto.EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) != 1)
                return rv_raise(-EIO);
        return crypto.EVP_DigestVerify(ctx, signature, RV_ED25519_SIGNATURE_BYTES, data, n) == 1;
}
