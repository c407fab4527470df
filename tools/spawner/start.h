/*
 * start.h - how the spawner comes into being: forked from reeve before anything of a caller's is read
 *
 * A fork and no exec: starting a program anew costs half a millisecond on some machines, and there is nothing
 * to gain, as the parent has read nothing yet. What a fork inherits of the caller (arguments, environment, open
 * files) is dropped first of all.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

/** spawner_remember_caller() - where the arguments lie that a spawner must forget. Context: start of main(). Ownership: borrows @argv for ever. Return: none */
void spawner_remember_caller(int argc, char **argv);
/** spawner_forget_caller() - wipe arguments and environment: what /proc/PID shows of a run's PID 1 is the spawner's. Context: the spawner. Ownership: none. Return: none */
void spawner_forget_caller(void);

enum spawner_duty {
        SPAWNER_RUN,            /* build runs, and sign */
        SPAWNER_SIGN,           /* sign, and nothing else: no cgroup is looked for, no run made */
        SPAWNER_EXPLAIN,        /* print what the host gives, for doctor, and end */
        SPAWNER_RUNTIMES,       /* print what the runtimes are, and end */
};

/**
 * spawner_fork() - start the spawner
 * @config_file: as rv_config_find() gave it; "" for the built-in defaults
 * @duty:        SPAWNER_RUN or SPAWNER_SIGN
 * @key_file:    the signing key's absolute path, in place of the configuration's; or NULL
 * @ret_fd:      the loop's end of the channel
 *
 * Context:   single-threaded, with the process's privilege, before anything of a caller's is read
 * Ownership: descriptor and child are the caller's
 * Return:    0; -errno with @err
 */
int spawner_fork(const char *config_file, enum spawner_duty duty, const char *key_file, int *ret_fd, pid_t *ret_pid,
        struct rv_error *err);
/** spawner_ask() - have one print what the host gives, a line each "state TAB probe TAB text", or (SPAWNER_RUNTIMES) what the runtimes are. Context: as spawner_fork(). Ownership: the descriptor to read from and the child are the caller's. Return: 0 or -errno */
int spawner_ask(const char *config_file, enum spawner_duty duty, int *ret_fd, pid_t *ret_pid, struct rv_error *err);

/** spawner_main() - be the spawner, its channel on descriptor 3. Context: a process of its own. Ownership: none. Return: exit status */
int spawner_main(const char *config_file, enum spawner_duty duty, const char *key_file);
