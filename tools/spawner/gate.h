/*
 * gate.h - the gate as the spawner's child: started when the first run with network is asked for
 *
 * One gate serves all runs of a loop; what it does is tools/gate's. It is a program of its own, with a user id of its
 * own where there is one to give, without any capability, in a cgroup of its own, with an empty environment and three
 * descriptors on /dev/null; its fourth is the channel whose other end goes to the loop. The spawner sends it nothing.
 *
 *   gate_find() -> gate_start(), for every run with network -> (gate_on_end() -> gate_start())* -> gate_kill()
 *
 * The spawner's one thread.
 */
#pragma once

#include "cgroup.h"
#include "uid.h"

struct spawner;

struct gate {
        int exe_fd;
        struct rv_error exe_error;   /* why it is not there */
        pid_t pid;                   /* 0: none runs */
        int pidfd;
        bool was_killed;             /* by the spawner: nobody wants it any more */
        struct rv_cgroup cgroup;
        struct rv_uid_pair uids;
};

/** gate_find() - open the executable, while it is the one that belongs to this program. Context: spawner. Ownership: @gate's, for ever. Return: none; what fails is told by gate_start() */
void gate_find(struct gate *gate);
/**
 * gate_start() - see that a gate runs; a new one's channel is reported to the loop
 *
 * Context:   spawner, a run with network was asked for
 * Ownership: none
 * Return:    0; -ENOENT there is no such program here; -errno; with @err
 */
int gate_start(struct spawner *s, struct rv_error *err);
/** gate_on_end() - it is dead: report that, remove what was its own. Context: spawner. Ownership: none. Return: none */
void gate_on_end(struct spawner *s);
/** gate_kill() - it is not needed any more; its end comes as gate_on_end(). Context: spawner. Ownership: none. Return: none */
void gate_kill(struct gate *gate);
