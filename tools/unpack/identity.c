#include "identity.h"

#include "policy/version.h"

#include <string.h>

#define NAME_SIZE 256u
#define WHEEL_SUFFIX ".whl"

static bool is_alnum(char c)
{
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool is_separator(char c)
{
        return c == '-' || c == '_' || c == '.';
}

size_t identity_python_canonical(const char *text, size_t n, char *ret, size_t size)
{
        size_t end = 0, at = 0;

        /* PEP 508, identifier: it begins and ends with a letter or digit. */
        for (size_t i = 0; i < n && (is_alnum(text[i]) || is_separator(text[i])); i++)
                if (is_alnum(text[i]))
                        end = i + 1;
        if (end == 0 || !is_alnum(*text))
                return 0;
        for (size_t i = 0; i < end; i++) {
                char c = text[i];

                if (is_separator(c) && at && ret[at - 1] == '-')
                        continue;
                if (at + 1 >= size)
                        return 0;
                ret[at++] = is_separator(c) ? '-' : c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
        }
        ret[at] = 0;
        return end;
}

bool identity_python_name(const char *a, size_t n_a, const char *b, size_t n_b)
{
        char x[NAME_SIZE], y[NAME_SIZE];

        return n_a && n_b && identity_python_canonical(a, n_a, x, sizeof(x)) == n_a &&
                identity_python_canonical(b, n_b, y, sizeof(y)) == n_b && strcmp(x, y) == 0;
}

bool identity_python_version(const char *a, size_t n_a, const char *b, size_t n_b)
{
        struct rv_version x, y;

        return rv_version_parse(RV_VERSION_PEP440, a, n_a, &x) == 0 &&
                rv_version_parse(RV_VERSION_PEP440, b, n_b, &y) == 0 && rv_version_compare(&x, &y) == 0;
}

static size_t npm_version(const char **text)
{
        while (**text == ' ' || **text == '=' || **text == 'v')
                ++*text;
        return strcspn(*text, "+ ");
}

bool identity_npm_version(const char *a, const char *b)
{
        size_t n_a = npm_version(&a), n_b = npm_version(&b);

        return n_a && n_a == n_b && memcmp(a, b, n_a) == 0;
}

bool identity_stem(const char *text, size_t n, const char *name, const char *version)
{
        /* Old wheels have hyphens in either half, so every place to divide it is tried. */
        for (size_t i = 1; i + 1 < n; i++)
                if (text[i] == '-' && identity_python_name(text, i, name, strlen(name)) &&
                        identity_python_version(text + i + 1, n - i - 1, version, strlen(version)))
                        return true;
        return false;
}

/* NAME-VERSION(-BUILD)?-PYTHON-ABI-PLATFORM.whl: the last three never have a hyphen. */
bool identity_wheel_file(const char *file, const char *name, const char *version)
{
        size_t n = strlen(file), suffix = strlen(WHEEL_SUFFIX);

        if (n <= suffix || strcmp(file + n - suffix, WHEEL_SUFFIX) != 0 || memchr(file, '/', n))
                return false;
        n -= suffix;
        for (int i = 0; i < 3; i++) {
                const char *hyphen = memrchr(file, '-', n);

                if (!hyphen || hyphen + 1 == file + n)
                        return false;
                n = (size_t)(hyphen - file);
        }
        if (identity_stem(file, n, name, version))
                return true;
        /* A build tag begins with a digit. */
        for (size_t i = n; i-- > 1;)
                if (file[i] == '-')
                        return i + 1 < n && file[i + 1] >= '0' && file[i + 1] <= '9' &&
                                identity_stem(file, i, name, version);
        return false;
}
