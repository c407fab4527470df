/*
 * probe_clones.c - the ways to a namespace, or into another one
 *
 * unshare and clone3 ask for each flag together with CLONE_NEWUSER, with which an ordinary user would get it from
 * the kernel. clone asks for it alone: the kernel then says EPERM and the filter, if it knows the flag, ENOSYS.
 */
#include "probe.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIGH (1ul << 32)        /* the kernel reads 32 bits of these arguments */

static const struct {
        const char *name, *file;
        unsigned long flag;
} namespaces[] = {
        { "newuser", "user", CLONE_NEWUSER },       { "newns", "mnt", CLONE_NEWNS }, { "newpid", "pid", CLONE_NEWPID },
        { "newnet", "net", CLONE_NEWNET },          { "newipc", "ipc", CLONE_NEWIPC }, { "newuts", "uts", CLONE_NEWUTS },
        { "newcgroup", "cgroup", CLONE_NEWCGROUP }, { "newtime", "time", CLONE_NEWTIME },
};

static long do_unshare(const void *arg)
{
        return syscall(SYS_unshare, *(const unsigned long *)arg);
}

/* clone(2) as fork(2) does it; the child of a clone that worked is gone before this returns. */
static long do_clone(const void *arg)
{
#ifdef __s390x__
        long pid = syscall(SYS_clone, NULL, *(const unsigned long *)arg | SIGCHLD, NULL, NULL, NULL);
#else
        long pid = syscall(SYS_clone, *(const unsigned long *)arg | SIGCHLD, NULL, NULL, NULL, NULL);
#endif

        if (pid == 0)
                _exit(0);
        if (pid > 0)
                wait_for((int)pid, 1000);
        return pid;
}

static long do_clone3(const void *arg)
{
        struct clone_args args = { .flags = *(const unsigned long *)arg, .exit_signal = SIGCHLD };
        long pid = syscall(SYS_clone3, &args, sizeof(args));

        if (pid == 0)
                _exit(0);
        if (pid > 0)
                wait_for((int)pid, 1000);
        return pid;
}

static long do_setns(const void *arg)
{
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/proc/self/ns/%s", (const char *)arg);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -1 : syscall(SYS_setns, fd, 0);
}

static long do_setns_pidfd(const void *arg)
{
        int fd = (int)syscall(SYS_pidfd_open, 1, 0);

        return fd < 0 ? -1 : syscall(SYS_setns, fd, *(const unsigned long *)arg);
}

/* NS_GET_PARENT and NS_GET_USERNS: ways up from a namespace that one is in. */
static long do_ns_parent(const void *arg)
{
        int fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -1 : ioctl(fd, *(const unsigned long *)arg);
}

static void each_flag(void)
{
        char check[64];

        for (size_t i = 0; i < N_ELEMENTS(namespaces); i++) {
                unsigned long flags = namespaces[i].flag | CLONE_NEWUSER;

                snprintf(check, sizeof(check), "5/namespaces/unshare-%s", namespaces[i].name);
                say_in_child(check, do_unshare, &flags);
                snprintf(check, sizeof(check), "5/namespaces/clone3-%s", namespaces[i].name);
                say_in_child(check, do_clone3, &flags);
                snprintf(check, sizeof(check), "5/namespaces/setns-%s", namespaces[i].file);
                say_in_child(check, do_setns, namespaces[i].file);
                if (namespaces[i].flag == CLONE_NEWTIME)
                        continue;       /* its bit is one of the exit signal's in clone(2) */
                snprintf(check, sizeof(check), "5/namespaces/clone-%s", namespaces[i].name);
                say_in_child(check, do_clone, &namespaces[i].flag);
        }
}

/* The bit of CLONE_NEWTIME must stay a bit of the exit signal. */
static void clone_time(void)
{
        char ours[64] = "", theirs[64] = "";
        int fds[2];
        long pid;

        if (pipe(fds) < 0)
                return;
        pid = syscall(SYS_clone, (unsigned long)CLONE_NEWTIME, NULL, NULL, NULL, NULL);
        if (pid == 0) {
                ssize_t n = readlink("/proc/self/ns/time", theirs, sizeof(theirs) - 1);

                (void)!write(fds[1], theirs, n < 0 ? 0 : (size_t)n);
                _exit(0);
        }
        close(fds[1]);
        (void)!read(fds[0], theirs, sizeof(theirs) - 1);
        (void)!readlink("/proc/self/ns/time", ours, sizeof(ours) - 1);
        close(fds[0]);
        if (pid > 0)
                wait_for((int)pid, 1000);
        say("5/namespaces/clone-newtime", "%s", strcmp(ours, theirs) ? "another namespace" : "the same namespace");
}

static void *return_argument(void *arg)
{
        return arg;
}

void probe_clones(void)
{
        static const unsigned long none = 0, high = HIGH, files = CLONE_FILES, high_user = HIGH | CLONE_NEWUSER,
                                   high_net = HIGH | CLONE_NEWNET, parent = 0xb702 /* NS_GET_PARENT */, userns = 0xb701 /* NS_GET_USERNS */,
                                   all = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET;
        pthread_t thread;
        void *back = NULL;
        int token;
        bool works;

        each_flag();
        clone_time();
        say_in_child("5/namespaces/unshare-files", do_unshare, &files);
        say_in_child("5/namespaces/setns-pidfd-of-init", do_setns_pidfd, &all);
        say_in_child("5/namespaces/ioctl-parent-of-user", do_ns_parent, &parent);
        say_in_child("5/namespaces/ioctl-owner-of-user", do_ns_parent, &userns);
        say_in_child("5/seccomp/high-bits-unshare", do_unshare, &high_user);
        say_in_child("5/seccomp/high-bits-clone-user", do_clone, &high_user);
        say_in_child("5/seccomp/high-bits-clone-net", do_clone, &high_net);
        say_in_child("5/seccomp/high-bits-clone-plain", do_clone, &high);
        say_in_child("5/seccomp/clone3-plain", do_clone3, &none);

        /* The C library tries clone3 first and must take ENOSYS for "use clone". */
        works = pthread_create(&thread, NULL, return_argument, &token) == 0 && pthread_join(thread, &back) == 0 &&
                back == &token;
        say("10/37-clone3-enosys-threads-work", "%s", works ? "yes" : "no");
}
