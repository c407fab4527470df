/*
 * fuzz.h - what the fuzz targets share
 *
 * A target is one file with LLVMFuzzerTestOneInput(). It is linked twice: with libFuzzer (clang,
 * -Dfuzzers=true), which looks for inputs, and with regress.c in every build, which replays those that are kept in
 * corpus/NAME. A target checks properties by FUZZ_CHECK, not only that nothing crashes; it keeps no state from one
 * input to the next that could change what the next one does. One thread.
 */
#pragma once

#include "base/buf.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer's hooks, for the target that makes its inputs by a grammar, and what they may call. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2, size_t size2, uint8_t *out,
        size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* A check without a text for it is as good as one with. */
#pragma GCC diagnostic ignored "-Wformat-zero-length"

/* A property that has to hold whatever the input is. The rest of the arguments is printf's, for a person. */
#define FUZZ_CHECK(expr, ...) ((expr) ? (void)0 : fuzz_fail(#expr, __FILE__, __LINE__, "" __VA_ARGS__))

RV_PRINTF(4, 5)
static inline _Noreturn void fuzz_fail(const char *expr, const char *file, int line, const char *fmt, ...)
{
        va_list ap;

        fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, expr);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputc('\n', stderr);
        abort();
}

/* The input as it is consumed: what is read past its end is 0. */
struct fuzz_cursor {
        const uint8_t *data;
        size_t size;
};

static inline uint8_t fuzz_byte(struct fuzz_cursor *c)
{
        if (c->size == 0)
                return 0;
        c->size--;
        return *c->data++;
}

static inline void fuzz_bytes(struct fuzz_cursor *c, void *ret, size_t n)
{
        size_t taken = RV_MIN(n, c->size);

        memset(ret, 0, n);
        if (taken)
                memcpy(ret, c->data, taken);
        c->data += taken;
        c->size -= taken;
}

/* Is it one non-empty line of well-formed text without control characters, fit to be shown to a person? */
static inline bool fuzz_is_line(const char *text)
{
        for (const char *c = text; *c; c++)
                if ((uint8_t)*c < 0x20 || *c == 0x7f)
                        return false;
        return *text && rv_utf8_check(text, strlen(text), NULL);
}
