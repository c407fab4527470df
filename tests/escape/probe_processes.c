/*
 * probe_processes.c - the run's own PID 1 as seen from a program: what may be done to it, and what it does
 */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_ORPHANS 10000

static bool is_init_alive(void)
{
        return access("/proc/1/status", F_OK) == 0;
}

static void signals(void)
{
        static const int numbers[] = { 0, SIGKILL, SIGTERM, SIGSTOP, SIGHUP, SIGSEGV, SIGCHLD, 34 /* the first real-time one */ };
        char check[64];
        int fd;

        for (size_t i = 0; i < N_ELEMENTS(numbers); i++) {
                snprintf(check, sizeof(check), "5/signals/kill-init-%d", numbers[i]);
                say_returned(check, kill(1, numbers[i]));
        }
        say_returned("5/signals/kill-init-group", kill(-getpgid(1), SIGKILL));
        say_returned("5/signals/tkill-init", syscall(SYS_tkill, 1, SIGKILL));
        say_returned("5/signals/queue-init", sigqueue(1, SIGKILL, (union sigval){ 0 }));
        fd = (int)syscall(SYS_pidfd_open, 1, 0);
        say_returned("5/signals/pidfd-init", fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
        if (fd >= 0)
                close(fd);
        poll(NULL, 0, 50);
        say("5/signals/init-lives", "%s", is_init_alive() ? "yes" : "no");
        say("5/signals/parent-outside", "%d", getppid() == 1 ? 1 : (int)getpgid(1));
}

static void control(void)
{
        static const struct rlimit none = { 0, 0 };
        static const struct sched_param highest = { .sched_priority = 1 };
        static const struct sched_param normal = { 0 };
        cpu_set_t cpu;

        CPU_ZERO(&cpu);
        CPU_SET(0, &cpu);
        say_returned("5/signals/prlimit-init", prlimit(1, RLIMIT_NOFILE, &none, NULL));
        say_returned("5/signals/setpriority-init", setpriority(PRIO_PROCESS, 1, 19));
        say_returned("5/signals/scheduler-init", sched_setscheduler(1, SCHED_FIFO, &highest));
        say_returned("5/signals/scheduler-init-normal", sched_setscheduler(1, SCHED_IDLE, &normal));
        say_returned("5/signals/affinity-init", sched_setaffinity(1, sizeof(cpu), &cpu));
        say_returned("5/signals/ioprio-init", syscall(SYS_ioprio_set, 1, 1, 3 << 13 /* idle */));
        say_returned("5/signals/setpgid-init", setpgid(1, 0));
        say_returned("5/signals/madvise-init", syscall(SYS_process_madvise, syscall(SYS_pidfd_open, 1, 0), NULL, 0, 20 /* MADV_COLD */, 0));
}

/* kill(-1) reaches all of the run but init and the caller. */
static void kill_all(void)
{
        pid_t sleeper, killer;
        int status;

        fflush(stdout);
        sleeper = fork();
        if (sleeper == 0) {
                setsid();
                for (;;)
                        pause();
        }
        /* The probe itself and those it descends from must live on: they ignore it. */
        killer = fork();
        if (killer == 0)
                _exit(kill(-1, SIGURG) < 0 ? errno : 0);        /* ignored by default: who may be signalled is the question */
        status = wait_for(killer, 2000);
        say("5/signals/kill-all", "%s", status == 0 ? "only the run's own" : "denied");
        kill(sleeper, SIGKILL);
        waitpid(sleeper, &status, 0);
        say("5/signals/init-lives-after-all", "%s", is_init_alive() ? "yes" : "no");
}

static unsigned count_processes(void)
{
        unsigned n = 0;
        DIR *d = opendir("/proc");

        for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
                n += e->d_name[0] >= '0' && e->d_name[0] <= '9';
        if (d)
                closedir(d);
        return n;
}

/* A child that leaves a child behind, ten thousand times: each orphan is init's to reap. */
static void orphans(void)
{
        unsigned before = count_processes(), after = 0;
        int n = 0;

        fflush(stdout);
        while (n < N_ORPHANS) {
                pid_t pid = vfork();

                if (pid == 0) {
                        pid = vfork();
                        _exit(pid < 0);
                }
                if (pid < 0 || waitpid(pid, &(int){ 0 }, 0) != pid)
                        break;
                n++;
        }
        for (int i = 0; i < 100; i++) {
                after = count_processes();
                if (after <= before)
                        break;
                poll(NULL, 0, 20);
        }
        say("10/3-ten-thousand-orphans-reaped", "%d made, %s left", n, after <= before ? "none" : "some");
        say("10/17-no-zombies", "%s", after <= before ? "none" : "some");
}

void probe_processes(void)
{
        signals();
        control();
        kill_all();
        orphans();
}
