/*
 * record_scan.h - the few members of a record that say what it is about, without reading all of it
 *
 * A log may hold a million records, each with all the facts of a decision; whoever looks for a handful of them
 * cannot parse every line. This finds members of the outermost object of a line in canonical form (RFC 8785:
 * no white space) and skips the values of others, which may hold members of the same name. It is a filter: what
 * it finds is parsed before it is used. Plain functions on the caller's memory; any thread.
 */
#pragma once

#include "base/rv.h"

/* What stands between the quotes, escapes as they are; NULL if the member is absent or no string. */
struct rv_record_text {
        const char *text;
        size_t n;
};

struct rv_record_head {
        struct rv_record_text kind, decision_id, instance;
};

/**
 * rv_record_scan() - find the members that `struct rv_record_head` names
 * @line: @n bytes, without the newline
 * @ret:  always written; what comes before a fault is found
 *
 * Context:   any
 * Ownership: borrows; @ret points into @line
 * Return:    none
 */
void rv_record_scan(const char *line, size_t n, struct rv_record_head *ret);

/** rv_record_text_is() - is it this text? Context: any. Ownership: borrows. Return: as named */
bool rv_record_text_is(const struct rv_record_text *t, const char *text);
