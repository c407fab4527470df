/*
 * audit.h - what the commands of `reeve audit` share
 *
 * A command is one file with one function `int audit_NAME(int argc, char **argv)`; argv[0] is the command. It
 * returns the exit status: 0, 1 what was looked for or feared was found, 2 a corrupt log or usage, 3 and others as
 * the command's --help says. Most only read, and take a log that lies anywhere: the state directory of the
 * configuration, another one, or a copy.
 *
 *   audit_place_open() -> reads -> audit_place_close()
 */
#pragma once

#include "reeve.h"

/* The commands. Context: start of the process. Ownership: borrow. Return: the exit status. */
int audit_check_proof(int argc, char **argv);
int audit_checkpoint(int argc, char **argv);
int audit_erase(int argc, char **argv);
int audit_export(int argc, char **argv);
int audit_keygen(int argc, char **argv);
int audit_prove(int argc, char **argv);
int audit_reconcile(int argc, char **argv);
int audit_replay(int argc, char **argv);
int audit_rotate(int argc, char **argv);
int audit_send(int argc, char **argv);
int audit_show(int argc, char **argv);
int audit_verify(int argc, char **argv);

/* Where a log lies. */
struct audit_place {
        char *path;              /* of the directory with the segments, for messages */
        char *state_dir;         /* the directory above it, if that is a state directory; else NULL */
        int audit_fd;            /* of the directory with the segments */
        int state_fd;            /* or -EBADF */
        char *key_pub;           /* where the configuration says that the verifier key lies; NULL: beside the log */
        struct rv_buf key_text;  /* what that file holds, */
        int key_status;          /* or -errno */
};

/**
 * audit_place_open() - find and open a log to read
 * @config: as for rv_config_load(); used without @dir
 * @dir:    a state directory, or a directory with segments; NULL: the configuration's state directory
 *
 * As root the process becomes the owner of the directory with the segments, if that is another, and stays so:
 * nothing of a log is parsed with privilege. What else a command line names is opened before.
 *
 * Context:   start of a command
 * Ownership: release with audit_place_close(), also after a failure
 * Return:    0; -errno: @err says what, why and what to do; @ret->path is NULL if it was not come to look at a log
 */
int audit_place_open(const char *config, const char *dir, struct audit_place *ret, struct rv_error *err);

/** audit_place_close() - release. Context: any. Ownership: takes the content. Return: none */
void audit_place_close(struct audit_place *place);
