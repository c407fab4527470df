/*
 * registry_credentials.h - what a registry's credentials are for: reeve's own requests, and the resolver's sandbox
 *
 * A registry keeps them apart (registry_secrets.h). They leave it in two ways alone: as a header for a URL that they
 * are meant for, and in the environment of the sandbox in which packages are resolved, where no program of a caller
 * runs. A run never has them: registry_tools.h makes its environment of addresses without.
 *
 * What goes where:
 *   Python      credentials of an address are for its scheme, host and port, as with pip and uv; of several the one whose
 *               path the URL's begins with, else the first. ~/.netrc is not read.
 *   JavaScript  they are for what lies below their path too, the longest of several, as with npm. A line
 *               `//host/…` is for https, and for http where the registry itself is named so.
 * A URL that has credentials of its own, or a path with `.` or `..` in it, gets none.
 *
 * Any thread, as long as none changes the registry.
 */
#pragma once

#include "base/hash.h"
#include "package/registry_tools.h"

#define RV_REGISTRY_AUTHORIZATION_SIZE 8192

/**
 * rv_registry_authorization() - the header for a request
 * @url: whatever it is; it is not trusted
 * @ret: "Authorization: Basic …" or "Authorization: Bearer …", to be wiped; "" if there is none
 *
 * Context:   any
 * Ownership: borrows
 * Return:    true if there is one
 */
bool rv_registry_authorization(const struct rv_registry *r, const char *url, char ret[RV_REGISTRY_AUTHORIZATION_SIZE]);

/**
 * rv_registry_resolver_env() - what the resolver's sandbox goes by: index, further ones, certificates, credentials
 * @root: of its runtime, as for rv_registry_tools_make()
 *
 * For Python both uv's names and pip's; for JavaScript REEVE_NPMRC, the text of a user's npmrc, and what npm has to be
 * told outside of it. No retries, and 10 s for an answer.
 *
 * Context:   without privilege; reads the certificates' file
 * Ownership: the content of @ret is the caller's; rv_registry_tools_fini() wipes it
 * Return:    as rv_registry_tools_make()
 */
int rv_registry_resolver_env(
        const struct rv_registry *r, const char *root, struct rv_registry_tools *ret, struct rv_error *err);

/**
 * rv_registry_fingerprint() - what makes two registries the same, as a digest: for keys of what was got from one
 * @r: complete
 *
 * Of the language, the addresses, scopes, named hosts of files, find-links, the content of the certificates, the proxy, and the
 * credentials. Hosts that were looked up are not in it: they may change, and be unknown while the registry is down.
 *
 * Context:   without privilege; reads the certificates' file
 * Ownership: borrows
 * Return:    none
 */
void rv_registry_fingerprint(const struct rv_registry *r, char ret[RV_SHA256_HEX_SIZE]);
