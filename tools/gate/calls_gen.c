/*
 * calls_gen.c - makes the filter of calls.h into a C array, at build time
 *
 * Made at run time with libseccomp it would cost every start of the gate, and loading the library too.
 */
#include "calls.h"

#include <errno.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOW32 0xffffffffu

static scmp_filter_ctx ctx;

static void require(int r, const char *what)
{
        if (r >= 0)
                return;
        fprintf(stderr, "calls_gen: %s: %d\n", what, r);
        exit(1);
}

static void allow(const char *name)
{
        int nr = seccomp_syscall_resolve_name(name);

        /* Unknown to this libseccomp, or not a call of this architecture (a pseudo number): default applies. */
        if (nr != __NR_SCMP_ERROR && nr >= 0)
                require(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0), name);
}

static void allow_socket(unsigned family, unsigned type, unsigned protocol)
{
        require(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, family),
                                 SCMP_A1(SCMP_CMP_MASKED_EQ, GATE_TYPE_MASK, type), SCMP_A2(SCMP_CMP_MASKED_EQ, LOW32, protocol)), "socket");
}

static void print(void)
{
        struct sock_filter filter[4096];
        int fd = memfd_create("filter", 0);
        ssize_t n;

        require(fd, "memfd_create");
        require(seccomp_export_bpf(ctx, fd), "export");
        n = pread(fd, filter, sizeof(filter), 0);
        require(n > 0 && n < (ssize_t)sizeof(filter) ? 0 : -1, "read");
        printf("/* Made by tools/gate/calls_gen.c from calls.h. */\n#pragma once\n#include <linux/filter.h>\n");
        printf("static const struct sock_filter rv_gate_calls[] = {\n");
        for (size_t i = 0; i < (size_t)n / sizeof(filter[0]); i++)
                printf("        { 0x%04x, %u, %u, 0x%08xu },\n", filter[i].code, filter[i].jt, filter[i].jf, filter[i].k);
        printf("};\n");
}

int main(void)
{
        ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
        require(ctx ? 0 : -1, "seccomp_init");
        /* i386 and x32 calls are refused like unknown ones. */
        require(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), "bad architecture");
        require(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
#define X(name) allow(#name);
        GATE_CALLS(X)
#undef X
#define X_PROTOCOL(family, type, protocol) allow_socket(family, type, protocol);
#define X_TYPE(family, type) GATE_PROTOCOLS(X_PROTOCOL, family, type)
#define X(family) GATE_TYPES(X_TYPE, family)
        GATE_FAMILIES(X)
#undef X
        /* A list of addresses that changed while it was read is read again by a new socket. */
        require(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, 16 /* AF_NETLINK */),
                                 SCMP_A2(SCMP_CMP_MASKED_EQ, LOW32, 0 /* NETLINK_ROUTE */)), "netlink");
#define X(request) require(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, request)), "ioctl");
        GATE_IOCTLS(X)
#undef X
        print();
        seccomp_release(ctx);
        return 0;
}
