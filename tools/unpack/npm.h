/*
 * npm.h - an npm package: what its package.json says, and its members
 *
 *   npm_look(): package.json is read and compared with the lock -> npm_walk() -> npm_fini()
 *
 * Zeroed is empty. One thread.
 */
#pragma once

#include "members.h"
#include "name.h"

#include <jansson.h>

struct npm_want {
        const char *name, *version;
};

struct npm {
        char *top;                       /* the one directory that everything is below */
        struct name_table names;         /* of files, below it */
        json_t *manifest;                /* package.json */
        char license[801];
        bool has_install_script;
        json_t *bin;                     /* object: command's name -> path of a file below the top */
        struct member_counts counts;
};

/** npm_look() - read everything once, and package.json. Context: blocks on @fd. Ownership: npm_fini() releases, also after a fault. Return: 0; UNPACK_E_FAULT; -errno */
int npm_look(int fd, const struct npm_want *want, struct npm *ret, struct fault *f);

/** npm_walk() - show the files to @v, their paths without the top directory; directories are not shown. Context: blocks on @fd. Ownership: borrows. Return: 0; UNPACK_E_FAULT; -errno */
int npm_walk(int fd, const struct npm *p, const struct visitor *v, struct fault *f);

/** npm_fini() - release; it is empty again. Context: any. Ownership: takes the content. Return: none */
void npm_fini(struct npm *p);
