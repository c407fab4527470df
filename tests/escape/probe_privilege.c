/*
 * probe_privilege.c - capabilities, set-user-id files, device nodes, and the calls that want privilege but are let
 * through to the kernel
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/random.h>
#include <linux/securebits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The value of a field of a status file; "?" if it is not there. */
static void read_status(const char *path, const char *field, char *ret, size_t size)
{
        char line[512];
        size_t n = strlen(field);
        FILE *f = fopen(path, "re");

        snprintf(ret, size, "?");
        while (f && fgets(line, sizeof(line), f))
                if (!strncmp(line, field, n) && line[n] == ':') {
                        snprintf(ret, size, "%s", line + n + 1 + strspn(line + n + 1, "\t "));
                        ret[strcspn(ret, "\n")] = 0;
                        for (char *p = ret; *p; p++)
                                if (*p == '\t')
                                        *p = ' ';
                }
        if (f)
                fclose(f);
}

static const char *const fields[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp" };

static void *say_thread(void *arg)
{
        char path[64], check[64], value[128];

        (void)arg;
        snprintf(path, sizeof(path), "/proc/self/task/%ld/status", (long)syscall(SYS_gettid));
        for (size_t i = 0; i < N_ELEMENTS(fields); i++) {
                read_status(path, fields[i], value, sizeof(value));
                snprintf(check, sizeof(check), "9/amicontained/thread-%s", fields[i]);
                say(check, "%s", value);
        }
        return NULL;
}

/* Init needs capabilities to give the program its ids, and drops them when the program is under way. */
static void await_init(void)
{
        char value[128] = "";

        for (int i = 0; i < 2000 && strspn(value, "0") != 16; i++) {
                poll(NULL, 0, 1);
                read_status("/proc/1/status", "CapPrm", value, sizeof(value));
        }
}

static void status(void)
{
        static const char *const own[] = { "Uid", "Gid", "SigBlk", "SigPnd" };
        char check[64], value[128];
        pthread_t thread;

        await_init();
        for (size_t i = 0; i < N_ELEMENTS(fields); i++) {
                read_status("/proc/self/status", fields[i], value, sizeof(value));
                snprintf(check, sizeof(check), "9/amicontained/%s", fields[i]);
                say(check, "%s", value);
                read_status("/proc/1/status", fields[i], value, sizeof(value));
                snprintf(check, sizeof(check), "9/amicontained/init-%s", fields[i]);
                say(check, "%s", value);
        }
        if (pthread_create(&thread, NULL, say_thread, NULL) == 0)
                pthread_join(thread, NULL);
        for (size_t i = 0; i < N_ELEMENTS(own); i++) {
                read_status("/proc/self/status", own[i], value, sizeof(value));
                snprintf(check, sizeof(check), "5/privilege/status-%s", own[i]);
                say(check, "%s", value);
        }
}

/* ---- Becoming somebody else ---- */

static long raise_capabilities(const void *arg)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { { ~0u, ~0u, ~0u }, { ~0u, ~0u, ~0u } };

        (void)arg;
        return syscall(SYS_capset, &head, data);
}

static void credentials(void)
{
        static const unsigned long no_groups[1] = { 0 };
        static const int one = 1;
        static const struct rlimit most = { RLIM_INFINITY, RLIM_INFINITY };
        static const struct call rows[] = {
                { "setuid-0", SYS_setuid, { 0 } },
                { "setresuid-0", SYS_setresuid, { -1, 0, -1 } },
                { "setgid-0", SYS_setgid, { 0 } },
                { "setgroups", SYS_setgroups, { 1, (long)no_groups } },
                { "keepcaps-securebits", SYS_prctl, { PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_NOROOT, 0, 0 } },
                { "ambient-raise", SYS_prctl, { PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 0, 0 } },
                { "bounding-drop", SYS_prctl, { PR_CAPBSET_DROP, 0, 0, 0 } },
                { "set-mm-exe", SYS_prctl, { PR_SET_MM, PR_SET_MM_EXE_FILE, 0, 0 } },
                { "rlimit-core-up", SYS_prlimit64, { 0, RLIMIT_CORE, (long)&most, 0 } },
                { "rlimit-nofile-up", SYS_prlimit64, { 0, RLIMIT_NOFILE, (long)&most, 0 } },
                { "rlimit-memlock-up", SYS_prlimit64, { 0, RLIMIT_MEMLOCK, (long)&most, 0 } },
                { "nice-down", SYS_setpriority, { PRIO_PROCESS, 0, -1 } },
                { "ioprio-realtime", SYS_ioprio_set, { 1, 0, 1 << 13 } },
                { "scheduler-fifo", SYS_sched_setscheduler, { 0, 1 /* SCHED_FIFO */, (long)&one } },
        };

        say_in_child("5/privilege/capset-all", raise_capabilities, NULL);
        say_calls("5/privilege/", rows, N_ELEMENTS(rows));
}

