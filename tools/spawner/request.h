/*
 * request.h - a message from the loop: received, and judged before anything is done for it
 *
 * The loop reads what callers sent, so that what it says is not believed: a message has one size and at most so many
 * descriptors, each of its fields is within its bounds and names what the configuration has. Needs no privilege and
 * keeps nothing. The spawner's one thread.
 */
#pragma once

#include "audit/sign_msg.h"
#include "base/config.h"
#include "spawn_msg.h"

/* Either of the two messages: which one is told by the size. */
union request {
        struct rv_spawn_request spawn;
        struct rv_sign_request sign;
};

enum {
        REQUEST_SPAWN = 1,
        REQUEST_SIGN,
};

/**
 * request_receive() - one request with its descriptors
 * @ret:       filled as far as the message goes; to be looked at only after 1
 * @ret_fds:   close-on-exec
 * @ret_n_fds: how many there are, also after -EBADMSG; more than a request has are closed
 *
 * Context:   spawner; blocks unless @fd is readable
 * Ownership: borrows @fd; the descriptors are the caller's
 * Return:    REQUEST_SPAWN or REQUEST_SIGN; 0 the loop is gone; -EAGAIN; -EBADMSG another size, a kind that is not of
 *            that size, or more descriptors than a request has
 */
int request_receive(int fd, union request *ret, int ret_fds[RV_SPAWN_FD_MAX_], int *ret_n_fds);

/** request_find_fault() - every field of a START, against the bounds and the configured maxima. Context: any. Ownership: borrows. Return: what is wrong, static, or NULL */
const char *request_find_fault(const struct rv_config *config, const struct rv_spawn_request *q);

/** request_find_sign_fault() - every field of a request to the signer, so that it can be worked with. Context: any. Ownership: borrows. Return: what is wrong, static, or NULL */
const char *request_find_sign_fault(const struct rv_sign_request *q);
