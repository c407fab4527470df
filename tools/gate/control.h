/*
 * control.h - the channel to the loop: ADD and REMOVE, and their answers (egress/gate_msg.h)
 *
 * One message is taken, and answered, at a time; while the loop does not read, nothing more is taken. What is sent
 * here comes from reeve itself; it is checked all the same, since what it carries was made from a program's request.
 * One thread.
 */
#pragma once

#include "base/error.h"
#include "egress/gate_msg.h"
#include "gate.h"

/**
 * control_receive() - one message and its descriptors
 *
 * Context:   does not block
 * Ownership: the first *@ret_n_fds of @ret_fds are the caller's, whatever is returned
 * Return:    1; 0: the channel has ended; -EAGAIN; -EBADMSG: another size or too many descriptors
 */
int control_receive(int fd, struct rv_gate_message *ret, int ret_fds[RV_GATE_FDS_MAX], size_t *ret_n_fds);
/** control_start() - serve the channel; at its end all runs are removed and the loop ends. Context: the loop. Ownership: none. Return: 0 or -errno */
int control_start(struct gate *gate);
