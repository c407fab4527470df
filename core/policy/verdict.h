/*
 * verdict.h - writing a verdict (decide.h) piece by piece
 *
 * Zeroed, then rv_verdict_begin(), then pieces in the order in which they are judged, then
 * rv_verdict_end(). Failed allocations stick and are reported at the end. One thread.
 */
#pragma once

#include "policy/engine.h"

#include "base/json.h"

struct rv_verdict {
        json_t *root, *denials, *packages, *network;   /* root owns the others; network NULL: only packages are judged */
        bool has_path_lists;         /* reason.path is a list of names (stage `resolved`), not a pointer */
        bool is_failed;
};

/* What was found for one item. Texts are borrowed for the call. */
struct rv_finding {
        const char *section, *code;   /* code: of the denial; NULL: no denial */
        const char *rule, *item, *path, *message;
        const char *file;
        int line;
        const json_t *names;          /* in place of `path`, where paths are lists; NULL: an empty one */
};

/** rv_verdict_begin() - an allow without reasons. Context: any. Ownership: rv_verdict_fini() releases. Return: none */
void rv_verdict_begin(struct rv_verdict *v);
/** rv_verdict_begin_packages() - the same at stage `resolved`: nothing but packages is judged, and paths are lists. Context: any. Ownership: as rv_verdict_begin(). Return: none */
void rv_verdict_begin_packages(struct rv_verdict *v);
/** rv_verdict_fini() - Context: any. Ownership: releases what was not handed on. Return: none */
void rv_verdict_fini(struct rv_verdict *v);
/** rv_verdict_deny() - add a denial; the first one is the reason. Context: any. Ownership: borrows. Return: none */
void rv_verdict_deny(struct rv_verdict *v, const struct rv_finding *f);
/** rv_verdict_add() - add @entry to a list of the verdict, with the rule and place of @f. Context: any. Ownership: takes @entry. Return: none */
void rv_verdict_add(struct rv_verdict *v, json_t *list, json_t *entry, const struct rv_finding *f);
/** rv_verdict_set() - set a section that has one entry. Context: any. Ownership: takes @entry. Return: none */
void rv_verdict_set(struct rv_verdict *v, const char *section, json_t *entry, const struct rv_finding *f);
/** rv_verdict_end() - Context: any. Ownership: the value to the caller. Return: 0, -ENOMEM */
int rv_verdict_end(struct rv_verdict *v, json_t **ret);
