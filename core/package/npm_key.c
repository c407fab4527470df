#include "package/npm_key.h"

#include <string.h>
#include <strings.h>

#define MODULES "node_modules/"
#define NAME_SIZE_MAX 214
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-!'()*"

static bool is_part(const char *text, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (!text[i] || !strchr(NAME_CHARACTERS, text[i]))
                        return false;
        return n > 0 && text[0] != '.' && !(n == strlen("node_modules") && strncasecmp(text, "node_modules", n) == 0);
}

bool rv_npm_name_is_valid(const char *name, size_t n)
{
        const char *slash;

        if (n > NAME_SIZE_MAX)
                return false;
        if (n == 0 || name[0] != '@')
                return is_part(name, n);
        slash = memchr(name, '/', n);
        return slash && is_part(name + 1, (size_t)(slash - name - 1)) &&
                is_part(slash + 1, n - (size_t)(slash + 1 - name));
}

/* The size of the name that begins here and ends at a slash or at the end; a scope has a slash of its own. */
static size_t name_size(const char *text)
{
        size_t n = strcspn(text, "/");

        return text[0] == '@' && text[n] ? n + 1 + strcspn(text + n + 1, "/") : n;
}

bool rv_npm_key_is_valid(const char *key)
{
        if (strlen(key) > RV_NPM_KEY_SIZE_MAX)
                return false;
        for (;;) {
                size_t n;

                if (strncmp(key, MODULES, strlen(MODULES)) != 0)
                        return false;
                key += strlen(MODULES);
                n = name_size(key);
                if (!rv_npm_name_is_valid(key, n))
                        return false;
                key += n;
                if (!*key)
                        return true;
                key++;
        }
}

size_t rv_npm_key_parent(const char *key, size_t n)
{
        size_t last = 0;

        /* No name is called `node_modules` (is_part). */
        for (size_t i = 0; i + strlen(MODULES) <= n; i++)
                if ((i == 0 || key[i - 1] == '/') && strncmp(key + i, MODULES, strlen(MODULES)) == 0)
                        last = i;
        return last ? last - 1 : 0;
}

const char *rv_npm_key_name(const char *key)
{
        size_t parent = rv_npm_key_parent(key, strlen(key));

        return key + (parent ? parent + 1 : 0) + strlen(MODULES);
}

bool rv_npm_spec_is_plain(const char *spec)
{
        if (strncmp(spec, "npm:", 4) == 0) {
                size_t n;

                spec += 4;
                n = spec[0] ? strcspn(spec + 1, "@") + 1 : 0;
                if (!rv_npm_name_is_valid(spec, n))
                        return false;
                spec += n + (spec[n] == '@');
        }
        return strlen(spec) <= 4096 && !strpbrk(spec, ":/\\") && spec[0] != '.' && strncmp(spec, "~.", 2) != 0;
}
