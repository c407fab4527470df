/*
 * seccomp_rules.h - the system calls that a run may make
 *
 * An allow-list: what is not named gives ENOSYS, as on an older kernel, so that libraries fall back. Names
 * unknown to the libseccomp at hand are skipped when the filter is made (backends/common/seccomp_gen.c,
 * at build time). clone3 is left out on purpose: its flags lie in memory where a filter cannot look, and
 * ENOSYS makes every C library use clone. Nothing here relies on comparing a whole 64-bit argument where
 * the kernel reads 32 bits of it.
 */
#pragma once

/*
 * X(name): allowed with any arguments. Not here: the calls of the kernel's own asynchronous I/O (io_setup and the
 * like), which no interpreter uses; their slots (fs.aio-max-nr) are the whole machine's, and one run could take all.
 */
#define RV_SECCOMP_ALLOW(X)                                                                                            \
        X(accept) X(accept4) X(access) X(alarm) X(arch_prctl) X(bind) X(brk) X(capget) X(capset) X(chdir) X(chmod)    \
        X(chown) X(clock_getres) X(clock_gettime) X(clock_nanosleep) X(close) X(close_range) X(connect)               \
        X(copy_file_range) X(creat) X(dup) X(dup2) X(dup3) X(epoll_create) X(epoll_create1) X(epoll_ctl)              \
        X(epoll_pwait) X(epoll_pwait2) X(epoll_wait) X(eventfd) X(eventfd2) X(execve) X(execveat) X(exit)             \
        X(exit_group) X(faccessat) X(faccessat2) X(fadvise64) X(fallocate) X(fchdir) X(fchmod) X(fchmodat)            \
        X(fchmodat2) X(fchown) X(fchownat) X(fcntl) X(fdatasync) X(fgetxattr) X(flistxattr) X(flock) X(fork)          \
        X(fremovexattr) X(fsetxattr) X(fstat) X(fstatfs) X(fsync) X(ftruncate) X(futex) X(futex_requeue)              \
        X(futex_wait) X(futex_waitv) X(futex_wake) X(futimesat) X(getcpu) X(getcwd) X(getdents) X(getdents64)         \
        X(getegid) X(geteuid) X(getgid) X(getgroups) X(getitimer) X(getpeername) X(getpgid) X(getpgrp) X(getpid)      \
        X(getppid) X(getpriority) X(getrandom) X(getresgid) X(getresuid) X(getrlimit) X(get_robust_list)              \
        X(getrusage) X(getsid) X(getsockname) X(getsockopt) X(get_thread_area) X(gettid) X(gettimeofday) X(getuid)    \
        X(getxattr) X(inotify_add_watch) X(inotify_init) X(inotify_init1) X(inotify_rm_watch)                         \
        X(ioprio_get) X(ioprio_set)                                                                                   \
        X(ioctl) X(kill) X(landlock_add_rule) X(landlock_create_ruleset) X(landlock_restrict_self) X(lchown)          \
        X(lgetxattr) X(link) X(linkat) X(listen) X(listxattr) X(llistxattr) X(lremovexattr) X(lseek) X(lsetxattr)     \
        X(lstat) X(madvise) X(membarrier) X(memfd_create) X(mincore) X(mkdir) X(mkdirat) X(mknod) X(mknodat)          \
        X(mlock) X(mlock2) X(mlockall) X(mmap) X(mprotect) X(mq_getsetattr) X(mq_notify) X(mq_open)                   \
        X(mq_timedreceive) X(mq_timedsend) X(mq_unlink) X(mremap) X(msgctl) X(msgget) X(msgrcv) X(msgsnd) X(msync)    \
        X(munlock) X(munlockall) X(munmap) X(nanosleep) X(newfstatat) X(open) X(openat) X(openat2) X(pause)           \
        X(pidfd_open) X(pidfd_send_signal) X(pipe) X(pipe2) X(pkey_alloc) X(pkey_free) X(pkey_mprotect) X(poll)       \
        X(ppoll) X(prctl) X(pread64) X(preadv) X(preadv2) X(prlimit64) X(process_madvise) X(pselect6) X(pwrite64)     \
        X(pwritev) X(pwritev2) X(read) X(readahead) X(readlink) X(readlinkat) X(readv) X(recvfrom) X(recvmmsg)        \
        X(recvmsg) X(remap_file_pages) X(removexattr) X(rename) X(renameat) X(renameat2) X(restart_syscall) X(rmdir)  \
        X(rseq) X(rt_sigaction) X(rt_sigpending) X(rt_sigprocmask) X(rt_sigqueueinfo) X(rt_sigreturn)                 \
        X(rt_sigsuspend) X(rt_sigtimedwait) X(rt_tgsigqueueinfo) X(sched_getaffinity) X(sched_getattr)                \
        X(sched_getparam) X(sched_get_priority_max) X(sched_get_priority_min) X(sched_getscheduler)                   \
        X(sched_rr_get_interval) X(sched_setaffinity) X(sched_setattr) X(sched_setparam) X(sched_setscheduler)        \
        X(sched_yield) X(seccomp) X(select) X(semctl) X(semget) X(semop) X(semtimedop) X(sendfile) X(sendmmsg)        \
        X(sendmsg) X(sendto) X(setfsgid) X(setfsuid) X(setgid) X(setgroups) X(setitimer) X(setpgid) X(setpriority)    \
        X(setregid) X(setresgid) X(setresuid) X(setreuid) X(setrlimit) X(set_robust_list) X(setsid) X(setsockopt)     \
        X(set_thread_area) X(set_tid_address) X(setuid) X(setxattr) X(shmat) X(shmctl) X(shmdt) X(shmget)             \
        X(shutdown) X(sigaltstack) X(signalfd) X(signalfd4) X(splice) X(stat) X(statfs) X(statx) X(symlink)           \
        X(symlinkat) X(sync_file_range) X(sysinfo) X(tee) X(tgkill) X(time) X(timer_create)         \
        X(timer_delete) X(timerfd_create) X(timerfd_gettime) X(timerfd_settime) X(timer_getoverrun)                   \
        X(timer_gettime) X(timer_settime) X(times) X(tkill) X(truncate) X(umask) X(uname) X(unlink) X(unlinkat)       \
        X(utime) X(utimensat) X(utimes) X(vfork) X(vmsplice) X(wait4) X(waitid) X(waitpid) X(write) X(writev)

