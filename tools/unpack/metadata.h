/*
 * metadata.h - a wheel's METADATA and WHEEL: what it says of itself
 *
 * Both are headers as of a mail (PEP 566, PEP 427). Of what nothing is decided by, such as the licence, only what can be
 * shown is kept. `metadata_fini()` releases; zeroed is empty. One thread.
 */
#pragma once

#include "fault.h"

#include <jansson.h>

#define METADATA_LICENSE_CHARACTERS_MAX 200u
#define METADATA_REQUIRES_MAX 1000u

struct metadata {
        char name[256], version[256];    /* as spelt; printable ASCII */
        char requires_python[257];
        char license[METADATA_LICENSE_CHARACTERS_MAX * 4 + 1];
        json_t *requires;                /* [{"name": canonical, "marker": text}] */
};

/** metadata_read() - METADATA. Context: any. Ownership: copies; metadata_fini() releases, also after a fault. Return: 0; UNPACK_E_FAULT no name or version; -ENOMEM */
int metadata_read(const char *text, size_t n, struct metadata *ret, struct fault *f);

/** metadata_read_wheel() - WHEEL: is it of a version that this can install (1.x)? Context: any. Ownership: borrows. Return: 0; UNPACK_E_FAULT */
int metadata_read_wheel(const char *text, size_t n, struct fault *f);

/** metadata_fini() - release; it is empty again. Context: any. Ownership: takes the content. Return: none */
void metadata_fini(struct metadata *m);

/** metadata_license() - a text as the licence is told: its first line, without controls, at most 200 characters. Context: any. Ownership: the caller's memory, of struct metadata's size. Return: none */
void metadata_license(const char *text, size_t n, char *ret);
