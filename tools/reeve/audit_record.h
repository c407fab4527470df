/*
 * audit_record.h - what the commands that list records look at in one
 *
 * A record is read without a tree of it: for each member that some command shows there is the part of the line where
 * its value lies. It lives as long as the line. One thread.
 */
#pragma once

#include "base/canonical.h"

/* In the order of the canonical form. */
#define AUDIT_MEMBERS(X) \
        X(build) \
        X(bundle) X(cause) X(code) X(context_sha256) X(cut_bytes) X(decision_id) X(digest) X(errors) X(facts) X(file) \
                X(instance) X(kind) X(log_id) X(message) X(name) X(outcome_sha256) X(prev) X(principal) X(recovered) \
                        X(refused) X(request_id) X(role) X(root) X(run_id) X(seq) X(size) X(stage) X(started) \
                                X(status) X(tenant) X(time_us) X(trace_id) X(verdict) X(verdict_sha256) X(version)

struct audit_record {
        const char *line;
        size_t n;
        uint64_t seq_number, time_number;        /* of `seq` and `time_us` */
#define X(name) struct rv_span name;
        AUDIT_MEMBERS(X)
#undef X
};

/** audit_record_read() - find the members of a line. Context: any. Ownership: @ret points into @line. Return: 0; -EINVAL it is no record: not in canonical form, or without `seq`, `kind` or `time_us` */
int audit_record_read(const char *line, size_t n, struct audit_record *ret);
/** audit_record_is() - is a member this text? Context: any. Ownership: borrows. Return: as named */
bool audit_record_is(struct rv_span member, const char *text);
/** audit_record_text() - a member as a text: a string as it is meant, what was redacted as its commitment, anything else as it lies. Context: any. Ownership: a new reference. Return: a JSON string; JSON null for a member that is not there; NULL when out of memory */
json_t *audit_record_text(struct rv_span member);
