/*
 * confine.h - what the gate gives up before it reads a byte of a run
 *
 * In this order: confine_files() first of all; then what needs files is read; then confine_calls(), after which
 * nothing can be opened but sockets, and no program run. There is no way back. One thread.
 */
#pragma once

#include "base/error.h"

/** confine_files() - descriptors but 0 to 3 closed, no core, no new privileges, as many descriptors as may be had. Context: start of the process. Ownership: none. Return: 0 or -errno */
int confine_files(struct rv_error *err);
/** confine_calls() - Landlock, where the kernel has it, and the allow-list of system calls (calls.h). Context: after confine_files(). Ownership: none. Return: 0 or -errno */
int confine_calls(struct rv_error *err);
