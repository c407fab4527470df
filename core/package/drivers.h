/*
 * drivers.h - the programs of reeve's own that run inside a sandbox for the package layer
 *
 * A driver is the program of a run like any other: it is handed to a backend as source, reads its job, one JSON document,
 * from standard input, and writes its answer, and nothing else, to standard output. What it answers is not trusted. Their
 * texts are compiled in, so that no file has to be found (core/package/drivers/ holds them; docs/packages.md says what
 * their jobs look like). Constant; any thread.
 */
#pragma once

#include "base/rv.h"
#include "request/request.h"

enum rv_driver_kind {
        RV_DRIVER_RESOLVE,   /* answers with a closure (closure.h) */
        RV_DRIVER_COMPILE,   /* answers with frames for reeve-unpack; Python's only */
        RV_DRIVER_BUILD,     /* answers with what a build needs, or with a wheel (source.h); Python's only */
        _RV_DRIVER_MAX,
};

struct rv_driver {
        const char *name;    /* for people and for metrics */
        const char *text;    /* UTF-8, ends in a NUL that @size does not count */
        size_t size;
};

/** rv_driver_get() - a driver for a language. Context: any. Ownership: static. Return: the driver, or NULL: there is none */
const struct rv_driver *rv_driver_get(enum rv_driver_kind kind, enum rv_language language);
