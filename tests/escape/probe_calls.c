/*
 * probe_calls.c - system calls that a run may not make, one by one
 *
 * Where it can be, the arguments are such that the kernel would answer an ordinary user with something else than
 * the filter does: then the check tells that the filter is there, not only that the kernel refuses.
 */
#include "probe.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers that the C library of an older build host does not name. They are the same on all architectures. */
#define NR_OPEN_TREE 428
#define NR_MOVE_MOUNT 429
#define NR_FSOPEN 430
#define NR_FSCONFIG 431
#define NR_FSMOUNT 432
#define NR_FSPICK 433
#define NR_PIDFD_GETFD 438
#define NR_MOUNT_SETATTR 442
#define NR_QUOTACTL_FD 443
#define NR_MEMFD_SECRET 447
#define NR_PROCESS_MRELEASE 448
#define NR_SET_MEMPOLICY_HOME_NODE 450
#define NR_CACHESTAT 451
#define NR_STATMOUNT 457
#define NR_LISTMOUNT 458
#define NR_LSM_GET_SELF_ATTR 459
#define NR_LSM_SET_SELF_ATTR 460
#define NR_LSM_LIST_MODULES 461
#define NR_SETXATTRAT 463
#define NR_OPEN_TREE_ATTR 467
#define NR_FILE_SETATTR 469

