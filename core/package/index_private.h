/*
 * index_private.h - what the readers of an index's pages share
 *
 * A page in the making: rv__page_init -> rv__page_add_file for each -> rv__page_take, or rv__page_fini. One thread.
 */
#pragma once

#include "package/index_file.h"
#include "package/index_python.h"

/* One file as a page has it. Texts "" where it says nothing. */
struct rv__page_file {
        const char *file, *url, *sha256, *requires_python;
        int64_t size_bytes, published_at;        /* negative: not told */
        bool is_yanked;
};

struct rv__page {
        const char *name, *url;
        json_t *versions;
        size_t n_files;
        bool is_failed;                          /* without memory */
        bool is_too_large;
};

/** rv__page_init() - begin. Context: any. Ownership: borrows the texts while the page is made. Return: 0 or -ENOMEM */
int rv__page_init(struct rv__page *page, const char *url, const char *name);
/** rv__page_add_file() - one file, if it is one that can be installed; its address is resolved. Context: any. Ownership: copies. Return: was it a file of the project? */
bool rv__page_add_file(struct rv__page *page, const struct rv__page_file *f);
/** rv__page_take() - the page; the rest is released. Context: any. Ownership: a new reference. Return: 0; -EBADMSG too many files; -ENOMEM */
int rv__page_take(struct rv__page *page, const char *language, json_t **ret, struct rv_error *err);
/** rv__page_fini() - release. Context: any. Ownership: takes the content. Return: none */
void rv__page_fini(struct rv__page *page);

/** rv__index_html_read() - add the files of a page in HTML (PEP 503). Context: any. Ownership: borrows. Return: does it look like a page of an index? */
bool rv__index_html_read(struct rv__page *page, const char *text, size_t n);
/** rv__set_text() - a member, if it is a line of at most @max bytes and not empty. Context: any. Ownership: copies. Return: false without memory */
bool rv__set_text(json_t *object, const char *name, const char *text, size_t max);
/** rv__set_number() - a member, unless it is negative or above 2^53-1. Context: any. Ownership: none. Return: false without memory */
bool rv__set_number(json_t *object, const char *name, int64_t value);
