#include "base/test_point.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static char wish[64];
static uint64_t clock_us;

/* At the very start: the spawner forgets its caller's environment. */
__attribute__((constructor)) static void remember(void)
{
        const char *value = getenv("REEVE_TEST_PAUSE"), *seconds = getenv("REEVE_TEST_CLOCK");

        if (value)
                rv_text_copy(wish, sizeof(wish), value);
        if (seconds)
                clock_us = strtoull(seconds, NULL, 10) * 1000000;
}

uint64_t rv_test_clock_us(void)
{
        return clock_us;
}

void rv_test_point(const char *name)
{
        struct timespec t = { .tv_sec = 3600 };
        size_t n = strlen(name);
        char own[16], mark[16];

        if (strncmp(wish, name, n) != 0 || (wish[n] && wish[n] != ':'))
                return;
        if (wish[n]) {
                unsigned long ms = strtoul(wish + n + 1, NULL, 10);

                t = (struct timespec){ .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000 };
        }
        prctl(PR_GET_NAME, own, 0, 0, 0);
        snprintf(mark, sizeof(mark), "@%s", name);
        prctl(PR_SET_NAME, mark, 0, 0, 0);
        while (nanosleep(&t, &t) < 0)
                ;
        prctl(PR_SET_NAME, own, 0, 0, 0);
}
