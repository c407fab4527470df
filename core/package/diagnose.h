/*
 * diagnose.h - why packages cannot be had, told from evidence
 *
 * A tool that resolves says that it failed, and in its own words why; neither its exit status nor its words tell a
 * missing package from a registry that shows a page for signing in. So the cause is found anew: from what the gate saw
 * of the registry's hosts, then from the registry's own metadata of what was asked for. The tool's words are read for one
 * purpose: which further packages to look at; whatever they say of them counts only if the metadata says so too.
 *
 * One call, which blocks; any thread.
 */
#pragma once

#include "package/metadata.h"

#define RV_PACKAGE_UNAVAILABLE "package_unavailable"
#define RV_PACKAGE_INSTALL_FAILED "package_install_failed"
/* The package manager, or its sandbox, failed. */
#define RV_PACKAGE_RESOLVER_CODE "backend_failed"
#define RV_PACKAGE_RESOLVER_FAILED "resolver_failed"

/* X(NAME, word, may the same request succeed later without change): of RV_PACKAGE_UNAVAILABLE */
/* clang-format off */
#define RV_PACKAGE_CAUSES(X) \
        X(MISSING_PACKAGE, "missing_package", false) \
        X(MISSING_VERSION, "missing_version", false) \
        X(CONFLICT, "conflict", false) \
        X(NO_WHEEL, "no_wheel", false) \
        X(PLATFORM, "platform", false) \
        X(RUNTIME, "runtime", false) \
        X(YANKED, "yanked", false) \
        X(TOO_NEW, "too_new", false) \
        X(UNREACHABLE, "registry_unreachable", true) \
        X(ERROR, "registry_error", true) \
        X(REFUSED, "registry_refused", true) \
        X(INVALID, "registry_invalid", true) \
        X(TLS, "registry_tls", false)
/* clang-format on */

enum rv_package_cause {
        RV_PACKAGE_CAUSE_NONE,
#define X(name, word, is_retryable) RV_PACKAGE_CAUSE_##name,
        RV_PACKAGE_CAUSES(X)
#undef X
        _RV_PACKAGE_CAUSE_MAX,
};

struct rv_package_failure {
        const char *code;            /* static */
        const char *cause;           /* static */
        bool is_retryable;
        char package[216];           /* canonical */
        char message[512];           /* what, why, what to do; one line */
};

struct rv_package_trouble {
        const struct rv_metadata_source *source;      /* what it keeps is not used: the registry is asked now */
        const struct rv_package *packages;            /* of the request, at least one */
        size_t n_packages;
        const json_t *closure;       /* reeve.closure/1, not trusted; NULL: there is none */
        const json_t *obligations;   /* {"pins":{NAME:VERSION}}; or NULL */
        int64_t cutoff_s;            /* Unix seconds: nothing younger may be chosen; negative: none */
        int dir_fd;                                   /* an empty directory for files that are looked at; negative: none is */
        int unpack_fd;                                /* what reads them (package/unpack.h); 0 or less: they are not read */
        const json_t *built;         /* [{"name","version"}]: what was built of its source already; or NULL */
        json_t **ret_source;         /* gets what could be built (source.h) of the package that is the cause; NULL: nothing will be */
        bool is_for_build;           /* the packages are what a build needs */
        const json_t *contacts, *denials;             /* of the resolver's sandbox, as in an outcome; or NULL */
};

/** rv_package_cause_word() - as in `detail.cause`; "" for none. Context: any. Ownership: static. Return: the word */
const char *rv_package_cause_word(enum rv_package_cause cause);

#define RV_PACKAGE_E_FAILED 1

/** rv_package_failure_of_page() - what a page that is not there says of its package. Context: any. Ownership: copies. Return: RV_PACKAGE_E_FAILED; 0: it is there */
int rv_package_failure_of_page(const json_t *page, struct rv_package_failure *ret);

/**
 * rv_package_diagnose() - find the cause
 * @ret: untouched on failure
 *
 * *@t->ret_source is a new reference, or left alone: whether that may be built is for policy to say.
 *
 * A refusal by the registry (401, 403) may be over later; one of the gate's will not be, and says so.
 *
 * Context:   blocks until the source's deadline at most
 * Ownership: borrows
 * Return:    0; -ECANCELED; -ENOMEM; -EINVAL there is no registry; -errno of the helper
 */
int rv_package_diagnose(const struct rv_package_trouble *t, struct rv_package_failure *ret, struct rv_error *err);
