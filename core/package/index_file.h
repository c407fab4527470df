/*
 * index_file.h - what an index says of one file: its name taken apart, its address, its time
 *
 * Python's file names are those of PEP 427 (wheels) and PEP 625 (source archives). Everything here comes from a registry
 * and is not trusted. Plain functions; any thread.
 */
#pragma once

#include "base/buf.h"

#define RV_INDEX_URL_MAX 4096        /* bytes of an address, with its NUL */
#define RV_INDEX_NAME_MAX 255        /* bytes of a file's name */

struct rv_index_text {
        const char *text;
        size_t n;
};

enum rv_index_kind { RV_INDEX_WHEEL, RV_INDEX_SDIST };

/* Points into the file's name. */
struct rv_index_file {
        enum rv_index_kind kind;
        struct rv_index_text version;            /* as it is written there */
        struct rv_index_text python, abi, platform;   /* of wheels: sets of tags, joined by periods */
};

/**
 * rv_index_file_parse() - take a file's name apart
 * @name:    a base name
 * @project: canonical (PEP 503): whose file it has to be
 * @ret:     untouched on failure
 *
 * Context:   any
 * Ownership: @ret points into @name
 * Return:    true; false: it is neither a wheel nor a source archive of that project
 */
bool rv_index_file_parse(const char *name, const char *project, struct rv_index_file *ret);

/** rv_index_canonical() - a project's name as PEP 503 says, of n bytes. Context: any. Ownership: @ret has room for n + 1 bytes. Return: false if it is no name */
bool rv_index_canonical(const char *text, size_t n, char *ret);

/**
 * rv_index_time() - RFC 3339 to Unix seconds
 *
 * Context:   any
 * Ownership: borrows
 * Return:    true; false: it is none, or before 1970 or after 9999
 */
bool rv_index_time(const char *text, int64_t *ret);

/**
 * rv_index_url() - the address that a link on a page means (RFC 3986, 5.2)
 * @base:         http or https address of the page
 * @link:         absolute or relative, not trusted
 * @ret:          without fragment and credentials
 * @ret_fragment: what follows the `#` in @link, or ""
 *
 * Context:   any
 * Ownership: *@ret_fragment points into @link
 * Return:    true; false: it is no http or https address, or too long
 */
bool rv_index_url(const char *base, const char *link, char ret[RV_INDEX_URL_MAX], const char **ret_fragment);

/** rv_index_is_url() - is it a whole http or https address with a host, of bytes that may stand in one? Context: any. Ownership: borrows. Return: as named */
bool rv_index_is_url(const char *url);

/** rv_index_is_hex() - exactly @n hexadecimal digits? Context: any. Ownership: borrows. Return: as named */
bool rv_index_is_hex(const char *text, size_t n);
/** rv_index_is_line() - printable, without control characters, at most @max bytes? Context: any. Ownership: borrows well-formed UTF-8. Return: as named */
bool rv_index_is_line(const char *text, size_t max);
