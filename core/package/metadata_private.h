/*
 * metadata_private.h - what the files of metadata.h and diagnose.h share
 *
 * As there.
 */
#pragma once

#include "package/index_private.h"
#include "package/metadata.h"
#include "package/registry_private.h"

/** rv__metadata_host() - an address's host. Context: any. Ownership: writes to @ret. Return: @ret; "" if it is none */
const char *rv__metadata_host(const char *url, char *ret, size_t size);
/** rv__metadata_status() - what an answer comes to: the word of a page's `status`; of a 2xx "ok". Context: any. Ownership: static. Return: the word */
const char *rv__metadata_status(enum rv_fetch_code code, int status);
/** rv__metadata_describe() - the end of a sentence about an answer that is no good. Context: any. Ownership: writes to @ret. Return: none */
void rv__metadata_describe(const struct rv_fetch_answer *a, const char *url, char *ret, size_t size);
