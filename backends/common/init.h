/*
 * init.h - PID 1 of a run: holds the program, executes it, reaps, reports, ends
 *
 * It runs inside the finished isolation, is not dumpable, keeps no capability once the program is executed,
 * and never looks at anything the program writes. Its end kills whatever else is in the run's PID namespace.
 *
 * Everything here runs in a single-threaded process between clone and exec.
 */
#pragma once

#include "payload.h"

#include <sys/types.h>

#define RV_BOX "/box"
#define RV_RESERVED_DIR "/.reeve"             /* read-only; reeve's own files in a run's root */
#define RV_INIT_FILES_MAX 4096                /* hard limit of open files; the soft one is 1024 */
#define RV_INIT_STACK_BYTES (8u << 20)
#define RV_NODE_PRELOAD RV_RESERVED_DIR "/preload.cjs"

struct rv_init {
        int control_fd;                       /* to the loop: RV_INIT_GO comes, reports go */
        int stdin_fd, stdout_fd, stderr_fd;   /* the program's */
        enum rv_plan_language language;
        const char *interpreter;              /* as the program sees it */
        uint32_t memory_mib;
        uid_t uid;                            /* the program's, inside the user namespace */
        gid_t gid;
        bool has_own_uid;                     /* the program's differs from PID 1's */
};

/** rv_init_main_file() - the name of the program's file in RV_BOX. Context: any. Ownership: static. Return: the name */
const char *rv_init_main_file(enum rv_plan_language language);

/**
 * rv_init_confine() - drop the bounding set, set no_new_privs and resource limits, install Landlock and seccomp
 * @ret_step: the step that failed
 *
 * After it the process can still change its user id, once: rv_init_run() does so for the program.
 *
 * Context:   PID 1, after the last mount
 * Ownership: none
 * Return:    0 or -errno
 */
int rv_init_confine(const char **ret_step);

/**
 * rv_init_run() - wait for RV_INIT_GO, execute the program, reap until it ends, report
 * @payload: its environment is given to the program and to nothing else
 *
 * Context:   PID 1, confined; does not return
 * Ownership: takes all
 * Return:    never
 */
_Noreturn void rv_init_run(const struct rv_init *init, const struct rv_payload *payload);
