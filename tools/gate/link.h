/*
 * link.h - lists of objects that carry their own links, and the object that a member is in
 *
 * A list is a `struct link` that is its own neighbour when empty; an object is in one list for each link it has. One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct link {
        struct link *prev, *next;
};

#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))

/* @p may be removed from the list meanwhile, others not. */
#define link_each(p, list) \
        for (struct link *p = (list)->next, *p##_next = p->next; p != (list); p = p##_next, p##_next = p->next)

static inline void link_init(struct link *l)
{
        l->prev = l->next = l;
}

static inline bool link_is_alone(const struct link *l)
{
        return l->next == l;
}

static inline void link_append(struct link *list, struct link *l)
{
        l->prev = list->prev;
        l->next = list;
        list->prev->next = l;
        list->prev = l;
}

static inline void link_remove(struct link *l)
{
        l->prev->next = l->next;
        l->next->prev = l->prev;
        link_init(l);
}
