/*
 * diagnose_private.h - the steps of diagnose.h, a file each
 *
 * As there. A step that finds nothing leaves the finding as it is.
 */
#pragma once

#include "package/diagnose.h"
#include "package/metadata_private.h"

#define RV__DEMAND_CONSTRAINTS_MAX 8u
#define RV__HINTS_MAX 16u

struct rv__finding {
        enum rv_package_cause cause;         /* NONE: nothing was found */
        bool is_ours;                        /* a refusal of reeve's own, which will not be over later */
        json_t *source;                      /* what could be built instead; a reference, or NULL */
        bool is_of_resolver;                 /* the package manager failed, not what was asked for */
        const char *install_cause;           /* a file must not be installed: that is then the cause; else NULL */
        char package[216];
        char message[512];
};

/* What is wanted of one package: all of its constraints. */
struct rv__demand {
        const char *name;
        const char *constraints[RV__DEMAND_CONSTRAINTS_MAX];
        size_t n_constraints;
        const char *pin;                     /* of policy, or NULL */
        bool is_pinned;                      /* one of the constraints names one version */
        bool is_hint;                        /* the tool's words named it, … */
        bool is_of_place;                    /* … in an address: with `==` and the file's version, or without a constraint */
};

/* A name in the tool's words, with what is said to be wanted of it ("": nothing is). */
struct rv__hint {
        char name[216];
        char constraint[256];
        bool is_of_place;                    /* it stood in an address */
};

#define RV__PROBES_MAX 16u

/* A file that the tool would have read. */
struct rv__probe {
        const char *package, *version, *file, *url, *sha256;   /* sha256 NULL: the registry tells none */
        const json_t *page;
};

/** rv__diagnose_answer() - what came in place of a file. Context: any. Ownership: borrows. Return: none */
void rv__diagnose_answer(const struct rv__probe *p, const struct rv_fetch_item *item, struct rv__finding *f);
/** rv__diagnose_files() - are the files what the registry says of them, and fit to be installed? Context: blocks. Ownership: borrows. Return: 0; -errno */
int rv__diagnose_files(const struct rv_package_trouble *t, const struct rv__probe *probes, size_t n,
        struct rv__finding *f, struct rv_error *err);

/** rv__find() - write down what was found, if nothing was yet. Context: any. Ownership: copies. Return: none */
void rv__find(struct rv__finding *f, enum rv_package_cause cause, const char *package, const char *fmt, ...)
        RV_PRINTF(4, 5);
/** rv__diagnose_gate() - what the gate saw of the registry's hosts. Context: any. Ownership: borrows. Return: none */
void rv__diagnose_gate(const struct rv_package_trouble *t, const json_t *pages, struct rv__finding *f);
/** rv__diagnose_elsewhere() - did a package name a place outside of the registry? For when nothing else was found. Context: any. Ownership: borrows. Return: none */
void rv__diagnose_elsewhere(const struct rv_package_trouble *t, struct rv__finding *f);
/** rv__diagnose_end() - how the tool ended, for when nothing else was found. Context: any. Ownership: borrows. Return: none */
void rv__diagnose_end(const struct rv_package_trouble *t, struct rv__finding *f);
/** rv__diagnose_page() - a page that is not there. Context: any. Ownership: borrows. Return: none */
void rv__diagnose_page(const json_t *page, struct rv__finding *f);

/**
 * rv__diagnose_package() - a page that is there, against what is wanted
 * @ret_version: the version that could be had, the newest; borrowed from @page; NULL where none can
 *
 * Context:   any
 * Ownership: borrows
 * Return:    0 or -ENOMEM
 */
int rv__diagnose_package(const struct rv_package_trouble *t, const json_t *page, const struct rv__demand *demand,
        struct rv__finding *f, const char **ret_version);

/** rv__diagnose_words() - the names in what the tool says. Context: any. Ownership: writes to @ret. Return: how many, at most RV__HINTS_MAX */
size_t rv__diagnose_words(enum rv_language language, const char *text, struct rv__hint ret[RV__HINTS_MAX]);
/** rv__diagnose_excerpt() - what the tool says without addresses and paths, as one short line. Context: any. Ownership: writes to @ret. Return: none */
void rv__diagnose_excerpt(const char *text, char *ret, size_t size);

/* How one version is, for this runtime and these obligations. */
enum rv__fault {
        RV__FAULT_NONE,
        RV__FAULT_YANKED,
        RV__FAULT_TOO_NEW,
        RV__FAULT_NO_WHEEL,
        RV__FAULT_PLATFORM,
        RV__FAULT_RUNTIME
};

/** rv__takes_python() - does a file's requires-python let the runtime in? Context: any. Ownership: borrows. Return: as named; true if it says nothing */
bool rv__takes_python(const struct rv_package_trouble *t, const json_t *file);

/**
 * rv__version_fault() - can a version be had, if it is the one wanted
 * @is_pinned: it was asked for exactly: then installers take a yanked one too
 * @ret_file:  a file that could be taken, or the one that says what is wrong; borrowed from @page; may be NULL
 *
 * Context:   any
 * Ownership: borrows
 * Return:    what is wrong
 */
enum rv__fault rv__version_fault(const struct rv_package_trouble *t, const json_t *page, const char *version,
        bool is_pinned, const json_t **ret_file);

/** rv__is_built() - was it, this version? Context: any. Ownership: borrows. Return: as named */
bool rv__is_built(const struct rv_package_trouble *t, const char *name, const char *version);
/** rv__version_source() - the file that a version could be built from, as rv__version_fault() judges files. Context: any. Ownership: borrowed from @page. Return: it, or NULL */
const json_t *rv__version_source(
        const struct rv_package_trouble *t, const json_t *page, const char *version, bool is_pinned);
