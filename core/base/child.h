/*
 * child.h - a program run to its end, with what it reads and what it says, under a deadline
 *
 *   fill in struct rv_child -> rv_child_run() -> look at what came of it -> rv_child_fini()
 *
 * The program gets three descriptors and nothing else of this process but what is handed on by name: its standard
 * input is a pipe with the bytes given, then end of file; its standard output and error are pipes that are read up to a
 * bound, or /dev/null; `fds` are its descriptors 3 and on. It is
 * the leader of a session of its own, in the directory `/`, with the signals' defaults, and with no more environment
 * than is given. Past the deadline it and its process group are killed, by pidfd, so never another process.
 *
 * Descriptors 0 to 2 of this process have to be open, and SIGCHLD at its default. Blocks the calling thread; any
 * thread, as long as nobody else waits for all children.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <sys/uio.h>

#define RV_CHILD_STOP_MS 10
#define RV_CHILD_FDS_MAX 8u

struct rv_child {
        int exe_fd;                      /* the program; -EBADF: argv[0] is its path */
        const char *const *argv;         /* ends with NULL */
        const char *const *envp;         /* the same; may be NULL: empty */
        const struct iovec *in;
        unsigned n_in;
        const int *fds;                  /* become 3, 4 … of the program; a negative one leaves its number closed */
        unsigned n_fds;                  /* at most RV_CHILD_FDS_MAX */
        size_t out_max, err_max;         /* most bytes; 0: /dev/null */
        uint64_t deadline_us;            /* on rv_boot_us()'s clock */
        const _Atomic bool *stop;        /* looked at every RV_CHILD_STOP_MS; may be NULL */
        /* May take bytes from the beginning of @out, so that out_max holds for what is left; a failure of it ends the
         * program, and is returned. May be NULL. */
        int (*on_out)(void *arg, struct rv_buf *out);
        void *arg;

        /* What came of it. */
        struct rv_buf out;
        struct rv_buf err;               /* the first err_max bytes; what is more is read and dropped */
        size_t n_unread;                 /* bytes of its input that it did not take */
        int status;                      /* as waitpid() gives it */
};

/**
 * rv_child_run() - start it, feed it, hear it, wait for it
 * @c: what came of it is set on success, and `err` after a failure too
 *
 * A program that ends without having read all its input has ended like any other; `n_unread` tells.
 *
 * Context:   blocks until the program has ended or the deadline has passed
 * Ownership: borrows; what came of it is rv_child_fini()'s
 * Return:    0 it ended, see `status`; -ETIMEDOUT it was killed; -ECANCELED the same, as @c->stop asked; -EFBIG it said
 *            more than out_max and was killed; on_out's; -EINVAL more descriptors than there may be; -errno it could not
 *            be started
 */
int rv_child_run(struct rv_child *c, struct rv_error *err);

/** rv_child_fini() - release what came of it. Context: any. Ownership: takes the content. Return: none */
void rv_child_fini(struct rv_child *c);

/** rv_child_end_text() - how it ended and the first line of its standard error, in ASCII, as the end of a sentence: "ended with status 3: no such host". Context: any. Ownership: the caller's memory. Return: @ret */
const char *rv_child_end_text(const struct rv_child *c, char *ret, size_t size);

/** rv_child_reset_signals() - nothing ignored, caught or blocked: what a new process does whose program is not to know what its parent did. Context: between fork and exec (async-signal-safe). Ownership: none. Return: none */
void rv_child_reset_signals(void);
