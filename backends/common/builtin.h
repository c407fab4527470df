/*
 * builtin.h - the backends that are linked into reeve
 *
 * Constant; any thread. `fake` is in test builds only.
 */
#pragma once

#include <reeve/backend.h>

extern const struct rv_backend rv_namespace_backend;
