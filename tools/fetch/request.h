/*
 * request.h - one request line of reeve-fetch (the protocol is in base/fetch.h)
 *
 * A request lives from fetch_request_read() to fetch_request_fini(); its texts are its own. Nothing here knows of
 * HTTP beyond what a line may say; the address is taken apart by libcurl later. One thread.
 */
#pragma once

#include "base/fetch.h"

enum fetch_method { FETCH_GET, FETCH_HEAD, FETCH_POST, FETCH_PUT };

struct fetch_request {
        json_t *line;                    /* holds the texts */
        char id[RV_FETCH_ID_SIZE];
        enum fetch_method method;
        const char *url, *ca, *proxy;
        const char *file;                /* or NULL */
        const json_t *headers, *resolve; /* or NULL */
        bool is_public_only, tells_redirects;
        size_t body_bytes, max_bytes;
        uint32_t timeout_ms;
        struct rv_buf body;              /* filled by who reads on */
};

#define FETCH_E_USAGE 1

/**
 * fetch_request_read() - read and judge a line
 * @line: @n bytes without the newline, not trusted
 * @ret:  fetch_request_fini(); after FETCH_E_USAGE it has `id` and `body_bytes`, so that it can be answered and its
 *        body passed over; untouched after any other failure
 *
 * Context:   any
 * Ownership: copies
 * Return:    0; FETCH_E_USAGE the request is at fault; -EPROTO there is no telling whose it is or where the next
 *            begins; -ENOMEM
 */
int fetch_request_read(const char *line, size_t n, struct fetch_request *ret, struct rv_error *err);

/**
 * fetch_resolve_host() - the name that a member of `resolve` is about
 * @text: accepted by fetch_request_read()
 *
 * Context:   any
 * Ownership: borrows
 * Return:    how many of its first bytes are the host's; the port follows behind a colon
 */
size_t fetch_resolve_host(const char *text);

/** fetch_request_fini() - release, and wipe what may hold credentials. Context: any. Ownership: takes the content. Return: none */
void fetch_request_fini(struct fetch_request *q);
