/*
 * wheel.h - a wheel (PEP 427): what it says of itself, and its members with the digests of RECORD
 *
 *   wheel_look(): its own account of itself is read and compared with the lock
 *     -> wheel_walk(): every member is read and compared with RECORD -> wheel_fini()
 *
 * Zeroed is empty. One thread.
 */
#pragma once

#include "members.h"
#include "metadata.h"
#include "record.h"
#include "scripts.h"

enum wheel_place {
        WHEEL_SITE,                      /* below site-packages */
        WHEEL_SCRIPTS,
        WHEEL_DATA,
        WHEEL_HEADERS,
        WHEEL_SIGNATURE,                 /* RECORD and its signatures, which it does not list with digests */
};

struct wheel_want {
        const char *name, *version;
        const char *file_name;           /* as the registry calls it; NULL: not known */
};

struct wheel {
        char *dist_info;                 /* the directory's name */
        struct metadata metadata;
        struct record record;
        struct scripts scripts;
        const struct wheel_want *want;
};

/** wheel_look() - METADATA, WHEEL, RECORD and entry_points.txt. Context: blocks on @fd. Ownership: borrows @want for as long as @ret lives; wheel_fini() releases, also after a fault. Return: 0; UNPACK_E_FAULT; -errno */
int wheel_look(int fd, const struct wheel_want *want, struct wheel *ret, struct fault *f);

/** wheel_walk() - show the members to @v, which may be NULL, as members_walk() does; that a digest is wrong is told at a member's end, before `end` is called. Context: blocks on @fd. Ownership: borrows. Return: 0; UNPACK_E_FAULT; -errno */
int wheel_walk(int fd, const struct wheel *w, const struct visitor *v, struct member_counts *ret, struct fault *f);

/** wheel_where() - where a member belongs; @ret_rest is its path below that place. Context: any. Ownership: points into @path. Return: 0; UNPACK_E_FAULT: nowhere */
int wheel_where(const struct wheel *w, const char *path, size_t n, enum wheel_place *ret, const char **ret_rest,
        struct fault *f);

/** wheel_fini() - release; it is empty again. Context: any. Ownership: takes the content. Return: none */
void wheel_fini(struct wheel *w);
