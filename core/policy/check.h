/*
 * check.h - what is wrong with a bundle, without a request
 *
 * Each fault is told with its file and line: text that does not compile; globals and members of libraries that
 * are not there, in functions that nothing calls too; facts that are not there, where a `when` function reads
 * them from its arguments; unknown fields, missing defaults, ill-formed rules, all of them and not the first
 * only; rules that can never be reached, since an earlier one without `when` matches all that they match.
 * What only some request can show (a `when` that fails for one package) is for the bundle's tests.
 */
#pragma once

#include "base/error.h"

struct rv_policy_finding {
        const char *file;   /* below the directory; "" for the directory itself */
        int line;           /* 0: the file as a whole */
        const char *message;
};

/** rv_policy_finding_fn() - told of each finding, by file and line; texts live for the call. Context: as the check. Ownership: borrows. Return: none */
typedef void rv_policy_finding_fn(void *userdata, const struct rv_policy_finding *finding);

/**
 * rv_policy_check() - check the bundle in @dir
 *
 * The policy is loaded (in its sandbox, within its budget) as for a request of each language, but no rule is
 * asked.
 *
 * Context:   blocks on the disk
 * Ownership: borrows
 * Return:    the number of findings, 0 for none; -ENOMEM
 */
int rv_policy_check(const char *dir, rv_policy_finding_fn *told, void *userdata);
