#include "init.h"

#include "base/clock.h"
#include "base/test_point.h"
#include "seccomp_filter.h"
#include "spawn_msg.h"

#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include <fcntl.h>
#include <unistd.h>

const char *rv_init_main_file(enum rv_plan_language language)
{
        /* The JavaScript preload renames it to main.mjs if its text is a module's. */
        return language == RV_PLAN_PYTHON ? "main.py" : "main.cjs";
}

/* ---- Confinement ---- */

/* linux/landlock.h of the oldest supported build host lacks the later members. */
struct landlock_ruleset {
        uint64_t handled_access_fs, handled_access_net, scoped;
};

struct landlock_beneath {
        uint64_t allowed_access;
        int32_t parent_fd;
} __attribute__((packed));

#define LANDLOCK_WRITES_ABI_2 0x3ff2ull         /* WRITE_FILE, REMOVE_*, MAKE_*, REFER */
#define LANDLOCK_TRUNCATE (1ull << 14)          /* ABI 3 */
#define LANDLOCK_SCOPES 3ull                    /* abstract unix sockets, signals: ABI 6 */

/*
 * A second wall behind the read-only mounts: writing is possible below the writable places only. Kernels
 * without it, or with ABI 1 (which would forbid every rename between directories), do without: reported by
 * the manifest, never required.
 */
