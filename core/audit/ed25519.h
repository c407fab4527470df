/*
 * ed25519.h - Ed25519 (RFC 8032), by libsodium
 *
 * Not by libcrypto: what that needs for one signature is all of its providers, which cost 2 ms of processor time in
 * the process that signs, for each run. A key holds a secret; freeing it wipes it. Any thread; a key is used by one at
 * a time.
 */
#pragma once

#include "base/rv.h"

#define RV_ED25519_KEY_BYTES 32
#define RV_ED25519_SIGNATURE_BYTES 64

struct rv_ed25519_key;

/**
 * rv_ed25519_key_new() - a key to sign with
 * @secret: the seed of RFC 8032
 *
 * Context:   any
 * Ownership: copies; *@ret is the caller's (rv_ed25519_key_free)
 * Return:    0; -ENOMEM
 */
int rv_ed25519_key_new(const uint8_t secret[RV_ED25519_KEY_BYTES], struct rv_ed25519_key **ret);
/** rv_ed25519_key_free() - wipe and release; NULL is allowed. Context: any. Ownership: takes @key. Return: none */
void rv_ed25519_key_free(struct rv_ed25519_key *key);
RV_DEFINE_CLEANUP(struct rv_ed25519_key, rv_ed25519_key_free)
/** rv_ed25519_key_public() - its public half. Context: any. Ownership: borrowed from @key. Return: RV_ED25519_KEY_BYTES bytes */
const uint8_t *rv_ed25519_key_public(const struct rv_ed25519_key *key);

/** rv_ed25519_sign() - Context: any. Ownership: borrows. Return: none */
void rv_ed25519_sign(const struct rv_ed25519_key *key, const void *data, size_t n,
        uint8_t ret[RV_ED25519_SIGNATURE_BYTES]);

/** rv_ed25519_verify() - is it the key's signature of @data? Context: any. Ownership: borrows. Return: as named */
bool rv_ed25519_verify(const uint8_t public_key[RV_ED25519_KEY_BYTES], const void *data, size_t n,
        const uint8_t signature[RV_ED25519_SIGNATURE_BYTES]);
