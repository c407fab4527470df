/*
 * audit_keys.h - what a command line says of a log from elsewhere: keys, and sizes with their roots
 *
 * Read before privilege is given up, as a command line may name files that only its caller can read. Plain memory;
 * one thread.
 */
#pragma once

#include "audit.h"

#include "audit/verify.h"

#define AUDIT_KEYS_MAX 16
#define AUDIT_EXPECTS_MAX 64

struct audit_keys {
        struct rv_checkpoint_key keys[AUDIT_KEYS_MAX];
        size_t n;
};

/** audit_key_add() - a --key: a verifier key, or the file that holds one. Context: may block. Ownership: borrows. Return: 0; -errno with @err */
int audit_key_add(struct audit_keys *keys, const char *text, struct rv_error *err);
/** audit_key_beside() - without any key: that of the configuration's `audit.key`, else of the state directory, `keys/ed25519.pub`, if it is there. Context: may block. Ownership: borrows. Return: 1; 0 there is none; -errno with @err */
int audit_key_beside(struct audit_keys *keys, const struct audit_place *place, struct rv_error *err);
/** audit_expect_read() - an --expect: SIZE:ROOT, the root in hex or base64, or the file of a checkpoint. Context: may block. Ownership: borrows. Return: 0; -errno with @err */
int audit_expect_read(const char *text, struct rv_verify_expect *ret, struct rv_error *err);
