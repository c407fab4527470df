/*
 * decide.h - judging facts by a bundle: the verdict
 *
 * A decision depends on the bundle and the facts and on nothing else: no clock, no randomness, no address, no
 * memory of other decisions. The same two give the same canonical bytes on any machine. A verdict is a plain
 * JSON value of integers and texts:
 *
 *     { "effect":  "allow" | "deny",
 *       "code":    "ok" | "package_denied" | "network_denied" | "idempotency_required" | "backend_denied" |
 *                  "limit_denied" | "policy_error",
 *       "reason":  null | { rule, item, path, message, file, line },
 *       "denials": [ { section, rule, item, message, file, line } ],
 *       "packages":    [ { item, requested, effect: "allow" | "deny" | "undecided", rule, file, line } ],
 *       "network":     [ { item, effect: "allow" | "deny", rule, file, line, ports: [N]? } ],
 *       "idempotency": { rule, require_key, file, line },
 *       "backend":     { effect: "allow" | "deny", rule, use, file, line },
 *       "limits":      { "timeout_s": N, "memory_mib": N } }
 *
 * `reason` is the first denial: of packages, network, idempotency, backend, limits in this order, and within a
 * section the first item in the facts' order. `denials` are all of them in that order. `rule` is a rule's id,
 * `default` where none matched, `deny_above` for a limit, "" where no rule was reached. `item` is the package's
 * canonical name, the domain ("" outside mode `domains`), the limit's name, else "". `path` is the JSON pointer
 * of the request's member that was judged, "" where there is none. `file` and `line` are the rule's, for a
 * default those of the `policy { … }` call, for an error those of the Lua line that failed (line 0: the file as
 * a whole). `backend.use` is a backend's name, "tenant", or "" when denied. `limits` are the request's, lowered
 * where policy says so. A package is `undecided` when a rule read what is known only after resolving; that is
 * no denial. `ports` is there where the rule that allows has the obligation: ascending, the only ports of that item.
 * An entry of `packages` that a rule allows has that rule's obligations: `pin` (a version), `require_hash` (true),
 * `newest_published_s`, `allow_source_build` (true), each only where the rule has it (obligations.h gathers them).
 *
 * On facts of stage `resolved` only the packages are judged, and the verdict has nothing of the other sections:
 *
 *     { "effect", "code", "reason", "denials": as above,
 *       "packages": [ { item, version, requested, effect: "allow" | "deny", rule, file, line, obligations…, unmet: ["pin"]? } ] }
 *
 * `path` of the reason is then the list of names from a package that was asked for to the denied one. What a rule
 * obliges to and the closure does not satisfy is a denial by that rule and named in `unmet`; `newest_published` acts on
 * every package, the strictest of all those of rules that let one through. A fact that is read and missing is an error
 * like others, and told in the notes.
 *
 * An error in a rule is a denial of its item with code `policy_error`, and the other items are still judged. An
 * error in loading, and a spent budget anywhere, end the evaluation: what was not judged is left out of
 * `packages` and `network`, and `section` of that denial is "policy" for loading. What one call of
 * rv_policy_decide() uses belongs to it: any number of threads may judge by one bundle at once.
 */
#pragma once

#include "base/json.h"
#include "policy/bundle.h"

/**
 * rv_policy_decide() - judge
 * @facts: of rv_facts_build(), or as recorded
 * @ret:   always a verdict, also for a bundle that cannot even be compiled; untouched on failure
 *
 * Context:   any thread; bounded in time and memory by the budgets of engine.h
 * Ownership: borrows; a new reference to the caller
 * Return:    0; -ENOMEM the process is out of memory; -EINVAL @facts are no facts
 */
int rv_policy_decide(const struct rv_bundle *bundle, const json_t *facts, json_t **ret);

/* What a verdict does not say about how it came about. */
struct rv_policy_notes {
        const char *lacking;           /* the first fact that was read, is one (fact_names.h), and is missing; or NULL */
        const char *lacking_package;   /* its package's name and version; NULL where it is no package's, or not known. In the facts */
        const char *lacking_version;
};

/**
 * rv_policy_decide_noting() - judge, and say what the judging met
 * @ret_notes: set with the verdict; of constant data, and of @facts
 *
 * The facts of rv_facts_build() lack nothing that their stage can know; those of an older record may, and those of
 * stage `resolved` what no registry told. That is a denial (policy_error): who decides by it knows from the notes that
 * the fact, and not the policy, is at fault.
 *
 * Context:   as rv_policy_decide()
 * Ownership: as rv_policy_decide()
 * Return:    as rv_policy_decide()
 */
int rv_policy_decide_noting(const struct rv_bundle *bundle, const json_t *facts, struct rv_policy_notes *ret_notes,
        json_t **ret);

/**
 * rv_policy_verdict_error() - the verdict where no bundle could be loaded: a denial with code policy_error
 * @file: "" if unknown
 * @line: 0 if unknown
 *
 * It has no `limits`, since no request was looked at.
 *
 * Context:   any thread
 * Ownership: borrows; a new reference to the caller
 * Return:    the verdict, or NULL when out of memory
 */
json_t *rv_policy_verdict_error(const char *message, const char *file, int line);

/**
 * rv_policy_verdict_is_of_memory() - did a bound on memory make a denial of it?
 *
 * How much Lua allocates is the same for the same policy and facts, but for when a table from which entries were
 * removed grows: that follows Lua's hash seed, which is another for each state. A policy that comes within a few
 * kilobytes of a bound may meet it once and not the next time.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    as named
 */
bool rv_policy_verdict_is_of_memory(const json_t *verdict);
/** rv_policy_verdict_is_allow() - Context: any. Ownership: borrows. Return: is the effect "allow"? */
bool rv_policy_verdict_is_allow(const json_t *verdict);
/** rv_policy_verdict_code() - Context: any. Ownership: borrowed from @verdict. Return: its code */
const char *rv_policy_verdict_code(const json_t *verdict);
/** rv_policy_verdict_requires_key() - Context: any. Ownership: borrows. Return: did policy ask for an idempotency key? */
bool rv_policy_verdict_requires_key(const json_t *verdict);
/** rv_policy_verdict_backend() - Context: any. Ownership: borrowed from @verdict. Return: a backend's name, "tenant", or "" */
const char *rv_policy_verdict_backend(const json_t *verdict);
/** rv_policy_verdict_timeout_s() - Context: any. Ownership: borrows. Return: the effective limit; 0 if it has none */
uint32_t rv_policy_verdict_timeout_s(const json_t *verdict);
/** rv_policy_verdict_memory_mib() - Context: any. Ownership: borrows. Return: the effective limit; 0 if it has none */
uint32_t rv_policy_verdict_memory_mib(const json_t *verdict);
