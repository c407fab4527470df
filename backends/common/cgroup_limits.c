#include "cgroup_limits.h"

#include "base/fd.h"
#include "cgroup_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CPU_PERIOD_US 100000
#define SOCKET_SHARE 8          /* of a run's memory may lie in socket buffers besides (v1) */

int rv_cgroup_set(const struct rv_cgroup_hierarchy *h, int dir_fd, const char *file, uint64_t value,
        uint64_t *ret_actual, struct rv_error *err)
{
        char text[32];
        uint64_t actual;
        int r;

        snprintf(text, sizeof(text), "%" PRIu64, value);
        r = rv_cgroup_write(dir_fd, file, text);
        if (r < 0)
                return rv_error_set(err, rv_raise(r), "cannot write the limit %s/*/%s: %s%s", h->path, file, strerror(-r),
                                    r == -ENOENT && (strstr(file, "memsw") || strstr(file, "swap"))
                                            ? "; swap must be limited too: boot with swapaccount=1"
                                            : "; the cgroup must be writable for reeve: see `cgroup:` in the configuration");
        actual = rv_cgroup_read_number(dir_fd, file);
        if (actual > value || (actual == 0 && value != 0))
                return rv_error_set(err, rv_raise(-EIO), "the limit %s/*/%s reads %" PRIu64 " after %" PRIu64 " was written; reeve runs nothing without it",
                                    h->path, file, actual, value);
        if (ret_actual)
                *ret_actual = actual;
        return 0;
}

/* ---- v1 ---- */

int rv_cgroup_limit_v1(const struct rv_cgroup_place *place, struct rv_cgroup *cg, const struct rv_cgroup_limits *limits,
        struct rv_error *err)
{
        const struct rv_cgroup_hierarchy *h = place->h;
        int memory_fd = cg->dir_fd[RV_CGROUP_MEMORY], r;

        /* memory first, then memsw: the kernel refuses a memsw below memory. */
        r = rv_cgroup_set(&h[RV_CGROUP_MEMORY], memory_fd, "memory.limit_in_bytes", limits->memory_bytes, &cg->memory_limit_bytes, err);
        if (r == 0)
                r = rv_cgroup_set(&h[RV_CGROUP_MEMORY], memory_fd, "memory.memsw.limit_in_bytes", limits->memory_bytes, NULL, err);
        /* v1 counts the buffers of sockets apart, and the host has one pool of them. */
        if (r == 0 && faccessat(memory_fd, "memory.kmem.tcp.limit_in_bytes", F_OK, 0) == 0)
                r = rv_cgroup_set(&h[RV_CGROUP_MEMORY], memory_fd, "memory.kmem.tcp.limit_in_bytes", limits->memory_bytes / SOCKET_SHARE, NULL, err);
        if (r == 0)
                r = rv_cgroup_set(&h[RV_CGROUP_PIDS], cg->dir_fd[RV_CGROUP_PIDS], "pids.max", limits->pids, NULL, err);
        if (r == 0 && limits->cpus_milli)
                r = rv_cgroup_set(&h[RV_CGROUP_CPU], cg->dir_fd[RV_CGROUP_CPU], "cpu.cfs_quota_us",
                                  (uint64_t)limits->cpus_milli * CPU_PERIOD_US / 1000, NULL, err);
        return rv_trace(r);
}

