/*
 * package.h - one package that a request asks for
 *
 * A parser of the language at hand (pyreq.h, npmrange.h) fills it; rv_package_fini() releases what it holds.
 * Zeroed is empty. Constant once filled: any thread may read it.
 */
#pragma once

#include "base/rv.h"
#include "request/problem.h"

struct rv_package {
        char *name;         /* canonical */
        char *requested;    /* the text asked for, without surrounding spaces */
        char **extras;      /* canonical, sorted bytewise, each once; NULL if there are none */
        size_t n_extras;
        bool is_pinned;     /* the constraint is one exact version */
        char *constraint;   /* in the ecosystem's own grammar, spaces normalised; never empty */
        size_t position;    /* in the caller's list, from 0: what a message points at */
};

/** rv_package_fini() - release what a package holds; it is empty again. Context: any. Ownership: takes the contents. Return: none */
void rv_package_fini(struct rv_package *package);

/** rv_package_compare() - canonical order, for qsort: by name, then by text asked for, bytewise. Context: any. Ownership: none. Return: as strcmp() */
int rv_package_compare(const void *a, const void *b);

/**
 * rv_package_check_text() - what no package string of any language may hold
 * @fault: set on 1; may be NULL
 *
 * Refuses characters outside printable ASCII, tab excepted (space and tab are the white space of PEP 508 and
 * of npm), a text of nothing else, and one that begins as an installer's option does.
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    0 or 1
 */
int rv_package_check_text(const char *text, size_t n, struct rv_fault *fault);

/**
 * rv_package_check_location() - is a whole string a place to fetch from, and not a package's name?
 * @hint:  what is taken instead, such as "name==version"
 * @fault: set on 1; may be NULL
 *
 * Knows URLs, version control references, paths, archives' file names and environment references.
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    0 it is not; 1 it is
 */
int rv_package_check_location(const char *text, size_t n, const char *hint, struct rv_fault *fault);

/**
 * rv_package_is_archive() - does a text end as an archive's file name does?
 *
 * An installer that is given such a version or range (`x===1.zip`, `x@1.0.0-a.tgz`) takes it for a file.
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    as named
 */
bool rv_package_is_archive(const char *text, size_t n);
