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
 *     max_bytes   the most that the answer's body may have; at most 64 MiB, 4 GiB of a file  1 MiB
 *     timeout_ms  of the whole request, redirects included; at most 600000                 30000
 *     ca          file of certificates; then no other is trusted                           the system's
 *     proxy       http:// or https://, credentials in it                                   none
 *     file        name of a file that gets the body, see below                             none
 *     resolve     list of at most 64 texts "host:port:address", an address in brackets or   none
 *                 not: where a name is, instead of asking; they stay known to later requests
 *     is_public_only  true: only addresses of the public Internet are connected to         false
 *     tells_redirects  true: a redirect to another place is an answer                      false
 *
 * An answer is a JSON object on one line of at most RV_FETCH_ANSWER_BYTES_MAX bytes. Whatever the status, it was
 * answered: {"id", "status", "headers", "bytes"}, then exactly `bytes` bytes; `headers` is an object of texts by
 * lower-case name, those that came more than once joined by ", ". Or there is no answer: {"id", "error": {"code",
 * "message"}}. The codes are RV_FETCH_CODES.
 *
 * With `file` the body of a 2xx answer goes to a new file of that name in the directory that is the helper's
 * descriptor 3 (`reeve-fetch --files`): `bytes` is 0 then and `file_bytes` says how many. The name is of letters,
 * digits and `._+@!-`, and begins with a letter or a digit. A file that is there already is left alone (`usage`). A
 * file is not kept in memory. Whatever else comes of the request, the file is there, and is for the client to remove.
 *
 * With `is_public_only` each address is judged before it is connected to, and again before the request is sent over a
 * connection that was there already: one of a special range (egress/address.h) or of the host itself is refused
 * (`refused_address`), after redirects too. Hosts for which the request has a `resolve` are exempt. A proxy is
 * exempt as well; through it, where names are not resolved here, only addresses in the URL are judged.
 *
 * A redirect is followed, at most RV_FETCH_REDIRECTS_MAX times, if scheme, host and port stay the same, and if the
 * method does: a POST is sent on by 307 and 308 alone. One to another place is refused (`redirect_refused`), or, with
 * `tells_redirects`, answered as it came, its `location` an absolute address: whether to go there, and with which
 * credentials, is for the client to say. No cookies, no .netrc, no proxy from the environment,
 * HTTP/1.1 only; no compression is asked for, and an answer that has one is an error (`protocol`).
 *
 * A line that is no JSON object, or one without a usable id or body_bytes, ends the helper with status 2 and a
 * message, as nobody can tell where the next request begins or whose the answer is.
 *
 * The client below makes one request, or many, with a helper of its own. Any thread; see child.h for what has to hold.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#define RV_FETCH_PARALLEL 16
#define RV_FETCH_LINE_BYTES_MAX ((size_t)64 << 10)
#define RV_FETCH_ANSWER_BYTES_MAX ((size_t)512 << 10)   /* 64 KiB of headers, every byte escaped */
#define RV_FETCH_HEADER_BYTES_MAX ((size_t)64 << 10)
#define RV_FETCH_BODY_BYTES_MAX ((size_t)4 << 20)
#define RV_FETCH_MAX_BYTES_MAX ((size_t)64 << 20)
#define RV_FETCH_FILE_BYTES_MAX ((size_t)4 << 30)
#define RV_FETCH_FILE_NAME_MAX 200u
#define RV_FETCH_RESOLVE_MAX 64u
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
        X(REFUSED_ADDRESS,  "refused_address",  "is_public_only, and the address is not of the public Internet") \
        X(PROTOCOL,         "protocol",         "what came is no HTTP answer, or cannot be decoded") \
        X(USAGE,            "usage",            "the request is at fault") \
        X(INTERNAL,         "internal",         "the helper cannot: out of memory, or the file cannot be written")
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
        const char *const *resolve;      /* "host:port:address" */
        size_t n_resolve;
        bool is_public_only, tells_redirects;
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

/* One of many requests. */
struct rv_fetch_item {
        struct rv_fetch_request q;
        const char *file;                /* of a new file that gets the body of a 2xx answer; NULL: it goes to the answer */
        struct rv_fetch_answer answer;   /* empty before; set by success of the call */
        uint64_t file_bytes;             /* the same */
};

/**
 * rv_fetch_many() - make requests with one helper, at most RV_FETCH_PARALLEL of them at once
 * @items:       each `answer` is set on success and rv_fetch_answer_fini()'s; all empty on failure
 * @dir_fd:      directory for the files, which the helper's user may write to (its caller's; nobody, where that is
 *               root); nobody else makes files of these names there; negative: no item has a file
 * @stop:        looked at every 50 ms; may be NULL
 * @deadline_us: on rv_boot_us()'s clock; requests that have no answer by then have the code `timeout`
 *
 * timeout_ms of a request counts from when it is begun. A file is there afterwards only if its answer has a status of
 * 2xx; it has mode 0644 and was not synced. Bodies that go to answers are all in memory together.
 *
 * Context:   blocks until the deadline at most
 * Ownership: borrows
 * Return:    0: each was answered, or has a code; -ECANCELED *@stop is set; -EEXIST a file is there already; -EINVAL
 *            two items have one file, or a text is no UTF-8; -errno: the helper itself failed
 */
int rv_fetch_many(int helper_fd, struct rv_fetch_item *items, size_t n, int dir_fd, const _Atomic bool *stop,
        uint64_t deadline_us, struct rv_error *err);

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
