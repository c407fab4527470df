#include "audit/log_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static void closedirp(DIR **d)
{
        if (*d)
                closedir(*d);
}

bool rv_log_is_segment(const char *name)
{
        return strspn(name, "0123456789") == 20 && strcmp(name + 20, ".jsonl") == 0;
}

void rv_log_segment_name(uint64_t seq, char ret_name[RV_LOG_SEGMENT_NAME_SIZE])
{
        snprintf(ret_name, RV_LOG_SEGMENT_NAME_SIZE, "%020llu.jsonl", (unsigned long long)seq);
}

/* The segment next to @of on the side of @sign, +1 or -1; of the outermost on the other side for @of NULL. */
static int find_beside(struct rv_log *log, const char *of, int sign, char ret_name[RV_LOG_SEGMENT_NAME_SIZE],
        struct rv_error *err)
{
        _cleanup_(closedirp) DIR *d = NULL;
        char best[RV_LOG_SEGMENT_NAME_SIZE] = "";
        struct dirent *e;
        int fd;

        fd = openat(log->audit_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        d = fd >= 0 ? fdopendir(fd) : NULL;
        if (!d) {
                int r = rv_raise(-errno);

                rv_close(fd);
                return rv_log_fail(log, err, r, "", "cannot read the directory");
        }
        while (errno = 0, (e = readdir(d)))
                if (rv_log_is_segment(e->d_name) && (!of || strcmp(e->d_name, of) * sign > 0) &&
                    (!best[0] || strcmp(e->d_name, best) * sign < 0))
                        memcpy(best, e->d_name, sizeof(best));
        if (errno)
                return rv_log_fail(log, err, rv_raise(-errno), "", "cannot read the directory");
        if (!best[0])
                return 0;
        memcpy(ret_name, best, sizeof(best));
        return 1;
}

int rv_log_segment_before(struct rv_log *log, const char *before, char ret_name[RV_LOG_SEGMENT_NAME_SIZE],
        struct rv_error *err)
{
        return find_beside(log, before, -1, ret_name, err);
}

int rv_log_segment_after(struct rv_log *log, const char *after, char ret_name[RV_LOG_SEGMENT_NAME_SIZE],
        struct rv_error *err)
{
        return find_beside(log, after, 1, ret_name, err);
}
