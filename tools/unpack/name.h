/*
 * name.h - the names that members of an archive may have, and tables of names
 *
 * A table knows files and directories, and the directories that a file's name implies. It folds the case of ASCII
 * letters, which is what file systems that ignore case agree about; letters beyond ASCII are compared as they are.
 * Zeroed is empty; it owns copies. One thread.
 */
#pragma once

#include "fault.h"

#define NAME_BYTES_MAX 1024u
#define NAME_PART_BYTES_MAX 255u
#define NAME_DEPTH_MAX 64u

enum name_kind {
        NAME_DIRECTORY,
        NAME_FILE,
        NAME_LINK,
};

struct name_entry {
        char *name;              /* NUL-terminated */
        uint32_t size, owner;
        enum name_kind kind;
};

struct name_table {
        bool is_folding;
        struct name_entry *entries;
        uint32_t *slots;         /* index of an entry, plus 1 */
        size_t n, n_room, n_slots;
};

/**
 * name_check() - may a file of an archive have this name: relative, below where it is unpacked, and printable
 * @n: bytes, without the slash that ends a directory's
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; UNPACK_E_FAULT
 */
int name_check(const char *name, size_t n, struct fault *f);

/** name_table_fini() - release; it is empty again. Context: any. Ownership: takes the content. Return: none */
void name_table_fini(struct name_table *t);

/** name_find() - an entry with this name, case folded where the table does. Context: any. Ownership: borrowed until the next name_add(). Return: it; NULL */
struct name_entry *name_find(const struct name_table *t, const char *name, size_t n);

/**
 * name_add() - add a name, and the directories above it
 * @owner:     of the new entries
 * @ret_clash: set with a fault: what was there; borrowed until the next name_add()
 *
 * A directory may be added any number of times, also in another case.
 *
 * Context:   any
 * Ownership: copies @name
 * Return:    0; UNPACK_E_FAULT (there is none to fill in: name_clash_fault() words it); -ENOMEM
 */
int name_add(struct name_table *t, const char *name, size_t n, enum name_kind kind, uint32_t owner,
        struct name_entry **ret_clash);

/** name_clash_fault() - the fault that two members of one archive are, after name_add(). Context: any. Ownership: borrows. Return: UNPACK_E_FAULT */
int name_clash_fault(const struct name_entry *there, const char *name, size_t n, enum name_kind kind, struct fault *f);

/** name_part() - the size of the first part of a path, up to a slash or the end. Context: any. Ownership: borrows. Return: bytes */
size_t name_part(const char *name, size_t n);
