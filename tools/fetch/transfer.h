/*
 * transfer.h - one request under way, by libcurl
 *
 *   transfer_new() -> transfer_add() -> (libcurl's multi handle) -> transfer_conclude() -> transfer_free()
 *
 * A transfer keeps at most its request's body, max_bytes of answer (none of it, if a file gets it) and 64 KiB of
 * headers. One thread.
 */
#pragma once

#include "request.h"

#include "egress/address.h"

#include <curl/curl.h>

struct transfer {
        struct fetch_request q;
        CURL *easy;
        struct curl_slist *headers, *resolve;
        uint64_t deadline_us;            /* on rv_boot_us()'s clock */
        unsigned n_redirects;
        bool is_too_large;
        bool is_judged;                  /* is_public_only, and not for a host that the request says the address of */
        char refused[RV_ADDRESS_TEXT_SIZE + 64];   /* the address, and why; "": none was */
        char curl_error[CURL_ERROR_SIZE];
        /* The answer, and before it each redirect's. */
        json_t *got_headers;
        size_t got_header_bytes;
        struct rv_buf body;
        int file_fd;                     /* gets the body instead; or negative */
        size_t file_bytes;               /* written, or of a body that is not kept */
        int file_errno;
        /* The result: a code with a message, or RV_FETCH_OK and what was got. */
        enum rv_fetch_code code;
        struct rv_error why;
        long status;
};

/**
 * transfer_new() - make one of a request
 * @take_q: emptied on success
 * @dir_fd: where its file is made; or negative
 *
 * Context:   any
 * Ownership: takes @take_q's content; *@ret is the caller's
 * Return:    0; FETCH_E_USAGE with @err; -ENOMEM
 */
int transfer_new(struct fetch_request *take_q, int dir_fd, struct transfer **ret, struct rv_error *err);

/** transfer_add() - have it begin. Context: any. Ownership: borrowed by @multi until it is done. Return: 0; -ENOMEM */
int transfer_add(struct transfer *t, CURLM *multi);

/**
 * transfer_conclude() - libcurl has done with it: what is the result, or was it a redirect?
 *
 * Context:   after CURLMSG_DONE
 * Ownership: @multi borrows it no longer, unless it returns 1
 * Return:    0 the result is there; 1 it goes on, at another address of the same place
 */
int transfer_conclude(struct transfer *t, CURLM *multi, CURLcode result);

/** transfer_free() - release. Context: @multi does not borrow it. Ownership: takes @t. Return: none */
void transfer_free(struct transfer *t);
RV_DEFINE_CLEANUP(struct transfer, transfer_free)
