/*
 * fetch.h - HTTP and HTTPS requests, made by a process of their own: the protocol of reeve-fetch, and its client
 *
 * No process of reeve's that holds anything worth having speaks to the network or links a TLS library; the helper
 * `reeve-fetch` (tools/fetch) does, without privilege. It reads requests from its standard input, one a line, and
 * writes an answer for each to its standard output, in the order in which they come in: up to RV_FETCH_PARALLEL
 * requests are under way at once, and connections are used again. At the end of its input it finishes what is
 * under way and ends. Whoever sends more requests than that has to read answers meanwhile.
 *
 * A request is a JSON object on one line of at most RV_FETCH_LINE_BYTES_MAX bytes, followed, behind the newline, by
 * `body_bytes` bytes if that is there. Unknown members are errors.
 *
 *     id          text of 1 to 64 printable ASCII characters; the answer has it too        required
 *     url         http:// or https://, credentials (for Basic) in it or in a header        required
 *     method      GET, HEAD, POST or PUT                                                   GET
 *     headers     list of "Name: value", at most 64; not those that belong to the transport  none
 *     body_bytes  of POST and PUT, at most RV_FETCH_BODY_BYTES_MAX                         0
 *     max_bytes   the most that the answer's body may have, decoded; at most 64 MiB        1 MiB
 *     timeout_ms  of the whole request, redirects included; at most 600000                 30000
 *     ca          file of certificates; then no other is trusted                           the system's
 *     proxy       http:// or https://, credentials in it                                   none
 *
 * An answer is a JSON object on one line of at most RV_FETCH_ANSWER_BYTES_MAX bytes. Whatever the status, it was
 * answered: {"id", "status", "headers", "bytes"}, then exactly `bytes` bytes; `headers` is an object of texts by
 * lower-case name, those that came more than once joined by ", ". Or there is no answer: {"id", "error": {"code",
 * "message"}}. The codes are RV_FETCH_CODES.
 *
 * A redirect is followed, at most RV_FETCH_REDIRECTS_MAX times, if scheme, host and port stay the same, and if the
 * method does: a POST is sent on by 307 and 308 alone. No cookies, no .netrc, no proxy from the environment,
 * HTTP/1.1 only; no compression is asked for, and an answer that has one is an error (`protocol`).
 *
 * A line that is no JSON object, or one without a usable id or body_bytes, ends the helper with status 2 and a
 * message, as nobody can tell where the next request begins or whose the answer is.
 *
 * The client below makes one request with a helper of its own. Any thread; see child.h for what has to hold.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#define RV_FETCH_PARALLEL 8
#define RV_FETCH_LINE_BYTES_MAX ((size_t)64 << 10)
#define RV_FETCH_ANSWER_BYTES_MAX ((size_t)512 << 10)   /* 64 KiB of headers, every byte escaped */
#define RV_FETCH_HEADER_BYTES_MAX ((size_t)64 << 10)
#define RV_FETCH_BODY_BYTES_MAX ((size_t)4 << 20)
#define RV_FETCH_MAX_BYTES_MAX ((size_t)64 << 20)
#define RV_FETCH_MAX_BYTES_DEFAULT ((size_t)1 << 20)
#define RV_FETCH_TIMEOUT_MS_MAX 600000u
#define RV_FETCH_TIMEOUT_MS_DEFAULT 30000u
#define RV_FETCH_REDIRECTS_MAX 5u
#define RV_FETCH_ID_SIZE 65

/* X(enum's, code, text): why there is no answer. */
/* clang-format off */
#define RV_FETCH_CODES(X) \
        X(UNREACHABLE,      "unreachable",      "no such host, no connection, or it broke off") \
        X(TIMEOUT,          "timeout",          "timeout_ms passed") \
        X(TLS,              "tls",              "the server, or the proxy, is not who it should be, or cannot speak TLS") \
        X(TOO_LARGE,        "too_large",        "more than max_bytes, or more than 64 KiB of headers") \
        X(REDIRECT_REFUSED, "redirect_refused", "to another place, to another method, or once too often") \
        X(PROTOCOL,         "protocol",         "what came is no HTTP answer, or cannot be decoded") \
        X(USAGE,            "usage",            "the request is at fault") \
        X(INTERNAL,         "internal",         "the helper cannot: out of memory")
/* clang-format on */

enum rv_fetch_code {
        RV_FETCH_OK,
#define X(name, code, text) RV_FETCH_##name,
        RV_FETCH_CODES(X)
#undef X
        _RV_FETCH_CODE_MAX,
};

/** rv_fetch_code_name() - as it stands in an answer; "" for RV_FETCH_OK. Context: any. Ownership: static. Return: the text */
const char *rv_fetch_code_name(enum rv_fetch_code code);

struct rv_fetch_request {
        const char *method, *url;
        const char *const *headers;
        size_t n_headers;
        const void *body;
        size_t body_bytes;
        size_t max_bytes;                /* 0: the default */
        uint64_t timeout_ms;
        const char *ca, *proxy;          /* or NULL */
};

struct rv_fetch_answer {
        enum rv_fetch_code code;
        char message[512];               /* of a code; else "" */
        int status;                      /* HTTP's */
        json_t *headers;
        struct rv_buf body;
};

/**
 * rv_fetch_find() - open the helper: beside this program in a build tree or an installation, else where it was
 * installed
 * @ret_fd: for rv_fetch(); close-on-exec
 *
 * Context:   any; with whatever privilege its place needs
 * Ownership: the descriptor is the caller's
 * Return:    0; -errno
 */
int rv_fetch_find(int *ret_fd, struct rv_error *err);

/**
 * rv_fetch() - make one request
 * @helper_fd: of rv_fetch_find()
 * @ret:       rv_fetch_answer_fini(); untouched on failure
 *
 * Context:   blocks for timeout_ms and a second at most; see child.h
 * Ownership: borrows
 * Return:    0: it was answered, or there is a code; -errno: the helper itself failed
 */
int rv_fetch(int helper_fd, const struct rv_fetch_request *q, struct rv_fetch_answer *ret, struct rv_error *err);

/**
 * rv_fetch_answer_read() - one answer from what the helper wrote
 * @text:      @n bytes, not trusted
 * @id:        the request's
 * @max_bytes: the request's
 * @ret:       untouched on failure
 *
 * Context:   any
 * Ownership: copies; *@ret is the caller's
 * Return:    0; -EPROTO it is no answer to that; -ENOMEM
 */
int rv_fetch_answer_read(const char *text, size_t n, const char *id, size_t max_bytes, struct rv_fetch_answer *ret,
        struct rv_error *err);

/** rv_fetch_answer_fini() - release. Context: any. Ownership: takes the content. Return: none */
void rv_fetch_answer_fini(struct rv_fetch_answer *answer);
