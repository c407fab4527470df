/*
 * test_privilege.h - tests that need more than an ordinary user has say so, and do not pass in silence
 *
 * A test that cannot run here is skipped with a line that says why; where RV_MUST_RUN (words with commas
 * between) names its suite, that is a failure instead. One thread.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static inline void cannot_run(const char *suite, const char *why)
{
        const char *must = getenv("RV_MUST_RUN");
        size_t n = strlen(suite);

        for (const char *p = must; p; p = strchr(p, ','), p = p ? p + 1 : NULL)
                if (!strncmp(p, suite, n) && (p[n] == ',' || p[n] == 0))
                        fail_msg("RV_MUST_RUN names %s, but: %s", suite, why);
        print_message("skipped: %s\n", why);
        skip();
}

static inline void need_root(void)
{
        if (geteuid() != 0)
                cannot_run("root", "this needs root");
}
