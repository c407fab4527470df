/*
 * probe_numbers.c - what is not said by the name of a call: other architectures' numbers, the high half of an
 * argument of which the kernel reads the low one, and every number there is
 */
#include "probe.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGH (1ul << 32)
#define X32 0x40000000l         /* __X32_SYSCALL_BIT */
#define N_NUMBERS 1024          /* more than any kernel has */
#define N_SETTLED 452           /* up to here every libseccomp that can build reeve knows the names */

static void high_bits(void)
{
        static const struct call rows[] = {
                { "socket-vsock", SYS_socket, { HIGH | AF_VSOCK, SOCK_STREAM, 0 } },
                { "socket-alg", SYS_socket, { HIGH | 38 /* AF_ALG */, SOCK_SEQPACKET, 0 } },
                { "socket-packet", SYS_socket, { (long)(HIGH << 31) | AF_PACKET, SOCK_DGRAM, 0 } },
                { "socket-netlink-audit", SYS_socket, { AF_NETLINK, SOCK_RAW, HIGH | 9 } },
                { "socketpair-vsock", SYS_socketpair, { HIGH | AF_VSOCK, SOCK_STREAM, 0 } },
                { "ioctl-tiocsti", SYS_ioctl, { 0, HIGH | TIOCSTI, (long)"x" } },
                { "ioctl-tioclinux", SYS_ioctl, { 0, HIGH | TIOCLINUX, (long)"\2" } },
                { "personality-no-randomize", SYS_personality, { HIGH | ADDR_NO_RANDOMIZE } },
        };

        say_calls("5/seccomp/high-bits-", rows, N_ELEMENTS(rows));
}

static void terminals_and_personalities(void)
{
        static const struct call rows[] = {
                { "tiocsti/tiocsti", SYS_ioctl, { 0, TIOCSTI, (long)"x" } },
                { "tiocsti/tioclinux", SYS_ioctl, { 0, TIOCLINUX, (long)"\2" } },
                { "seccomp/personality-no-randomize", SYS_personality, { ADDR_NO_RANDOMIZE } },
                { "seccomp/personality-read-implies-exec", SYS_personality, { READ_IMPLIES_EXEC } },
                { "seccomp/personality-mmap-page-zero", SYS_personality, { MMAP_PAGE_ZERO } },
                { "seccomp/personality-ask", SYS_personality, { 0xffffffff } },
                { "seccomp/turn-off", SYS_prctl, { PR_SET_SECCOMP, 0, 0 } },
                { "seccomp/no-new-privs-off", SYS_prctl, { PR_SET_NO_NEW_PRIVS, 0, 0 } },
        };

        say_calls("5/", rows, N_ELEMENTS(rows));
}

/* ---- Every number ---- */

/* Arguments of -1 make nearly every call fail at once. What is not so is helped here, or not tried. */
static long call_number(const void *arg)
{
        long nr = *(const long *)arg;

#ifdef SYS_futex
        if (nr == SYS_futex)    /* ENOSYS is also what it says to an unknown operation */
                return syscall(nr, arg, 1 /* FUTEX_WAKE */, 1, 0, 0, 0);
#endif
#ifdef __x86_64__
        if (nr == SYS_pause || nr == SYS_vfork)
                return 0;       /* one only returns by a signal, the other would run on in its parent's frame */
#endif
        if (nr == SYS_sync)
                return 0;       /* would wait for the whole machine's disks */
        return syscall(nr, -1l, -1l, -1l, -1l, -1l, -1l);
}

/* Ended by a signal or by exit, hung, or failed otherwise: the call was made. */
static bool is_let_through(long nr)
{
        long r = returned_by_child(call_number, &nr);

        return r != -1 || (errno != ENOSYS && errno != EPERM);
}

