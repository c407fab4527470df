/*
 * control.h - the channel to the loop: ADD and REMOVE, and their answers (egress/gate_msg.h)
 *
 * One message is taken, and answered, at a time, but for the removal of a run that drains; while the loop does not read,
 * nothing more is taken. What is sent here comes from reeve itself; it is checked all the same, since what it carries
 * was made from a program's request. One thread.
 */
#pragma once

#include "base/error.h"
#include "gate.h"

struct run;

/** control_start() - serve the channel; at its end all runs are removed and the loop ends. Context: the loop. Ownership: none. Return: 0 or -errno */
int control_start(struct gate *gate);
/** control_report() - a run that was to be removed is over: tell what it reached, as soon as the channel takes it. Context: the loop, at the end of a callback of the run's. Ownership: takes @run, now or later. Return: none */
void control_report(struct run *run);
