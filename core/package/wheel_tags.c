#include "package/wheel_tags.h"

#include <stdio.h>
#include <string.h>

struct runtime {
        unsigned minor;              /* of CPython 3 */
        bool is_threaded;            /* it has another ABI, and no stable one */
        const char *libc;            /* "linux" or "musllinux" */
        const char *machine;         /* "x86_64" */
};

static bool read_tag(const char *tag, struct runtime *ret)
{
        const char *dash = strchr(tag, '-'), *low;
        char *end;

        if (strncmp(tag, "cp3", 3) != 0 || !dash)
                return false;
        ret->minor = (unsigned)strtoul(tag + 3, &end, 10);
        ret->is_threaded = *end == 't';
        if (end + ret->is_threaded != dash)
                return false;
        ret->libc = strncmp(dash + 1, "musllinux_", 10) == 0 ? "musllinux" : "linux";
        low = strchr(dash + 1, '_');
        if (!low)
                return false;
        ret->machine = low + 1;
        return true;
}

/* The next of the tags joined by periods. */
static bool next(struct rv_index_text *rest, struct rv_index_text *ret)
{
        const char *dot;

        if (rest->n == 0)
                return false;
        dot = memchr(rest->text, '.', rest->n);
        *ret = (struct rv_index_text){ rest->text, dot ? (size_t)(dot - rest->text) : rest->n };
        rest->n -= ret->n + (dot ? 1 : 0);
        rest->text += ret->n + (dot ? 1 : 0);
        return true;
}

static bool begins(const struct rv_index_text *t, const char *text)
{
        return t->n >= strlen(text) && memcmp(t->text, text, strlen(text)) == 0;
}

static bool is(const struct rv_index_text *t, const char *text)
{
        return t->n == strlen(text) && begins(t, text);
}

/* The number behind @n characters, or -1. */
static int number(const struct rv_index_text *t, size_t n)
{
        int value = 0;

        if (t->n <= n || t->n > n + 4)
                return -1;
        for (; n < t->n; n++) {
                if (t->text[n] < '0' || t->text[n] > '9')
                        return -1;
                value = value * 10 + (t->text[n] - '0');
        }
        return value;
}

static bool has_platform(const struct rv_index_file *wheel, const struct runtime *r)
{
        struct rv_index_text rest = wheel->platform, t;

        while (next(&rest, &t)) {
                size_t n = strlen(r->machine);

                if (is(&t, "any"))
                        return true;
                if (t.n <= n || memcmp(t.text + t.n - n, r->machine, n) != 0 || t.text[t.n - n - 1] != '_')
                        continue;
                if (begins(&t, "musllinux_") ? r->libc[0] == 'm' : r->libc[0] != 'm' && (begins(&t, "manylinux") || begins(&t, "linux_")))
                        return true;
        }
        return false;
}

/* One pair of tags. */
static bool takes(const struct runtime *r, const struct rv_index_text *python, const struct rv_index_text *abi)
{
        int minor = number(python, 3);
        bool is_older = minor >= 0 && (unsigned)minor <= r->minor, is_own = begins(python, "cp3") && minor >= 0 && (unsigned)minor == r->minor;
        char own[16];

        if (is(abi, "none"))
                return is(python, "py3") || is(python, "cp3") || (begins(python, "py3") && is_older) || is_own;
        if (is(abi, "abi3"))
                return !r->is_threaded && begins(python, "cp3") && is_older && minor >= 2;
        /* Before 3.8 an ABI's name had an "m" behind it. */
        snprintf(own, sizeof(own), "cp3%u%s", r->minor, r->is_threaded ? "t" : r->minor < 8 ? "m" : "");
        return is_own && is(abi, own);
}

static bool has_python(const struct rv_index_file *wheel, const struct runtime *r)
{
        struct rv_index_text pythons = wheel->python, python, abis, abi;

        while (next(&pythons, &python))
                for (abis = wheel->abi; next(&abis, &abi);)
                        if (takes(r, &python, &abi))
                                return true;
        return false;
}

enum rv_wheel_fit rv_wheel_fit(const struct rv_index_file *wheel, const char *tag)
{
        struct runtime r;

        if (!read_tag(tag, &r))
                return RV_WHEEL_FITS;
        if (!has_platform(wheel, &r))
                return RV_WHEEL_OTHER_PLATFORM;
        return has_python(wheel, &r) ? RV_WHEEL_FITS : RV_WHEEL_OTHER_PYTHON;
}
