/*
 * npm_lock.h - a package-lock.json as a graph of places and what they need of each other
 *
 * A lock lists *places* (`node_modules/a/node_modules/b`), one package at each; the same package may lie at several. What
 * a package needs is found as node finds it: in its own `node_modules`, then in those of the packages it lies in, then in
 * the project's. Places that npm would leave empty on this platform are marked.
 *
 *   rv__npm_lock_read -> look -> rv__npm_lock_fini
 *
 * Borrows the JSON value for as long as it lives. One thread.
 */
#pragma once

#include "package/closure_private.h"

struct rv__npm_place {
        const char *key;
        const json_t *value;
        const char *name, *version;       /* the package's own name, whatever the place is called */
        const char *integrity;            /* set for what is installed */
        bool is_optional;                 /* the project can do without */
        bool is_left_out;                 /* for another platform, or only wanted by what is */
        bool is_reached;
        size_t *needs;                    /* places, sorted, each once */
        size_t n_needs;
        size_t package;                   /* its position in the list of packages */
};

struct rv__npm_lock {
        struct rv__npm_place *places;     /* sorted by key */
        size_t n_places;
};

/** rv__npm_lock_read() - read and judge a lock. Context: any. Ownership: *@ret borrows @value; rv__npm_lock_fini(), also after a failure. Return: as rv_closure_read() */
int rv__npm_lock_read(struct rv__closure *c, const json_t *value, struct rv__npm_lock *ret, struct rv_error *err);
/** rv__npm_lock_fini() - release; it is empty again. Context: any. Ownership: takes the contents. Return: none */
void rv__npm_lock_fini(struct rv__npm_lock *lock);
/** rv__npm_lock_find() - a place by its key, of @n bytes. Context: any. Ownership: borrowed. Return: the place or NULL */
struct rv__npm_place *rv__npm_lock_find(const struct rv__npm_lock *lock, const char *key, size_t n);
/** rv__npm_place_fits() - is what lies there for the platform of this runtime's tag? Context: any. Ownership: borrows. Return: as named */
bool rv__npm_place_fits(const struct rv__npm_place *place, const char *tag);
