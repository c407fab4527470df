/*
 * arena.h - many small allocations that live and die together
 *
 * Zero-initialised is empty. What is allocated is zeroed, is never released by itself and stays where it
 * is until rv_arena_fini(). One thread at a time.
 */
#pragma once

#include "base/rv.h"

struct rv_arena_chunk;

struct rv_arena {
        struct rv_arena_chunk *chunks;   /* the newest first; only that one is still filled */
};

/** rv_arena_fini() - release everything; the arena is empty again. Context: any. Ownership: takes all. Return: none */
void rv_arena_fini(struct rv_arena *a);
/** rv_arena_alloc() - @n zeroed bytes, aligned for any type. Context: any. Ownership: the arena's. Return: the bytes, or NULL without memory */
void *rv_arena_alloc(struct rv_arena *a, size_t n);
/** rv_arena_array() - @n zeroed elements of @size bytes. Context: any. Ownership: the arena's. Return: the array, or NULL without memory */
void *rv_arena_array(struct rv_arena *a, size_t n, size_t size);
/** rv_arena_strndup() - a copy of @n bytes and a NUL. Context: any. Ownership: the arena's. Return: the copy, or NULL without memory */
char *rv_arena_strndup(struct rv_arena *a, const char *s, size_t n);
/** rv_arena_strdup() - a copy of a C string. Context: any. Ownership: the arena's. Return: the copy, or NULL without memory */
char *rv_arena_strdup(struct rv_arena *a, const char *s);
