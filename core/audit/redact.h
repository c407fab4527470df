/*
 * redact.h - what records must not show: replaced by commitments before anything is written
 *
 * A list of pointers (base/pointer.h) says which values of a record are hidden. Each becomes
 *
 *     {"redacted": "hmac-sha256:HEX"}
 *
 * HEX being the HMAC of the value's canonical form (RFC 8785) under the log's secret: two records that hid the same
 * value show the same HEX, and who has the value and the secret can prove it. A value that has no canonical form is
 * withheld: {"redacted": "withheld"}. Where even that cannot be made the record is not written.
 *
 * A text that was hidden does not stand elsewhere in the record either. Every other text that is the same, or that
 * holds it (for texts of 4 bytes and more), is hidden as well: a policy's message may name whom it turned away. Upper
 * and lower case are one there, and so are `-`, `_` and `.`, as names of packages are written in many ways. Looked
 * through is what texts of a request, a tenant or a policy can get into; ids, digests and words of a fixed set, such
 * as a status or a network mode, say which record it is and stay. Members' names stay.
 *
 * What is hidden stays hidden: a commitment is not replaced again. Without a list nothing is done. Thread: that of
 * the log.
 */
#pragma once

#include "audit/log.h"

/**
 * rv_log_set_redaction() - what to hide from here on
 * @pointers: @n texts that the configuration has accepted; copied. None: nothing is hidden
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; -EINVAL a text that is no pointer; -ENOMEM
 */
int rv_log_set_redaction(struct rv_log *log, const char *const *pointers, size_t n);

/**
 * rv_log_redact() - hide what the list names in a record's body
 * @body: an object; its members are replaced by new values, so what it shares with others is not changed
 *
 * rv_log_append() does the same. Called before by who makes digests of what will stand in the record.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0; -ENOMEM, or -ELOOP if it is nested deeper than a record may be: then @body must not be written
 */
int rv_log_redact(const struct rv_log *log, json_t *body);

/** rv_log_commitment() - what a value that is hidden becomes. Context: any. Ownership: borrows; a new reference. Return: it, or NULL when out of memory */
json_t *rv_log_commitment(const struct rv_log *log, const json_t *value);

/** rv_log_is_commitment() - is it something hidden? Context: any. Ownership: borrows. Return: as named */
bool rv_log_is_commitment(const json_t *value);
