/*
 * lock_private.h - the checks of a lock's members, one by one
 *
 * Each takes a text and tells what such a text has to be, as the end of the sentence "POINTER needs …", or NULL if it
 * is well-formed. Plain functions; any thread; nothing owned.
 */
#pragma once

#include "package/lock.h"

#include "request/request.h"

/** rv__lock_name() - a package's name in its canonical form; of npm also names of old, with capitals. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_name(enum rv_language language, const char *text, size_t n);
/** rv__lock_version() - one exact version. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_version(enum rv_language language, const char *text, size_t n);
/** rv__lock_extra() - the name of an extra. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_extra(const char *text, size_t n);
/** rv__lock_file() - a file's name that can be used as one. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_file(const char *text, size_t n);
/** rv__lock_hash() - "sha256:" and 64 digits. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_hash(const char *text, size_t n);
/** rv__lock_integrity() - exactly one SHA-512, as npm writes it. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_integrity(const char *text, size_t n);
/** rv__lock_url() - http or https, with a host, without credentials and fragment. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_url(const char *text, size_t n);
/** rv__lock_place() - node_modules/NAME, as deep as one likes. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_place(const char *text, size_t n);
/** rv__lock_path() - an absolute path without "." and "..". Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_path(const char *text, size_t n);
/** rv__lock_tag() - a runtime's tag. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_tag(const char *text, size_t n);
/** rv__lock_minor() - a version of two numbers, such as 3.11. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_minor(const char *text, size_t n);
/** rv__lock_text() - @max bytes at most, no control characters. Context: any. Ownership: borrows. Return: see above */
const char *rv__lock_text(const char *text, size_t n, size_t max);
