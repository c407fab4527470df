/*
 * runtime_sources.h - where the Debian packages of a runtime come from: the host's own sources, of one suite
 *
 * apt has two ways to write a source (sources.list(5)): a line, and a paragraph of fields. Of both those are taken that
 * are of the host's own release or an addition to it (`bookworm`, `bookworm-updates`, `bookworm-security`,
 * `bookworm/updates`), with the release's name exchanged for the suite's: third parties' sources, backports and source
 * packages are left out. Any thread; nothing is kept.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/** sources_take_lines() - of a file of lines (`*.list`). Context: any. Ownership: borrows; @out is added to. Return: 0 or -ENOMEM */
int sources_take_lines(const char *text, const char *release, const char *suite, struct rv_buf *out);
/** sources_take_paragraphs() - of a file of paragraphs (`*.sources`). Context: any. Ownership: borrows; @out is added to. Return: 0 or -ENOMEM */
int sources_take_paragraphs(const char *text, const char *release, const char *suite, struct rv_buf *out);

/**
 * sources_read() - those of an apt configuration
 * @etc:  "/etc/apt"
 * @ret_lines, @ret_paragraphs: added to; either may stay empty
 *
 * Context:   blocks on the disk
 * Ownership: borrows
 * Return:    0; -ENOENT there is none; -errno with @err
 */
int sources_read(const char *etc, const char *release, const char *suite, struct rv_buf *ret_lines,
        struct rv_buf *ret_paragraphs, struct rv_error *err);

/** sources_release() - VERSION_CODENAME of a text like /etc/os-release. Context: any. Ownership: the caller's memory. Return: false if there is none */
bool sources_release(const char *text, char *ret, size_t size);
