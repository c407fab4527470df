#include "package/registry_private.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>

/*
 * The address that is built into a tool, read where its own source states it: starting the tool to ask takes a tenth of a
 * second. What is not found just as it is expected is asked for.
 */

#define SOURCE_BYTES_MAX ((size_t)1 << 20)

static const char *const pip_sources[] = { "/usr/lib/python3/dist-packages/pip/_internal/models/index.py" };
static const char *const npm_sources[] = {
        "/usr/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
        "/usr/share/nodejs/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
        "/usr/share/nodejs/@npmcli/config/lib/definitions/definitions.js",
        "/usr/share/nodejs/npm/lib/utils/config/definitions.js",
};

/* The text between @begin and the next @end that follows @from; within a few lines, and of characters that an address has. */
static bool take(const char *from, const char *begin, char end, char *ret, size_t size)
{
        const char *start = from ? strstr(from, begin) : NULL, *stop;
        size_t n;

        if (!start || start - from > 200)
                return false;
        start += strlen(begin);
        stop = strchr(start, end);
        n = stop ? (size_t)(stop - start) : 0;
        if (!n || n >= size || strspn(start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:/_") < n)
                return false;
        memcpy(ret, start, n);
        ret[n] = 0;
        return true;
}

/* PyPI = PackageIndex("https://HOST/", file_storage_domain="HOST") */
static char *read_pip(const char *text)
{
        const char *at = strstr(text, "\nPyPI = PackageIndex(");
        char url[256], files[256], *lines = NULL;

        if (!take(at, "PackageIndex(\"", '"', url, sizeof(url)) || !take(at, "file_storage_domain=\"", '"', files, sizeof(files)))
                return NULL;
        if (strncmp(url, "https://", 8) != 0 || url[strlen(url) - 1] != '/' || strchr(files, '/'))
                return NULL;
        return asprintf(&lines, "%ssimple\nhttps://%s\n", url, files) < 0 ? NULL : lines;
}

/* registry: new Definition('registry', { default: 'https://HOST/', … */
static char *read_npm(const char *text)
{
        const char *at = strstr(text, "'registry', {");
        char url[256], *lines = NULL;

        if (!take(at, "default: '", '\'', url, sizeof(url)) || strncmp(url, "https://", 8) != 0)
                return NULL;
        return asprintf(&lines, "%s\n", url) < 0 ? NULL : lines;
}

char *rv__registry_read_own(enum rv_language language, const char *root)
{
        bool is_python = language == RV_LANGUAGE_PYTHON;
        const char *const *sources = is_python ? pip_sources : npm_sources;
        size_t n = is_python ? RV_N_ELEMENTS(pip_sources) : RV_N_ELEMENTS(npm_sources);

        for (size_t i = 0; i < n; i++) {
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                char path[4096], *lines;

                if ((size_t)snprintf(path, sizeof(path), "%s%s", root, sources[i]) >= sizeof(path) || rv_read_file_at(AT_FDCWD, path, SOURCE_BYTES_MAX, &text) < 0 ||
                        rv_buf_append(&text, "", 1) < 0)
                        continue;
                lines = is_python ? read_pip(text.data) : read_npm(text.data);
                if (lines)
                        return lines;
        }
        return NULL;
}
