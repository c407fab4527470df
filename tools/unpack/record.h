/*
 * record.h - a wheel's RECORD: the digest that each of its files has to have (PEP 376, "The .dist-info directory")
 *
 *   record_read() -> record_find() for each member -> record_fini()
 *
 * Three fields a line, separated by commas, quoted where they hold one. Zeroed is empty; it owns copies. One thread.
 */
#pragma once

#include "name.h"

enum record_hash {
        RECORD_NONE,                     /* listed without a digest */
        RECORD_SHA256,
        RECORD_SHA384,
        RECORD_SHA512,
};

struct record_row {
        enum record_hash hash;
        uint8_t digest[64];
        int64_t bytes;                   /* -1: not said */
};

struct record {
        struct name_table names;         /* `owner` is the row */
        struct record_row *rows;
        size_t n, n_room;
};

/** record_hash_size() - bytes of a digest. Context: any. Ownership: none. Return: as named */
size_t record_hash_size(enum record_hash hash);

/** record_read() - read all of it; weak digests, names that lead elsewhere and rows that disagree are faults. Context: any. Ownership: copies; record_fini() releases, also after a fault. Return: 0; UNPACK_E_FAULT; -ENOMEM */
int record_read(const char *text, size_t n, struct record *ret, struct fault *f);

/** record_find() - what is said of a member. Context: any. Ownership: borrowed. Return: the row; NULL: it is not listed */
const struct record_row *record_find(const struct record *r, const char *path, size_t n);

/** record_fini() - release; it is empty again. Context: any. Ownership: takes the content. Return: none */
void record_fini(struct record *r);
