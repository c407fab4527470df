/*
 * ed25519.h - Ed25519 (RFC 8032) from libcrypto, which is loaded when it is first needed
 *
 * What libcrypto 3 needs for one signature is all of its providers: 18,000 relocations and 370 KB that every start
 * of reeve would pay for (0.2 ms), though no run waits for a signature. So the library is not linked for this but
 * loaded, by its name alone, at the first call here; that takes 1.5 ms once. Its configuration file is not read: the
 * process that signs has privilege, and the file can name code. A key holds a secret; freeing it wipes it. Any
 * thread; a key is used by one at a time.
 */
#pragma once

#include "base/rv.h"

#define RV_ED25519_KEY_BYTES 32
#define RV_ED25519_SIGNATURE_BYTES 64

struct rv_ed25519_key;

/** rv_ed25519_load() - load the library and warm it up, so that the next call does not. Context: may block on a slow disk. Ownership: none. Return: 0; -ENOSYS: see rv_ed25519_fault() */
int rv_ed25519_load(void);
/** rv_ed25519_fault() - why it could not be loaded, and what to do. Context: after -ENOSYS. Ownership: constant. Return: the text */
const char *rv_ed25519_fault(void);

/**
 * rv_ed25519_key_new() - a key to sign with
 * @secret: the seed of RFC 8032
 *
 * Context:   any
 * Ownership: copies; *@ret is the caller's (rv_ed25519_key_free)
 * Return:    0; -ENOSYS no library; -EIO it refuses; -ENOMEM
 */
int rv_ed25519_key_new(const uint8_t secret[RV_ED25519_KEY_BYTES], struct rv_ed25519_key **ret);
/** rv_ed25519_key_free() - wipe and release; NULL is allowed. Context: any. Ownership: takes @key. Return: none */
void rv_ed25519_key_free(struct rv_ed25519_key *key);
RV_DEFINE_CLEANUP(struct rv_ed25519_key, rv_ed25519_key_free)
/** rv_ed25519_key_public() - its public half. Context: any. Ownership: borrowed from @key. Return: RV_ED25519_KEY_BYTES bytes */
const uint8_t *rv_ed25519_key_public(const struct rv_ed25519_key *key);

/** rv_ed25519_sign() - Context: any. Ownership: borrows. Return: 0; -EIO libcrypto refuses */
int rv_ed25519_sign(const struct rv_ed25519_key *key, const void *data, size_t n,
        uint8_t ret[RV_ED25519_SIGNATURE_BYTES]);

/** rv_ed25519_verify() - is it the key's signature of @data? Context: any. Ownership: borrows. Return: 1; 0; -ENOSYS no library; -EIO it refuses */
int rv_ed25519_verify(const uint8_t public_key[RV_ED25519_KEY_BYTES], const void *data, size_t n,
        const uint8_t signature[RV_ED25519_SIGNATURE_BYTES]);
