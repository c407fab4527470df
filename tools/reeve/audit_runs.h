/*
 * audit_runs.h - a log told as runs: one entry for a decision and its outcome, one for each other record
 *
 *   audit_runs_init -> audit_runs_add* -> audit_runs_end -> audit_runs_fini
 *
 * An entry is a JSON object of the form that docs/audit.md gives for `reeve audit show --json`. A run's is complete,
 * and told, when its outcome comes; what is open at the end is told then. So what is held is bounded by what is open
 * at a time. One thread.
 */
#pragma once

#include "audit_record.h"

/* Which entries are wanted. Texts that are NULL do not matter. */
struct audit_filter {
        uint64_t since_us, until_us;             /* both included; a run's time is its decision's */
        const char *tenant, *rule, *outcome, *package;
        bool is_all;                             /* records too that belong to no run */
};

struct audit_runs {
        struct audit_filter filter;
        char package[256];                       /* as names are canonical for Python */
        json_t *open;                            /* entries by decision id */
        /* Told of each entry. 0; 1 no more are wanted; -errno. */
        int (*tell)(void *ctx, const json_t *entry);
        void *ctx;
};

/** audit_runs_init() - begin; `filter`, `tell` and `ctx` are set before. Context: any. Ownership: release with audit_runs_fini(). Return: 0 or -ENOMEM */
int audit_runs_init(struct audit_runs *runs);
/** audit_runs_add() - the next record. Context: may call `tell`. Ownership: borrows. Return: 0; 1 no more are wanted; -errno */
int audit_runs_add(struct audit_runs *runs, const struct audit_record *record);
/** audit_runs_end() - there is none: tell what is open. Context: calls `tell`. Ownership: none. Return: as audit_runs_add() */
int audit_runs_end(struct audit_runs *runs);
/** audit_runs_fini() - release. Context: any. Ownership: takes the content. Return: none */
void audit_runs_fini(struct audit_runs *runs);
