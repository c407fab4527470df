/*
 * clock.h - times as 64-bit integers. Any thread; nothing owned.
 */
#pragma once

#include "base/test_point.h"

#include <stdint.h>
#include <time.h>

static inline uint64_t rv_clock_us(clockid_t id)
{
        struct timespec t;

        clock_gettime(id, &t);
        return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

/** rv_now_us() - wall clock, microseconds since 1970 (UTC). Context: any. Ownership: none. Return: as named */
static inline uint64_t rv_now_us(void)
{
        return rv_clock_us(CLOCK_REALTIME) + rv_test_clock_us();
}

/** rv_boot_us() - CLOCK_BOOTTIME in microseconds: what runs are timed by. Context: any. Ownership: none. Return: as named */
static inline uint64_t rv_boot_us(void)
{
        return rv_clock_us(CLOCK_BOOTTIME);
}
