/*
 * members.h - the members of an artifact, one after another, each judged before anyone sees it
 *
 *   members_walk(): for each member  begin -> (data)* -> end, or begin alone if it is skipped
 *
 * A wheel is a zip file and nothing else, an npm package a gzipped tar archive and nothing else; libarchive reads no
 * other format here. What the walk lets through has a name of name.h's rules, is a file or a directory, clashes with no
 * other member and is within the bounds. It can be walked again from the start. One thread.
 */
#pragma once

#include "fault.h"

#define MEMBERS_MAX 200000u
#define MEMBER_UNPACKED_BYTES_MAX ((uint64_t)8 << 30)
#define MEMBER_RATIO_MAX 200u                           /* of unpacked to packed, … */
#define MEMBER_RATIO_FREE_BYTES ((uint64_t)64 << 20)    /* … once it is more than this */

enum member_format {
        MEMBER_WHEEL,
        MEMBER_TARBALL,
};

struct member {
        const char *path;                /* NUL-terminated, without a slash at its end */
        size_t n;
        bool is_directory, is_executable;
        uint64_t bytes;
};

#define MEMBERS_E_SKIP 2

/* All return 0, UNPACK_E_FAULT or -errno, which ends the walk; `begin` also MEMBERS_E_SKIP: no data of it is wanted. */
struct visitor {
        int (*begin)(void *ctx, const struct member *m, struct fault *f);
        int (*data)(void *ctx, const void *data, size_t n, struct fault *f);
        int (*end)(void *ctx, struct fault *f);
        void *ctx;
};

struct member_counts {
        uint64_t n_files, unpacked_bytes;
};

/**
 * members_walk() - show every member of the artifact in @fd to @v
 * @ret: of what was read or skipped; set on 0; may be NULL
 *
 * Context:   blocks; moves the offset of @fd
 * Ownership: borrows
 * Return:    0; UNPACK_E_FAULT; -errno
 */
int members_walk(
        int fd, enum member_format format, const struct visitor *v, struct member_counts *ret, struct fault *f);
