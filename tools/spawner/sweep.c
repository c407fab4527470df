#include "spawner.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LANDLOCK_VERSION_FLAG 1

void spawner_sweep(struct spawner *s)
{
        if (s->has_swept || !s->has_place)
                return;
        s->has_swept = true;
        (void)rv_cgroup_sweep(&s->place, NULL, NULL);
}

/* ---- For doctor ---- */

static void line(const char *state, const char *probe, const char *text)
{
        printf("%s\t%s\t%s\n", state, probe, text);
}

static void on_left(void *arg, const char *path)
{
        char text[1200];

        (void)arg;
        snprintf(text, sizeof(text), "%s cannot be removed: a process in it does not die; it is tried again at the next start", path);
        line("note", "quarantine", text);
}

static bool is_cpu_counted(const struct rv_cgroup_place *place)
{
        return place->version == 2 || place->h[RV_CGROUP_CPUACCT].dir_fd >= 0 ||
               faccessat(place->h[RV_CGROUP_CPU].dir_fd, "cpuacct.usage", R_OK, 0) == 0;
}

/* How connections of networked runs are brought to the gate, and the gate itself. */
static void explain_network(struct spawner *s)
{
        struct rv_netns_support support;
        char text[1200];

        rv_netns_probe(RV_NETNS_TPROXY, &support);
        if (support.mode == RV_NETNS_NONE)
                snprintf(text, sizeof(text), "absent, networked runs are refused: %s", support.reason);
        else
                snprintf(text, sizeof(text), "modes registries, domains and any, by %s, %s%s%s", rv_netns_mode_name(support.mode),
                         support.has_ipv6 ? "IPv4 and IPv6" : "IPv4 alone", *support.reason ? "; " : "", support.reason);
        line(support.mode == RV_NETNS_TPROXY ? "ok" : "note", "network", text);
        gate_find(&s->gate);
        if (s->gate.exe_fd < 0)
                line("missing", "gate", s->gate.exe_error.message);
}

int spawner_explain(struct spawner *s)
{
        static const char *const names[RV_CGROUP_MAX_] = { "memory", "pids", "cpu", "cpuacct" };
        long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);
        char text[1200];

        if (!s->has_place) {
                line("missing", "cgroup", s->place_error.message);
                (void)fflush(stdout);
                return 1;
        }
        snprintf(text, sizeof(text), "v%u, by rule: %s", s->place.version, s->place.rule);
        line("ok", "cgroup", text);
        for (int i = 0; i < RV_CGROUP_MAX_; i++)
                if (s->place.h[i].dir_fd >= 0)
                        line("ok", s->place.version == 2 ? "cgroup all" : names[i], s->place.h[i].path);
        if (!is_cpu_counted(&s->place))
                line("note", "cpu time", "approximate: without cpuacct usage.cpu_ms leaves out what was killed; have root run tools/dev/delegate for this user again");
        if (geteuid() == 0) {
                snprintf(text, sizeof(text), "two of a run's own, from %u-%u", s->config->uid_first, s->config->uid_last);
                line("ok", "user ids", text);
        } else {
                snprintf(text, sizeof(text), "approximate: PID 1 and the program are both uid %u outside; run reeve as root for ids of a run's own",
                         (unsigned)geteuid());
                line("note", "user ids", text);
        }
        snprintf(text, sizeof(text), abi >= 2 ? "ABI %ld, applied" : "not applied: this kernel has none, or only ABI 1", abi);
        line(abi >= 2 ? "ok" : "note", "landlock", text);
        explain_network(s);
        (void)rv_cgroup_sweep(&s->place, on_left, NULL);
        return fflush(stdout) == 0 ? 0 : 1;
}
