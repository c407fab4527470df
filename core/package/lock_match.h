/*
 * lock_match.h - is a lock one for a request: does it hold what is asked for, in versions that are asked for
 *
 * Plain function; any thread.
 */
#pragma once

#include "base/config.h"
#include "base/json.h"
#include "request/request.h"

#define RV_LOCK_FAULT_SIZE 400

/**
 * rv_lock_find_fault() - why a lock is none for this request on this runtime
 * @lock:    of rv_lock_check(), 0
 * @runtime: may be NULL
 *
 * Context:   may block on the disk
 * Ownership: the caller's memory
 * Return:    @ret, the end of a sentence; NULL: it is one
 */
const char *rv_lock_find_fault(const json_t *lock, const struct rv_request *q, const struct rv_config_runtime *runtime,
        char ret[RV_LOCK_FAULT_SIZE]);
