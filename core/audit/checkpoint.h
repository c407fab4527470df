/*
 * checkpoint.h - what is signed of a log: its name, its size, its root
 *
 * The text is that of C2SP tlog-checkpoint, in a C2SP signed-note with Ed25519 signatures (RFC 8032):
 *
 *     reeve/LOG_ID                         the log's origin, which is also the name of its key
 *     SIZE                                 how many records, decimal
 *     ROOT                                 base64 of the Merkle tree's hash (merkle.h)
 *     next-key KEY                         only where the key is changed: from here on KEY signs
 *                                          (empty)
 *     — reeve/LOG_ID SIGNATURE             base64 of 4 bytes of key id and 64 of signature; one line or more
 *
 * A key is written as a verifier key of C2SP signed-note: `NAME+HASH+KEY`, HASH being the key id in hex and KEY
 * base64 of 0x01 and the 32 bytes of the public key. The key id is the first 4 bytes of SHA-256 of the name, a
 * newline, 0x01 and the public key. Reading is strict: what is read is what would be written, byte for byte.
 *
 * Plain memory; signing and verifying are in ed25519.h. Any thread.
 */
#pragma once

#include "audit/ed25519.h"
#include "audit/log.h"
#include "audit/merkle.h"
#include "base/buf.h"

#define RV_CHECKPOINT_KEY_BYTES RV_ED25519_KEY_BYTES   /* of a key, public or secret */
#define RV_CHECKPOINT_SIGNATURE_BYTES RV_ED25519_SIGNATURE_BYTES
#define RV_CHECKPOINT_SIGNATURES_MAX 4
#define RV_CHECKPOINT_BYTES_MAX 2048              /* of a note */
#define RV_CHECKPOINT_VERIFIER_SIZE 128           /* of a verifier key's text, with the NUL */

struct rv_checkpoint_key {
        char log_id[RV_LOG_ID_SIZE];              /* its name is "reeve/LOG_ID" */
        uint8_t public_key[RV_CHECKPOINT_KEY_BYTES];
};

struct rv_checkpoint_signature {
        uint8_t key_id[4];
        uint8_t bytes[RV_CHECKPOINT_SIGNATURE_BYTES];
};

struct rv_checkpoint {
        char log_id[RV_LOG_ID_SIZE];
        uint64_t size;
        rv_merkle_hash root;
        bool has_next_key;
        struct rv_checkpoint_key next_key;        /* of the same log */
        unsigned n_signatures;
        struct rv_checkpoint_signature signatures[RV_CHECKPOINT_SIGNATURES_MAX];
};

/** rv_checkpoint_key_id() - the first 4 bytes of SHA-256(name || "\n" || 0x01 || key). Context: any. Ownership: borrows. Return: none */
void rv_checkpoint_key_id(const struct rv_checkpoint_key *key, uint8_t ret[4]);
/** rv_checkpoint_key_text() - as a verifier key. Context: any. Ownership: borrows. Return: none */
void rv_checkpoint_key_text(const struct rv_checkpoint_key *key, char ret[RV_CHECKPOINT_VERIFIER_SIZE]);
/** rv_checkpoint_key_read() - the text of a verifier key, @n bytes, with a newline at its end or without. Context: any. Ownership: borrows. Return: 0; -EINVAL: it is none, not of Ed25519, or its key id is wrong */
int rv_checkpoint_key_read(const char *text, size_t n, struct rv_checkpoint_key *ret);

/** rv_checkpoint_body() - the text that is signed, up to and with the newline before the empty line. Context: any. Ownership: copies to @out. Return: 0 or -ENOMEM */
int rv_checkpoint_body(const struct rv_checkpoint *c, struct rv_buf *out);
/** rv_checkpoint_write() - the whole note. Context: any. Ownership: copies to @out. Return: 0 or -ENOMEM */
int rv_checkpoint_write(const struct rv_checkpoint *c, struct rv_buf *out);

/**
 * rv_checkpoint_read() - a whole note
 * @text: @n bytes, not trusted
 * @ret:  untouched on failure
 *
 * Nothing is verified. Signatures of other names than the log's, such as a witness's, are passed over.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; -EINVAL it is no checkpoint of a reeve log
 */
int rv_checkpoint_read(const char *text, size_t n, struct rv_checkpoint *ret);

/** rv_checkpoint_public() - the public key of a secret one. Context: any. Ownership: borrows. Return: 0; as rv_ed25519_key_new() */
int rv_checkpoint_public(const uint8_t secret[RV_CHECKPOINT_KEY_BYTES], uint8_t ret[RV_CHECKPOINT_KEY_BYTES]);

/**
 * rv_checkpoint_sign() - add a signature
 * @secret: the Ed25519 seed
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; -ENOSPC it has all the signatures it can have; -ENOMEM
 */
int rv_checkpoint_sign(struct rv_checkpoint *c, const uint8_t secret[RV_CHECKPOINT_KEY_BYTES]);
/** rv_checkpoint_sign_with() - the same by a key that is made already. Context: any. Ownership: borrows. Return: as rv_checkpoint_sign() */
int rv_checkpoint_sign_with(struct rv_checkpoint *c, const struct rv_ed25519_key *signer);

/**
 * rv_checkpoint_verify() - is it signed by this key?
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; RV_CHECKPOINT_E_UNSIGNED no signature of this key; RV_CHECKPOINT_E_BAD one that does not fit;
 *            -ENOMEM
 */
int rv_checkpoint_verify(const struct rv_checkpoint *c, const struct rv_checkpoint_key *key);
enum {
        RV_CHECKPOINT_E_UNSIGNED = 1,
        RV_CHECKPOINT_E_BAD,
};
