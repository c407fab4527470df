/*
 * evidence_read.h - what a run reached and what it was refused, as the gate told it: read strictly
 *
 * The gate faces whatever a program and a server send, so that what it says is checked before it becomes part of an
 * outcome: {"contacts":[{name, address, port, protocol, connections, bytes_out, bytes_in}], "denials":[{name, address,
 * port, protocol, rule, count}], "more_contacts":N, "more_denials":N}, each list of at most RV_NETWORK_LIST_MAX, every
 * member there and of its type, texts of printable ASCII, no number below 0. Anything else is no evidence at all.
 *
 * Plain memory: read, use, fini. Any thread.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#define RV_NETWORK_LIST_MAX 256
#define RV_NETWORK_TEXT_MAX 1023                      /* of a name that is all \DDD */
#define RV_NETWORK_EVIDENCE_BYTES_MAX ((size_t)1 << 20)

struct rv_network_evidence {
        json_t *contacts, *denials;      /* arrays */
        uint64_t n_more_contacts, n_more_denials;
};

/**
 * rv_network_evidence_read() - out of its JSON text
 * @text: @n bytes, not trusted
 * @ret:  untouched on failure
 *
 * Context:   any
 * Ownership: borrows; @ret's content by rv_network_evidence_fini()
 * Return:    0; -EINVAL with what is wrong in @err; -ENOMEM
 */
int rv_network_evidence_read(const char *text, size_t n, struct rv_network_evidence *ret, struct rv_error *err);

/** rv_network_evidence_fini() - release; zeroed is allowed. Context: any. Ownership: takes the content. Return: none */
void rv_network_evidence_fini(struct rv_network_evidence *evidence);
