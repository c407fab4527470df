/*
 * floor.c - the least that a run can cost on this kernel: what reeve is measured against
 *
 *     floor VIEW PROGRAM.py
 *     floor --view            print the view of runtime `host`, to be kept in VIEW
 *
 * Does the kernel work of one run and no more: the same namespaces, mounts, control groups made, limited, read
 * back, joined and removed, the same seccomp filter and Landlock rules, the exec of the same interpreter on the
 * same program. It has no policy, no configuration, no log, no capture, no second process to talk to; what the
 * runtime shows is read from a file instead of being looked up. The isolation itself is reeve's own code, so
 * that the two cannot drift apart.
 */
#include "cgroup.h"
#include "sandbox.h"
#include "spawn_msg.h"

#include "base/fd.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY_MIB 512

static _Noreturn void die(const char *what, const char *why)
{
        fprintf(stderr, "floor: %s: %s\n", what, why);
        exit(125);
}

static const struct rv_config_runtime host = { .name = "host", .root = "host", .python = "/usr/bin/python3", .javascript = "/usr/bin/node" };

static int print_view(void)
{
        struct rv_error err = { 0 };
        struct rv_runtime rt;

        if (rv_runtime_open(&host, &rt, &err) < 0)
                die("view", err.message);
        for (size_t i = 0; i < rt.n_entries; i++)
                if (rt.entries[i].when == RV_VIEW_ALWAYS)
                        printf("%d %s %s\n", (int)rt.entries[i].kind, rt.entries[i].path, rt.entries[i].source ? rt.entries[i].source : "-");
        rv_runtime_close(&rt);
        return 0;
}

static void read_view(const char *file, struct rv_runtime *rt)
{
        static struct rv_view_entry entries[64];
        char path[4096], source[4096];
        int kind;
        FILE *f = fopen(file, "re");

        if (!f)
                die(file, strerror(errno));
        while (rt->n_entries < RV_N_ELEMENTS(entries) && fscanf(f, "%d %4095s %4095s", &kind, path, source) == 3)
                entries[rt->n_entries++] = (struct rv_view_entry){
                        .kind = (enum rv_view_kind)kind, .path = strdup(path), .source = strdup(source)
                };
        fclose(f);
        rt->entries = entries;
}

static int make_payload(const char *program)
{
        _cleanup_(rv_buf_fini) struct rv_buf source = { 0 };
        struct rv_plan plan = { .struct_size = sizeof(plan) };
        int fd;

        if (rv_read_file_at(AT_FDCWD, program, 1 << 20, &source) < 0)
                die(program, strerror(errno));
        plan.source = source.data;
        plan.source_bytes = source.size;
        if (rv_payload_write(&plan, &fd) < 0)
                die("payload", strerror(errno));
        return fd;
}

static void write_map(pid_t pid, const char *file, const char *text)
{
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                die(path, strerror(errno));
        close(fd);
}

static pid_t start(struct ns_child *child, int spawner_fd)
{
        struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                        CLONE_NEWUTS,
                .exit_signal = SIGCHLD };
        struct ns_message m = { .kind = NS_PROCEED };
        long pid = syscall(SYS_clone3, &args, sizeof(args));

        if (pid == 0)
                ns_child_main(child);
        if (pid < 0)
                die("clone", strerror(errno));
        write_map((pid_t)pid, "setgroups", "deny");
        write_map((pid_t)pid, "uid_map", "0 2065000 1\n1000 2065001 1\n");
        write_map((pid_t)pid, "gid_map", "0 2065000 1\n1000 2065001 1\n");
        if (send(spawner_fd, &m, sizeof(m), MSG_NOSIGNAL) < 0)
                die("proceed", strerror(errno));
        return (pid_t)pid;
}

static void assign(int spawner_fd, const int fds[RV_SPAWN_FD_MAX_])
{
        struct ns_message m = { .kind = NS_ASSIGN, .language = RV_PLAN_PYTHON, .memory_mib = MEMORY_MIB };
        int r = rv_send_with_fds(spawner_fd, &m, sizeof(m), fds, RV_SPAWN_FD_MAX_);

        if (r < 0)
                die("assign", strerror(-r));
}

int main(int argc, char **argv)
{
        const struct rv_cgroup_limits limits = { .memory_bytes = (uint64_t)MEMORY_MIB << 20, .pids = 256 };
        struct rv_init_report report = { 0 };
        struct rv_cgroup_place place;
        struct rv_runtime rt = { .root = "", .config = &host };
        struct rv_error err = { 0 };
        struct rv_cgroup cg;
        struct ns_child child;
        int sync[2], control[2], status;
        char go = RV_INIT_GO;
        pid_t pid;

        if (argc == 2 && !strcmp(argv[1], "--view"))
                return print_view();
        if (argc < 3)
                die("usage", "floor VIEW PROGRAM.py");
        read_view(argv[1], &rt);
        if (rv_cgroup_place_open(NULL, &place, &err) < 0 || rv_cgroup_make(&place, "reeve-floor", &cg, &err) < 0 ||
            rv_cgroup_limit(&place, &cg, &limits, &err) < 0)
                die("cgroup", err.message);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sync) < 0 ||
                socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
                die("socketpair", strerror(errno));
        child = (struct ns_child){
                .spawner_fd = sync[1], .layers_fd = -EBADF, .cgroup = &cg, .runtime = &rt, .has_own_uid = true
        };
        pid = start(&child, sync[0]);
        assign(sync[0], (int[]){ control[1], make_payload(argv[2]), 0, 1, 2 });
        close(control[1]);
        if (send(control[0], &go, 1, MSG_NOSIGNAL) < 0)
                die("go", strerror(errno));
        while (report.kind != RV_INIT_EXITED && recv(control[0], &report, sizeof(report), 0) == sizeof(report))
                ;
        if (waitpid(pid, &status, 0) < 0 || report.kind != RV_INIT_EXITED)
                die("run", "the program did not start");
        if (rv_cgroup_remove(&place, &cg) < 0)
                die("cgroup", "not removed");
        rv_cgroup_place_close(&place);
        return WIFEXITED(report.wait_status) ? WEXITSTATUS(report.wait_status) : 128 + WTERMSIG(report.wait_status);
}
