/*
 * head.h - a file on its way into the tree, whose first line may have to be another
 *
 * The first line of a script names its interpreter. It is held back until it is complete; everything else goes straight
 * on. Zeroed is idle. One file at a time, one thread.
 */
#pragma once

#include "tree.h"

#define HEAD_BYTES_MAX 4096u             /* a longer first line is left as it is */

enum head_rule {
        HEAD_KEEP,
        HEAD_PYTHON,                     /* "#!python…" becomes the layer's interpreter (PEP 427) */
        HEAD_UNIX,                       /* the carriage return at the end of a "#!" line goes, as npm does it */
};

struct head {
        enum head_rule rule;             /* HEAD_KEEP once the first line has gone on */
        size_t n;
        char line[HEAD_BYTES_MAX];
};

#define HEAD_INTERPRETER "/venv/bin/python3"

/** head_begin() - a new file. Context: any. Ownership: none. Return: none */
void head_begin(struct head *h, enum head_rule rule);
/** head_write() - more of it. Context: as tree_write(). Ownership: borrows. Return: 0; -errno */
int head_write(struct head *h, struct tree *t, const void *data, size_t n);
/** head_end() - what is still held back. Context: as tree_write(). Ownership: none. Return: 0; -errno */
int head_end(struct head *h, struct tree *t);
