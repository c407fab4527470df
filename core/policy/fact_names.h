/*
 * fact_names.h - the names of the facts: what a rule may match on and a function may read
 *
 * One table is what rules are checked against, what error messages list and what the editor's types are
 * compared to. Constant data: any thread, nothing to release.
 */
#pragma once

#include "base/json.h"

enum rv_fact_set {
        RV_FACTS_PACKAGE,
        RV_FACTS_NETWORK,
        RV_FACTS_IDEMPOTENCY,
        RV_FACTS_BACKEND,
        RV_FACTS_REQUEST,   /* the second argument of `when` */
        RV_FACTS_TENANT,    /* request.tenant */
        _RV_FACTS_MAX,
};

enum rv_fact_type {
        RV_FACT_STRING,
        RV_FACT_INTEGER,
        RV_FACT_BOOLEAN,
        RV_FACT_LIST,     /* of strings; a rule matches it if any of them fits */
        RV_FACT_MAP,      /* of strings to strings; not for `match` */
        RV_FACT_TENANT,   /* a record; a rule matches its name */
};

struct rv_fact {
        const char *name;
        enum rv_fact_type type;
        const char *words;       /* all that the fact can be, separated by blanks; NULL: open */
        bool is_resolved_only;   /* of a package: not known before resolving */
};

struct rv_fact_table {
        const char *title;   /* "a package": for messages */
        const struct rv_fact *facts;
        size_t n_facts;
};

/* Indexed by enum rv_fact_set; facts in the order in which people look for them. */
extern const struct rv_fact_table rv_fact_tables[_RV_FACTS_MAX];

/** rv_fact_find() - Context: any. Ownership: borrows. Return: the fact, or NULL if @set has none of that name */
const struct rv_fact *rv_fact_find(enum rv_fact_set set, const char *name);

/** rv_fact_list() - the names of @set for a message, "a, b, c". Context: any. Ownership: borrows; @ret has @n bytes. Return: @ret */
const char *rv_fact_list(enum rv_fact_set set, char *ret, size_t n);

/** rv_fact_describe_lack() - a message: @fact of the package @item is not known. Context: any. Ownership: borrows; @ret has @n bytes. Return: @ret */
const char *rv_fact_describe_lack(const char *fact, const json_t *item, char *ret, size_t n);
