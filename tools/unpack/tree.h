/*
 * tree.h - the files that are made below the staging directory, and the manifest of them
 *
 *   tree_open() -> (tree_create -> tree_write* -> tree_close | tree_link)* -> tree_publish -> tree_fini()
 *
 * Every path is resolved beneath the directory without following a link (openat2(2)), every file is made anew, and
 * every file, link and directory has the same owner's bits and time whatever the archive says. A path has one owner:
 * that a second one claims it is a fault that names both. One file at a time is open. One thread.
 */
#pragma once

#include "base/buf.h"
#include "base/hash.h"
#include "name.h"

#include <jansson.h>

#define TREE_MTIME_S 315532800           /* 1980-01-01, the first that a zip file can hold */

struct tree_item {
        uint32_t mode;
        uint64_t bytes;
        uint8_t sha256[RV_SHA256_SIZE];
        char *target;                    /* of a link */
};

struct tree {
        int fd;
        struct name_table names;         /* the entries are numbered as the items are */
        struct tree_item *items;
        size_t n_items, n_room;          /* fewer items than names: a name that was refused has none */
        const char *const *owners;       /* their names, for messages */
        bool lists_caches_only;          /* of directories the manifest has only those named __pycache__ */

        int parent_fd;                   /* the directory that was used last */
        char parent[NAME_BYTES_MAX * 2];

        int file_fd;                     /* the file that is open */
        size_t file;                     /* its item */
        struct rv_sha256 sha256;
        uint64_t n_files, bytes;
};

/** tree_open() - begin in the empty directory @fd; @owners are named by number. Context: any. Ownership: borrows both until tree_fini(). Return: none */
void tree_open(struct tree *t, int fd, const char *const *owners);

/** tree_create() - make a file and the directories above it. Context: blocks. Ownership: copies @path. Return: 0; UNPACK_E_FAULT another owner has it; -errno */
int tree_create(struct tree *t, const char *path, uint32_t owner, bool is_executable, struct fault *f);
/** tree_write() - more of the open file. Context: blocks. Ownership: borrows. Return: 0; -errno */
int tree_write(struct tree *t, const void *data, size_t n);
/** tree_close() - end the open file. Context: blocks. Ownership: none. Return: 0; -errno */
int tree_close(struct tree *t);
/** tree_put() - a whole file. Context: blocks. Ownership: copies. Return: as tree_create() */
int tree_put(struct tree *t, const char *path, uint32_t owner, bool is_executable, const void *data, size_t n,
        struct fault *f);
/** tree_link() - a symbolic link. Context: blocks. Ownership: copies. Return: as tree_create() */
int tree_link(struct tree *t, const char *path, uint32_t owner, const char *target, struct fault *f);
/** tree_make_executable() - a file that is there already; nothing happens if it is none. Context: blocks. Ownership: borrows. Return: 0; -errno */
int tree_make_executable(struct tree *t, const char *path);

/** tree_publish() - set all times, and write the manifest into @dir_fd; @ret says how much was made. Context: blocks. Ownership: *@ret is a new reference. Return: 0; -errno */
int tree_publish(struct tree *t, int dir_fd, const char *manifest_name, json_t **ret);

/** tree_has_file() - is there a regular file at this path, without any link on the way? Context: blocks. Ownership: borrows. Return: 1, 0; -errno */
int tree_has_file(int dir_fd, const char *path);

/** tree_fini() - release; what was made stays. Context: any. Ownership: takes the content. Return: none */
void tree_fini(struct tree *t);
