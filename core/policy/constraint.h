/*
 * constraint.h - does a version satisfy what was asked for, as the ecosystem's own tools would say
 *
 * Unlike policy's sets (version.h), where order alone decides, a constraint has its ecosystem's rules: for Python those
 * of PEP 440, "Version specifiers" (`<2` is not 2.0rc1, `>1.7` is not 1.7.post1), for JavaScript those of node-semver
 * (`^`, `~`, x-ranges, hyphen ranges; a pre-release only where a comparator names one of the same three numbers).
 *
 * Plain functions on texts; any thread, nothing owned.
 */
#pragma once

#include "policy/version.h"

#define RV_CONSTRAINT_PRE 2

/**
 * rv_constraint_has() - is a version within a constraint
 * @constraint: clauses joined by commas (Python), blanks allowed, none at all is any version; a range (JavaScript), without
 *              tags such as `latest`
 * @text:       of the version, for `===`
 * @version:    the same, parsed, in the order of the language
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    1 it is, 0 it is not; RV_CONSTRAINT_PRE it is a pre-release within the bounds of a constraint that names
 *            none, which Python's installers take only where there is nothing else; -EINVAL the constraint is ill-formed
 */
int rv_constraint_has(const char *constraint, const char *text, const struct rv_version *version);

/** rv_version_is_pre() - is it a pre-release (of PEP 440 a development release too)? Context: any. Ownership: borrows. Return: as named */
bool rv_version_is_pre(const struct rv_version *v);

/**
 * rv_version_write() - the normal form of a version (PEP 440, "Normalization"; of SemVer without a leading `v`)
 * @ret: room for @size bytes; RV_VERSION_SIZE_MAX + 16 are enough for every version
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    0; -ENOSPC
 */
int rv_version_write(const struct rv_version *v, char *ret, size_t size);
