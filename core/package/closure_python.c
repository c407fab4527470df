#include "package/closure_private.h"
#include "request/problem.h"

#include <string.h>
#include <strings.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static bool satisfies_clause(const char *clause, size_t n, const char *text, const struct rv_version *version)
{
        struct rv_version wanted;

        if (n <= 3 || strncmp(clause, "===", 3) != 0)
                return rv_version_set_has(RV_VERSION_PEP440, clause, n, version) == 1;
        /* PEP 440, "Arbitrary equality": as text; but tools answer with the version as it is normalised. */
        if (strlen(text) == n - 3 && strncasecmp(clause + 3, text, n - 3) == 0)
                return true;
        return rv_version_parse(RV_VERSION_PEP440, clause + 3, n - 3, &wanted) == 0 &&
                rv_version_compare(&wanted, version) == 0;
}

bool rv__python_satisfies(const char *constraint, const char *text, const struct rv_version *version)
{
        for (const char *clause = constraint;; clause++) {
                size_t n = strcspn(clause, ",");

                if (!satisfies_clause(clause, n, text, version))
                        return false;
                clause += n;
                if (!*clause)
                        return true;
        }
}

/* PEP 503, as rv_pyreq_parse() gives names. */
static bool is_canonical(const char *name)
{
        size_t n = strlen(name);

        return n <= 214 && n == strspn(name, "abcdefghijklmnopqrstuvwxyz-" DIGITS) && name[0] != '-' && name[n - 1] != '-' && !strstr(name, "--");
}

static bool is_of_name(const char *text, size_t n, const char *name)
{
        size_t at = 0;

        for (; *name; name++) {
                if (at == n)
                        return false;
                if (*name != '-') {
                        if ((text[at] >= 'A' && text[at] <= 'Z' ? text[at] | 0x20 : text[at]) != *name)
                                return false;
                        at++;
                        continue;
                }
                if (!strchr("._", text[at]))
                        return false;
                while (at < n && strchr("._", text[at]))
                        at++;
        }
        return at == n;
}

/* NAME-VERSION(-BUILD)?-PYTHON-ABI-PLATFORM.whl, of this name and version. */
static bool is_wheel_of(const char *file, const char *name, const struct rv_version *version)
{
        size_t n = strlen(file), n_parts = 1, n_name = strcspn(file, "-"), n_version;
        struct rv_version found;

        if (n < 5 || n > 255 || strcmp(file + n - 4, ".whl") != 0 || n != strspn(file, LETTERS DIGITS "._+!-"))
                return false;
        for (const char *p = file; (p = strchr(p, '-')); p++)
                n_parts += p[1] != '-' && p > file;
        if ((n_parts != 5 && n_parts != 6) || strstr(file, "--") || !is_of_name(file, n_name, name))
                return false;
        n_version = strcspn(file + n_name + 1, "-");
        return rv_version_parse(RV_VERSION_PEP440, file + n_name + 1, n_version, &found) == 0 &&
                rv_version_compare(&found, version) == 0;
}

static bool is_url(const char *url)
{
        size_t n = strlen(url), scheme = strncasecmp(url, "https://", 8) == 0 ? 8 : strncasecmp(url, "http://", 7) == 0 ? 7 : 0;
        size_t host = scheme ? strcspn(url + scheme, "/?") : 0;

        for (size_t i = 0; i < n; i++)
                if (url[i] <= ' ' || url[i] > '~' || strchr("\"<>\\^`{|}#", url[i]))
                        return false;
        return host > 0 && !memchr(url + scheme, '@', host);
}

static bool is_hex(const char *text, size_t n)
{
        return strlen(text) == n && strspn(text, DIGITS "abcdef") == n;
}

/* A member that may be absent, and is a number from 0 to 2^53-1 where it is not. */
static bool copy_number(const json_t *from, json_t *to, const char *key)
{
        const json_t *value = json_object_get(from, key);
        json_int_t number = json_integer_value(value);

        if (!value)
                return true;
        return json_is_integer(value) && number >= 0 && number < (1LL << 53) &&
                json_object_set_new(to, key, json_integer(number)) == 0;
}

