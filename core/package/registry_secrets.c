#include "package/registry_secrets.h"

#include "base/base64.h"

#include <stdio.h>
#include <string.h>

#define NPM_PLACE "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._~:/%@+-[]"
#define BASE64 "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/="

void rv__secret_drop(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

static void drop_all(struct rv__secret *s)
{
        rv__secret_drop(s->where);
        rv__secret_drop(s->url);
        rv__secret_drop(s->token);
        rv__secret_drop(s->basic);
        rv__secret_drop(s->user);
        rv__secret_drop(s->password);
}

void rv__secrets_free(struct rv__secrets *all)
{
        for (size_t i = 0; all && i < all->n; i++)
                drop_all(&all->items[i]);
        free(all);
}

static void set(char **field, const char *value)
{
        char *before = *field;

        *field = value && *value ? strdup(value) : NULL;
        rv__secret_drop(before);
}

/* The place's, made if there is none. */
static struct rv__secret *find(struct rv__secrets **all, enum rv__secret_kind kind, const char *where)
{
        struct rv__secret *s;

        if (!*all)
                *all = calloc(1, sizeof(**all));
        if (!*all)
                return NULL;
        for (size_t i = 0; i < (*all)->n; i++)
                if ((*all)->items[i].kind == kind && strcmp((*all)->items[i].where, where) == 0)
                        return &(*all)->items[i];
        if ((*all)->n == RV__SECRETS_MAX)
                return NULL;
        s = &(*all)->items[(*all)->n];
        *s = (struct rv__secret){ .kind = kind, .where = strdup(where) };
        if (!s->where)
                return NULL;
        (*all)->n++;
        return s;
}

static void drop_index(struct rv__secrets *all)
{
        for (size_t i = 0; all && i < all->n; i++)
                if (all->items[i].kind == RV__SECRET_INDEX) {
                        drop_all(&all->items[i]);
                        all->items[i] = all->items[--all->n];
                        return;
                }
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 0x20;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-encoding undone. Returns how many bytes. */
static size_t decode(const char *from, size_t n, char *ret)
{
        size_t k = 0;

        for (size_t i = 0; i < n; i++) {
                bool is_escape = from[i] == '%' && i + 2 < n && hex_digit(from[i + 1]) >= 0 &&
                        hex_digit(from[i + 2]) >= 0;

                ret[k++] = is_escape ? (char)(hex_digit(from[i + 1]) * 16 + hex_digit(from[i + 2])) : from[i];
                i += is_escape ? 2 : 0;
        }
        return k;
}

/* Of "user:password" or "user", as it stands in an address. */
static char *basic_of(const char *userinfo, size_t n)
{
        char plain[RV__SECRET_BYTES_MAX + 1], text[RV_BASE64_SIZE(sizeof(plain))], *copy;
        const char *colon = memchr(userinfo, ':', n);
        size_t n_user = colon ? (size_t)(colon - userinfo) : n, k = decode(userinfo, n_user, plain);

        plain[k++] = ':';
        if (colon)
                k += decode(colon + 1, n - n_user - 1, plain + k);
        rv_base64(plain, k, text);
        copy = strdup(text);
        explicit_bzero(plain, sizeof(plain));
        explicit_bzero(text, sizeof(text));
        return copy;
}

void rv__secrets_keep_url(struct rv__secrets **all, enum rv__secret_kind kind, const char *url, const char *plain)
{
        const char *begin = strstr(url, "://"), *end, *at;
        struct rv__secret *s;

        if (kind == RV__SECRET_INDEX)
                drop_index(*all);
        if (!begin)
                return;
        begin += 3;
        end = begin + strcspn(begin, "/?#");
        at = memrchr(begin, '@', (size_t)(end - begin));
        if (!at || at == begin || (size_t)(at - begin) >= RV__SECRET_BYTES_MAX)
                return;
        s = find(all, kind, plain);
        if (!s)
                return;
        set(&s->url, url);
        rv__secret_drop(s->basic);
        s->basic = basic_of(begin, (size_t)(at - begin));
}

/* ---- npm's ---- */

static bool is_printable(const char *s)
{
        for (; *s; s++)
                if (*s <= 0x20 || *s >= 0x7f)
                        return false;
        return true;
}

static char **field_of(struct rv__secret *s, const char *name)
{
        if (strcmp(name, "_authToken") == 0)
                return &s->token;
        if (strcmp(name, "_auth") == 0)
                return &s->basic;
        if (strcmp(name, "username") == 0)
                return &s->user;
        return strcmp(name, "_password") == 0 ? &s->password : NULL;
}

void rv__secrets_keep_npm(struct rv__secrets **all, const char *key, const char *value)
{
        const char *name = strrchr(key, ':');
        char where[600];
        struct rv__secret none = { 0 }, *s;
        size_t n;

        if (strncmp(key, "//", 2) != 0 || !name || name == key + 2 || !field_of(&none, name + 1))
                return;
        n = (size_t)(name - key);
        while (n > 2 && key[n - 1] == '/')
                n--;
        if (n == 2 || n + 2 > sizeof(where) || strspn(key, NPM_PLACE) < n || strlen(value) > RV__SECRET_BYTES_MAX)
                return;
        /* A variable that is not set is no credential. */
        if (strstr(value, "${") || (strcmp(name + 1, "username") != 0 && !is_printable(value)))
                value = "";
        if ((strcmp(name + 1, "_auth") == 0 || strcmp(name + 1, "_password") == 0) && value[strspn(value, BASE64)])
                value = "";
        snprintf(where, sizeof(where), "%.*s/", (int)n, key);
        s = find(all, RV__SECRET_NPM, where);
        if (s)
                set(field_of(s, name + 1), value);
}

char *rv__secret_basic(const struct rv__secret *s)
{
        char plain[2 * RV__SECRET_BYTES_MAX + 2], text[RV_BASE64_SIZE(sizeof(plain))], *copy = NULL;
        ssize_t k;
        size_t n;

        if (s->basic)
                return strdup(s->basic);
        if (!s->user || !s->password)
                return NULL;
        n = strlen(s->user);
        memcpy(plain, s->user, n);
        plain[n++] = ':';
        k = rv_base64_read(s->password, strlen(s->password), (uint8_t *)plain + n, RV__SECRET_BYTES_MAX);
        if (k >= 0 && n + (size_t)k <= RV__SECRET_BYTES_MAX) {
                rv_base64(plain, n + (size_t)k, text);
                copy = strdup(text);
                explicit_bzero(text, sizeof(text));
        }
        explicit_bzero(plain, sizeof(plain));
        return copy;
}
