/*
 * bucket.h - so many a second, and as many at once
 *
 * A token bucket over milliseconds. Plain value; one thread.
 */
#pragma once

#include "base/rv.h"

struct bucket {
        uint64_t rate;           /* a second, and the most that is saved up */
        uint64_t milli;          /* thousandths of a token */
        uint64_t last_ms;
};

static inline void bucket_init(struct bucket *b, uint64_t rate, uint64_t now_ms)
{
        *b = (struct bucket){ .rate = rate, .milli = rate * 1000, .last_ms = now_ms };
}

/* Takes one, if there is one. */
static inline bool bucket_take(struct bucket *b, uint64_t now_ms)
{
        b->milli = RV_MIN(b->milli + (now_ms - b->last_ms) * b->rate, b->rate * 1000);
        b->last_ms = now_ms;
        if (b->milli < 1000)
                return false;
        b->milli -= 1000;
        return true;
}

/* Gives it back, unused. */
static inline void bucket_return(struct bucket *b)
{
        b->milli += 1000;
}

/* Milliseconds until there is one, at least 1. */
static inline uint64_t bucket_wait_ms(const struct bucket *b)
{
        return b->milli >= 1000 ? 1 : (1000 - b->milli + b->rate - 1) / b->rate;
}
