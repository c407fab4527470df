/*
 * zipdir.h - the central directory of a zip file, read strictly, and compared with what stands before each member
 *
 * A zip file says everything twice, and readers differ in which they believe and in where they look for the end. Here a
 * file has one reading only: the directory ends where the file does, the members lie before it without gaps or overlaps
 * from the first byte on, and both accounts of a member agree. What libarchive then unpacks is compared with it again.
 *
 * The bytes are not trusted. Zeroed is empty; one thread.
 */
#pragma once

#include "fault.h"

#define ZIP_MEMBERS_MAX 200000u

struct zip_member {
        const char *name;                /* in `names`; not NUL-terminated */
        uint32_t n;
        uint64_t at;                     /* of the local header */
        uint64_t packed_bytes, bytes;
        uint32_t crc;
        uint16_t flags, method, mode;    /* mode: as Unix has it, type included; 0: not said */
};

struct zip_directory {
        struct zip_member *members;      /* in the order in which they lie */
        size_t n;
        char *names;
};

/** zip_directory_read() - read and judge it. Context: may block on @fd, at any offset. Ownership: zip_directory_fini() releases, also after a fault. Return: 0; UNPACK_E_FAULT; -errno */
int zip_directory_read(int fd, uint64_t file_bytes, struct zip_directory *ret, struct fault *f);

/** zip_directory_fini() - release; it is empty again. Context: any. Ownership: takes the content. Return: none */
void zip_directory_fini(struct zip_directory *d);
