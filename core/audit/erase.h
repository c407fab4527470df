/*
 * erase.h - giving up a log's secret for good
 *
 * What records hide (redact.h), and the keys and values that are in them as HMACs, can be proved and compared only by
 * who has the log's secret. Without it they are random digits. Erasing makes a new secret under the log's lock and a
 * `gap` record with the cause "secret_erased"; the chain and its checkpoints are not touched and still verify. Nobody
 * can tell from then on whether a value before the gap and one after it are the same; keys of idempotency used before
 * are not recognised any more. Thread: any, with no log of the same directory in use by it.
 */
#pragma once

#include "audit/log.h"

/**
 * rv_log_erase_secret() - make the log go on with a new secret
 * @state_fd:  may be O_PATH
 * @state_dir: its path, for messages only
 * @ret_seq:   of the gap record; untouched on failure
 *
 * Also where the old one was lost, or is malformed. The old one's bytes are overwritten where they lie, which says
 * little on a file system or a disk that does not overwrite in place; copies of it are the caller's business.
 *
 * Context:   blocks on the disk
 * Ownership: borrows
 * Return:    0; -EBUSY a writer of this log lives; -ENOENT there is no log; as rv_log_append(). @err says whether the
 *            old secret is gone
 */
int rv_log_erase_secret(int state_fd, const char *state_dir, uint64_t *ret_seq, struct rv_error *err);
