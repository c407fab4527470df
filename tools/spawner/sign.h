/*
 * sign.h - the signer: the only part of reeve that reads the key of the audit log
 *
 * The key is FILE (`audit.key`, else STATE/keys/ed25519): 64 hex digits of the seed, a regular file of the spawner's
 * own user, open to nobody else. Beside it lie
 *
 *     FILE.pub             the public half, as a verifier key of C2SP signed-note, for everyone
 *     FILE.LOG_ID.signed   the memory: size and root signed last; its flock() is held while one signs (sign_memory.h)
 *     FILE.new             while keys are changed: the one that takes over
 *     FILE.old-ID[.pub]    keys that were, by key id
 *
 * The memory is what keeps a log from having two roots for one size, so it must be where nobody but the signer can
 * take it away: in a directory of the signer's user, which others cannot write to, or where (the sticky bit) they can
 * remove only what is theirs. STATE/keys, which the loop's user makes, is taken over as such before the first key is
 * made. Key and memory can then only be moved away together, and a new key has signed nothing yet.
 *
 * Everything is looked at anew for each request, under the memory's lock: other signers may have made or changed keys.
 * Secrets stay in memory until signer_forget(), which comes before each new child. The spawner's one thread.
 */
#pragma once

#include "audit/sign_msg.h"
#include "base/config.h"

#include <sys/stat.h>

struct signer_key {
        struct rv_ed25519_key *key;        /* NULL: not loaded */
        ino_t inode;                       /* of the file that it was read from */
        struct timespec changed;
};

struct signer {
        const struct rv_config *config;
        const char *key_file;              /* in place of the configuration's, or NULL */
        int dir_fd;                        /* of the key's directory; -EBADF: not open */
        char path[RV_SIGN_PATH_SIZE], name[128];   /* of the key: the path, and the name in its directory */
        bool is_own_place;                 /* the built-in place: a key is made there when there is none */
        struct signer_key key, next;
};

/** signer_init() - Context: spawner. Ownership: borrows @config and @key_file; release with signer_fini(). Return: none */
void signer_init(struct signer *s, const struct rv_config *config, const char *key_file);
/** signer_fini() - Context: spawner. Ownership: takes the content. Return: none */
void signer_fini(struct signer *s);
/** signer_forget() - wipe what is secret; it is read again when it is needed. Context: spawner. Ownership: borrows. Return: none */
void signer_forget(struct signer *s);

/**
 * signer_answer() - do what a request asks
 * @q: checked by request_find_sign_fault()
 *
 * Context:   spawner; blocks for one small durable write, and up to half a second for another signer
 * Ownership: borrows
 * Return:    none: @ret says how it went
 */
void signer_answer(struct signer *s, const struct rv_sign_request *q, struct rv_sign_answer *ret);