int rv_cgroup_watch_oom(struct rv_cgroup *cg, struct rv_error *err)
{
        int dir_fd = cg->dir_fd[RV_CGROUP_MEMORY], control_fd, r;
        char text[64];

        cg->oom_event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        control_fd = openat(dir_fd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
        if (cg->oom_event_fd < 0 || control_fd < 0) {
                r = -errno;
        } else {
                snprintf(text, sizeof(text), "%d %d", cg->oom_event_fd, control_fd);
                r = rv_cgroup_write(dir_fd, "cgroup.event_control", text);
        }
        rv_close(control_fd);
        if (r < 0)
                return rv_error_set(err, rv_raise(r), "cannot watch memory.oom_control: %s", strerror(-r));
        return 0;
}

void rv_cgroup_count_v1(const struct rv_cgroup *cg, struct rv_cgroup_counters *ret)
{
        int memory_fd = cg->dir_fd[RV_CGROUP_MEMORY];
        int cpu_fd = cg->dir_fd[RV_CGROUP_CPUACCT] >= 0 ? cg->dir_fd[RV_CGROUP_CPUACCT] : cg->dir_fd[RV_CGROUP_CPU];

        *ret = (struct rv_cgroup_counters){
                .peak_memory_bytes = rv_cgroup_read_number(memory_fd, "memory.max_usage_in_bytes"),
                .n_oom_kills = (uint32_t)rv_cgroup_read_keyed(memory_fd, "memory.oom_control", "oom_kill"),
                .cpu_us = rv_cgroup_read_number(cpu_fd, "cpuacct.usage") / 1000,
                .peak_processes = (uint32_t)rv_cgroup_read_number(cg->dir_fd[RV_CGROUP_PIDS], "pids.peak"),
        };
        /* v1's failure counters stay 0 with swap capped, so the peak tells whose limit it was. */
        ret->is_memory_limit_reached = ret->peak_memory_bytes >= cg->memory_limit_bytes - cg->memory_limit_bytes / 100;
}

/* ---- v2 ---- */

/* cpu.max holds two numbers; what is read back is the first. */
static int limit_cpu_v2(const struct rv_cgroup_hierarchy *h, int dir_fd, uint32_t cpus_milli, struct rv_error *err)
{
        uint64_t quota_us = (uint64_t)cpus_milli * CPU_PERIOD_US / 1000;
        char text[64];
        int r;

        snprintf(text, sizeof(text), "%" PRIu64 " %d", quota_us, CPU_PERIOD_US);
        r = rv_cgroup_write(dir_fd, "cpu.max", text);
        if (r == 0 && rv_cgroup_read_number(dir_fd, "cpu.max") > quota_us)
                r = -EIO;
        if (r < 0)
                return rv_error_set(err, rv_raise(r), "cannot write the limit %s/*/cpu.max: %s; remove limits.cpus or delegate the cpu controller",
                                    h->path, strerror(-r));
        return 0;
}

/* A line for each area follows the heading. */
static bool has_swap(void)
{
        char text[512], *newline;

        if (rv_cgroup_read(AT_FDCWD, "/proc/swaps", text, sizeof(text)) < 0)
                return true;
        newline = strchr(text, '\n');
        return newline && newline[1];
}

int rv_cgroup_limit_v2(const struct rv_cgroup_place *place, struct rv_cgroup *cg, const struct rv_cgroup_limits *limits,
        struct rv_error *err)
{
        const struct rv_cgroup_hierarchy *h = &place->h[0];
        int fd = cg->dir_fd[0], r;

        r = rv_cgroup_set(h, fd, "memory.max", limits->memory_bytes, &cg->memory_limit_bytes, err);
        /* Without the accounting of swap the file is not there: no harm where there is no swap either. */
        if (r == 0 && (faccessat(fd, "memory.swap.max", F_OK, 0) == 0 || has_swap()))
                r = rv_cgroup_set(h, fd, "memory.swap.max", 0, NULL, err);
        if (r == 0)
                r = rv_cgroup_set(h, fd, "pids.max", limits->pids, NULL, err);
        if (r == 0 && limits->cpus_milli)
                r = limit_cpu_v2(h, fd, limits->cpus_milli, err);
        if (r == 0) {
                r = rv_cgroup_write(fd, "memory.oom.group", "1");
                if (r < 0)
                        rv_error_set(err, rv_raise(r), "cannot write %s/*/memory.oom.group: %s; Linux 4.19 or newer is needed", h->path, strerror(-r));
        }
        return rv_trace(r);
}

void rv_cgroup_count_v2(const struct rv_cgroup *cg, struct rv_cgroup_counters *ret)
{
        int fd = cg->dir_fd[0];

        *ret = (struct rv_cgroup_counters){
                .peak_memory_bytes = rv_cgroup_read_number(fd, "memory.peak"),
                .n_oom_kills = (uint32_t)rv_cgroup_read_keyed(fd, "memory.events.local", "oom_kill"),
                .cpu_us = rv_cgroup_read_keyed(fd, "cpu.stat", "usage_usec"),
                .peak_processes = (uint32_t)rv_cgroup_read_number(fd, "pids.peak"),
        };
        /* `oom` moves where the limit was met, `oom_kill` where the victim was. */
        ret->is_memory_limit_reached = rv_cgroup_read_keyed(fd, "memory.events.local", "oom") > 0;
}
