/*
 * probe.h - what the parts of the escape probe share
 *
 * The probe is one static program that is carried into a run and tries what a hostile program would try. Each
 * part is a group (`probe GROUP…`) of checks. A check prints one line of JSON: {"check": "section/row/what",
 * "result": "…"}; whether that is good is decided outside, by tests/escape/expected. A check that may end its
 * process, or change it for good, happens in a child. Nothing outlives the program. One thread, but for the
 * checks that are about threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

/* A pointer that no process has mapped, for calls whose answer then tells the filter (EPERM, ENOSYS) from the
 * kernel (EFAULT). */
#define BAD (-1L)

/* A system call to try. */
struct call {
        const char *name;       /* of the check, or the end of it */
        long nr, args[6];
};

/** make_call() - make the system call that @arg, a struct call, describes; returns as syscall(2) does */
long make_call(const void *arg);

/**
 * say_calls() - try each of a list of calls, each in a child, and say what came of it
 * @prefix: of the checks' names
 */
void say_calls(const char *prefix, const struct call *calls, size_t n_calls);

/**
 * say() - print one check's line
 * @check:  its name, for expected/
 * @format: its result, as of printf(3); plain text without quotes or control characters
 *
 * Context: writes to standard output at once, so that a child that dies has said what it knew
 */
void say(const char *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * say_returned() - print the result of a system call: "allowed", or "denied:" and the name of errno
 * @check: its name
 * @r:     what the call returned; errno is read if it is negative
 */
void say_returned(const char *check, long r);

/**
 * returned_by_child() - run a system call in a child of its own
 * @call: what to run; returns as a system call does, with errno
 * @arg:  handed to @call
 *
 * Return: 0 if it did not fail, -1 with errno as the child saw it, or -2 if the child was killed or hung for 2 s
 */
long returned_by_child(long (*call)(const void *arg), const void *arg);

/** say_in_child() - say_returned() of returned_by_child(); a child that was killed counts as "killed" */
void say_in_child(const char *check, long (*call)(const void *arg), const void *arg);

/**
 * wait_for() - wait for a child, but not for ever
 * @pid:        child
 * @timeout_ms: then it is killed
 *
 * Return: its wait status; -1 if it was killed here or is no child
 */
int wait_for(int pid, int timeout_ms);

/* ---- The groups ---- */

void probe_calls(void);         /* 5/calls: system calls that a run may not make */
void probe_clones(void);        /* 5/namespaces: clone, clone3, unshare, setns */
void probe_numbers(void);       /* 5/seccomp: other architectures, high bits, a sweep over all numbers */
void probe_sockets(void);       /* 5/sockets, 5/vsock, 5/abstract-unix */
void probe_privilege(void);     /* 5/privilege, 9/amicontained: capabilities, set-user-id, devices */
void probe_processes(void);     /* 5/signals, 10: PID 1, orphans, zombies */
void probe_bombs(void);         /* 5/bombs: processes, threads, inodes, bytes */
