/*
 * version.h - the order of versions, and sets of them, as policy compares them
 *
 * Python's versions are ordered as PEP 440 says (section "Summary of permitted suffixes and relative
 * ordering"), JavaScript's as Semantic Versioning 2.0.0 says (section 11). A *set* is one small language for
 * both ecosystems, because one policy judges both; how it orders is the item's business:
 *
 *     set        := all ( "||" all )*                any of them
 *     all        := comparator ( [,] comparator )*   all of them, joined by commas or blanks
 *     comparator := "*" | [op] version | ("==" | "!=") version ".*"
 *     op         := "<" "<=" ">" ">=" "=" "==" "===" "!=" "~=" "~" "^"; none means "=="
 *
 * Order alone decides: a pre-release is below its release and otherwise in a set like any version, so that a
 * rule that refuses `<2` refuses 2.0rc1 as well. What a version says about its build (PEP 440's local label,
 * SemVer's build metadata) counts only where the comparator's own version says it too. `~=1.4` is PEP 440's
 * "compatible release"; `~1.4` and `^1.4` are npm's. Nothing here allocates. Any thread.
 */
#pragma once

#include "base/rv.h"

#define RV_VERSION_SIZE_MAX 256          /* bytes of one version's text */
#define RV_VERSION_SET_SIZE_MAX 1024     /* bytes of one set's text */
#define RV_VERSION_SEGMENTS_MAX 24

enum rv_version_order {
        RV_VERSION_PEP440,
        RV_VERSION_SEMVER,
        _RV_VERSION_ORDER_MAX,
};

/* A piece of the text that was parsed; empty means absent. Digits have their leading zeros cut off. */
struct rv_version_span {
        const char *text;
        size_t n;
};

/* A parsed version points into its text, which must outlive it. */
struct rv_version {
        enum rv_version_order order;
        size_t n_segments;
        struct rv_version_span epoch, segments[RV_VERSION_SEGMENTS_MAX];
        struct rv_version_span pre;    /* PEP 440: the number; SemVer: all of its identifiers */
        struct rv_version_span post, dev, build;
        char pre_kind;                 /* 'a', 'b', 'r' (PEP 440), 's' (SemVer); 0: no pre-release */
        bool has_post, has_dev;
};

/** rv_version_order_for() - the order of a language ("python", "javascript"). Context: any. Ownership: borrows. Return: PEP 440 for any other */
enum rv_version_order rv_version_order_for(const char *language);

/**
 * rv_version_parse() - take one version apart
 * @text: its @n bytes; blanks around it and a leading `v` are let pass (PEP 440 and npm both do)
 *
 * A SemVer of fewer than three numbers is taken, as if zeros followed: people write `1.2` in rules.
 *
 * Context:   any thread
 * Ownership: @ret points into @text
 * Return:    0; -EINVAL
 */
int rv_version_parse(enum rv_version_order order, const char *text, size_t n, struct rv_version *ret);

/** rv_version_compare() - Context: any. Ownership: borrows. Return: below, at or above 0, as strcmp() */
int rv_version_compare(const struct rv_version *a, const struct rv_version *b);

/**
 * rv_version_set_has() - is a version in a set
 * @set:     text of @n_set bytes, in the language above
 * @version: NULL only checks the set's own syntax
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    1 in, 0 not in; -EINVAL the set is ill-formed in @order
 */
int rv_version_set_has(enum rv_version_order order, const char *set, size_t n_set, const struct rv_version *version);
