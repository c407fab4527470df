/*
 * manifest.h - what an npm package says of itself in package.json
 *
 * Read as npm reads it: of two members with one name the last counts, a byte-order mark is let pass. One thread.
 */
#pragma once

#include "npm.h"

/** manifest_read() - judge the text, and fill in the members of @p that come from it; @p has its table of names. Context: any. Ownership: npm_fini() releases, also after a fault. Return: 0; UNPACK_E_FAULT; -ENOMEM */
int manifest_read(const char *text, size_t n, const struct npm_want *want, struct npm *p, struct fault *f);
