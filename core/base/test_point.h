/*
 * test_point.h - moments at which a test build waits, so that a test can kill a process exactly there
 *
 * In a build with -Dtest_points=true, `REEVE_TEST_PAUSE=POINT` or `POINT:MILLISECONDS` in reeve's environment makes
 * whichever of its processes comes to the point of that name wait, for ever or so long. Meanwhile its name is
 * "@POINT", which is how a test sees that it is there. `REEVE_TEST_CLOCK=SECONDS` moves the wall clock of the process
 * forward, in its records too. Every other build has no trace of this. Any thread, also between clone and exec.
 */
#pragma once

#include <stdint.h>

#ifdef RV_TEST_POINTS
/** rv_test_point() - wait here if the environment said so at the start; @name has at most 14 characters. Context: any; may block for ever. Ownership: borrows. Return: none */
void rv_test_point(const char *name);
/** rv_test_clock_us() - how far the wall clock was moved forward. Context: any. Ownership: none. Return: microseconds */
uint64_t rv_test_clock_us(void);
#else
static inline void rv_test_point(const char *name)
{
        (void)name;
}
static inline uint64_t rv_test_clock_us(void)
{
        return 0;
}
#endif
