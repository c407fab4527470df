/*
 * wheel_tags.h - which wheels a runtime can take (PEP 425, 600, 656)
 *
 * A runtime's tag is "cp311-linux_x86_64": CPython 3.11 on Linux with glibc; "-musllinux_x86_64" with musl, "cp313t-…" without the lock around the interpreter. How new its
 * C library is, the tag does not say, so that every manylinux of the architecture counts: what is asked here is why a
 * tool took nothing, and not what to install.
 *
 * Plain functions; any thread.
 */
#pragma once

#include "package/index_file.h"

enum rv_wheel_fit {
        RV_WHEEL_FITS,
        RV_WHEEL_OTHER_PYTHON,       /* for this platform, and another Python */
        RV_WHEEL_OTHER_PLATFORM,
};

/** rv_wheel_fit() - can the runtime take it? Context: any. Ownership: borrows. Return: as named; with a tag that is none, all fit */
enum rv_wheel_fit rv_wheel_fit(const struct rv_index_file *wheel, const char *tag);