/* ---- Files that would make somebody else of a program ---- */

struct node {
        const char *name;
        mode_t mode;
        unsigned major, minor;
};

static long make_node(const void *arg)
{
        const struct node *n = arg;
        long made = mknod("/tmp/node", n->mode, makedev(n->major, n->minor));

        if (made == 0)
                unlink("/tmp/node");
        return made;
}

static long set_file_capability(const void *arg)
{
        static const struct vfs_cap_data all = { VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                                                 { { ~0u, ~0u }, { ~0u, ~0u } } };

        return setxattr(arg, "security.capability", &all, sizeof(all), 0);
}

static void files(void)
{
        static const struct node nodes[] = {
                { "mknod-null", S_IFCHR | 0666, 1, 3 },       { "mknod-mem", S_IFCHR | 0666, 1, 1 },
                { "mknod-kmsg", S_IFCHR | 0666, 1, 11 },      { "mknod-tty", S_IFCHR | 0666, 5, 0 },
                { "mknod-kvm", S_IFCHR | 0666, 10, 232 },     { "mknod-fuse", S_IFCHR | 0666, 10, 229 },
                { "mknod-whiteout", S_IFCHR | 0666, 0, 0 },   { "mknod-loop0", S_IFBLK | 0666, 7, 0 },
                { "mknod-vda", S_IFBLK | 0666, 254, 0 },      { "mknod-sda", S_IFBLK | 0666, 8, 0 },
                { "mknod-fifo", S_IFIFO | 0666, 0, 0 },
        };
        static const unsigned long requests[] = { RNDADDTOENTCNT, RNDADDENTROPY, RNDZAPENTCNT, RNDRESEEDCRNG };
        static const char *const names[] = { "RNDADDTOENTCNT", "RNDADDENTROPY", "RNDZAPENTCNT", "RNDRESEEDCRNG" };
        struct {
                int bits, size;
                char bytes[8];
        } entropy = { 64, 8, "" };
        char check[64];
        int fd;

        for (size_t i = 0; i < N_ELEMENTS(nodes); i++) {
                snprintf(check, sizeof(check), "5/privilege/%s", nodes[i].name);
                say_in_child(check, make_node, &nodes[i]);
        }
        fd = open("/tmp/capable", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
        close(fd);
        say_in_child("5/privilege/file-capability", set_file_capability, "/tmp/capable");
        unlink("/tmp/capable");
        fd = open("/dev/random", O_RDWR | O_CLOEXEC);
        for (size_t i = 0; i < N_ELEMENTS(requests); i++) {
                snprintf(check, sizeof(check), "5/privilege/ioctl-random-%s", names[i]);
                say_returned(check, ioctl(fd, requests[i], &entropy));
        }
        close(fd);
}

/* A copy of this program with the set-id bits: its exec must change nothing. */
static void set_user_id(void)
{
        char own[32];

        if (getenv("PROBE_UID")) {
                bool is_same = (uid_t)atoi(getenv("PROBE_UID")) == geteuid() && getuid() == geteuid() && getgid() == getegid();

                unsetenv("PROBE_UID");
                say("5/privilege/set-user-id-copy", "%s", is_same ? "the same ids" : "other ids");
                _exit(0);
        }
        if (chmod("/proc/self/exe", 06755) < 0) {
                say_returned("5/privilege/set-user-id-chmod", -1);
                return;
        }
        say_returned("5/privilege/set-user-id-chmod", 0);
        snprintf(own, sizeof(own), "%d", (int)geteuid());
        fflush(stdout);
        if (fork() == 0) {
                setenv("PROBE_UID", own, 1);
                execl("/proc/self/exe", "probe", "privilege", NULL);
                _exit(1);
        }
        wait(NULL);
        chmod("/proc/self/exe", 0755);
}

void probe_privilege(void)
{
        set_user_id();
        status();
        credentials();
        files();
}
