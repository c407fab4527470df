/*
 * manifest.h - what the backend `namespace` can enforce here, as far as it is known without starting anything
 *
 * Loop thread; nothing owned.
 */
#pragma once

#include <reeve/backend.h>

/** ns_manifest_fill() - every capability's grade, and the reason where it is not `enforced`. Context: loop thread. Ownership: borrows. Return: none */
void ns_manifest_fill(const struct rv_host *host, struct rv_manifest *ret);
