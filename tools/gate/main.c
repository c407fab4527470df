/*
 * main.c - reeve-gate: the process through which networked runs reach the outside
 *
 *     reeve-gate     descriptor 3 is the channel to the loop: egress/gate_msg.h
 *
 * Whoever starts it has given it a user of no privilege and a cgroup, and nothing in the environment counts. It reads
 * the host's resolver configuration, gives up all but sockets, and serves until the channel ends.
 */
#include "confine.h"
#include "control.h"
#include "egress/gate_msg.h"
#include "own.h"
#include "resolve.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

/* Resolver options, libuv's own settings: none of it comes from the environment. */
static char *no_environment[] = { NULL };

static const int ignored[] = { SIGPIPE, SIGINT, SIGQUIT, SIGHUP, SIGTERM };

static struct gate gate;

static bool is_channel(int fd)
{
        socklen_t n = sizeof(int);
        int type = 0;

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET;
}

static int start(struct rv_error *err)
{
        int watch_fd = -EBADF, r;

        r = confine_files(err);
        if (r < 0)
                return r;
        r = resolve_open(&gate);
        if (r < 0)
                return rv_error_set(err, r, "cannot read the resolver's configuration");
        r = own_open(&gate, &watch_fd);
        if (r < 0)
                return rv_error_set(err, r, "cannot read the host's addresses: %s", strerror(-r));
        r = confine_calls(err);
        if (r < 0)
                return r;
        /* After the filter, so that libuv finds out at once what it may not use. */
        link_init(&gate.runs);
        gate.spare_fd = fcntl(RV_GATE_CHANNEL_FD, F_DUPFD_CLOEXEC, 0);
        r = uv_loop_init(&gate.loop);
        if (r == 0)
                r = resolve_init(&gate);
        if (r == 0)
                r = own_init(&gate, watch_fd);
        if (r == 0)
                r = control_start(&gate);
        return r < 0 ? rv_error_set(err, r, "cannot start: %s", strerror(-r)) : 0;
}

int main(int argc, char **argv)
{
        struct rv_error err = { 0 };

        if (argc > 1 || !is_channel(RV_GATE_CHANNEL_FD)) {
                fprintf(stderr, "usage: reeve-gate\n\nServes the network of runs. reeve starts it: descriptor 3 is its channel.\n");
                return 2;
        }
        environ = no_environment;
        /* The end of the channel ends it, not who stops everything at once: runs are ended by the loop, in order. */
        for (size_t i = 0; i < RV_N_ELEMENTS(ignored); i++)
                signal(ignored[i], SIG_IGN);
        if (start(&err) < 0) {
                fprintf(stderr, "reeve-gate: %s\n", err.message);
                return 1;
        }
        (void)uv_run(&gate.loop, UV_RUN_DEFAULT);
        rv_check(uv_loop_close(&gate.loop) == 0);
        return 0;
}
