/*
 * message.h - a message from the loop, with its descriptors, or that it is none
 *
 * Apart from what acts on it, so that it is tested and fuzzed by itself. Plain function; any thread.
 */
#pragma once

#include "egress/gate_msg.h"

#include <stddef.h>

/**
 * message_receive() - one message and its descriptors
 *
 * Context:   does not block
 * Ownership: the first *@ret_n_fds of @ret_fds are the caller's, whatever is returned
 * Return:    1; 0: the channel has ended; -EAGAIN; -EBADMSG: another size or too many descriptors
 */
int message_receive(int fd, struct rv_gate_message *ret, int ret_fds[RV_GATE_FDS_MAX], size_t *ret_n_fds);
