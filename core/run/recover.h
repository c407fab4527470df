/*
 * recover.h - the outcome of a run whose reeve did not live to record one
 *
 * audit/recover.h finds the decisions; here their outcomes are made, by the same classification as any other: a
 * run that was let through is `backend_lost`, and whether it started is not known; one that was refused is
 * what its decision says. The record has `"recovered": true` and no lengths of output, as nobody is left who
 * knows them. Where the answer went out although the log could not be written, a `gap` record (`cause`
 * "outcome_not_written") and the record that its reeve left come in place of that. Thread: that of the log.
 */
#pragma once

#include "audit/log.h"

/**
 * rv_run_recover() - write the outcomes that dead reeves owe
 *
 * Called after rv_log_enlist() and before the first record of one's own, and again by whoever waits for a run of
 * another reeve. Of a run with an idempotency key the outcome's bytes are kept, too (store/outcomes.h).
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    how many were written; -errno as rv_log_recover()
 */
int rv_run_recover(struct rv_log *log, struct rv_error *err);
