#include "base/helper.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int rv_helper_find(const char *folder, const char *name, int *ret_fd, struct rv_error *err)
{
        char own[4096], path[sizeof(own) + 128];
        ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
        const char *slash;
        int fd = -EBADF;

        own[n > 0 ? n : 0] = 0;
        slash = strrchr(own, '/');
        if (slash) {
                snprintf(path, sizeof(path), "%.*s/../%s/%s", (int)(slash - own), own, folder, name);
                fd = open(path, O_PATH | O_CLOEXEC);
                snprintf(path, sizeof(path), "%.*s/../libexec/reeve/%s", (int)(slash - own), own, name);
                if (fd < 0)
                        fd = open(path, O_PATH | O_CLOEXEC);
        }
        snprintf(path, sizeof(path), "%s/%s", RV_LIBEXEC_DIR, name);
        if (fd < 0)
                fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot open the helper %s: %s; it is installed with reeve as %s", name, strerror(errno), path);
        *ret_fd = fd;
        return 0;
}
