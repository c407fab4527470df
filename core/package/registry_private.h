/*
 * registry_private.h - what the files of registry.h share
 *
 * As there.
 */
#pragma once

#include "package/registry.h"

#include <stdio.h>

/** rv__registry_set_index() - the index, in place of what was known; what is no address is as none. Context: any. Ownership: copies. Return: none */
void rv__registry_set_index(struct rv_registry *r, const char *url, const char *source);
/** rv__registry_set_proxy() - of a URL; NULL and what is none change nothing. Context: any. Ownership: copies. Return: none */
void rv__registry_set_proxy(struct rv_registry *r, const char *text);
/** rv__registry_add_host() - "host", "host:port" or a URL joins the list. Context: any. Ownership: copies. Return: none */
void rv__registry_add_host(struct rv_registry *r, const char *text);
/** rv__registry_read_pip() - pip's files and environment. Context: as rv_registry_find(). Ownership: borrows. Return: none */
void rv__registry_read_pip(struct rv_registry *r, const struct rv_registry_view *view);
/** rv__registry_read_npm() - npm's. Context: as rv_registry_find(). Ownership: borrows. Return: none */
void rv__registry_read_npm(struct rv_registry *r, const struct rv_registry_view *view);
