/*
 * constraint_private.h - the two halves of constraint.h
 *
 * As there.
 */
#pragma once

#include "policy/constraint.h"

/** rv__constraint_pep440() - Python's half. Context: any. Ownership: borrows. Return: as rv_constraint_has() */
int rv__constraint_pep440(const char *constraint, const char *text, const struct rv_version *version);
/** rv__constraint_npm() - JavaScript's half. Context: any. Ownership: borrows. Return: as rv_constraint_has() */
int rv__constraint_npm(const char *constraint, const struct rv_version *version);
