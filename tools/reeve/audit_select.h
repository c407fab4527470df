/*
 * audit_select.h - which records a command is about: words for times and numbers, and how times are written
 *
 * A time is one of
 *
 *     2026-11-30T02:17:00Z        RFC 3339; with a fraction, or an offset such as +01:00; a blank may stand for the T
 *     2026-11-30                  the beginning of that day, UTC
 *     24h                         that long ago: a number and s, m, h, d or w
 *     @1796005020                 Unix seconds
 *
 * Plain functions; any thread.
 */
#pragma once

#include "base/rv.h"

#define AUDIT_TIME_SIZE 32

/** audit_time_parse() - a time as microseconds since 1970. Context: any; reads the clock. Ownership: borrows. Return: 0; -EINVAL it is none */
int audit_time_parse(const char *text, uint64_t *ret_us);
/** audit_unix_or_time_parse() - the same, where a plain number can be nothing but Unix seconds. Context: any; reads the clock. Ownership: borrows. Return: 0; -EINVAL */
int audit_unix_or_time_parse(const char *text, uint64_t *ret_us);
/** audit_number_parse() - digits, and nothing else, as a number below 2^53. Context: any. Ownership: borrows. Return: 0; -EINVAL */
int audit_number_parse(const char *text, uint64_t *ret);
/** audit_time_text() - "2026-11-30T02:17:00Z", with six decimals if @is_exact. Context: any. Ownership: the caller's memory. Return: @ret */
const char *audit_time_text(uint64_t us, bool is_exact, char ret[AUDIT_TIME_SIZE]);

/** audit_option_error() - say what getopt_long() (with ":" first in its short options) found wrong. Context: any. Ownership: borrows. Return: EXIT_USAGE */
int audit_option_error(const char *command, int id, char **argv);
