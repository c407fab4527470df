/*
 * config_value.h - the values of a configuration, each from its text
 *
 * Each function here takes one scalar's text and gives NULL if it is well-formed, else what such a value
 * has to be, as the end of the sentence "KEY needs …". What they set is plain memory or the arena's;
 * nothing is set on failure. Any thread.
 */
#pragma once

#include "base/arena.h"

extern const char rv_config_no_memory[];   /* compare the pointer: not the text's fault */

/** rv_config_check_name() - tenants, runtimes, backends: letters, digits, `._-`. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_name(const char *text);
/** rv_config_check_path() - absolute, without `.` and `..` parts and control characters. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_path(const char *text);
/** rv_config_check_expose() - a path that a run may be shown in addition. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_expose(const char *text);
/** rv_config_check_text() - no control characters. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_text(const char *text);
#define RV_CONFIG_DIGEST_PREFIX "sha256:"
/** rv_config_check_digest() - `sha256:` and 64 lower-case hex digits. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_digest(const char *text);
/** rv_config_check_network() - a network mode. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_network(const char *text);
/** rv_config_check_sink() - `file:PATH`, `command:PATH WORD…` or https://. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_sink(const char *text);
/** rv_config_check_behind() - what to do when the second place of the log is behind. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_behind(const char *text);
/** rv_config_check_resolver() - what finds Python packages. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_resolver(const char *text);
/** rv_config_check_language() - a language. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_language(const char *text);
/** rv_config_check_url() - http:// or https:// with a host. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_url(const char *text);
/** rv_config_check_host() - a domain name or an address, with `:PORT` or not, or a URL. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_host(const char *text);
/** rv_config_check_domain() - two labels or more, A-labels only. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_domain(const char *text);
/** rv_config_check_address() - IPv4 or IPv6. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_address(const char *text);
/** rv_config_check_denied() - a domain name, an address or ADDRESS/BITS. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_denied(const char *text);
/** rv_config_check_redact() - a JSON pointer to what a record may hide. Context: any. Ownership: borrows. Return: see above */
const char *rv_config_check_redact(const char *text);
/** rv_config_read_segment() - a size of at least 1 MiB. Context: any. Ownership: none. Return: see above */
const char *rv_config_read_segment(const char *text, uint64_t *ret_bytes);
/** rv_config_read_duration() - `250ms`, `10s`, `2m`, `24h`, `7d`, to milliseconds; from 1 ms to 366 days. Context: any. Ownership: none. Return: see above */
const char *rv_config_read_duration(const char *text, uint64_t *ret_ms);
/** rv_config_read_size() - `512KiB`, `64MiB`, `10GiB`, `1TiB`, to bytes. Context: any. Ownership: none. Return: see above */
const char *rv_config_read_size(const char *text, uint64_t *ret_bytes);
/** rv_config_read_cpus() - `2`, `0.5`, to thousandths. Context: any. Ownership: none. Return: see above */
const char *rv_config_read_cpus(const char *text, uint32_t *ret_milli);
/** rv_config_read_pids() - 4 to 4194304. Context: any. Ownership: none. Return: see above */
const char *rv_config_read_pids(const char *text, uint32_t *ret_pids);
/** rv_config_read_connections() - 1 to 16384. Context: any. Ownership: none. Return: see above */
const char *rv_config_read_connections(const char *text, uint64_t *ret);
/** rv_config_read_rate() - 1 to 1000000 a second. Context: any. Ownership: none. Return: see above */
const char *rv_config_read_rate(const char *text, uint64_t *ret);
/** rv_config_read_names() - 1 to 4096. Context: any. Ownership: none. Return: see above */
const char *rv_config_read_names(const char *text, uint64_t *ret);
/** rv_config_read_idle() - a duration from 100 ms to 24 hours. Context: any. Ownership: none. Return: see above */
const char *rv_config_read_idle(const char *text, uint64_t *ret_ms);
/** rv_config_read_uid_range() - `FIRST-LAST`, both included. Context: any. Ownership: none. Return: see above */
const char *rv_config_read_uid_range(const char *text, uint32_t *ret_first, uint32_t *ret_last);
