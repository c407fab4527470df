#include "package/lock_private.h"

#include "base/base64.h"
#include "base/utf8.h"
#include "request/npmrange.h"
#include "request/pep440.h"

#include <string.h>

#define NAME_MAX_BYTES 214
#define VERSION_MAX_BYTES 255

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
        return c >= 'a' && c <= 'z';
}

static bool is_alnum(char c)
{
        return is_digit(c) || is_lower(c) || (c >= 'A' && c <= 'Z');
}

/* Letters, digits and the characters of @more alone. */
static bool is_made_of(const char *text, size_t n, const char *more)
{
        for (size_t i = 0; i < n; i++)
                if (!is_alnum(text[i]) && !(text[i] && strchr(more, text[i])))
                        return false;
        return true;
}

static bool begins(const char *text, size_t n, const char *with)
{
        return n >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* ---- Names ---- */

static const char *check_python_name(const char *text, size_t n)
{
        static const char needs[] = "a name in canonical form (PEP 503): lower-case letters, digits, and single hyphens between them";

        if (n == 0 || n > NAME_MAX_BYTES || text[0] == '-' || text[n - 1] == '-')
                return needs;
        for (size_t i = 0; i < n; i++)
                if (!is_lower(text[i]) && !is_digit(text[i]) && (text[i] != '-' || text[i - 1] == '-'))
                        return needs;
        return NULL;
}

/* A scope behind its "@", or a name proper. As npm's rules for old packages have it, but what could be an option, a hidden file or a path is none. */
static bool is_npm_part(const char *text, size_t n, bool is_scoped)
{
        if (n == 0 || text[0] == '.' || (!is_scoped && (text[0] == '_' || text[0] == '-')))
                return false;
        if ((n == 12 && memcmp(text, "node_modules", 12) == 0) || (n == 11 && memcmp(text, "favicon.ico", 11) == 0))
                return false;
        return is_made_of(text, n, "-_.~");
}

static const char *check_npm_name(const char *text, size_t n)
{
        const char *slash = n && text[0] == '@' ? memchr(text, '/', n) : NULL;
        size_t n_scope = slash ? (size_t)(slash - text) - 1 : 0;

        if (n > NAME_MAX_BYTES ||
                (slash ? !is_npm_part(text + 1, n_scope, true) || !is_npm_part(slash + 1, n - n_scope - 2, true)
                       : !is_npm_part(text, n, false)))
                return "an npm name, such as left-pad or @scope/name";
        return NULL;
}

const char *rv__lock_name(enum rv_language language, const char *text, size_t n)
{
        return language == RV_LANGUAGE_PYTHON ? check_python_name(text, n) : check_npm_name(text, n);
}

const char *rv__lock_extra(const char *text, size_t n)
{
        return check_python_name(text, n);
}

/* ---- Versions ---- */

/* What follows is the grammar of one clause that names this version. */
static bool is_python_version(const char *text, size_t n)
{
        struct rv_pep440_clause clause;
        char with[VERSION_MAX_BYTES + 3] = "==";

        memcpy(with + 2, text, n);
        return rv_pep440_parse_clause(with, n + 2, 0, &clause, NULL) == 0 && clause.is_exact && clause.end == n + 2;
}

const char *rv__lock_version(enum rv_language language, const char *text, size_t n)
{
        static const char needs[] = "one exact version";
        bool is_pinned = false;

        if (n == 0 || n > VERSION_MAX_BYTES || !is_digit(text[0]) || !is_made_of(text, n, "._+!-"))
                return needs;
        if (language == RV_LANGUAGE_PYTHON)
                return is_python_version(text, n) ? NULL : needs;
        return rv_npmrange_check(text, n, &is_pinned, NULL, NULL) == 0 && is_pinned ? NULL : needs;
}

const char *rv__lock_minor(const char *text, size_t n)
{
        const char *dot = memchr(text, '.', n);
        size_t before = dot ? (size_t)(dot - text) : 0;

        if (!dot || before == 0 || before > 3 || n - before - 1 == 0 || n - before - 1 > 3)
                return "two numbers with a point between them, such as 3.11";
        for (size_t i = 0; i < n; i++)
                if (!is_digit(text[i]) && text + i != dot)
                        return "two numbers with a point between them, such as 3.11";
        return NULL;
}

/* ---- Files and places ---- */

const char *rv__lock_file(const char *text, size_t n)
{
        if (n == 0 || n > 255 || text[0] == '.' || text[0] == '-' || !is_made_of(text, n, "._+!~@%=,-"))
                return "a file's name of letters, digits and ._+!~@%=,- that begins with neither a period nor a hyphen";
        return NULL;
}

/* Each step is node_modules/NAME or node_modules/@SCOPE/NAME. */
const char *rv__lock_place(const char *text, size_t n)
{
        static const char needs[] = "a place like node_modules/NAME or node_modules/NAME/node_modules/@SCOPE/NAME";
        const char *end = text + n;

        if (n == 0 || n > RV_LOCK_PLACE_MAX)
                return needs;
        for (const char *p = text; p < end;) {
                const char *name, *slash;

                if (!begins(p, (size_t)(end - p), "node_modules/"))
                        return needs;
                name = p + strlen("node_modules/");
                slash = memchr(name, '/', (size_t)(end - name));
                if (slash && name[0] == '@')
                        slash = memchr(slash + 1, '/', (size_t)(end - slash - 1));
                if (check_npm_name(name, (size_t)((slash ? slash : end) - name)))
                        return needs;
                p = slash ? slash + 1 : end;
                if (slash && p == end)
                        return needs;
        }
        return NULL;
}

const char *rv__lock_path(const char *text, size_t n)
{
        static const char needs[] = "an absolute path without empty, \".\" and \"..\" parts";

        if (n < 2 || n > RV_LOCK_TEXT_MAX || text[0] != '/' || rv__lock_text(text, n, RV_LOCK_TEXT_MAX))
                return needs;
        for (size_t i = 0; i < n;) {
                const char *part = text + i + 1, *slash = memchr(part, '/', n - i - 1);
                size_t size = slash ? (size_t)(slash - part) : n - i - 1;

                if (size == 0 || (size == 1 && part[0] == '.') || (size == 2 && part[0] == '.' && part[1] == '.'))
                        return needs;
                i += size + 1;
        }
        return NULL;
}

const char *rv__lock_tag(const char *text, size_t n)
{
        return n == 0 || n > 128 || !is_made_of(text, n, "._-") ? "a tag of letters, digits and ._-" : NULL;
}

/* ---- Digests, addresses, texts ---- */

const char *rv__lock_hash(const char *text, size_t n)
{
        static const char needs[] = "\"sha256:\" and 64 digits of lower-case hexadecimal";

        if (n != 71 || !begins(text, n, "sha256:"))
                return needs;
        for (size_t i = 7; i < n; i++)
                if (!is_digit(text[i]) && !(text[i] >= 'a' && text[i] <= 'f'))
                        return needs;
        return NULL;
}

const char *rv__lock_integrity(const char *text, size_t n)
{
        uint8_t digest[64];

        if (!begins(text, n, "sha512-") || rv_base64_read(text + 7, n - 7, digest, sizeof(digest)) != (ssize_t)sizeof(digest))
                return "\"sha512-\" and the base64 of one SHA-512";
        return NULL;
}

const char *rv__lock_url(const char *text, size_t n)
{
        static const char needs[] = "an http or https URL with a host, without credentials, spaces and a fragment";
        size_t at = begins(text, n, "https://") ? 8 : begins(text, n, "http://") ? 7 : 0, host = at;

        if (!at || n > RV_LOCK_URL_MAX)
                return needs;
        for (size_t i = 0; i < n; i++)
                if (text[i] <= ' ' || text[i] > '~' || strchr("#\\\"<>^`{|}", text[i]))
                        return needs;
        while (at < n && text[at] != '/' && text[at] != '?')
                at++;
        if (at == host || text[host] == ':' || memchr(text + host, '@', at - host))
                return needs;
        return NULL;
}

const char *rv__lock_text(const char *text, size_t n, size_t max)
{
        if (n > max)
                return "a shorter text";
        if (!rv_utf8_check(text, n, NULL))
                return "well-formed UTF-8";
        for (size_t i = 0; i < n; i++) {
                uint8_t c = (uint8_t)text[i];

                /* U+0080 to U+009F are control characters as well, and U+2028 and U+2029 end lines. */
                if (c < 0x20 || c == 0x7f || (c == 0xc2 && (uint8_t)text[i + 1] < 0xa0) ||
                    (c == 0xe2 && (uint8_t)text[i + 1] == 0x80 && ((uint8_t)text[i + 2] & 0xfe) == 0xa8))
                        return "a text without control characters";
        }
        return NULL;
}
