#include "image.h"

#include "base/fd.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A mount that is new has none of its files in memory, and a page that is read in is charged to who reads it first: a run
 * of little memory would spend its time on taking in its interpreter and giving it up again. The spawner reads it ahead.
 */

/* What interpreters of Debian consist of beside their own file. */
static const char *const libraries[] = { "/usr/lib/*-linux-gnu*/libnode.so*", "/usr/lib/*-linux-gnu*/libicu*.so.*", "/usr/lib/*-linux-gnu*/libpython3*.so.*" };

static void read_ahead(const char *path)
{
        _cleanup_(rv_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                (void)readahead(fd, 0, (size_t)st.st_size);
}

/* Links in an image lead where they lead inside of it: only those that stay there are followed. */
static void read_inside(const char *root, const char *path)
{
        char full[PATH_MAX];
        _cleanup_(rv_freep) char *real = NULL;

        snprintf(full, sizeof(full), "%s%s", root, path);
        real = realpath(full, NULL);
        if (real && strncmp(real, root, strlen(root)) == 0 && real[strlen(root)] == '/')
                read_ahead(real);
}

void image_warm(const struct rv_config_runtime *rt, bool is_python)
{
        char pattern[PATH_MAX];
        glob_t found;

        read_inside(rt->root, is_python ? rt->python : rt->javascript);
        for (size_t i = 0; i < RV_N_ELEMENTS(libraries); i++) {
                if (is_python != (strstr(libraries[i], "libpython") != NULL))
                        continue;
                snprintf(pattern, sizeof(pattern), "%s%s", rt->root, libraries[i]);
                if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
                        continue;
                for (size_t k = 0; k < found.gl_pathc; k++)
                        read_inside(rt->root, found.gl_pathv[k] + strlen(rt->root));
                globfree(&found);
        }
}
