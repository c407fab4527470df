#include "confine.h"

#include "base/confine.h"
#include "egress/gate_msg.h"
#include "gate_filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_MAX ((rlim_t)1 << 17)

/* linux/landlock.h of the oldest supported build host lacks the later members. */
struct landlock_ruleset {
        uint64_t handled_access_fs, handled_access_net, scoped;
};

#define LANDLOCK_FILES_ABI_1 0x1fffull          /* every access to files that ABI 1 knows */
#define LANDLOCK_REFER (1ull << 13)             /* ABI 2 */
#define LANDLOCK_TRUNCATE (1ull << 14)          /* ABI 3 */
#define LANDLOCK_IOCTL_DEV (1ull << 15)         /* ABI 5 */
#define LANDLOCK_BIND_TCP 1ull                  /* ABI 4 */
#define LANDLOCK_SCOPES 3ull                    /* abstract unix sockets, signals: ABI 6 */

int confine_files(struct rv_error *err)
{
        return rv_trace(rv_confine(RV_GATE_CHANNEL_FD + 1, FILES_MAX, err));
}

/* Files are forbidden by the second wall too, and listening by TCP. Kernels without it do without. */
static void restrict_files(void)
{
        struct landlock_ruleset rules = { .handled_access_fs = LANDLOCK_FILES_ABI_1 };
        int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1), fd;
        size_t size = abi >= 6 ? sizeof(rules) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);

        if (abi < 1)
                return;
        rules.handled_access_fs |= (abi >= 2 ? LANDLOCK_REFER : 0) | (abi >= 3 ? LANDLOCK_TRUNCATE : 0) |
                (abi >= 5 ? LANDLOCK_IOCTL_DEV : 0);
        rules.handled_access_net = abi >= 4 ? LANDLOCK_BIND_TCP : 0;
        rules.scoped = abi >= 6 ? LANDLOCK_SCOPES : 0;
        fd = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
        if (fd < 0)
                return;
        (void)syscall(SYS_landlock_restrict_self, fd, 0);
        close(fd);
}

int confine_calls(struct rv_error *err)
{
        struct sock_fprog program = { .len = RV_N_ELEMENTS(rv_gate_calls),
                .filter = (struct sock_filter *)rv_gate_calls };

        if (RV_IS_SANITIZED)
                return 0;
        restrict_files();
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot install a seccomp filter: %s", strerror(errno));
        return 0;
}
