/*
 * sign_memory.h - what the signer remembers: size and root that it signed last for a log
 *
 * FILE.LOG_ID.signed holds two lines of 512 bytes, "SIZE ROOT CHECK" with spaces behind: size as 20 digits, root in
 * hex, check the first 16 hex digits of the SHA-256 of what stands before it. They are written in turn, in place and
 * durably, and the one with the greater size counts: a write that a crash tore leaves the other. In place, because
 * then a second name for the file (a hard link) is the same memory, and not one of before.
 *
 * An empty file remembers nothing. Neither does one that is not there: whoever removes it makes the signer begin
 * anew, so it lies where only the signer's user can.
 *
 * The spawner's one thread; the lock is between processes.
 */
#pragma once

#include "sign_key.h"

#define SIGNER_SUFFIX_SIZE (RV_LOG_ID_SIZE + 16)

struct signer_memory {
        int fd;
        char suffix[SIGNER_SUFFIX_SIZE];   /* ".LOG_ID.signed" */
        uint64_t size;
        rv_merkle_hash root;               /* of the empty tree, if size is 0 */
        unsigned slot;                     /* where that stands */
};

/** signer_memory_open() - take the lock, waiting half a second, and read. Context: the directory is open. Ownership: release with signer_memory_close(). Return: 0; -ETIMEDOUT; -EBADMSG it is damaged; -errno with @err */
int signer_memory_open(struct signer *s, const char *log_id, struct signer_memory *ret, struct rv_error *err);
/** signer_memory_look() - the same without a lock, making nothing; *@ret needs no release. Context: the directory is open. Ownership: none. Return: as signer_memory_open() */
int signer_memory_look(struct signer *s, const char *log_id, struct signer_memory *ret, struct rv_error *err);
/** signer_memory_set() - remember, durably: after it, and not before, a signature may leave. Context: blocks on the disk. Ownership: borrows. Return: 0; -errno with @err */
int signer_memory_set(struct signer *s, struct signer_memory *m, uint64_t size, const rv_merkle_hash root,
        struct rv_error *err);
/** signer_memory_close() - let others sign. Context: any. Ownership: takes the content. Return: none */
void signer_memory_close(struct signer_memory *m);