/* X(name): answered with success and not done: they would reach the host's disks, and a run's files are in memory. */
#define RV_SECCOMP_NOTHING(X) X(sync) X(syncfs)

/* X(name): refused with EPERM, the answer that programs expect of a call that wants privilege. */
#define RV_SECCOMP_EPERM(X)                                                                                            \
        X(acct) X(add_key) X(adjtimex) X(bpf) X(chroot) X(clock_adjtime) X(clock_settime) X(delete_module)            \
        X(fanotify_init) X(finit_module) X(fsconfig) X(fsmount) X(fsopen) X(fspick) X(init_module) X(ioperm) X(iopl)  \
        X(kcmp) X(kexec_file_load) X(kexec_load) X(keyctl) X(mount) X(mount_setattr) X(move_mount)                    \
        X(name_to_handle_at) X(open_by_handle_at) X(open_tree) X(perf_event_open) X(pidfd_getfd) X(pivot_root)        \
        X(process_vm_readv) X(process_vm_writev) X(ptrace) X(quotactl) X(quotactl_fd) X(reboot) X(request_key)        \
        X(setdomainname) X(sethostname) X(setns) X(settimeofday) X(swapoff) X(swapon) X(syslog) X(umount2)            \
        X(unshare) X(userfaultfd) X(vhangup)

/* Flags of clone(2) that make a namespace. CLONE_NEWTIME shares its bit with the exit signal and cannot be given here. */
#define RV_SECCOMP_CLONE_NAMESPACES 0x7e020000u

/* Families that a program may have; netlink with protocol 0 (NETLINK_ROUTE) only. */
#define RV_SECCOMP_FAMILIES(X) X(1 /* AF_UNIX */) X(2 /* AF_INET */) X(10 /* AF_INET6 */)

/*
 * Protocols of the internet families refused by the second filter with EPROTONOSUPPORT, as by a kernel without
 * them: no program here needs one, and asking for a protocol makes the kernel load its module.
 */
#define RV_SECCOMP_PROTOCOLS(X)                                                                                        \
        X(33 /* DCCP */) X(115 /* L2TP */) X(132 /* SCTP */) X(136 /* UDP-Lite */) X(256 /* SMC */) X(262 /* MPTCP */)

/* ioctl(2) requests refused by the second filter: input faked into a terminal. */
#define RV_SECCOMP_IOCTLS(X) X(0x5412 /* TIOCSTI */) X(0x541c /* TIOCLINUX */)

/* personality(2): the values that ask, or set what a normal process has. */
#define RV_SECCOMP_PERSONALITIES(X) X(0x0) X(0x0008) X(0x20000) X(0x20008) X(0xffffffff)
