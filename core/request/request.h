/*
 * request.h - what a caller asks for, read and judged against every bound
 *
 * A request begins as JSON text (rv_request_parse) or as a JSON value that, say, the command line put
 * together (rv_request_from_json); both are judged by the same code, and the result is either a request in
 * canonical form or a problem that lists every fault. A request is constant from then on: any thread may read
 * it. rv_request_free() releases it.
 */
#pragma once

#include "base/rv.h"
#include "request/bounds.h"
#include "request/domain.h"
#include "request/package.h"
#include "request/problem.h"

#include <jansson.h>

#define RV_REQUEST_E_INVALID 1

/* Both enums in the order of their names' tables; modes in the order of their width. */
enum rv_language { RV_LANGUAGE_PYTHON, RV_LANGUAGE_JAVASCRIPT };
enum rv_network_mode { RV_NETWORK_NONE, RV_NETWORK_REGISTRIES, RV_NETWORK_DOMAINS, RV_NETWORK_ANY };

/** rv_language_name() - "python" or "javascript". Context: any. Ownership: static. Return: the name */
const char *rv_language_name(enum rv_language language);
/** rv_language_parse() - the reverse. Context: any. Ownership: borrows. Return: an enum rv_language, or -EINVAL */
int rv_language_parse(const char *name);
/** rv_network_mode_name() - "none", "registries", "domains" or "any". Context: any. Ownership: static. Return: the name */
const char *rv_network_mode_name(enum rv_network_mode mode);
/** rv_network_mode_parse() - the reverse. Context: any. Ownership: borrows. Return: an enum rv_network_mode, or -EINVAL */
int rv_network_mode_parse(const char *name);

struct rv_env_pair {
        char *name;
        char *value;   /* without NUL */
};

struct rv_request {
        enum rv_language language;
        char *source;                      /* NUL-terminated; no NUL within */
        size_t source_bytes, source_characters;
        uint32_t timeout_s, memory_mib;
        struct rv_package *packages;       /* sorted by name, then by text asked for; no two alike */
        size_t n_packages;
        struct rv_env_pair *env;           /* sorted by name */
        size_t n_env;
        enum rv_network_mode network_mode;
        char **domains;                    /* canonical, sorted, no two alike; none outside mode `domains` */
        size_t n_domains;
        size_t *domain_positions;          /* of each in the caller's list */
        char *idempotency_key;             /* or NULL */
        char *stdin_data;                  /* may hold NUL; never NULL, also when empty */
        size_t stdin_bytes;
};

/**
 * rv_request_parse() - a request out of its JSON text
 * @json:        UTF-8, need not end in NUL; at most RV_BOUND_MAX(document) bytes
 * @ret:         set on 0
 * @ret_problem: set on RV_REQUEST_E_INVALID: status 422, every fault in the order of the fields' table, then
 *               of entries, then members that no request has, by name. A text that is not one JSON object
 *               gives exactly one fault, at ""
 *
 * Duplicate members are faults too; the others are judged all the same (but for a text that has NUL in a
 * member's name: then only that and duplicates are listed).
 *
 * Context:   any thread; time and memory linear in @n
 * Ownership: borrows @json; the result to the caller
 * Return:    0; RV_REQUEST_E_INVALID; -ENOMEM
 */
int rv_request_parse(const char *json, size_t n, struct rv_request **ret, struct rv_problem **ret_problem);

/**
 * rv_request_from_json() - a request out of a JSON value
 * @value: strings may be ill-formed (json_stringn_nocheck): that is the fault `encoding`
 *
 * Else as rv_request_parse().
 *
 * Context:   any thread
 * Ownership: borrows @value; the result to the caller
 * Return:    0; RV_REQUEST_E_INVALID; -ENOMEM
 */
int rv_request_from_json(const json_t *value, struct rv_request **ret, struct rv_problem **ret_problem);

/** rv_request_free() - release a request or NULL. Context: any. Ownership: takes @request. Return: none */
void rv_request_free(struct rv_request *request);
RV_DEFINE_CLEANUP(struct rv_request, rv_request_free)

/**
 * rv_request_canonical() - the request as a JSON value with every default filled in
 * @with_key: include `idempotency_key` where there is one
 *
 * Two requests that ask for the same in another order or spelling of white space, with a default written out
 * or left out, give the same value. `packages` holds the texts asked for. Its canonical bytes without the key
 * are what an idempotency fingerprint is made of.
 *
 * Context:   any thread
 * Ownership: a new reference, to the caller
 * Return:    the value, or NULL when out of memory
 */
json_t *rv_request_canonical(const struct rv_request *request, bool with_key);
