/*
 * decide_private.h - what the files that judge share: one decision under way
 *
 * Lives on the stack of rv_policy_decide(), which is the one thread that uses it.
 */
#pragma once

#include "policy/decide.h"
#include "policy/policy.h"
#include "policy/verdict.h"

struct rv__judging {
        struct rv_engine engine;
        const json_t *facts, *request;
        struct rv_verdict verdict;
};

/* What a section's rules said of one item. `rule` NULL: the default. */
struct rv__judgement {
        enum rv_engine_fault fault;
        const struct rv_rule *rule;
        enum rv_verdict_kind verdict;
        const char *text;
};

/** rv__judge() - first match wins; a fault carries the rule that it happened in. Context: after loading. Ownership: what it points at lives as long as the engine. Return: it */
struct rv__judgement rv__judge(struct rv__judging *j, enum rv_section section, const json_t *item);
/** rv__judge_finding() - the finding of a judgement without a denial's parts. Context: any. Ownership: borrows. Return: it */
struct rv_finding rv__judge_finding(
        const struct rv__judging *j, enum rv_section section, const struct rv__judgement *g);
/** rv__judge_is_over() - can nothing be judged any more, as no next instruction would run? Context: any. Ownership: borrows. Return: as named */
bool rv__judge_is_over(const struct rv__judging *j);
/** rv__judge_oblige() - add to the entry of a package what its rule obliges it to. Context: any. Ownership: takes @entry. Return: it, or NULL when out of memory */
json_t *rv__judge_oblige(json_t *entry, const struct rv_rule *rule);

/** rv__judge_closure() - judge the packages of stage `resolved`: by the rules, then by what they oblige to. Context: after loading. Ownership: borrows. Return: none; adds to the verdict */
void rv__judge_closure(struct rv__judging *j);