/* The numbers let through, as ranges: "0-47,49". A new or lost name in the list of calls shows here. */
static void sweep(void)
{
        char text[4096] = "";
        size_t n = 0;
        long first = -1;

        for (long nr = 0; nr <= N_SETTLED; nr++) {
                bool is_in = nr < N_SETTLED && is_let_through(nr);

                if (is_in && first < 0)
                        first = nr;
                if (is_in || first < 0)
                        continue;
                n += (size_t)snprintf(text + n, sizeof(text) - n, nr - first > 1 ? "%s%ld-%ld" : "%s%ld", n ? "," : "", first, nr - 1);
                first = -1;
        }
        say("5/seccomp/sweep-of-numbers", "%s", text);

        n = 0;
        text[0] = 0;
        for (long nr = N_SETTLED; nr < N_NUMBERS; nr++)
                if (is_let_through(nr) && n < sizeof(text) - 8)
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%ld", n ? "," : "", nr);
        say("5/seccomp/sweep-of-new-numbers", "%s", n ? text : "none");
}

#ifdef __x86_64__

/* int 0x80: the i386 table, entered from 64-bit code. */
static long call_i386(const void *arg)
{
        const struct call *c = arg;
        long r;

        __asm__ volatile("int $0x80" : "=a"(r) : "a"(c->nr), "b"(c->args[0]), "c"(c->args[1]), "d"(c->args[2]) : "memory", "cc", "r8", "r9", "r10", "r11");
        r = (int)r;
        if (r < 0 && r > -4096) {
                errno = (int)-r;
                return -1;
        }
        return 0;
}

static bool is_denied(long r)
{
        /* Killed: a kernel without the emulation answers int 0x80 with SIGSEGV. */
        return r == -2 || (r == -1 && (errno == ENOSYS || errno == EPERM));
}

static long call_i386_number(const void *arg)
{
        const struct call c = { "", *(const long *)arg, { -1, -1, -1 } };

        return call_i386(&c);
}

/* Which of all numbers are let through, but those that return from no call. */
static void say_sweep(const char *check, long (*call)(const void *arg), long first, long count)
{
        unsigned n = 0;
        long some = -1;

        for (long nr = first; nr < first + count; nr++)
                if (!is_denied(returned_by_child(call, &nr))) {
                        n++;
                        some = nr;
                }
        if (n)
                say(check, "%u let through, the last %ld", n, some);
        else
                say(check, "none");
}

static void other_architectures(void)
{
        static const struct call i386[] = {
                { "getpid", 20, { 0 } },
                { "mount", 21, { 0, 0, 0 } },
                { "socketcall", 102, { 1, 0, 0 } },
                { "unshare-user", 310, { 0x10000000, 0, 0 } },
                { "keyctl", 288, { 0, -3, 0 } },
                { "vm86", 166, { 0, 0, 0 } },
        };
        static const struct call x32[] = {
                { "getpid", X32 | SYS_getpid, { 0 } },
                { "unshare-user", X32 | SYS_unshare, { 0x10000000 } },
                { "socket-vsock", X32 | SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 } },
                { "ptrace", X32 | 521, { 0 } },
                { "execve", X32 | 520, { BAD, BAD, BAD } },
                { "ioctl-tiocsti", X32 | 514, { 0, TIOCSTI, (long)"x" } },
        };
        char check[64];

        for (size_t i = 0; i < N_ELEMENTS(i386); i++) {
                snprintf(check, sizeof(check), "5/seccomp/int80-%s", i386[i].name);
                say(check, "%s", is_denied(returned_by_child(call_i386, &i386[i])) ? "denied" : "allowed");
        }
        for (size_t i = 0; i < N_ELEMENTS(x32); i++) {
                snprintf(check, sizeof(check), "5/seccomp/x32-%s", x32[i].name);
                say(check, "%s", is_denied(returned_by_child(make_call, &x32[i])) ? "denied" : "allowed");
        }
        say("10/54-int80-getpid", "%s", is_denied(returned_by_child(call_i386, &i386[0])) ? "denied" : "allowed");
        say("10/54-x32-getpid", "%s", is_denied(returned_by_child(make_call, &x32[0])) ? "denied" : "allowed");
        say_sweep("5/seccomp/int80-sweep", call_i386_number, 0, 512);
        say_sweep("5/seccomp/x32-sweep", call_number, X32, 600);
}

#else

static void other_architectures(void)
{
}

#endif

void probe_numbers(void)
{
        high_bits();
        terminals_and_personalities();
        other_architectures();
        sweep();
}
