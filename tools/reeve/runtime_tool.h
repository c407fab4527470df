/*
 * runtime_tool.h - another's program that takes its time: followed line by line, and ended with reeve
 *
 *   tool_signals() -> tool_find() -> tool_run(), any number of times
 *
 * A program is the leader of a session of its own with /dev/null as its input; as root it has a mount namespace of its
 * own, so that nothing that it mounts outlives it. INT, TERM and HUP end it, by TERM, and then by KILL. The command
 * line's one thread.
 */
#pragma once

#include "base/error.h"

#define TOOL_PATH_SIZE 256
#define TOOL_TAIL_SIZE 2048

struct tool {
        const char *const *argv;         /* argv[0] is its path; ends with NULL */
        const char *const *envp;         /* the same */
        void (*line)(void *ctx, const char *text);   /* of its standard error and output; or NULL */
        void *ctx;
        char tail[TOOL_TAIL_SIZE];       /* the last of what it said, lines in order */
        int status;                      /* as waitpid() gives it */
};

/** tool_signals() - from here on INT, TERM and HUP only end tools. Context: start of a command. Ownership: none. Return: 0 or -errno */
int tool_signals(void);
/** tool_was_told() - has such a signal come? Context: any. Ownership: none. Return: its number, or 0 */
int tool_was_told(void);

/** tool_find() - a program in the system's own directories; @package is what to install. Context: any. Ownership: the caller's memory. Return: 0; -ENOENT with @err */
int tool_find(const char *name, const char *package, char ret[TOOL_PATH_SIZE], struct rv_error *err);

/**
 * tool_run() - run it to its end
 *
 * Context:   blocks
 * Ownership: borrows
 * Return:    0 it ended with status 0; -EINTR a signal came; -ECHILD it ended otherwise: @err has the last of what it
 *            said; -errno it could not be started; with @err
 */
int tool_run(struct tool *t, struct rv_error *err);
