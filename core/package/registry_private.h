/*
 * registry_private.h - what the files of registry.h share
 *
 * As there.
 */
#pragma once

#include "package/registry.h"
#include "package/registry_tools.h"

#include <stdio.h>

/** rv__registry_set_index() - the index, in place of what was known; what is no address is as none. Context: any. Ownership: copies. Return: none */
void rv__registry_set_index(struct rv_registry *r, const char *url, const char *source);
/* scheme://[user[:password]@]host[:port][/…], http or https */
struct rv__url {
        const char *scheme_end;      /* behind "://" */
        const char *host, *host_end;
        const char *rest;            /* from the port on */
        uint16_t port;
};

/** rv__url_split() - find the parts of an address. Context: any. Ownership: @ret points into @text. Return: false if it is none */
bool rv__url_split(const char *text, struct rv__url *ret);
/** rv__registry_keep_host() - a name in its canonical form, or an address. Context: any. Ownership: the registry's. Return: it; NULL if it is neither, or without memory */
const char *rv__registry_keep_host(struct rv_registry *r, const char *text, size_t n);
/** rv__registry_canonical_host() - the same into @ret. Context: any. Ownership: borrows. Return: false if it is neither */
bool rv__registry_canonical_host(const char *text, size_t n, char ret[RV_DOMAIN_SIZE]);
/** rv__registry_strip() - take the credentials out of each address in a text, in place. Context: any. Ownership: borrows. Return: none */
void rv__registry_strip(char *text);
/** rv__registry_add_extra() - one of pip's further indexes: its host joins the list, its credentials are kept. Context: any. Ownership: @ret_plain is the registry's. Return: as rv_registry_add_url() */
int rv__registry_add_extra(struct rv_registry *r, const char *url, const char **ret_plain);
/** rv__registry_set_scope() - npm's registry of a scope ("@corp"), in place of what was known. Context: any. Ownership: copies. Return: none */
void rv__registry_set_scope(struct rv_registry *r, const char *scope, size_t n_scope, const char *url);
/** rv__registry_add_scopes() - the hosts of the scopes join the list. Context: all are known. Ownership: none. Return: none */
void rv__registry_add_scopes(struct rv_registry *r);
/** rv__registry_set_proxy() - "host:port" or a URL; NULL changes nothing, "" is none. One that the gate cannot speak to is a `proxy_fault`. Context: any. Ownership: copies. Return: none */
void rv__registry_set_proxy(struct rv_registry *r, const char *text);
/** rv__registry_settle_proxy() - forget the proxy if the index's host is to be reached without it. Context: the index is known. Ownership: none. Return: none */
void rv__registry_settle_proxy(struct rv_registry *r);
/** rv__registry_read_own() - what is built into the language's tool below @root: an address a line, the index's first. Context: any; reads a file. Ownership: the caller frees it. Return: the lines, or NULL: it is not stated as expected */
char *rv__registry_read_own(enum rv_language language, const char *root);
/** rv__registry_add_host() - "host", "host:port" or a URL joins the list. Context: any. Ownership: copies. Return: none */
void rv__registry_add_host(struct rv_registry *r, const char *text);
/** rv__registry_read_pip() - pip's files and environment. Context: as rv_registry_find(). Ownership: borrows. Return: none */
void rv__registry_read_pip(struct rv_registry *r, const struct rv_registry_view *view);
/** rv__registry_read_npm() - npm's. Context: as rv_registry_find(). Ownership: borrows. Return: none */
void rv__registry_read_npm(struct rv_registry *r, const struct rv_registry_view *view);
/** rv__registry_tools_add() - one more variable. Context: any. Ownership: copies @value. Return: 0 or -ENOMEM */
int rv__registry_tools_add(struct rv_registry_tools *t, const char *name, const char *value);
/** rv__registry_tools_add_trust() - pip takes an index over plain HTTP only from a host that it is told to trust. Context: any. Ownership: copies. Return: 0 or -ENOMEM */
int rv__registry_tools_add_trust(struct rv_registry_tools *t, const struct rv_registry *r);
/**
 * rv__registry_tools_ca() - the certificates: the registry's own file, which is read, else the runtime's, if it has one
 * @ret_path: where a run sees them; untouched if there are none
 *
 * Context:   as rv_registry_tools_make()
 * Ownership: *@ret_path is static
 * Return:    as rv_registry_tools_make()
 */
int rv__registry_tools_ca(struct rv_registry_tools *t, const struct rv_registry *r, const char *root,
        const char **ret_path, struct rv_error *err);
