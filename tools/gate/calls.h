/*
 * calls.h - the system calls that the gate may make
 *
 * An allow-list: what is not named gives ENOSYS. Nothing that opens a file, makes a process or listens is in it. The
 * filter is made at build time (calls_gen.c). Only 32 bits of an argument are compared where the kernel reads 32.
 */
#pragma once

/* X(name): with any arguments. */
/* clang-format off */
#define GATE_CALLS(X) \
        X(accept4) X(brk) X(clock_gettime) X(clock_getres) X(close) X(connect) X(dup) X(epoll_create1) \
        X(epoll_ctl) X(epoll_pwait) X(epoll_pwait2) X(epoll_wait) X(eventfd2) X(exit) X(exit_group) X(fcntl) \
        X(fstat) X(ftruncate) X(futex) X(getpeername) X(getpid) X(getrandom) X(getsockname) X(getsockopt) \
        X(gettid) X(gettimeofday) X(lseek) X(madvise) X(memfd_create) X(mmap) X(mprotect) X(mremap) \
        X(munmap) X(pipe2) X(poll) X(ppoll) X(pread64) X(read) X(readv) X(recvfrom) X(recvmsg) \
        X(restart_syscall) X(rt_sigaction) X(rt_sigprocmask) X(rt_sigreturn) X(sendmsg) X(sendto) \
        X(setsockopt) X(shutdown) X(splice) X(time) X(write) X(writev)
/* clang-format on */

/* socket(2): these families and types, with protocol 0, TCP or UDP; netlink for the host's own addresses. */
#define GATE_FAMILIES(X) X(2 /* AF_INET */) X(10 /* AF_INET6 */)
#define GATE_TYPES(X, family) X(family, 1 /* SOCK_STREAM */) X(family, 2 /* SOCK_DGRAM */)
#define GATE_TYPE_MASK 0xfu
#define GATE_PROTOCOLS(X, family, type) X(family, type, 0) X(family, type, 6) X(family, type, 17)

/* ioctl(2): FIONBIO and FIOCLEX, which libuv asks for. */
#define GATE_IOCTLS(X) X(0x5421) X(0x5451)
