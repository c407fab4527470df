#include "package/index_file.h"

#include "package/registry_private.h"

#include <string.h>
#include <strings.h>

/* ---- Names ---- */

static bool is_alnum(char c)
{
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

bool rv_index_canonical(const char *text, size_t n, char *ret)
{
        size_t size = 0;

        if (n == 0 || !is_alnum(text[0]) || !is_alnum(text[n - 1]))
                return false;
        for (size_t i = 0; i < n; i++) {
                char c = text[i];

                if (is_alnum(c))
                        ret[size++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
                else if (c != '-' && c != '_' && c != '.')
                        return false;
                else if (ret[size - 1] != '-')
                        ret[size++] = '-';
        }
        ret[size] = 0;
        return true;
}

static bool is_name_of(const char *text, size_t n, const char *project)
{
        char name[RV_INDEX_NAME_MAX + 1];

        return n <= RV_INDEX_NAME_MAX && rv_index_canonical(text, n, name) && strcmp(name, project) == 0;
}

static bool ends_in(const char *text, size_t n, const char *end)
{
        size_t k = strlen(end);

        return n > k && strcasecmp(text + n - k, end) == 0;
}

/* name-version[-build]-python-abi-platform.whl */
static bool parse_wheel(const char *name, size_t n, const char *project, struct rv_index_file *ret)
{
        struct rv_index_text parts[6];
        size_t n_parts = 0, start = 0;

        for (size_t i = 0; i <= n; i++) {
                if (i < n && name[i] != '-')
                        continue;
                if (n_parts == RV_N_ELEMENTS(parts) || i == start)
                        return false;
                parts[n_parts++] = (struct rv_index_text){ name + start, i - start };
                start = i + 1;
        }
        if (n_parts < 5 || !is_name_of(parts[0].text, parts[0].n, project))
                return false;
        if (n_parts == 6 && !(parts[2].text[0] >= '0' && parts[2].text[0] <= '9'))
                return false;
        *ret = (struct rv_index_file){
                .kind = RV_INDEX_WHEEL,
                .version = parts[1],
                .python = parts[n_parts - 3],
                .abi = parts[n_parts - 2],
                .platform = parts[n_parts - 1],
        };
        return true;
}

bool rv_index_file_parse(const char *name, const char *project, struct rv_index_file *ret)
{
        static const char *const ends[] = { ".tar.gz", ".zip", ".tgz", ".tar.bz2", ".tar.xz", ".tar" };
        size_t n = strlen(name), k = 0;

        if (n > RV_INDEX_NAME_MAX || strchr(name, '/'))
                return false;
        if (ends_in(name, n, ".whl"))
                return parse_wheel(name, n - 4, project, ret);
        for (size_t i = 0; i < RV_N_ELEMENTS(ends) && !k; i++)
                if (ends_in(name, n, ends[i]))
                        k = n - strlen(ends[i]);
        /* A name may hold hyphens too: where it ends is told by the project. */
        for (size_t i = 1; i + 1 < k; i++)
                if (name[i] == '-' && is_name_of(name, i, project)) {
                        *ret = (struct rv_index_file){ .kind = RV_INDEX_SDIST, .version = { name + i + 1, k - i - 1 } };
                        return true;
                }
        return false;
}

/* ---- Times ---- */

static bool take_digits(const char **c, unsigned n, unsigned *ret)
{
        unsigned value = 0;

        for (unsigned i = 0; i < n; i++, (*c)++) {
                if (**c < '0' || **c > '9')
                        return false;
                value = value * 10 + (unsigned)(**c - '0');
        }
        *ret = value;
        return true;
}

static bool take_char(const char **c, const char *wanted)
{
        if (!**c || !strchr(wanted, **c))
                return false;
        (*c)++;
        return true;
}

/* Days since 1970-01-01 of the proleptic Gregorian calendar. */
static int64_t days(unsigned year, unsigned month, unsigned day)
{
        int64_t y = (int64_t)year - (month <= 2), era = y / 400, of_era = y - era * 400;
        int64_t of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

        return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool take_offset(const char *c, int64_t *ret)
{
        unsigned hours, minutes;
        bool is_behind = *c == '-';

        if (take_char(&c, "Zz")) {
                *ret = 0;
                return *c == 0;
        }
        if (!take_char(&c, "+-") || !take_digits(&c, 2, &hours) || !take_char(&c, ":") || !take_digits(&c, 2, &minutes) || *c ||
            hours > 23 || minutes > 59)
                return false;
        *ret = ((int64_t)hours * 3600 + minutes * 60) * (is_behind ? -1 : 1);
        return true;
}

bool rv_index_time(const char *c, int64_t *ret)
{
        static const unsigned char lengths[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        unsigned year, month, day, hour, minute, second;
        int64_t offset, at;

        if (!take_digits(&c, 4, &year) || !take_char(&c, "-") || !take_digits(&c, 2, &month) || !take_char(&c, "-") ||
            !take_digits(&c, 2, &day) || !take_char(&c, "Tt ") || !take_digits(&c, 2, &hour) || !take_char(&c, ":") ||
            !take_digits(&c, 2, &minute) || !take_char(&c, ":") || !take_digits(&c, 2, &second))
                return false;
        if (month < 1 || month > 12 || day < 1 || day > lengths[month - 1] || hour > 23 || minute > 59 || second > 60)
                return false;
        if (take_char(&c, ".")) {
                if (*c < '0' || *c > '9')
                        return false;
                c += strspn(c, "0123456789");
        }
        if (!take_offset(c, &offset))
                return false;
        at = days(year, month, day) * 86400 + (int64_t)hour * 3600 + minute * 60 + second - offset;
        if (at < 0)
                return false;
        *ret = at;
        return true;
}

/* ---- Addresses ---- */

bool rv_index_is_hex(const char *text, size_t n)
{
        return strlen(text) == n && strspn(text, "0123456789abcdefABCDEF") == n;
}

bool rv_index_is_line(const char *text, size_t max)
{
        size_t n = strlen(text);

        for (size_t i = 0; i < n; i++)
                if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f ||
                        ((uint8_t)text[i] == 0xc2 && (uint8_t)text[i + 1] < 0xa0))
                        return false;
        return n <= max;
}

bool rv_index_is_url(const char *url)
{
        struct rv__url parts;
        size_t n = strlen(url);

        for (size_t i = 0; i < n; i++)
                if ((uint8_t)url[i] <= 0x20 || (uint8_t)url[i] >= 0x7f || strchr("\"<>\\^`{|}", url[i]))
                        return false;
        return n < RV_INDEX_URL_MAX && rv__url_split(url, &parts);
}

/* RFC 3986, 5.2.4, in place: `.` and `..` go, whatever stands behind a `?` stays. */
static void remove_dots(char *path)
{
        size_t n_path = strcspn(path, "?"), out = 0, in = 0;

        while (in < n_path) {
                size_t n = 1 + strcspn(path + in + 1, "/?");     /* with the slash before it */
                bool is_last = in + n == n_path;

                if (n == 2 && path[in + 1] == '.') {
                        if (is_last)
                                path[out++] = '/';
                } else if (n == 3 && path[in + 1] == '.' && path[in + 2] == '.') {
                        while (out && path[--out] != '/')
                                ;
                        if (is_last)
                                path[out++] = '/';
                } else {
                        memmove(path + out, path + in, n);
                        out += n;
                }
                in += n;
        }
        memmove(path + out, path + n_path, strlen(path + n_path) + 1);
}

static bool has_scheme(const char *link)
{
        size_t n = strcspn(link, ":/?#");

        return n && link[n] == ':';
}

/* Room for one byte more than an address has, as a path gets a slash. */
static bool join(const char *base, const char *link, size_t n_link, char *ret, size_t size)
{
        const char *authority = strstr(base, "://") + 3, *path = authority + strcspn(authority, "/?#");
        size_t n_path = strcspn(path, "?#"), n_keep;
        int n;

        while (n_path && path[n_path - 1] != '/')
                n_path--;
        if (has_scheme(link))
                n_keep = 0;
        else if (link[0] == '/' && link[1] == '/')
                n_keep = (size_t)(authority - base) - 2;
        else if (link[0] == '/')
                n_keep = (size_t)(path - base);
        else if (link[0] == '?')
                n_keep = strcspn(base, "?#");
        else
                n_keep = (size_t)(path - base) + n_path;
        n = snprintf(ret, size, "%.*s%s%.*s", (int)n_keep, base, n_keep && n_keep == (size_t)(path - base) && link[0] != '/' ? "/" : "",
                     (int)n_link, link);
        return n >= 0 && (size_t)n < size;
}

bool rv_index_url(const char *base, const char *link, char ret[RV_INDEX_URL_MAX], const char **ret_fragment)
{
        char text[RV_INDEX_URL_MAX], *path;
        size_t n = strcspn(link, "#");
        struct rv__url url;
        int size;

        if (n >= RV_INDEX_URL_MAX || !rv_index_is_url(base) || !join(base, link, n, text, sizeof(text)))
                return false;
        for (char *c = text; *c && *c != ':' && c < text + 5; c++)
                *c = *c >= 'A' && *c <= 'Z' ? (char)(*c | 0x20) : *c;
        if (!rv_index_is_url(text) || !rv__url_split(text, &url))
                return false;
        path = text + (url.scheme_end - text) + strcspn(url.scheme_end, "/?#");
        if (*path == '/')
                remove_dots(path);
        /* No credentials: what a page names besides its own host gets none. */
        size = snprintf(ret, RV_INDEX_URL_MAX, "%.*s%s", (int)(url.scheme_end - text), text,
                        url.host[-1] == '[' ? url.host - 1 : url.host);
        if (size < 0 || size >= RV_INDEX_URL_MAX)
                return false;
        *ret_fragment = link[n] ? link + n + 1 : "";
        return true;
}
