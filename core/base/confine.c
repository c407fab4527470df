#include "base/confine.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OLD_FILES_MAX 4096u             /* where the kernel cannot close a range */

int rv_confine_limit(int what, rlim_t most, const char *name, struct rv_error *err)
{
        struct rlimit l;

        if (getrlimit(what, &l) < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot read the limit %s: %s", name, strerror(errno));
        l.rlim_cur = l.rlim_max = RV_MIN(most, l.rlim_max);
        if (setrlimit(what, &l) < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot set the limit %s: %s", name, strerror(errno));
        return 0;
}

int rv_confine(unsigned n_fds, rlim_t files_max, struct rv_error *err)
{
        int r;

        if (syscall(SYS_close_range, n_fds, ~0u, 0u) < 0)
                for (unsigned fd = n_fds; fd < OLD_FILES_MAX; fd++)
                        close((int)fd);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || (!RV_IS_SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0))
                return rv_error_set(err, rv_raise(-errno), "cannot give up privilege: %s", strerror(errno));
        r = rv_confine_limit(RLIMIT_CORE, 0, "core", err);
        return r < 0 ? rv_trace(r) : rv_trace(rv_confine_limit(RLIMIT_NOFILE, files_max, "nofile", err));
}
