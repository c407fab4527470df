/*
 * cold.c - what a run costs against the floor: `reeve run --json` of print(1), whole process
 *
 *     cold --reeve REEVE --floor FLOOR [-n PAIRS] [--pause MS] [--bar RATIO]
 *
 * Two series, back to back and with a pause between any two starts (the cgroup attach is then cold), of strictly
 * alternating pairs whose order is swapped each time: a third program between them would shift costs from one to
 * the other. The ratio is that of the medians; the spread of the pairs' own ratios stands beside it. Then, each
 * in pairs of its own, the same against the bare interpreter (the same absolute file, the run's own environment)
 * and bubblewrap, what a network adds (mode domains; the gate is started for it), and the cost of durable records on
 * the disk at hand. State lies on tmpfs but for that row.
 * Exit status 1 if --bar is given and a series is above it.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX 40
#define PAIRS_MAX 2000

struct command {
        const char *name;
        char *argv[ARGS_MAX];
        char *const *envp;
        const char *input;           /* file of its standard input; NULL: the plain request */
};

static char *run_env[] = { "PATH=/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "TZ=UTC", "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", NULL };
static char dir[] = "/dev/shm/reeve-cold-XXXXXX", disk_dir[] = "/var/tmp/reeve-cold-XXXXXX";
static char program[64], view[64], config[64], disk_config[64], request[64], net_request[64];

static void die(const char *what)
{
        fprintf(stderr, "cold: %s: %s\n", what, strerror(errno));
        exit(2);
}

static double now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* From before the exec until the process is reaped. */
static double measure(const struct command *c, const char *input)
{
        posix_spawn_file_actions_t files;
        double start;
        int status;
        pid_t pid;

        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(&files, 0, input, O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
        start = now_ms();
        errno = posix_spawn(&pid, c->argv[0], &files, NULL, c->argv, c->envp);
        if (errno)
                die(c->argv[0]);
        if (waitpid(pid, &status, 0) < 0)
                die("waitpid");
        posix_spawn_file_actions_destroy(&files);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
                fprintf(stderr, "cold: %s ended with status 0x%x\n", c->name, status);
                exit(2);
        }
        return now_ms() - start;
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static double quantile(const double *values, int n, double q)
{
        static double sorted[PAIRS_MAX];

        memcpy(sorted, values, sizeof(*values) * (size_t)n);
        qsort(sorted, (size_t)n, sizeof(*sorted), compare);
        return sorted[(int)(q * (n - 1))];
}

static double series(const char *title, const struct command *a, const struct command *b, int n, int pause_ms)
{
        static double ta[PAIRS_MAX], tb[PAIRS_MAX], ratio[PAIRS_MAX];
        const struct timespec pause = { .tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000L };
        double result;

        for (int i = -2; i < n; i++) {
                const struct command *order[2] = { i & 1 ? a : b, i & 1 ? b : a };
                double t[2];

                for (int k = 0; k < 2; k++) {
                        if (pause_ms)
                                nanosleep(&pause, NULL);
                        t[k] = measure(order[k], order[k]->input ? order[k]->input : request);
                }
                if (i < 0)
                        continue;       /* warm-up */
                ta[i] = order[0] == a ? t[0] : t[1];
                tb[i] = order[0] == a ? t[1] : t[0];
                ratio[i] = ta[i] / tb[i];
        }
        result = quantile(ta, n, 0.5) / quantile(tb, n, 0.5);
        printf("%-14s %-10s %6.2f ms (p95 %6.2f)   %-10s %6.2f ms (p95 %6.2f)   ratio %.3f   pairs p25 %.3f p50 %.3f p75 %.3f   difference %+.2f ms\n",
                title, a->name, quantile(ta, n, 0.5), quantile(ta, n, 0.95), b->name, quantile(tb, n, 0.5),
                quantile(tb, n, 0.95), result, quantile(ratio, n, 0.25), quantile(ratio, n, 0.5),
                quantile(ratio, n, 0.75), quantile(ta, n, 0.5) - quantile(tb, n, 0.5));
        fflush(stdout);
        return result;
}

static void put(char path[64], const char *in, const char *name, const char *fmt, const char *arg)
{
        FILE *f;

        snprintf(path, 64, "%s/%s", in, name);
        f = fopen(path, "w");
        if (!f || fprintf(f, fmt, arg) < 0 || fclose(f) != 0)
                die(path);
}

static void prepare(const char *floor_path)
{
        char command[512];

        if (!mkdtemp(dir) || !mkdtemp(disk_dir))
                die("mkdtemp");
        chmod(dir, 0755);
        put(program, dir, "program.py", "%s\n", "print(1)");
        put(request, dir, "request.json", "{\"language\":\"python\",\"source\":\"%s\"}", "print(1)");
        put(net_request, dir, "network.json", "{\"language\":\"python\",\"source\":\"%s\",\"network\":{\"mode\":\"domains\",\"domains\":[\"example.com\"]}}", "print(1)");
        put(config, dir, "reeve.yaml", "state_dir: %s/state\n", dir);
        put(disk_config, dir, "disk.yaml", "state_dir: %s/state\n", disk_dir);
        snprintf(view, sizeof(view), "%s/view", dir);
        snprintf(command, sizeof(command), "'%s' --view > %s", floor_path, view);
        if (system(command) != 0)
                die(command);
}

static void clean(void)
{
        char command[256];

        snprintf(command, sizeof(command), "rm -rf %s %s", dir, disk_dir);
        if (system(command) != 0)
                fprintf(stderr, "cold: %s and %s are left\n", dir, disk_dir);
}

int main(int argc, char **argv)
{
        const char *reeve_path = NULL, *floor_path = NULL;
        double bar = 0, back, paused;
        int n = 100, pause_ms = 40;

        for (int i = 1; i + 1 < argc; i += 2) {
                if (!strcmp(argv[i], "--reeve"))
                        reeve_path = argv[i + 1];
                else if (!strcmp(argv[i], "--floor"))
                        floor_path = argv[i + 1];
                else if (!strcmp(argv[i], "-n"))
                        n = atoi(argv[i + 1]);
                else if (!strcmp(argv[i], "--pause"))
                        pause_ms = atoi(argv[i + 1]);
                else if (!strcmp(argv[i], "--bar"))
                        bar = atof(argv[i + 1]);
        }
        if (!reeve_path || !floor_path || n < 4 || n > PAIRS_MAX) {
                fprintf(stderr, "usage: cold --reeve REEVE --floor FLOOR [-n PAIRS] [--pause MS] [--bar RATIO]\n");
                return 2;
        }
        prepare(floor_path);
        {
                struct command reeve = { "reeve", { (char *)reeve_path, "run", "--config", config, "--json", "--request", "-", NULL }, run_env, NULL };
                struct command disk = { "reeve/disk", { (char *)reeve_path, "run", "--config", disk_config, "--json", "--request", "-", NULL }, run_env, NULL };
                struct command net = { "reeve/net", { (char *)reeve_path, "run", "--config", config, "--json", "--request", "-", NULL }, run_env, net_request };
                struct command floor = { "floor", { (char *)floor_path, view, program, NULL }, run_env, NULL };
                struct command bare = { "python3", { "/usr/bin/python3", program, NULL }, run_env, NULL };
                struct command bwrap = { "bwrap", { "/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
                                                    "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
                                                    "--tmpfs", "/usr/lib/python3/dist-packages", "--ro-bind", program, "/tmp/program.py", "/usr/bin/python3", "/tmp/program.py", NULL }, run_env, NULL };

                back = series("back to back", &reeve, &floor, n, 0);
                paused = series("paused", &reeve, &floor, n, pause_ms);
                series("to bare", &reeve, &bare, n / 2, pause_ms);
                if (access("/usr/bin/bwrap", X_OK) == 0)
                        series("to bubblewrap", &reeve, &bwrap, n / 2, pause_ms);
                series("network", &net, &reeve, n / 2, pause_ms);
                series("durable log", &disk, &reeve, n / 2, pause_ms);
        }
        clean();
        if (bar > 0 && (back > bar || paused > bar)) {
                printf("above the bar of %.2f\n", bar);
                return 1;
        }
        return 0;
}
