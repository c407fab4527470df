/*
 * run.h - one run of the backend `namespace`, as its half in the loop knows it
 *
 * Made by start(), freed when it is released and the spawner has had its last word. Loop thread.
 */
#pragma once

#include "common.h"

#include <reeve/backend.h>

struct ns_state {
        const struct rv_host *host;
};

struct ns_pipe {
        struct ns_run *run;
        enum rv_stream stream;
        int fd;
        struct rv_host_watch *watch;
};

struct ns_run {
        const struct rv_host *host;
        struct rv_run *run;
        const struct rv_plan *plan;
        uint64_t spawn_id;
        int control_fd, stdin_fd;
        struct rv_host_watch *control_watch, *stdin_watch;
        struct rv_host_timer *timer;         /* while dying: teardown_ms; while reading on: collect_ms */
        struct ns_pipe pipes[2];
        size_t n_stdin_written;
        uint64_t go_us, start_us;            /* CLOCK_BOOTTIME of the release and of the interpreter's exec */
        bool is_held, may_go, is_released, is_ended;   /* is_ended: the spawner's last word on it is there */
        bool is_observed, is_removed, is_clean, wants_release;
        bool is_stuck;                       /* it did not die in time: nobody waits for the spawner's last word */
        bool is_abandoned;                   /* released all the same: freed when the spawner has had its last word */
        uint32_t teardown_ms;
        enum rv_stop stop;
        struct rv_observation seen;
};

/** ns_finish() - observe once the last word on the processes is there and the pipes are at their end. Context: loop. Ownership: borrows. Return: none */
void ns_finish(struct ns_run *r);

/** ns_pipe_make() - make the program's three pipes; its ends go to @spec. Context: loop. Ownership: both ends are @r's and @spec's. Return: 0 or -errno */
int ns_pipe_make(struct ns_run *r, struct rv_spawn_spec *spec);
/** ns_pipe_watch() - begin to serve them. Context: loop. Ownership: borrows. Return: 0 or -errno */
int ns_pipe_watch(struct ns_run *r);
/** ns_pipe_read() - pass on what is in the pipe, up to a bound; at its end close it. Context: loop. Ownership: borrows. Return: none */
void ns_pipe_read(struct ns_pipe *p);
/** ns_pipe_flow() - go on reading as the program writes, or stop. Context: loop. Ownership: borrows. Return: none */
void ns_pipe_flow(struct ns_pipe *p, bool is_flowing);
/** ns_pipe_close() - Context: loop. Ownership: takes the descriptor. Return: none */
void ns_pipe_close(struct ns_pipe *p);
/** ns_pipe_close_stdin() - Context: loop. Ownership: takes the descriptor. Return: none */
void ns_pipe_close_stdin(struct ns_run *r);
