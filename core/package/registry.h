/*
 * registry.h - where the packages of a language come from: what a run in network mode `registries` may reach
 *
 * The configuration says it (`registries.<language>`, a tenant's before the common one), else the package manager's own
 * configuration does, as whoever starts reeve sees it: pip's and npm's files and environment, and where these are silent
 * the address that is built into the tool. An index and the hosts that its files come from differ; the latter stand in
 * no configuration, so that for an index which is not the tool's own they are looked up in one page of it.
 *
 *   rv_registry_find()        with the caller's privilege: reads files, starts nothing
 *   rv_registry_complete()    without: asks the tool and the index where that is needed, and keeps the answers
 *   rv_registry_free()
 *
 * Addresses are kept without credentials, which never go to a run; registry_credentials.h says where they go. One
 * thread at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/config.h"
#include "request/request.h"

#define RV_REGISTRY_HOSTS_MAX 64
#define RV_REGISTRY_SCOPES_MAX 32

struct rv__secrets;

struct rv_registry_host {
        const char *host;            /* a canonical name, or an address */
        uint16_t port;
        bool is_learned;             /* by a page of the index: it has to be public */
};

/* npm's "@corp:registry=…". */
struct rv_registry_scope {
        const char *name;            /* "@corp" */
        const char *url;             /* without credentials */
};

struct rv_registry {
        enum rv_language language;
        const char *index;           /* without credentials; NULL: none is known */
        struct rv_registry_host hosts[RV_REGISTRY_HOSTS_MAX];
        size_t n_hosts;
        const char *ca;              /* file of certificates, or NULL */
        struct rv_registry_host proxy;   /* host NULL: none */
        const char *proxy_fault;     /* why the proxy that is named cannot be used; NULL: it can, or there is none */
        const char *no_proxy;        /* hosts that are reached without it, as NO_PROXY lists them; NULL: none */
        const char *extra_index;     /* pip's further indexes, without credentials, spaces between them; NULL: none */
        const char *find_links;      /* pip's further places for files, as they are written but for credentials, or NULL */
        struct rv_registry_scope scopes[RV_REGISTRY_SCOPES_MAX];
        size_t n_scopes;
        const char *files;           /* hosts of files that the configuration names, spaces between them; NULL: none */
        const char *source;          /* where the index was found, for people */
        bool has_files;              /* the hosts of files are known too */
        struct rv__secrets *secrets; /* or NULL */
        struct rv_arena arena;       /* of all but the secrets */
};

/* What is looked at: for tests another tree and another environment. */
struct rv_registry_view {
        const char *root;                            /* before every absolute path; "" */
        const char *(*get)(void *arg, const char *name);   /* of the environment */
        void *arg;
};

/**
 * rv_registry_find() - what the configuration says, else what the package manager's says
 * @view: NULL: this process's
 *
 * Context:   with the privilege of whoever started reeve; reads a few small files
 * Ownership: *@ret is the caller's
 * Return:    0; -ENOMEM. What cannot be read or understood is as if it were not there
 */
int rv_registry_find(const struct rv_config *config, const struct rv_config_tenant *tenant, enum rv_language language,
        const struct rv_registry_view *view, struct rv_registry **ret);

/**
 * rv_registry_complete() - find out what stands in no configuration
 * @state_fd:  directory in which the answers are kept
 * @helper_fd: of rv_fetch_find(), or negative: an index's page is not looked at
 *
 * Context:   without privilege; blocks for RV_REGISTRY_MS at most for each of the two questions, if no answer is kept
 * Ownership: borrows
 * Return:    none; @r says what is known
 */
void rv_registry_complete(struct rv_registry *r, int state_fd, int helper_fd);
#define RV_REGISTRY_MS 5000

/** rv_registry_base() - the address below which a package is: its scope's, else the index. Context: any. Ownership: the registry's. Return: it, or NULL: none is known */
const char *rv_registry_base(const struct rv_registry *r, const char *package);

/** rv_registry_free() - release, and wipe credentials; NULL is allowed. Context: any. Ownership: takes @r. Return: none */
void rv_registry_free(struct rv_registry *r);
RV_DEFINE_CLEANUP(struct rv_registry, rv_registry_free)

/**
 * rv_registry_add_url() - a URL's host and port join the list, once
 * @ret_plain: the URL without credentials, or NULL: not wanted
 *
 * Context:   any
 * Ownership: @ret_plain is the registry's
 * Return:    0; -EINVAL it is no http or https URL; -ENOSPC; -ENOMEM
 */
int rv_registry_add_url(struct rv_registry *r, const char *url, const char **ret_plain);

/** rv_registry_learn() - the host of a file that a page names joins the list, as one that has to be public. Context: any. Ownership: copies. Return: none; what is no address, or too much, is left out */
void rv_registry_learn(struct rv_registry *r, const char *url);

/**
 * rv_registry_page_hosts() - the hosts that the links of an index's page name
 * @text: a page in HTML or JSON (PEP 503, PEP 691), @n bytes, not trusted
 *
 * Links that name no host are the index's own.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    how many links were found
 */
size_t rv_registry_page_hosts(struct rv_registry *r, const char *text, size_t n);
