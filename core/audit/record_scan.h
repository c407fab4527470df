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

/* A member looked for: begin with RV_RECORD_MEMBER("name"). */
struct rv_record_member {
        const char *name;
        size_t n_name;
        const char *value;              /* its JSON text, quotes included; NULL: absent */
        size_t n;
};
#define RV_RECORD_MEMBER(name) { name, sizeof(name) - 1, NULL, 0 }

/**
 * rv_record_members() - find members of the outermost object by their names, in whatever order they stand
 * @line:    @n bytes: a record, or the value of a member of one
 * @members: written: the first member of each name, as far as there is no fault before it
 *
 * Context:   any
 * Ownership: borrows; @members point into @line
 * Return:    none
 */
void rv_record_members(const char *line, size_t n, struct rv_record_member *members, size_t n_members);

/** rv_record_string() - what stands between a member's quotes; NULL if it is absent or no string. Context: any. Ownership: borrows. Return: it */
struct rv_record_text rv_record_string(const struct rv_record_member *member);

/** rv_record_number() - a member that is a whole number from 0 to 2^53 - 1. Context: any. Ownership: borrows; @ret untouched on failure. Return: whether it is one */
bool rv_record_number(const struct rv_record_member *member, uint64_t *ret);

/** rv_record_hex() - @n_bytes in lower-case hex. Context: any. Ownership: the caller's memory; undefined on failure. Return: whether it is that */
bool rv_record_hex(const struct rv_record_text *t, size_t n_bytes, uint8_t *ret);

/** rv_record_text_is() - is it this text? Context: any. Ownership: borrows. Return: as named */
bool rv_record_text_is(const struct rv_record_text *t, const char *text);
