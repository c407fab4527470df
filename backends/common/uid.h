/*
 * uid.h - a pair of user ids of a run's own, taken from `uid_range` and held while the run lives
 *
 * A run has two: one for PID 1 and one for the program, so that the program can neither signal nor limit
 * PID 1. The hold is a lock on a byte of /run/reeve/uids: whoever dies lets go, no process is ever asked.
 * PID 1 keeps the descriptor open too, so a pair is free only when the last of the run is gone.
 */
#pragma once

#include "base/error.h"

struct rv_uid_pair {
        uint32_t init_uid, program_uid;
        int lock_fd;
};

/**
 * rv_uid_take() - take a free pair
 * @first, @last: the range, inclusive; its first pair is the loop's own and never given out
 *
 * Context:   may block shortly
 * Ownership: release with rv_uid_release()
 * Return:    0; -EAGAIN every pair is taken; -errno: @err names the file
 */
int rv_uid_take(uint32_t first, uint32_t last, struct rv_uid_pair *ret, struct rv_error *err);

/** rv_uid_release() - let go. Context: any. Ownership: takes the content. Return: none */
void rv_uid_release(struct rv_uid_pair *pair);