static const struct call calls[] = {
        /* Work that the kernel does for a program out of sight of its filters. */
        { "calls/io_uring_setup", SYS_io_uring_setup, { 1, BAD } },
        { "calls/io_uring_enter", SYS_io_uring_enter, { -1, 1, 1, 0, 0, 0 } },
        { "calls/io_uring_register", SYS_io_uring_register, { -1, 0, 0, 0 } },
        { "calls/io_setup", SYS_io_setup, { 1, BAD } },
        { "calls/io_submit", SYS_io_submit, { 0, 1, BAD } },
        { "calls/userfaultfd", SYS_userfaultfd, { -1 } },
        { "calls/bpf", SYS_bpf, { -1, BAD, 8 } },
        { "calls/perf_event_open", SYS_perf_event_open, { BAD, 0, -1, -1, 0 } },
        /* Keys: not divided by namespaces. */
        { "calls/keyctl", SYS_keyctl, { KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0 } },
        { "calls/add_key", SYS_add_key, { BAD, BAD, 0, 0, 0 } },
        { "calls/request_key", SYS_request_key, { BAD, BAD, 0, 0 } },
        /* Other processes' memory and descriptors. */
        { "calls/ptrace", SYS_ptrace, { PTRACE_TRACEME } },
        { "calls/ptrace-attach-init", SYS_ptrace, { PTRACE_SEIZE, 1, 0, 0 } },
        { "calls/process_vm_readv", SYS_process_vm_readv, { 1, 0, 0, 0, 0, -1 } },
        { "calls/process_vm_writev", SYS_process_vm_writev, { 1, 0, 0, 0, 0, -1 } },
        { "calls/kcmp", SYS_kcmp, { 1, 1, -1, 0, 0 } },
        { "calls/pidfd_getfd", NR_PIDFD_GETFD, { -1, 0, 0 } },
        { "calls/process_mrelease", NR_PROCESS_MRELEASE, { -1, 0 } },
        /* Mounts, old interface and new. */
        { "calls/mount", SYS_mount, { BAD, BAD, BAD, 0, 0 } },
        { "calls/umount2", SYS_umount2, { BAD, -1 } },
        { "calls/pivot_root", SYS_pivot_root, { BAD, BAD } },
        { "calls/chroot", SYS_chroot, { BAD } },
        { "calls/fsopen", NR_FSOPEN, { BAD, 0 } },
        { "calls/fsconfig", NR_FSCONFIG, { -1, 0, 0, 0, 0 } },
        { "calls/fsmount", NR_FSMOUNT, { -1, 0, 0 } },
        { "calls/fspick", NR_FSPICK, { AT_FDCWD, BAD, 0 } },
        { "calls/open_tree", NR_OPEN_TREE, { AT_FDCWD, BAD, -1 } },
        { "calls/move_mount", NR_MOVE_MOUNT, { AT_FDCWD, BAD, AT_FDCWD, BAD, 0 } },
        { "calls/mount_setattr", NR_MOUNT_SETATTR, { AT_FDCWD, BAD, -1, BAD, 0 } },
        { "calls/open_tree_attr", NR_OPEN_TREE_ATTR, { AT_FDCWD, BAD, -1, BAD, 0 } },
        { "calls/statmount", NR_STATMOUNT, { BAD, BAD, 0, 0 } },
        { "calls/listmount", NR_LISTMOUNT, { BAD, BAD, 0, 0 } },
        /* Files by handle, past the mounts that a run sees. */
        { "calls/name_to_handle_at", SYS_name_to_handle_at, { AT_FDCWD, BAD, BAD, BAD, -1 } },
        { "calls/open_by_handle_at", SYS_open_by_handle_at, { AT_FDCWD, BAD, 0 } },
        /* The machine. */
        { "calls/kexec_load", SYS_kexec_load, { 0, 0, 0, -1 } },
        { "calls/kexec_file_load", SYS_kexec_file_load, { -1, -1, 0, BAD, -1 } },
        { "calls/init_module", SYS_init_module, { BAD, 0, BAD } },
        { "calls/finit_module", SYS_finit_module, { -1, BAD, -1 } },
        { "calls/delete_module", SYS_delete_module, { BAD, 0 } },
        { "calls/swapon", SYS_swapon, { BAD, -1 } },
        { "calls/swapoff", SYS_swapoff, { BAD } },
        { "calls/quotactl", SYS_quotactl, { -1, BAD, 0, BAD } },
        { "calls/quotactl_fd", NR_QUOTACTL_FD, { -1, -1, 0, BAD } },
        { "calls/reboot", SYS_reboot, { 0, 0, 0, 0 } },
        { "calls/syslog", SYS_syslog, { -1, BAD, -1 } },
        { "calls/acct", SYS_acct, { BAD } },
        { "calls/settimeofday", SYS_settimeofday, { BAD, BAD } },
        { "calls/clock_settime", SYS_clock_settime, { -1, BAD } },
        { "calls/clock_adjtime", SYS_clock_adjtime, { -1, BAD } },
        { "calls/adjtimex", SYS_adjtimex, { BAD } },
        { "calls/sethostname", SYS_sethostname, { BAD, -1 } },
        { "calls/setdomainname", SYS_setdomainname, { BAD, -1 } },
        { "calls/vhangup", SYS_vhangup, { 0 } },
        { "calls/fanotify_init", SYS_fanotify_init, { -1, -1 } },
        { "calls/fanotify_mark", SYS_fanotify_mark, { -1, 0, 0, -1, BAD } },
        { "calls/lookup_dcookie", SYS_lookup_dcookie, { 0, BAD, 0 } },
#ifdef __x86_64__
        { "calls/iopl", SYS_iopl, { 4 } },
        { "calls/ioperm", SYS_ioperm, { -1, -1, 1 } },
        { "calls/modify_ldt", SYS_modify_ldt, { 0, BAD, 0 } },
        { "calls/uselib", SYS_uselib, { BAD } },
        { "calls/ustat", SYS_ustat, { 0, BAD } },
        { "calls/sysfs", SYS_sysfs, { 3 } },
        { "calls/create_module", SYS_create_module, { BAD, 0 } },
#endif
        /* Memory of other nodes and processes; what no interpreter asks for. */
        { "calls/set_mempolicy", SYS_set_mempolicy, { 0, 0, 0 } },
        { "calls/get_mempolicy", SYS_get_mempolicy, { 0, 0, 0, 0, 0 } },
        { "calls/mbind", SYS_mbind, { 0, 0, 0, 0, 0, 0 } },
        { "calls/migrate_pages", SYS_migrate_pages, { 0, 0, 0, 0 } },
        { "calls/move_pages", SYS_move_pages, { 0, 0, 0, 0, 0, 0 } },
        { "calls/set_mempolicy_home_node", NR_SET_MEMPOLICY_HOME_NODE, { 0, 0, 0, 0 } },
        { "calls/memfd_secret", NR_MEMFD_SECRET, { -1 } },
        { "calls/cachestat", NR_CACHESTAT, { -1, BAD, BAD, 0 } },
        { "calls/lsm_get_self_attr", NR_LSM_GET_SELF_ATTR, { 0, BAD, BAD, 0 } },
        { "calls/lsm_set_self_attr", NR_LSM_SET_SELF_ATTR, { 0, BAD, 0, 0 } },
        { "calls/lsm_list_modules", NR_LSM_LIST_MODULES, { BAD, BAD, 0 } },
        { "calls/setxattrat", NR_SETXATTRAT, { AT_FDCWD, BAD, -1, BAD, BAD, 0 } },
        { "calls/file_setattr", NR_FILE_SETATTR, { AT_FDCWD, BAD, BAD, 0, -1 } },
        /* The same calls as an attack would make them. */
        { "fsconfig/fsopen-cgroup2", NR_FSOPEN, { (long)"cgroup2", 0 } },
        { "release-agent/mount-cgroup", SYS_mount, { (long)"none", (long)"/tmp", (long)"cgroup", 0, (long)"memory" } },
        { "release-agent/mount-cgroup2", SYS_mount, { (long)"none", (long)"/tmp", (long)"cgroup2", 0, 0 } },
        { "null-inode/bind-over-mask", SYS_mount, { (long)"/dev/null", (long)"/proc/sys", 0, 4096 /* MS_BIND */, 0 } },
        { "null-inode/remount-proc-writable", SYS_mount, { 0, (long)"/proc/sys", 0, 32 | 4096 /* MS_REMOUNT | MS_BIND */, 0 } },
        { "null-inode/unmount-mask", SYS_umount2, { (long)"/proc/keys", 2 /* MNT_DETACH */ } },
};

void probe_calls(void)
{
        say_calls("5/", calls, N_ELEMENTS(calls));
}
