/*
 * flow.h - bytes one way between two sockets
 *
 * What was read and cannot be written yet is kept here, so that a reader that stands still stops its writer and no
 * memory grows. The first bytes go through memory: a short exchange needs no pipe. After FLOW_COPIED_BYTES they go
 * through a pipe by splice(2), without being copied. A flow lives in its connection: zero-initialised with flow_init,
 * then fini. One thread.
 */
#pragma once

#include "base/buf.h"

#define FLOW_COPIED_BYTES (256u << 10)
#define FLOW_PIPE_BYTES (256 << 10)      /* asked for; a user's pipes together have a bound of the kernel's */

struct flow {
        struct rv_buf out;       /* to be written; bytes before `out_at` are */
        size_t out_at;
        int pipe[2];             /* -EBADF: none */
        size_t in_pipe;
        uint64_t n_bytes;        /* pulled so far */
        bool is_eof;             /* the source has ended */
        bool is_shut;            /* and the destination knows */
        bool is_broken;          /* the destination takes no more */
        bool is_blocked;         /* the destination takes no more now */
};

/** flow_init() - Context: any. Ownership: the caller's memory. Return: none */
void flow_init(struct flow *flow);
/** flow_fini() - release what it holds. Context: any. Ownership: takes the content. Return: none */
void flow_fini(struct flow *flow);
/** flow_is_empty() - is nothing left to be written? Context: any. Ownership: none. Return: as named */
bool flow_is_empty(const struct flow *flow);
/**
 * flow_flush() - write what is kept; sets is_blocked
 *
 * Context:   the loop; does not block
 * Ownership: borrows @to_fd
 * Return:    0; -errno: the destination is gone, what was kept is dropped and is_broken is set
 */
int flow_flush(struct flow *flow, int to_fd);
/**
 * flow_pull() - read once and write what was read, or keep it
 * @chunk: of GATE_CHUNK_BYTES
 *
 * Context:   the loop; nothing may be kept (flow_is_empty); does not block
 * Ownership: borrows
 * Return:    bytes read; 0: the source has ended; -EAGAIN; -errno of the source. That the destination is gone is told
 *            by is_broken
 */
int64_t flow_pull(struct flow *flow, int from_fd, int to_fd, char *chunk);
