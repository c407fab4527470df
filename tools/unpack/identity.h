/*
 * identity.h - are two spellings of a name or a version the same, as each ecosystem reads them
 *
 * Python: names by PEP 503, versions by PEP 440. JavaScript: names as they are, versions by npm's reading of Semantic
 * Versioning. Plain functions; any thread, nothing owned.
 */
#pragma once

#include "fault.h"

/** identity_python_name() - the same after PEP 503's normalisation? Context: any. Ownership: borrows. Return: as named; false if either is no name */
bool identity_python_name(const char *a, size_t n_a, const char *b, size_t n_b);

/** identity_python_version() - the same version of PEP 440, however it is spelt? Context: any. Ownership: borrows. Return: as named; false if either is no version */
bool identity_python_version(const char *a, size_t n_a, const char *b, size_t n_b);

/** identity_npm_version() - the same but for a leading "v" or "=" and build metadata, which the registry leaves out? Context: any. Ownership: borrows. Return: as named */
bool identity_npm_version(const char *a, const char *b);

/** identity_python_canonical() - PEP 503's spelling of the name at the start of a text. Context: any. Ownership: the caller's memory of @size bytes. Return: bytes of the text that are the name; 0: none, or it does not fit */
size_t identity_python_canonical(const char *text, size_t n, char *ret, size_t size);

/** identity_stem() - is a text NAME-VERSION, the form of a wheel's directories, for this name and version? Context: any. Ownership: borrows. Return: as named */
bool identity_stem(const char *text, size_t n, const char *name, const char *version);

/** identity_wheel_file() - is a text the file name of a wheel of this name and version? Context: any. Ownership: borrows. Return: as named */
bool identity_wheel_file(const char *file, const char *name, const char *version);
