/*
 * names.h - what a client gave as the name of a host, and whether the run may reach it
 *
 * A DNS question, a TLS SNI and an HTTP Host all come through rv_hostname_parse(), so that there is one reading of
 * each spelling, and through rv_names_judge(), so that there is one answer. What is a name is request/domain.h's
 * (ASCII, A-labels, whole labels of LDH and `_`); anything that some client or resolver reads as an address is an
 * address here, also where it is no well-formed one.
 *
 * `struct rv_names` is what one run may reach; its lists are the caller's and stay while it is used. Any thread.
 */
#pragma once

#include "egress/address.h"
#include "request/domain.h"
#include "request/request.h"

enum rv_hostname_kind {
        RV_HOSTNAME_INVALID,    /* neither of the others */
        RV_HOSTNAME_DOMAIN,     /* `name` is canonical; one label or more */
        RV_HOSTNAME_LITERAL,    /* an IP address, in whatever spelling */
};

struct rv_hostname {
        enum rv_hostname_kind kind;
        char name[RV_DOMAIN_SIZE];     /* DOMAIN: the name; LITERAL with `has_address`: its text; else "" */
        bool has_address;              /* LITERAL in the one spelling that all readers agree on */
        struct rv_address address;
        bool has_port;
        uint16_t port;
};

/* What follows the name: a Host may have ":PORT" and brackets round an IPv6 address, a DNS name or an SNI neither. */
enum rv_hostname_form { RV_HOSTNAME_BARE, RV_HOSTNAME_AUTHORITY };

/**
 * rv_hostname_parse() - take in what a client gave
 * @text: any bytes, any length
 * @ret:  always written
 *
 * Context:   any
 * Ownership: borrows
 * Return:    @ret->kind
 */
enum rv_hostname_kind rv_hostname_parse(
        const char *text, size_t n, enum rv_hostname_form form, struct rv_hostname *ret);

/** rv_hostname_is_same() - the same host, with ports as they are (@default_port where none is)? Context: any. Ownership: borrows. Return: as named; false if either is invalid or an address that readers may differ about */
bool rv_hostname_is_same(const struct rv_hostname *a, const struct rv_hostname *b, uint16_t default_port);

/* A name that the run may reach, or an address that the operator wrote in a name's place. */
struct rv_name_rule {
        const char *name;              /* canonical */
        const uint16_t *ports;         /* NULL: every port */
        size_t n_ports;
        bool is_learned;               /* mode registries: an index's page names it, not the operator */
};

struct rv_names {
        enum rv_network_mode mode;
        const struct rv_name_rule *allowed;    /* mode registries: these hosts; domains: these and what is below them */
        size_t n_allowed;
        const char *const *denied;             /* `egress.deny`: these and what is below them, in every mode */
        size_t n_denied;
        const uint16_t *ports;                 /* policy's `ports` for the whole run; NULL: every port */
        size_t n_ports;
};

/**
 * rv_names_judge() - may the run reach this host?
 * @port: the port that is dialled, or 0 where there is none yet (a DNS question)
 *
 * Where several rules hold the name, one that allows the port is enough. In mode `any` a name needs no rule; a name
 * of one label does in every mode, as does a literal outside mode `any`. What is no name passes in mode `any`: there
 * a Host says nothing about where the connection goes.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    RV_DENIAL_NONE, or why not
 */
enum rv_denial rv_names_judge(const struct rv_names *names, const struct rv_hostname *host, uint16_t port);

/* Room for rv_name_print(): 255 bytes as \DDD, an ellipsis of three dots, the NUL. */
#define RV_NAME_TEXT_SIZE 1024
#define RV_NAME_TEXT_BYTES 255

/**
 * rv_name_print() - what a program gave as a name, fit to be shown: printable ASCII, every other byte, the space, the
 *                   backslash and the quote as \DDD (decimal); after 255 bytes three dots stand for the rest
 *
 * Context:   any
 * Ownership: borrows
 * Return:    @ret
 */
const char *rv_name_print(const void *text, size_t n, char ret[RV_NAME_TEXT_SIZE]);
