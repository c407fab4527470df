/*
 * control.h - the channel to the loop: ADD and REMOVE, and their answers (egress/gate_msg.h)
 *
 * One message is taken, and answered, at a time; while the loop does not read, nothing more is taken. What is sent
 * here comes from reeve itself; it is checked all the same, since what it carries was made from a program's request.
 * One thread.
 */
#pragma once

#include "base/error.h"
#include "gate.h"

/** control_start() - serve the channel; at its end all runs are removed and the loop ends. Context: the loop. Ownership: none. Return: 0 or -errno */
int control_start(struct gate *gate);
