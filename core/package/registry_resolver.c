#include "package/registry_credentials.h"

#include "package/registry_private.h"
#include "package/registry_secrets.h"

#include <string.h>

/* What is the same whatever the registry says. Addresses, certificates and credentials come with it. */
static const char *const fixed_python[][2] = {
        { "UV_NO_CONFIG", "1" },
        { "UV_HTTP_RETRIES", "0" },
        { "UV_HTTP_TIMEOUT", "10" },
        { "UV_PYTHON_DOWNLOADS", "never" },
        { "UV_KEYRING_PROVIDER", "disabled" },
        { "UV_NO_PROGRESS", "1" },
        { "PIP_CONFIG_FILE", "/dev/null" },
        { "PIP_NO_INPUT", "1" },
        { "PIP_DISABLE_PIP_VERSION_CHECK", "1" },
        { "PIP_RETRIES", "0" },
        { "PIP_DEFAULT_TIMEOUT", "10" },
};

static const char *const fixed_npmrc[][2] = {
        { "omit-lockfile-registry-resolved", "true" },       /* so that no host's name gets into a lock */
        { "fetch-retries", "0" },
        { "fetch-timeout", "10000" },
        { "update-notifier", "false" },
        { "audit", "false" },
        { "fund", "false" },
        { "ignore-scripts", "true" },
        { "progress", "false" },
};

/* The address with its credentials, if it has any. */
static const char *whole(const struct rv_registry *r, enum rv__secret_kind kind, const char *plain)
{
        for (size_t i = 0; r->secrets && i < r->secrets->n; i++)
                if (r->secrets->items[i].kind == kind && strcmp(r->secrets->items[i].where, plain) == 0)
                        return r->secrets->items[i].url;
        return plain;
}

/* As a text that may hold credentials ends. */
static int take(struct rv_registry_tools *t, const char *name, struct rv_buf *text)
{
        int e = rv_buf_error(text);

        if (e == 0 && text->size)
                e = rv__registry_tools_add(t, name, text->data);
        if (text->data)
                explicit_bzero(text->data, text->size);
        rv_buf_fini(text);
        return rv_trace(e);
}

/* ---- Python ---- */

/* uv asks its further indexes first, and pip all of them; with either the list is one of words. */
static int add_further(struct rv_registry_tools *t, const struct rv_registry *r, const char *name)
{
        struct rv_buf text = { 0 };
        const char *entry = r->extra_index;

        (void)rv_buf_reserve(&text, 2 * RV__SECRET_BYTES_MAX);       /* so that it seldom moves */
        while (entry && *entry) {
                size_t n = strcspn(entry, " ");
                _cleanup_(rv_freep) char *plain = strndup(entry, n);

                if (!plain)
                        text.is_failed = true;
                else
                        rv_buf_printf(&text, "%s%s", text.size ? " " : "", whole(r, RV__SECRET_EXTRA, plain));
                entry += n + strspn(entry + n, " ");
        }
        return rv_trace(take(t, name, &text));
}

static int add_python(struct rv_registry_tools *t, const struct rv_registry *r, const char *ca)
{
        static const char *const of_ca[] = { "SSL_CERT_FILE", "PIP_CERT" };
        int e = 0;

        if (r->index) {
                e = rv__registry_tools_add(t, "UV_DEFAULT_INDEX", whole(r, RV__SECRET_INDEX, r->index));
                if (e == 0)
                        e = rv__registry_tools_add(t, "PIP_INDEX_URL", whole(r, RV__SECRET_INDEX, r->index));
        }
        if (e == 0)
                e = add_further(t, r, "UV_INDEX");
        if (e == 0)
                e = add_further(t, r, "PIP_EXTRA_INDEX_URL");
        if (e == 0)
                e = rv__registry_tools_add_trust(t, r);
        for (size_t i = 0; i < RV_N_ELEMENTS(of_ca) && ca && e == 0; i++)
                e = rv__registry_tools_add(t, of_ca[i], ca);
        for (size_t i = 0; i < RV_N_ELEMENTS(fixed_python) && e == 0; i++)
                e = rv__registry_tools_add(t, fixed_python[i][0], fixed_python[i][1]);
        return rv_trace(e);
}

/* ---- npm ---- */

/* Values are quoted as in JSON: npm's reader takes them so, and nothing in one can begin another line. */
static void add_line(struct rv_buf *text, const char *key, const char *field, const char *value)
{
        rv_buf_printf(text, "%s%s=\"", key, field);
        for (; *value; value++) {
                if ((unsigned char)*value < 0x20)
                        rv_buf_printf(text, "\\u%04x", *value);
                else
                        rv_buf_printf(text, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
        }
        rv_buf_puts(text, "\"\n");
}

/* "//host/path/" of an address, as npm looks for it. */
static char *npm_place(const char *url)
{
        const char *from = strstr(url, "://") + 1, *end = from + strcspn(from, "?#");
        char *place;
        int n;

        while (end > from + 2 && end[-1] == '/')
                end--;
        n = asprintf(&place, "%.*s/", (int)(end - from), from);
        return n < 0 ? NULL : place;
}

static void add_secret(struct rv_buf *text, const struct rv__secret *s)
{
        _cleanup_(rv_freep) char *place = s->kind == RV__SECRET_NPM ? strdup(s->where) : npm_place(s->where);
        char *basic = s->token ? NULL : rv__secret_basic(s);

        if (!place)
                text->is_failed = true;
        else if (s->token)
                add_line(text, place, ":_authToken", s->token);
        else if (basic)
                add_line(text, place, ":_auth", basic);
        rv__secret_drop(basic);
}

static int add_npm(struct rv_registry_tools *t, const struct rv_registry *r, const char *ca)
{
        struct rv_buf text = { 0 };

        (void)rv_buf_reserve(&text, 4 * RV__SECRET_BYTES_MAX);
        if (r->index)
                add_line(&text, "registry", "", r->index);
        for (size_t i = 0; i < r->n_scopes; i++)
                add_line(&text, r->scopes[i].name, ":registry", r->scopes[i].url);
        /* npm's own lines come last: of two for one place it takes the last. */
        for (int is_npm = 0; is_npm < 2; is_npm++)
                for (size_t i = 0; r->secrets && i < r->secrets->n; i++)
                        if ((r->secrets->items[i].kind == RV__SECRET_NPM) == is_npm)
                                add_secret(&text, &r->secrets->items[i]);
        if (ca)
                add_line(&text, "cafile", "", ca);
        for (size_t i = 0; i < RV_N_ELEMENTS(fixed_npmrc); i++)
                rv_buf_printf(&text, "%s=%s\n", fixed_npmrc[i][0], fixed_npmrc[i][1]);
        return rv_trace(take(t, "REEVE_NPMRC", &text));
}

int rv_registry_resolver_env(
        const struct rv_registry *r, const char *root, struct rv_registry_tools *ret, struct rv_error *err)
{
        struct rv_registry_tools t = { 0 };
        const char *ca = NULL;
        int e = rv__registry_tools_ca(&t, r, root, &ca, err);

        if (e == 0)
                e = r->language == RV_LANGUAGE_PYTHON ? add_python(&t, r, ca) : add_npm(&t, r, ca);
        if (e < 0) {
                rv_registry_tools_fini(&t);
                return rv_trace(e);
        }
        *ret = t;
        return 0;
}
