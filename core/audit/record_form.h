/*
 * record_form.h - is a line a record in canonical form, and what stands in it that every record has
 *
 * A record is one JSON object in the form that RFC 8785 gives it, with integers only: members sorted by UTF-16 code
 * units and none twice, no white space, the shortest escapes, well-formed UTF-8. A value has exactly one such text,
 * so two readers cannot read two things out of one line. This checks all of that in one pass over the bytes, without
 * making a value of them. Plain functions on the caller's memory; any thread.
 */
#pragma once

#include "audit/record_scan.h"

struct rv_record_form {
        uint64_t seq, time_us;
        struct rv_record_text prev, kind, log_id;  /* as they stand there, escapes and all */
};

/**
 * rv_record_form() - check a line
 * @line: @n bytes, without the newline; not trusted
 * @ret:  set only if it is a record; points into @line
 *
 * The members that every record has (docs/audit.md) have to be there: `seq` and `time_us` integers, not negative,
 * `prev` 64 and `log_id` 32 lower-case hexadecimal digits, `kind`, `instance` and `build` texts.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    NULL if it is a record; else what is wrong, a constant text that goes on "the line …"
 */
const char *rv_record_form(const char *line, size_t n, struct rv_record_form *ret);
