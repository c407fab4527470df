/*
 * facts.h - the one value that policy sees of a request, and that is recorded
 *
 * With the bundle it is all that a decision depends on, so that a recorded value can be judged again years
 * later. Integers only, no secret: of the source its digest and length, of the environment its names, of the
 * idempotency key whether it is there.
 *
 *     { "stage": "requested",
 *       "request":     { the facts of rv_fact_tables[RV_FACTS_REQUEST], with "tenant": {name, labels} },
 *       "packages":    [ { facts of a package } ],          by name, then by text asked for, bytewise
 *       "network":     [ {mode, domain} ],                  mode `domains`: one for each, by name; else one
 *       "idempotency": {mode, key_given},
 *       "backend":     {mode, package_count, all_pinned},
 *       "pointers":    { "packages": […], "network": […] } }
 *
 * `pointers` has, for each entry of `packages` and `network`, the JSON pointer to the member of the request
 * that it came from; policy cannot read it. `all_pinned` of no package at all is true. The value is plain
 * jansson data of the caller's; building it needs no more than the request. One thread at a time.
 *
 * At stage `resolved` they are of what would be installed, the packages of a lock:
 *
 *     { "stage": "resolved",
 *       "request":  as above, `now` is the time of the second judging,
 *       "packages": [ { all facts of a package; one that is not known is absent } ],   by name, then by text asked for, then as in the lock
 *       "pointers": { "packages": [ [pointers to the members of the request that asked for it] ],
 *                     "paths":    [ [names, from a package that was asked for to this one] ] },
 *       "evidence": { "registry_hash": [bool] } }    for each package: did the registry itself tell its hash?
 *
 * Policy cannot read `pointers` and `evidence`: denials are told and obligations checked by them.
 */
#pragma once

#include "base/json.h"
#include "request/request.h"

struct rv_facts_tenant {
        const char *name;
        const json_t *labels;   /* object of strings; may be NULL */
};

/**
 * rv_facts_build() - the facts of a request at stage `requested`
 * @principal: who asks, "" or NULL when nobody is known
 * @now_s:     Unix seconds; the only clock that policy has
 * @ret:       untouched on failure
 *
 * Context:   any thread
 * Ownership: borrows all; a new reference to the caller
 * Return:    0; -EINVAL a text that is not UTF-8 or labels that are no object of strings; -ENOMEM
 */
int rv_facts_build(const struct rv_request *request, const struct rv_facts_tenant *tenant, const char *principal,
        int64_t now_s, json_t **ret);

/**
 * rv_facts_resolve() - the facts of stage `resolved`
 * @requested_facts: of rv_facts_build()
 * @lock:            reeve.lock/1: `packages`, each with the facts' names, `path` and `registry_hash`
 * @now_s:           Unix seconds; ages are whole days down from it, never negative
 * @ret:             untouched on failure
 *
 * `requested` and the pointers of a package are empty unless the lock says that it is `direct`.
 *
 * Context:   any thread
 * Ownership: borrows; a new reference to the caller, which shares values with @lock
 * Return:    0; -EINVAL these are no facts, the lock is of another language, or has no packages with names; -ENOMEM
 */
int rv_facts_resolve(const json_t *requested_facts, const json_t *lock, int64_t now_s, json_t **ret);

/** rv_facts_is_resolved() - Context: any. Ownership: borrows. Return: are these facts of stage `resolved`? */
bool rv_facts_is_resolved(const json_t *facts);
