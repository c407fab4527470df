/*
 * payload.h - what init must know to execute the program, and nobody with privilege may read
 *
 * The loop writes it into a sealed memory file; the spawner passes the descriptor on unread; init reads it
 * inside the finished sandbox. It carries the source and the whole environment of the program (so that no
 * process of reeve's is ever started with the request's `env`), and the certificates of its package registry.
 *
 * Layout: struct rv_payload_head, then n_env strings "NAME=value\0", then the certificates, then the source's bytes.
 * Any thread.
 */
#pragma once

#include "base/error.h"

#include <reeve/backend.h>

#define RV_PAYLOAD_MAGIC 0x32507652u        /* "RvP2" */
#define RV_PAYLOAD_ENV_MAX 128              /* names: the request's 50 and reeve's own */
#define RV_PAYLOAD_BYTES_MAX (2u << 20)     /* source 400 KB, environment 128 KiB and reeve's own, certificates 1 MiB */

struct rv_payload_head {
        uint32_t magic, n_env, env_bytes, ca_bytes, source_bytes;
};

struct rv_payload {
        char *bytes;                             /* the whole file, owned */
        char *env[RV_PAYLOAD_ENV_MAX + 1];       /* into bytes, NULL-terminated */
        const char *ca;
        size_t ca_bytes;
        const char *source;
        size_t source_bytes;
};

/**
 * rv_payload_write() - make the sealed memory file of a plan
 * @ret_fd: readable from its start
 *
 * The environment is that of the design, section 7a, then the plan's for package managers, then the request's, which
 * wins over every name but REEVE_*.
 *
 * Context:   may block
 * Ownership: the descriptor is the caller's
 * Return:    0; -E2BIG; -errno
 */
int rv_payload_write(const struct rv_plan *plan, int *ret_fd);

/**
 * rv_payload_read() - read and check one
 *
 * Context:   init, before the program is executed; may block
 * Ownership: release with rv_payload_fini()
 * Return:    0; -EBADMSG if it is not well-formed; -errno
 */
int rv_payload_read(int fd, struct rv_payload *ret);
/** rv_payload_fini() - release. Context: any. Ownership: takes the content. Return: none */
void rv_payload_fini(struct rv_payload *p);
