#include "confine.h"

#include "base/confine.h"

#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DATA_BYTES_MAX ((rlim_t)512 << 20)
#define FILES_MAX ((rlim_t)256)
#define THREAD_STACK_BYTES ((size_t)512 << 10)   /* the resolver's threads */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* What an HTTP client never does, but one that was taken over would. The answer to each is EPERM. */
static const unsigned refused[] = {
        SYS_execve,
        SYS_execveat,
        SYS_ptrace,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_kill,
        SYS_tkill,
        SYS_pidfd_open,
        SYS_pidfd_getfd,
        SYS_pidfd_send_signal,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_keyctl,
        SYS_add_key,
        SYS_request_key,
        SYS_unshare,
        SYS_setns,
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_chroot,
        SYS_open_by_handle_at,
        SYS_io_uring_setup,
        SYS_init_module,
        SYS_finit_module,
        SYS_mknodat,
        SYS_unlinkat,
        SYS_renameat2,
        SYS_linkat,
        SYS_symlinkat,
        SYS_listen,
        SYS_accept4,
#ifdef __x86_64__
        SYS_fork,
        SYS_vfork,
        SYS_mknod,
        SYS_unlink,
        SYS_rename,
        SYS_link,
        SYS_symlink,
        SYS_accept,
#endif
};

static int filter_calls(struct rv_error *err)
{
#ifdef ARCH
        struct sock_filter f[16 + RV_N_ELEMENTS(refused)];
        struct sock_fprog program = { .filter = f };
        unsigned n = 0;

        f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        /* x32, and clone3, whose flags cannot be looked at: libc falls back to clone. */
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 1, 0);
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
        for (size_t i = 0; i < RV_N_ELEMENTS(refused); i++)
                f[n++] = (struct sock_filter)BPF_JUMP(
                        BPF_JMP | BPF_JEQ | BPF_K, refused[i], (uint8_t)(RV_N_ELEMENTS(refused) - i), 0);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
        program.len = (unsigned short)n;
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot install a seccomp filter: %s", strerror(errno));
#endif
        return 0;
}

static int bound_memory(struct rv_error *err)
{
        pthread_attr_t attr;
        int r = RV_IS_SANITIZED ? 0 : rv_confine_limit(RLIMIT_DATA, DATA_BYTES_MAX, "data", err);

        if (r < 0)
                return rv_trace(r);
        /* Or the threads that ask for names would use up what there is. */
        if (pthread_attr_init(&attr) == 0) {
                (void)pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
                (void)pthread_setattr_default_np(&attr);
                pthread_attr_destroy(&attr);
        }
        (void)mallopt(M_ARENA_MAX, 1);
        return 0;
}

int confine(uid_t uid, unsigned n_fds, struct rv_error *err)
{
        int r;

        if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
                return rv_error_set(err, rv_raise(-errno), "cannot become uid %u: %s", (unsigned)uid, strerror(errno));
        r = rv_confine(n_fds, FILES_MAX, err);
        if (r == 0)
                r = bound_memory(err);
        if (r == 0 && !RV_IS_SANITIZED)
                r = filter_calls(err);
        return rv_trace(r);
}
