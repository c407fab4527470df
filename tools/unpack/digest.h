/*
 * digest.h - the digests of an artifact's bytes. Plain functions; one thread.
 */
#pragma once

#include "base/hash.h"

struct digests {
        char sha256[RV_SHA256_HEX_SIZE], sha512[RV_SHA512_HEX_SIZE];
        uint64_t bytes;
};

/** digest_file() - of all bytes of a regular file, which are also written to @copy_fd unless that is negative; with a copy SHA-512 is left out. Context: blocks; moves the offset. Ownership: borrows. Return: 0; -errno */
int digest_file(int fd, int copy_fd, struct digests *ret);
