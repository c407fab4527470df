/*
 * seccomp_gen.c - makes the filters of seccomp_rules.h into C arrays, at build time
 *
 * Making them at run time with libseccomp would cost every run about a millisecond. Prints a header with
 * two programs for the architecture of the build: rv_seccomp_calls (the allow-list) and rv_seccomp_arguments
 * (a libseccomp rule with arguments cannot stand beside one without for the same call, so it is a filter of
 * its own; the kernel applies both and the stricter answer wins).
 */
#include "seccomp_rules.h"

#include <errno.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOW32 0xffffffffu

static void require(int r, const char *what)
{
        if (r >= 0)
                return;
        fprintf(stderr, "seccomp_gen: %s: %d\n", what, r);
        exit(1);
}

static scmp_filter_ctx new_filter(uint32_t default_action)
{
        scmp_filter_ctx ctx = seccomp_init(default_action);

        require(ctx ? 0 : -1, "seccomp_init");
        /* i386 and x32 calls are refused like unknown ones instead of killing the program. */
        require(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), "bad architecture");
        require(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
        return ctx;
}

static void add(scmp_filter_ctx ctx, uint32_t action, const char *name)
{
        int nr = seccomp_syscall_resolve_name(name);

        /* Unknown to this libseccomp, or not a call of this architecture (a pseudo number): default applies. */
        if (nr == __NR_SCMP_ERROR || nr < 0)
                return;
        require(seccomp_rule_add(ctx, action, nr, 0), name);
}

static void print(scmp_filter_ctx ctx, const char *name)
{
        struct sock_filter filter[4096];
        int fd = memfd_create("filter", 0);
        ssize_t n;

        require(fd, "memfd_create");
        require(seccomp_export_bpf(ctx, fd), "export");
        n = pread(fd, filter, sizeof(filter), 0);
        require(n > 0 && n < (ssize_t)sizeof(filter) ? 0 : -1, "read");
        printf("static const struct sock_filter %s[] = {\n", name);
        for (size_t i = 0; i < (size_t)n / sizeof(filter[0]); i++)
                printf("        { 0x%04x, %u, %u, 0x%08xu },\n", filter[i].code, filter[i].jt, filter[i].jf, filter[i].k);
        printf("};\n");
        seccomp_release(ctx);
        close(fd);
}

int main(void)
{
        scmp_filter_ctx calls = new_filter(SCMP_ACT_ERRNO(ENOSYS)), arguments = new_filter(SCMP_ACT_ALLOW);

#define X(name) add(calls, SCMP_ACT_ALLOW, #name);
        RV_SECCOMP_ALLOW(X)
#undef X
#define X(name) add(calls, SCMP_ACT_ERRNO(0), #name);
        RV_SECCOMP_NOTHING(X)
#undef X
#define X(name) add(calls, SCMP_ACT_ERRNO(EPERM), #name);
        RV_SECCOMP_EPERM(X)
#undef X
        require(seccomp_rule_add(calls, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, RV_SECCOMP_CLONE_NAMESPACES, 0)), "clone");
#define X(family)                                                                                                     \
        require(seccomp_rule_add(calls, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, family)), "socket"); \
        require(seccomp_rule_add(calls, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, family)), "socketpair");
        RV_SECCOMP_FAMILIES(X)
#undef X
        require(seccomp_rule_add(calls, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, 16 /* AF_NETLINK */),
                                 SCMP_A2(SCMP_CMP_MASKED_EQ, LOW32, 0 /* NETLINK_ROUTE */)), "netlink");
        for (unsigned family = 0; family < 64; family++)
                if (family != 1 && family != 2 && family != 10 && family != 16)
                        require(seccomp_rule_add(calls, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                                 SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, family)), "family");
#define X(value) require(seccomp_rule_add(calls, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, value)), "personality");
        RV_SECCOMP_PERSONALITIES(X)
#undef X
#define X(request) require(seccomp_rule_add(arguments, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, request)), "ioctl");
        RV_SECCOMP_IOCTLS(X)
#undef X
#define X(protocol) require(seccomp_rule_add(arguments, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, LOW32, protocol)), "protocol");
        RV_SECCOMP_PROTOCOLS(X)
#undef X
        printf("/* Made by backends/common/seccomp_gen.c from seccomp_rules.h. */\n#pragma once\n#include <linux/filter.h>\n");
        print(calls, "rv_seccomp_calls");
        print(arguments, "rv_seccomp_arguments");
        return 0;
}
