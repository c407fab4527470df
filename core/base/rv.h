/*
 * rv.h - the few macros that every file of reeve uses
 *
 * Ownership: a `_cleanup_(fn)` variable is released when its scope ends; rv_take() hands its value on.
 * Errors: 0 ok; negative is -errno, forwarded unchanged through rv_trace(); positive is a condition
 * that the called function documents. rv_raise() marks the place where an error begins.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define RV_PUBLIC __attribute__((visibility("default")))
#define RV_PRINTF(f, a) __attribute__((format(printf, f, a)))

#define _cleanup_(fn) __attribute__((cleanup(fn)))

#define rv_take(pp)                        \
        ({                                 \
                __typeof__(pp) _pp = (pp); \
                __typeof__(*_pp) _p = *_pp; \
                *_pp = NULL;               \
                _p;                        \
        })

#define RV_N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))
#define RV_MIN(a, b) ((a) < (b) ? (a) : (b))
#define RV_MAX(a, b) ((a) > (b) ? (a) : (b))
#define RV_STR_(x) #x
#define RV_STR(x) RV_STR_(x)

/* Defines `rv_nounp(T **p)` for _cleanup_ out of `void free_fn(T *)`. */
#define RV_DEFINE_CLEANUP(T, free_fn)                     \
        static inline void free_fn##p(T **p)              \
        {                                                 \
                if (*p)                                   \
                        free_fn(*p);                      \
        }

/* Forward (rv_trace) or begin (rv_raise) an error: with REEVE_DEBUG_ERRORS set, prints where. */
#define rv_trace(r) rv__trace((r), __FILE__, __LINE__, false)
#define rv_raise(r) rv__trace((r), __FILE__, __LINE__, true)
int rv__trace(int r, const char *file, int line, bool is_origin);

/* A bug: rv_check() prints it and goes on with false; rv_require() aborts. */
#define rv_check(expr) rv__check(!!(expr), #expr, __FILE__, __LINE__)
#define rv_require(expr) ((expr) ? (void)0 : rv__require_failed(#expr, __FILE__, __LINE__))
bool rv__check(bool ok, const char *expr, const char *file, int line);
_Noreturn void rv__require_failed(const char *expr, const char *file, int line);

static inline void rv_freep(void *pp)
{
        free(*(void **)pp);
}
