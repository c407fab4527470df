/*
 * runtime_make.h - the files of a new runtime, put together in a directory of the build's own
 *
 * mmdebstrap makes a root of Debian packages as a tar file, which is unpacked without owners and set-id bits; what no
 * run sees, or what differs from build to build, is removed, and Python's modules are compiled so that the times of
 * files do not matter (in an image they are 1970's). All of it happens in STAGING:
 *
 *     STAGING/lines.list  paragraphs.sources  apt.conf  root.tar  root/  image
 *
 * The command line's one thread.
 */
#pragma once

#include "base/json.h"
#include "runtime_tool.h"

struct runtime_build {
        const char *name, *suite, *mirror, *include;     /* mirror, include: or NULL */
        bool is_image;
        char staging[4096];
        void (*progress)(void *ctx, const char *text);
        void *ctx;
        char mmdebstrap[TOOL_PATH_SIZE], tar[TOOL_PATH_SIZE], mkfs[TOOL_PATH_SIZE];
        /* What came of it. */
        char said[TOOL_TAIL_SIZE];                       /* the last words of the program that failed, a line each */
        json_t *packages;                                /* [{"name", "version"}], by name */
        char python[64], javascript[64];                 /* versions */
};

/** runtime_make_tools() - find what is needed. Context: any. Ownership: @b's. Return: 0; -ENOENT: @err says what is missing and how to install it */
int runtime_make_tools(struct runtime_build *b, struct rv_error *err);
/** runtime_make_root() - STAGING/root, and what is in it. Context: blocks for a minute; `tool_signals()` was called. Ownership: @b's. Return: 0; -EINTR; -errno with @err */
int runtime_make_root(struct runtime_build *b, struct rv_error *err);
/** runtime_make_image() - STAGING/image of STAGING/root, the same bytes for the same files. Context: blocks. Ownership: borrows. Return: as runtime_make_root() */
int runtime_make_image(struct runtime_build *b, struct rv_error *err);
