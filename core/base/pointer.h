/*
 * pointer.h - JSON pointers (RFC 6901) that may leave parts open: `/packages/` + `*` + `/name`
 *
 * A part that is `*` stands for any member and any element; a member of that very name cannot be named. Numbers are
 * compared as texts, so an element is named by its index in decimal. An empty part is no pointer here, nor is the
 * whole document. Plain memory; any thread.
 */
#pragma once

#include "base/rv.h"

#define RV_POINTER_BYTES_MAX 256        /* with the NUL */
#define RV_POINTER_PARTS_MAX 16

struct rv_pointer {
        char text[RV_POINTER_BYTES_MAX];                  /* the parts, without escapes, each with a NUL */
        uint16_t starts[RV_POINTER_PARTS_MAX];            /* where in it each begins */
        bool is_any[RV_POINTER_PARTS_MAX];
        unsigned n;
};

/** rv_pointer_read() - @text as a pointer; @ret is untouched on failure. Context: any. Ownership: copies. Return: 0; -EINVAL it is none, or too long */
int rv_pointer_read(const char *text, struct rv_pointer *ret);

/** rv_pointer_part() - its part @i. Context: any. Ownership: borrowed from @p. Return: the text */
static inline const char *rv_pointer_part(const struct rv_pointer *p, unsigned i)
{
        return p->text + p->starts[i];
}

/** rv_pointer_matches() - does it name just the place that @n @parts lead to? Context: any. Ownership: borrows. Return: as named */
bool rv_pointer_matches(const struct rv_pointer *p, const char *const *parts, unsigned n);

/** rv_pointer_meets() - is there a place that both name, or that one names and that lies within what the other names? Context: any. Ownership: borrows. Return: as named */
bool rv_pointer_meets(const struct rv_pointer *a, const struct rv_pointer *b);