static void restrict_files(void)
{
        static const char *const writable[] = { RV_BOX, "/tmp", "/dev", "/proc" };
        struct landlock_ruleset rules = { .handled_access_fs = LANDLOCK_WRITES_ABI_2 };
        int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1), fd;

        if (abi < 2)
                return;
        if (abi >= 3)
                rules.handled_access_fs |= LANDLOCK_TRUNCATE;
        if (abi >= 6)
                rules.scoped = LANDLOCK_SCOPES;
        fd = (int)syscall(SYS_landlock_create_ruleset, &rules, abi >= 6 ? sizeof(rules) : sizeof(uint64_t), 0);
        if (fd < 0)
                return;
        for (size_t i = 0; i < RV_N_ELEMENTS(writable); i++) {
                struct landlock_beneath rule = { .allowed_access = rules.handled_access_fs };

                rule.parent_fd = open(writable[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
                (void)syscall(SYS_landlock_add_rule, fd, 1, &rule, 0);
                close(rule.parent_fd);
        }
        (void)syscall(SYS_landlock_restrict_self, fd, 0);
        close(fd);
}

static int filter_calls(const struct sock_filter *filter, size_t n)
{
        struct sock_fprog program = { .len = (unsigned short)n, .filter = (struct sock_filter *)filter };

        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int limit_resources(void)
{
        static const struct {
                __rlimit_resource_t resource;
                rlim_t soft, hard;
        } limits[] = {
                { RLIMIT_CORE, 0, 0 },
                { RLIMIT_NOFILE, 1024, RV_INIT_FILES_MAX },
                { RLIMIT_STACK, RV_INIT_STACK_BYTES, RLIM_INFINITY },
                { RLIMIT_MEMLOCK, 64 << 10, 64 << 10 },
                { RLIMIT_RTPRIO, 0, 0 },         /* who has these may schedule itself before everybody else */
                { RLIMIT_NICE, 0, 0 },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(limits); i++) {
                struct rlimit now, want = { limits[i].soft, limits[i].hard };

                if (getrlimit(limits[i].resource, &now) < 0)
                        return -errno;
                want.rlim_max = RV_MIN(want.rlim_max, now.rlim_max);
                want.rlim_cur = RV_MIN(want.rlim_cur, want.rlim_max);
                if (setrlimit(limits[i].resource, &want) < 0)
                        return -errno;
        }
        return 0;
}

#define STEP(name, expr)                               \
        do {                                           \
                if ((expr) < 0) {                      \
                        *ret_step = (name);            \
                        return errno ? -errno : -EIO;  \
                }                                      \
        } while (0)

int rv_init_confine(const char **ret_step)
{
        int r;

        for (int cap = 0; cap <= 63; cap++)
                if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno == EINVAL)
                        break;          /* past the last one this kernel knows */
        STEP("set no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        STEP("set resource limits", limit_resources());
        restrict_files();
        r = filter_calls(rv_seccomp_arguments, RV_N_ELEMENTS(rv_seccomp_arguments));
        if (r == 0)
                r = filter_calls(rv_seccomp_calls, RV_N_ELEMENTS(rv_seccomp_calls));
        errno = -r;
        STEP("install the seccomp filter", r);
        return 0;
}

/* ---- The program ---- */

/* Of the first 32 capabilities keep those of @mask. */
static int keep_capabilities(uint32_t mask)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { { .effective = mask, .permitted = mask } };

        return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

/* After vfork: shares the parent's memory, so *error is how it answers. */
static _Noreturn void execute(const struct rv_init *init, char *const argv[], char *const envp[], volatile int *error,
                              volatile uint64_t *start_us)
{
        int fds[] = { init->stdin_fd, init->stdout_fd, init->stderr_fd };

        if (init->has_own_uid && (syscall(SYS_setresgid, init->gid, init->gid, init->gid) < 0 ||
                                  syscall(SYS_setresuid, init->uid, init->uid, init->uid) < 0))
                goto fail;
        if (keep_capabilities(0) < 0)
                goto fail;
        for (int i = 0; i < 3; i++)
                if (dup2(fds[i], i) < 0)
                        goto fail;
        if (syscall(SYS_close_range, 3, ~0u, 0) < 0)
                goto fail;
        *start_us = rv_boot_us();
        execve(init->interpreter, argv, envp);
fail:
        *error = errno;
        _exit(127);
}

static void report(const struct rv_init *init, const struct rv_init_report *message)
{
        while (send(init->control_fd, message, sizeof(*message), MSG_NOSIGNAL) < 0 && errno == EINTR)
                ;
}

_Noreturn void rv_init_run(const struct rv_init *init, const struct rv_payload *payload)
{
        struct rv_init_report message = { 0 };
        char heap[48];
        char *argv[6];
        int n = 0, status;
        volatile int error = 0;
        volatile uint64_t start_us = 0;
        pid_t child, pid;
        char go;

        argv[n++] = (char *)init->interpreter;
        if (init->language == RV_PLAN_JAVASCRIPT) {
                /* The run's own limit is then met before V8's guess of it. */
                snprintf(heap, sizeof(heap), "--max-old-space-size=%u", init->memory_mib);
                argv[n++] = heap;
                argv[n++] = (char *)"--require";
                argv[n++] = (char *)RV_NODE_PRELOAD;
        }
        argv[n++] = (char *)rv_init_main_file(init->language);
        argv[n] = NULL;

        rv_test_point("held");
        /* All that is left to do with privilege is to give the program its id. */
        if (keep_capabilities(init->has_own_uid ? 1u << CAP_SETUID | 1u << CAP_SETGID : 0) < 0)
                _exit(1);
        if (recv(init->control_fd, &go, 1, 0) != 1 || go != RV_INIT_GO)
                _exit(1);               /* the loop is gone, or does not want the program any more */

        child = vfork();
        if (child == 0)
                execute(init, argv, payload->env, &error, &start_us);
        message.start_us = start_us ? start_us : rv_boot_us();
        if (child < 0 || error) {
                message.kind = RV_INIT_EXEC_FAILED;
                message.fault_errno = child < 0 ? errno : error;
                report(init, &message);
                _exit(1);
        }
        (void)keep_capabilities(0);
        close(init->stdin_fd);
        close(init->stdout_fd);
        close(init->stderr_fd);
        message.kind = RV_INIT_STARTED;
        report(init, &message);
        rv_test_point("running");

        do
                pid = waitpid(-1, &status, __WALL);
        while (pid != child && (pid > 0 || errno == EINTR));
        message.end_us = rv_boot_us();
        message.kind = RV_INIT_EXITED;
        message.wait_status = status;
        if (pid == child)
                report(init, &message);
        _exit(0);
}
