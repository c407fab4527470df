/*
 * runtime_identity.h - which interpreter packages are for
 *
 * A lock is for one release of Python and one platform, and is not to be used once the interpreter is another. It is told
 * by what the configuration says and by where the interpreter's path leads ("/usr/bin/python3" to python3.11); nothing is
 * started. Any thread.
 */
#pragma once

#include "base/config.h"
#include "base/hash.h"
#include "request/request.h"

/**
 * rv_runtime_identity() - a digest of what makes a runtime another, as far as packages go
 * @runtime: may be NULL
 * @digest:  of its image, or NULL
 *
 * Context:   may block on the disk; without privilege
 * Ownership: the caller's memory
 * Return:    none
 */
void rv_runtime_identity(const struct rv_config_runtime *runtime, enum rv_language language, const char *digest,
        char ret[RV_SHA256_HEX_SIZE]);

#define RV_RUNTIME_RELEASE_SIZE 16
/** rv_runtime_release() - Python's release, "3.11"; "" if the interpreter's name does not tell. Context: may block on the disk. Ownership: the caller's memory. Return: none */
void rv_runtime_release(const struct rv_config_runtime *runtime, char ret[RV_RUNTIME_RELEASE_SIZE]);
