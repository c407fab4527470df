/*
 * test_point.h - moments at which a test build waits, so that a test can kill a process exactly there
 *
 * In a build with -Dtest_points=true, `REEVE_TEST_PAUSE=POINT` or `POINT:MILLISECONDS` in reeve's environment makes
 * whichever of its processes comes to the point of that name wait, for ever or so long. Meanwhile its name is
 * "@POINT", which is how a test sees that it is there. Every other build has no trace of this. Any thread, also
 * between clone and exec.
 */
#pragma once

#ifdef RV_TEST_POINTS
/** rv_test_point() - wait here if the environment said so at the start; @name has at most 14 characters. Context: any; may block for ever. Ownership: borrows. Return: none */
void rv_test_point(const char *name);
#else
static inline void rv_test_point(const char *name)
{
        (void)name;
}
#endif
