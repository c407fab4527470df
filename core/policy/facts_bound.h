/*
 * facts_bound.h - the most that is judged, as it is the most that is recorded
 *
 * A decision's record holds the whole facts. What is larger is denied without asking the policy, with rule
 * `closure_too_large`, and in the record stands a brief value instead that no policy can judge:
 *
 *     { "stage": …, "bytes_left_out": N, "packages_left_out": N (stage `resolved`), "request": {network_mode, timeout_s, memory_mib} }
 *
 * Plain values; one thread at a time.
 */
#pragma once

#include "base/json.h"

#define RV_FACTS_BYTES_MAX ((size_t)1 << 20)   /* of the canonical form */
#define RV_FACTS_PACKAGES_MAX 2000

/**
 * rv_facts_bound() - are facts too large to be judged?
 * @ret_brief:   what is recorded in their place; untouched unless 1 is returned, as is
 * @ret_verdict: the denial
 *
 * Context:   any thread; writes the canonical form once
 * Ownership: borrows; two new references to the caller
 * Return:    0 they are not; 1 they are; -ENOMEM; -errno of rv_json_canonical()
 */
int rv_facts_bound(const json_t *facts, json_t **ret_brief, json_t **ret_verdict);
