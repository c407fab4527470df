#include "confine.h"

#include "base/confine.h"
#include "job.h"
#include "package/unpack.h"

#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DATA_BYTES_MAX ((rlim_t)1 << 30)
#define FILE_BYTES_MAX ((rlim_t)9 << 30)
#define CPU_S_MAX ((rlim_t)600)
#define FILES_MAX ((rlim_t)RV_UNPACK_ARTIFACTS_MAX + 64)

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* ---- Landlock ---- */

/* linux/landlock.h of the oldest supported build host lacks the later members. */
struct landlock_ruleset {
        uint64_t files, network, scoped;
};
struct landlock_below {
        uint64_t allowed;
        int32_t fd;
} __attribute__((packed));

enum landlock_right {
        LANDLOCK_WRITE_FILE = 1 << 1,
        LANDLOCK_READ_FILE = 1 << 2,
        LANDLOCK_READ_DIR = 1 << 3,
        LANDLOCK_REMOVE_FILE = 1 << 5,
        LANDLOCK_MAKE_DIR = 1 << 7,
        LANDLOCK_MAKE_REG = 1 << 8,
        LANDLOCK_MAKE_SYM = 1 << 12,
        LANDLOCK_ABI_1 = 0x1fff,
        LANDLOCK_REFER = 1 << 13,                /* ABI 2 */
        LANDLOCK_TRUNCATE = 1 << 14,             /* ABI 3 */
        LANDLOCK_IOCTL_DEV = 1 << 15,            /* ABI 5 */
};

#define LANDLOCK_TCP 3ull                        /* bind and connect: ABI 4 */
#define LANDLOCK_SCOPES 3ull                     /* abstract unix sockets, signals: ABI 6 */
#define LANDLOCK_READ (LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
#define LANDLOCK_WRITE (LANDLOCK_READ | LANDLOCK_WRITE_FILE | LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SYM)

/* Kernels without it do without; one that has it has to do as it is told. */
static int restrict_files(unsigned n_fds, struct rv_error *err)
{
        int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1), fd, r = 0;
        struct landlock_ruleset rules = { .files = LANDLOCK_ABI_1 };
        size_t size = abi >= 6 ? sizeof(rules) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);

        if (abi < 1)
                return 0;
        rules.files |= (abi >= 2 ? LANDLOCK_REFER : 0u) | (abi >= 3 ? LANDLOCK_TRUNCATE : 0u) |
                (abi >= 5 ? LANDLOCK_IOCTL_DEV : 0u);
        rules.network = abi >= 4 ? LANDLOCK_TCP : 0;
        rules.scoped = abi >= 6 ? LANDLOCK_SCOPES : 0;
        fd = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
        if (fd < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot use Landlock: %s", strerror(errno));
        for (unsigned i = JOB_FD_ARTIFACTS; i < n_fds && r == 0; i++) {
                struct landlock_below below = { i == JOB_FD_STAGING ? LANDLOCK_WRITE : LANDLOCK_READ, (int32_t)i };

                r = (int)syscall(SYS_landlock_add_rule, fd, 1, &below, 0);
        }
        if (r == 0)
                r = (int)syscall(SYS_landlock_restrict_self, fd, 0);
        if (r < 0)
                r = rv_error_set(err, rv_raise(-errno), "cannot use Landlock: %s", strerror(errno));
        close(fd);
        return r;
}

/* ---- The process ---- */

int confine_process(uid_t uid, unsigned n_fds, struct rv_error *err)
{
        int r;

        if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
                return rv_error_set(err, rv_raise(-errno), "cannot become uid %u: %s", (unsigned)uid, strerror(errno));
        r = rv_confine(n_fds, FILES_MAX, err);
        if (r == 0 && !RV_IS_SANITIZED)
                r = rv_confine_limit(RLIMIT_DATA, DATA_BYTES_MAX, "data", err);
        if (r == 0)
                r = rv_confine_limit(RLIMIT_FSIZE, FILE_BYTES_MAX, "fsize", err);
        if (r == 0)
                r = rv_confine_limit(RLIMIT_CPU, CPU_S_MAX, "cpu", err);
        if (r == 0 && !RV_IS_SANITIZED)
                r = restrict_files(n_fds, err);
        return rv_trace(r);
}

/* ---- System calls ---- */

static const unsigned allowed[] = {
        SYS_read,
        SYS_pread64,
        SYS_write,
        SYS_writev,
        SYS_lseek,
        SYS_close,
        SYS_fstat,
        SYS_newfstatat,                          /* what libc makes of fstat() */
        SYS_fcntl,
        SYS_mmap,
        SYS_munmap,
        SYS_mremap,
        SYS_mprotect,
        SYS_madvise,
        SYS_brk,
        SYS_futex,
        SYS_getrandom,
        SYS_clock_gettime,
        SYS_rt_sigreturn,
        SYS_restart_syscall,
        SYS_exit,
        SYS_exit_group,
        /* From here on only what writes files needs. */
        SYS_openat,
        SYS_openat2,
        SYS_mkdirat,
        SYS_symlinkat,
        SYS_unlinkat,
        SYS_utimensat,
        SYS_fchmod,
};

#define N_FOR_WRITING 7u

int confine_calls(bool can_write, struct rv_error *err)
{
#ifdef ARCH
        unsigned n_allowed = RV_N_ELEMENTS(allowed) - (can_write ? 0 : N_FOR_WRITING), n = 0;
        struct sock_filter f[8 + RV_N_ELEMENTS(allowed)];
        struct sock_fprog program = { .filter = f };

        if (RV_IS_SANITIZED)
                return 0;
        f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        for (unsigned i = 0; i < n_allowed; i++)
                f[n++] = (struct sock_filter)BPF_JUMP(
                        BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (uint8_t)(n_allowed - i), 0);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        program.len = (unsigned short)n;
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot install a seccomp filter: %s", strerror(errno));
#endif
        return 0;
}