/* The rest of an entry, once its name and version are known to be well formed. */
static int read_artifact(
        struct rv__closure *c, const json_t *from, json_t *entry, const char *name, const struct rv_version *version)
{
        const char *file = rv__closure_text(from, "file", 255), *url = rv__closure_text(from, "url", 4096), *sha256;
        char quote[RV_FAULT_QUOTE_SIZE];

        if (!file || !is_wheel_of(file, name, version))
                return rv__closure_refuse(c, "name_mismatch", name, "the file that the resolver chose for %s, %s, is no wheel of this name and version", name,
                        rv_fault_quote(file ? file : "", file ? strlen(file) : 0, quote));
        if (!url && json_is_string(json_object_get(from, "url")) && json_string_length(json_object_get(from, "url")) == 0)
                url = "";
        if (!url || (*url && !is_url(url)))
                return rv__closure_refuse(c, "unsafe_archive", name, "the place that %s would come from is no http or https address", name);
        sha256 = rv__closure_text(from, "sha256", 64);
        if (json_object_get(from, "sha256") && (!sha256 || !is_hex(sha256, 64)))
                return rv__closure_refuse(c, "unsafe_archive", name, "the index gives no SHA-256 for %s where it should", name);
        if (!copy_number(from, entry, "size_bytes") || !copy_number(from, entry, "published_at"))
                return rv__closure_refuse(c, "unsafe_archive", name, "the index gives %s a size or a time that is none", name);
        if (json_object_set_new(entry, "file", json_string(file)) < 0 || json_object_set_new(entry, "url", json_string(url)) < 0 ||
                (sha256 && json_object_set_new(entry, "sha256", json_string(sha256)) < 0))
                return rv_raise(-ENOMEM);
        return 0;
}

static int read_package(struct rv__closure *c, const json_t *from)
{
        const char *name = rv__closure_text(from, "name", 214), *text = rv__closure_text(from, "version", RV_VERSION_SIZE_MAX);
        char quote[RV_FAULT_QUOTE_SIZE];
        struct rv_version version;
        json_t *entry;
        int r;

        if (!name || !is_canonical(name))
                return rv__closure_refuse(c, "name_mismatch", "", "the resolver's answer has a package whose name, %s, is none",
                        rv_fault_quote(name ? name : "", name ? strlen(name) : 0, quote));
        if (!text || text[0] < '0' || text[0] > '9' || text[strspn(text, LETTERS DIGITS "._+!-")] || rv_version_parse(RV_VERSION_PEP440, text, strlen(text), &version) < 0)
                return rv__closure_refuse(c, "name_mismatch", name, "the version of %s in the resolver's answer, %s, is none", name,
                        rv_fault_quote(text ? text : "", text ? strlen(text) : 0, quote));
        entry = json_pack("{s:s, s:s}", "name", name, "version", text);
        if (!entry || json_array_append_new(c->packages, entry) < 0)
                return rv_raise(-ENOMEM);
        r = read_artifact(c, from, entry, name, &version);
        return r ? r : rv__closure_asked(c, entry, true);
}

int rv__closure_python(struct rv__closure *c, const json_t *list, struct rv_error *err)
{
        const json_t *from;
        size_t i;
        int r;

        if (!json_is_array(list))
                return rv_error_set(err, rv_raise(-EINVAL), "the resolver's answer has no list of packages");
        if (json_array_size(list) > RV_CLOSURE_PACKAGES_MAX)
                return rv__closure_too_large(c, json_array_size(list));
        json_array_foreach(list, i, from) {
                r = read_package(c, from);
                if (r)
                        return r;
        }
        r = rv__closure_sort(c->packages);
        if (r < 0)
                return rv_trace(r);
        for (i = 1; i < json_array_size(c->packages); i++) {
                const char *name = rv_json_get_string(json_array_get(c->packages, i), "name", "");

                /* An environment has one version of a package. */
                if (strcmp(name, rv_json_get_string(json_array_get(c->packages, i - 1), "name", "")) == 0)
                        return rv__closure_refuse(c, "name_mismatch", name, "the resolver's answer has %s twice", name);
        }
        return 0;
}
