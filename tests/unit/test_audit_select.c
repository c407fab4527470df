/* Times as they are written on a command line, and as they are shown. */
#include "audit_select.h"

#include "base/clock.h"
#include "reeve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

int usage_error(const char *verb, const char *fmt, ...)
{
        (void)verb;
        (void)fmt;
        return EXIT_USAGE;
}

static const struct {
        const char *text;
        uint64_t us;             /* UINT64_MAX: refused */
} times[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "1970-01-01", 0 },
        { "2026-11-30T02:17:00Z", UINT64_C(1796005020000000) },
        { "2026-11-30t02:17:00z", UINT64_C(1796005020000000) },
        { "2026-11-30 02:17:00Z", UINT64_C(1796005020000000) },
        { "2026-11-30T02:17:00.009644Z", UINT64_C(1796005020009644) },
        { "2026-11-30T02:17:00.0096449Z", UINT64_C(1796005020009644) },
        { "2026-11-30T03:17:00+01:00", UINT64_C(1796005020000000) },
        { "2026-11-29T21:47:00-04:30", UINT64_C(1796005020000000) },
        { "2024-02-29T00:00:00Z", UINT64_C(1709164800000000) },
        { "2000-03-01", UINT64_C(951868800000000) },
        { "2100-03-01", UINT64_C(4107542400000000) },
        { "@1796005020", UINT64_C(1796005020000000) },
        { "@0", 0 },
        { "2023-02-29", UINT64_MAX }, { "2100-02-29", UINT64_MAX }, { "2026-13-01", UINT64_MAX }, { "2026-00-01", UINT64_MAX }, { "2026-04-31", UINT64_MAX },
        { "2026-11-30T24:00:00Z", UINT64_MAX }, { "2026-11-30T02:60:00Z", UINT64_MAX }, { "2026-11-30T02:17:00", UINT64_MAX }, { "2026-11-30T02:17Z", UINT64_MAX },
        { "2026-11-30T02:17:00Zx", UINT64_MAX }, { "2026-11-30T02:17:00+1:00", UINT64_MAX }, { "2026-11-30T02:17:00.Z", UINT64_MAX }, { "2026-11-3", UINT64_MAX },
        { "1969-12-31", UINT64_MAX }, { "", UINT64_MAX }, { "@", UINT64_MAX }, { "@-1", UINT64_MAX }, { "17", UINT64_MAX }, { "h", UINT64_MAX }, { "1y", UINT64_MAX },
        { "-1h", UINT64_MAX }, { "1.5h", UINT64_MAX }, { "yesterday", UINT64_MAX }, { "@99999999999999999", UINT64_MAX },
};

static void times_are_read(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(times); i++) {
                uint64_t us = 42;
                int r = audit_time_parse(times[i].text, &us);

                if (r != (times[i].us == UINT64_MAX ? -EINVAL : 0) || us != (r ? 42 : times[i].us))
                        fail_msg("\"%s\": %d, %llu", times[i].text, r, (unsigned long long)us);
        }
}

static void long_ago(void **state)
{
        static const struct {
                const char *text;
                uint64_t seconds;
        } ago[] = { { "0s", 0 }, { "90s", 90 }, { "2m", 120 }, { "24h", 86400 }, { "7d", 604800 }, { "2w", 1209600 } };
        uint64_t us;

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(ago); i++) {
                uint64_t before = rv_now_us();

                assert_int_equal(audit_time_parse(ago[i].text, &us), 0);
                assert_true(us >= before - ago[i].seconds * 1000000 && us <= rv_now_us() - ago[i].seconds * 1000000);
        }
        assert_int_equal(audit_time_parse("9007199254740991w", &us), 0);
        assert_int_equal(us, 0);
        assert_int_equal(audit_unix_or_time_parse("1796005020", &us), 0);
        assert_int_equal(us, UINT64_C(1796005020000000));
        assert_int_equal(audit_unix_or_time_parse("2000-03-01", &us), 0);
        assert_int_equal(us, UINT64_C(951868800000000));
}

static void times_are_shown(void **state)
{
        char text[AUDIT_TIME_SIZE];
        uint64_t us;

        (void)state;
        assert_string_equal(audit_time_text(UINT64_C(1796005020009644), true, text), "2026-11-30T02:17:00.009644Z");
        assert_string_equal(audit_time_text(UINT64_C(1796005020009644), false, text), "2026-11-30T02:17:00Z");
        /* What is shown is read back, on every day of some centuries. */
        for (uint64_t day = 0; day < 100000; day += 13) {
                assert_int_equal(
                        audit_time_parse(audit_time_text(day * UINT64_C(86400000000) + 1, true, text), &us), 0);
                assert_int_equal(us, day * UINT64_C(86400000000) + 1);
        }
        audit_time_text(UINT64_MAX, true, text);
        assert_true(strlen(text) < sizeof(text));
}

static void numbers(void **state)
{
        static const char *const bad[] = { "", "-1", "+1", "1 ", "0x1", "9007199254740992", "99999999999999999999" };
        uint64_t n = 42;

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(bad); i++)
                assert_int_equal(audit_number_parse(bad[i], &n), -EINVAL);
        assert_int_equal(n, 42);
        assert_int_equal(audit_number_parse("9007199254740991", &n), 0);
        assert_int_equal(n, UINT64_C(9007199254740991));
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(times_are_read), cmocka_unit_test(long_ago),
                cmocka_unit_test(times_are_shown), cmocka_unit_test(numbers) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
