/*
 * evidence.h - what a run reached and what it was refused: `network.contacts` and `network.denials` of its outcome
 *
 * A contact is a destination that was dialled, one entry for each name, address, port and protocol; a denial is
 * something that was refused, one entry for each of these and the rule. RV_EVIDENCE_MAX entries of each are kept, in
 * the order of their first use; what comes after is counted, by connection and by refusal. Names are fit to be shown
 * (rv_name_print) before they come here.
 *
 * Lives with its run: new, add, write, free. One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "egress/denial.h"

#define RV_EVIDENCE_MAX 256

struct rv_evidence;

/* What an entry is found by. Texts are copied. */
struct rv_evidence_key {
        const char *name;         /* "" for an address that no name was given for */
        const char *address;      /* "" where none was dialled */
        uint16_t port;            /* 0 where there is none */
        const char *protocol;     /* "dns", "tls", "http" or "tcp"; static text */
};

struct rv_contact {
        uint64_t connections, bytes_out, bytes_in;   /* the caller adds to them */
};

/** rv_evidence_new() - empty lists. Context: any. Ownership: *@ret is the caller's (rv_evidence_free). Return: 0 or -ENOMEM */
int rv_evidence_new(struct rv_evidence **ret);
/** rv_evidence_free() - release lists or NULL. Context: any. Ownership: takes them. Return: none */
void rv_evidence_free(struct rv_evidence *evidence);
RV_DEFINE_CLEANUP(struct rv_evidence, rv_evidence_free)

/**
 * rv_evidence_contact() - the entry of a destination that is dialled, a new one if there is none
 *
 * Context:   any
 * Ownership: the entry is the lists' and stays where it is
 * Return:    the entry, or NULL if there are too many or no memory: then one more is counted
 */
struct rv_contact *rv_evidence_contact(struct rv_evidence *evidence, const struct rv_evidence_key *key);

/** rv_evidence_deny() - one refusal more. Context: any. Ownership: copies. Return: none */
void rv_evidence_deny(struct rv_evidence *evidence, const struct rv_evidence_key *key, enum rv_denial denial);

/**
 * rv_evidence_write() - as JSON: {"contacts":[…],"denials":[…],"more_contacts":N,"more_denials":N}
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0 or -ENOMEM
 */
int rv_evidence_write(const struct rv_evidence *evidence, struct rv_buf *out);
