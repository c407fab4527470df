/*
 * test_base_tmp.h - a directory of a test's own, made before it and removed after it
 *
 * For cmocka's set-up and tear-down: the state is the directory's path. One thread.
 */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* TEST_TMP names the place: a file system of one's choice (a disk, a tmpfs) can be tested with it. */
static inline int tmp_make(void **state)
{
        const char *place = getenv("TEST_TMP");
        char path[512];

        snprintf(path, sizeof(path), "%s/reeve-test-XXXXXX", place ? place : "/tmp");
        if (!mkdtemp(path))
                return -1;
        *state = strdup(path);
        return *state ? 0 : -1;
}

static inline int tmp_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        remove(path);
        return 0;
}

static inline int tmp_remove(void **state)
{
        nftw(*state, tmp_remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        free(*state);
        return 0;
}

/* DIR/NAME in one of a few static buffers. */
static inline const char *tmp_path(void **state, const char *name)
{
        static char paths[8][1024];
        static unsigned next;
        char *path = paths[next++ % 8];

        snprintf(path, sizeof(paths[0]), "%s/%s", (const char *)*state, name);
        return path;
}
