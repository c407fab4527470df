/*
 * provenance.h - which engine judges: what a decision record says so that a replay can tell another one
 *
 * Constant for a build; any thread.
 */
#pragma once

#include "base/json.h"

/** rv_policy_engine() - {"reeve", "lua", "sandbox", "limits"}. Context: any. Ownership: a new reference, to the caller. Return: the value, or NULL when out of memory */
json_t *rv_policy_engine(void);
