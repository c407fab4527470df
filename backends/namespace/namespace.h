/*
 * namespace.h - the backend `namespace`: Linux namespaces, cgroups, seccomp, in one shared kernel
 *
 * This is its half in the loop: it makes the pipes, asks the spawner for the sandbox (setup.h is the other
 * half), releases the program, watches and reports. See reeve/backend.h for the calls.
 */
#pragma once

#include <reeve/backend.h>

extern const struct rv_backend rv_namespace_backend;
