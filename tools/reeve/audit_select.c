#include "audit_select.h"

#include "reeve.h"

#include "base/clock.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000)
#define DAY_SECONDS INT64_C(86400)
#define NUMBER_MAX UINT64_C(9007199254740991)

/* Days since 1970-01-01 of a date in the Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
        int64_t y = year - (month <= 2), era = y / 400, of_era = y % 400;
        int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

        return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int days_in(int year, int month)
{
        static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

        return days[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

/* Exactly @n digits. */
static bool take_digits(const char **p, int n, int *ret)
{
        int value = 0;

        for (int i = 0; i < n; i++, (*p)++) {
                if (**p < '0' || **p > '9')
                        return false;
                value = value * 10 + (**p - '0');
        }
        *ret = value;
        return true;
}

static bool take(const char **p, char c)
{
        if (**p != c)
                return false;
        (*p)++;
        return true;
}

/* "Z", "+01:00": seconds to take away. */
static bool take_offset(const char **p, int *ret)
{
        int sign = **p == '-' ? -1 : 1, hours, minutes;

        *ret = 0;
        if (take(p, 'Z') || take(p, 'z'))
                return true;
        if (!take(p, '+') && !take(p, '-'))
                return false;
        if (!take_digits(p, 2, &hours) || !take(p, ':') || !take_digits(p, 2, &minutes) || hours > 23 || minutes > 59)
                return false;
        *ret = sign * (hours * 3600 + minutes * 60);
        return true;
}

static bool take_fraction(const char **p, int *ret_us)
{
        int unit = 100000;

        *ret_us = 0;
        if (!take(p, '.'))
                return true;
        if (**p < '0' || **p > '9')
                return false;
        for (; **p >= '0' && **p <= '9'; (*p)++, unit /= 10)
                *ret_us += (**p - '0') * unit;
        return true;
}

static int parse_date(const char *p, uint64_t *ret_us)
{
        int year, month, day, hour = 0, minute = 0, second = 0, us = 0, offset = 0;
        int64_t s;

        if (!take_digits(&p, 4, &year) || !take(&p, '-') || !take_digits(&p, 2, &month) || !take(&p, '-') ||
                !take_digits(&p, 2, &day) || month < 1 || month > 12 || day < 1 || day > days_in(year, month))
                return -EINVAL;
        if (*p) {
                if (!take(&p, 'T') && !take(&p, 't') && !take(&p, ' '))
                        return -EINVAL;
                if (!take_digits(&p, 2, &hour) || !take(&p, ':') || !take_digits(&p, 2, &minute) || !take(&p, ':') ||
                        !take_digits(&p, 2, &second) || hour > 23 || minute > 59 || second > 60 ||
                        !take_fraction(&p, &us) || !take_offset(&p, &offset) || *p)
                        return -EINVAL;
        }
        s = days_of(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second - offset;
        if (s < 0)
                return -EINVAL;
        *ret_us = (uint64_t)s * SECOND + (uint64_t)us;
        return 0;
}

int audit_number_parse(const char *text, uint64_t *ret)
{
        uint64_t value = 0;

        if (!*text || strlen(text) > 16)
                return -EINVAL;
        for (const char *p = text; *p; p++) {
                if (*p < '0' || *p > '9')
                        return -EINVAL;
                value = value * 10 + (uint64_t)(*p - '0');
        }
        if (value > NUMBER_MAX)
                return -EINVAL;
        *ret = value;
        return 0;
}

static int parse_ago(const char *text, uint64_t *ret_us)
{
        static const struct {
                char unit;
                uint64_t seconds;
        } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 604800 } };
        size_t n = strlen(text);
        uint64_t value, now = rv_now_us();
        char digits[17];

        if (n < 2 || n > sizeof(digits))
                return -EINVAL;
        memcpy(digits, text, n - 1);
        digits[n - 1] = 0;
        if (audit_number_parse(digits, &value) < 0)
                return -EINVAL;
        for (size_t i = 0; i < RV_N_ELEMENTS(units); i++) {
                if (units[i].unit != text[n - 1])
                        continue;
                *ret_us = value > now / SECOND / units[i].seconds ? 0 : now - value * units[i].seconds * SECOND;
                return 0;
        }
        return -EINVAL;
}

static int parse_unix(const char *text, uint64_t *ret_us)
{
        uint64_t seconds;

        if (audit_number_parse(text, &seconds) < 0 || seconds > NUMBER_MAX / SECOND)
                return -EINVAL;
        *ret_us = seconds * SECOND;
        return 0;
}

int audit_unix_or_time_parse(const char *text, uint64_t *ret_us)
{
        return parse_unix(text, ret_us) == 0 ? 0 : audit_time_parse(text, ret_us);
}

int audit_time_parse(const char *text, uint64_t *ret_us)
{
        if (*text == '@')
                return parse_unix(text + 1, ret_us);
        return parse_date(text, ret_us) == 0 ? 0 : parse_ago(text, ret_us);
}

const char *audit_time_text(uint64_t us, bool is_exact, char ret[AUDIT_TIME_SIZE])
{
        time_t seconds = (time_t)(us / SECOND);
        struct tm tm;
        size_t n = 0;

        if (gmtime_r(&seconds, &tm))
                n = strftime(ret, AUDIT_TIME_SIZE - sizeof(".000000Z"), "%Y-%m-%dT%H:%M:%S", &tm);
        if (n == 0)
                snprintf(ret, AUDIT_TIME_SIZE, "@%llu", (unsigned long long)(us / SECOND));
        else if (is_exact)
                snprintf(ret + n, AUDIT_TIME_SIZE - n, ".%06uZ", (unsigned)(us % SECOND));
        else
                snprintf(ret + n, AUDIT_TIME_SIZE - n, "Z");
        return ret;
}

int audit_option_error(const char *command, int id, char **argv)
{
        const char *word = argv[optind - 1];

        if (id == ':')
                return usage_error(command, "%s wants a value", word);
        if (optopt && optopt < 256)
                return usage_error(command, "there is no option -%c", optopt);
        if (optopt)
                return usage_error(command, "%s: this option takes no value", word);
        return usage_error(command, "%s is no option, or the beginning of several", word);
}
