/*
 * domain.h - a domain name that a request names, in its one canonical form
 *
 * Canonical: lower case, no trailing dot, two labels or more, each of 1 to 63 letters, digits, hyphens and
 * (but for the last label) underscores, no hyphen at either end, at most 253 characters in all. That is the
 * preferred syntax of RFC 1035 as RFC 1123 widened it, with the underscore that clients look up and that real
 * host names have. Internationalised names are taken as A-labels only (RFC 5890): what a name becomes by
 * IDNA depends on its version, and the check must not depend on ours. Anything that a client could read as an
 * IP address (RFC 3986, WHATWG URL "ends in a number", inet_aton) is no name. Any thread, nothing owned.
 */
#pragma once

#include "request/problem.h"

#define RV_DOMAIN_E_INVALID 1
#define RV_DOMAIN_SIZE 254   /* with the NUL */

/**
 * rv_domain_parse() - one name, made canonical
 * @text:  need not end in NUL; any length, any bytes
 * @ret:   written on 0 only
 * @fault: set on RV_DOMAIN_E_INVALID; may be NULL. A kind that reeve does not take (an address, a wildcard, a
 *         URL, a port, a single label, another script) is `unsupported`, too long `length`, else `pattern`
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    0 or RV_DOMAIN_E_INVALID
 */
int rv_domain_parse(const char *text, size_t n, char ret[RV_DOMAIN_SIZE], struct rv_fault *fault);

/**
 * rv_domain_parse_host() - the same for a name that a client gave, or an operator: a single label is one too
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    as rv_domain_parse()
 */
int rv_domain_parse_host(const char *text, size_t n, char ret[RV_DOMAIN_SIZE], struct rv_fault *fault);

/**
 * rv_domain_ends_in_number() - would a client read this as an IPv4 address, in some spelling? One that it could not
 *                              read as an address ("a.1") but whose last label is a number is meant too
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    as named
 */
bool rv_domain_ends_in_number(const char *text, size_t n);

/**
 * rv_domain_is_within() - is @name the same as @suffix or below it, by whole labels from the right?
 * @name:   canonical
 * @suffix: canonical; "example.com" holds itself and "a.example.com", not "notexample.com"
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    as named; false for an empty @suffix
 */
bool rv_domain_is_within(const char *name, const char *suffix);
