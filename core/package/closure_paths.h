/*
 * closure_paths.h - why a package is there: the way to it from one that was asked for
 *
 * Plain functions on JSON values; any thread.
 */
#pragma once

#include "base/json.h"

/**
 * rv_closure_paths() - the shortest way to each package of a list
 * @packages: objects with "name", "direct" and "requires": a list of names, or of {"name","marker"} as a wheel's metadata
 *            states them; where there is "needs", a list of positions, that is what it needs and "requires" is not looked at
 * @ret:      a new list, one entry a package: names from a requested one to the package itself, both included
 *
 * Fewest steps; of ways as long, the one whose last package but one comes first in the list. What is needed for an extra only counts
 * where no other way leads to a package, for which extras were asked for is not seen in a marker. A package that nothing
 * leads to has only itself in its path.
 *
 * Context:   any thread; time quadratic in the number of packages
 * Ownership: borrows @packages; *@ret is the caller's
 * Return:    0; -EINVAL it is no such list; -ENOMEM
 */
int rv_closure_paths(const json_t *packages, json_t **ret);
