/*
 * hash.h - SHA-256, SHA-384 and SHA-512 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), from libcrypto
 *
 * The low-level interface of libcrypto is used on purpose: it needs no provider and no configuration
 * file, which together cost more than a short decision. Any thread.
 */
#pragma once

#include "base/rv.h"

#include <openssl/sha.h>

#define RV_SHA256_SIZE 32
#define RV_SHA256_HEX_SIZE 65   /* with the NUL */

#define RV_SHA384_SIZE 48
#define RV_SHA512_SIZE 64
#define RV_SHA512_HEX_SIZE 129  /* with the NUL */

struct rv_sha256 {
        SHA256_CTX ctx;
};

struct rv_sha512 {
        SHA512_CTX ctx;
};

/** rv_sha256_init() - begin. Context: any. Ownership: the caller's memory; nothing to release. Return: none */
void rv_sha256_init(struct rv_sha256 *h);
/** rv_sha256_update() - add @n bytes. Context: any. Ownership: borrows. Return: none */
void rv_sha256_update(struct rv_sha256 *h, const void *data, size_t n);
/** rv_sha256_final() - write the digest; @h may be initialised again. Context: any. Ownership: none. Return: none */
void rv_sha256_final(struct rv_sha256 *h, uint8_t ret_digest[RV_SHA256_SIZE]);
/** rv_sha256() - digest of one piece. Context: any. Ownership: borrows. Return: none */
void rv_sha256(const void *data, size_t n, uint8_t ret_digest[RV_SHA256_SIZE]);
/** rv_sha256_hex() - digest of one piece as lower-case hex with NUL. Context: any. Ownership: borrows. Return: none */
void rv_sha256_hex(const void *data, size_t n, char ret_hex[RV_SHA256_HEX_SIZE]);
/** rv_sha256_fd() - digest of what is left to read of a file, as hex. Context: blocks on the disk. Ownership: borrows @fd, whose position is then the end. Return: 0 or -errno */
int rv_sha256_fd(int fd, char ret_hex[RV_SHA256_HEX_SIZE]);
/** rv_hmac_sha256() - HMAC of one piece. Context: any. Ownership: borrows. Return: none */
void rv_hmac_sha256(const void *key, size_t n_key, const void *data, size_t n, uint8_t ret_mac[RV_SHA256_SIZE]);
/** rv_sha512_init() - begin. Context: any. Ownership: the caller's memory; nothing to release. Return: none */
void rv_sha512_init(struct rv_sha512 *h);
/** rv_sha384_init() - begin, with SHA-384: the same otherwise. Context: any. Ownership: the caller's memory; nothing to release. Return: none */
void rv_sha384_init(struct rv_sha512 *h);
/** rv_sha512_update() - add @n bytes. Context: any. Ownership: borrows. Return: none */
void rv_sha512_update(struct rv_sha512 *h, const void *data, size_t n);
/** rv_sha512_final() - write the digest, of SHA-384 the first RV_SHA384_SIZE bytes. Context: any. Ownership: none. Return: none */
void rv_sha512_final(struct rv_sha512 *h, uint8_t ret_digest[RV_SHA512_SIZE]);
/** rv_hex() - @n bytes as lower-case hex, with NUL, into @ret (2n+1 bytes). Context: any. Ownership: borrows. Return: none */
void rv_hex(const void *data, size_t n, char *ret);
