#include "package/registry_private.h"
#include "package/registry_secrets.h"

#include <arpa/inet.h>
#include <string.h>

/* ---- Addresses ---- */

bool rv__url_split(const char *text, struct rv__url *ret)
{
        const char *end, *at, *colon;
        bool is_tls = strncmp(text, "https://", 8) == 0;

        if (!is_tls && strncmp(text, "http://", 7) != 0)
                return false;
        ret->scheme_end = text + (is_tls ? 8 : 7);
        end = ret->scheme_end + strcspn(ret->scheme_end, "/?#");
        at = memrchr(ret->scheme_end, '@', (size_t)(end - ret->scheme_end));
        ret->host = at ? at + 1 : ret->scheme_end;
        ret->port = is_tls ? 443 : 80;
        ret->host_end = ret->rest = end;
        if (*ret->host == '[') {
                ret->host_end = memchr(ret->host, ']', (size_t)(end - ret->host));
                if (!ret->host_end)
                        return false;
                ret->rest = ret->host_end + 1;
                ret->host++;
        } else {
                colon = memchr(ret->host, ':', (size_t)(end - ret->host));
                if (colon)
                        ret->host_end = ret->rest = colon;
        }
        if (*ret->rest == ':') {
                char *number_end;
                unsigned long port = strtoul(ret->rest + 1, &number_end, 10);

                if (number_end != end || ret->rest + 1 == end || port < 1 || port > UINT16_MAX)
                        return false;
                ret->port = (uint16_t)port;
        } else if (ret->rest != end) {
                return false;
        }
        return ret->host_end > ret->host;
}

bool rv__registry_canonical_host(const char *text, size_t n, char ret[RV_DOMAIN_SIZE])
{
        char literal[INET6_ADDRSTRLEN];
        unsigned char address[16];

        if (n < sizeof(literal)) {
                memcpy(literal, text, n);
                literal[n] = 0;
                if (inet_pton(AF_INET, literal, address) == 1) {
                        memcpy(ret, literal, n + 1);
                        return true;
                }
                if (inet_pton(AF_INET6, literal, address) == 1)
                        return inet_ntop(AF_INET6, address, ret, RV_DOMAIN_SIZE);
        }
        return rv_domain_parse_host(text, n, ret, NULL) == 0;
}

const char *rv__registry_keep_host(struct rv_registry *r, const char *text, size_t n)
{
        char name[RV_DOMAIN_SIZE];

        return rv__registry_canonical_host(text, n, name) ? rv_arena_strdup(&r->arena, name) : NULL;
}

void rv__registry_strip(char *text)
{
        while ((text = strstr(text, "://")) != NULL) {
                size_t n;
                char *at;

                text += 3;
                n = strcspn(text, "/?# \t\r\n");
                at = memrchr(text, '@', n);
                if (at)
                        memmove(text, at + 1, strlen(at + 1) + 1);
        }
}

static const char *without_credentials(struct rv_registry *r, const char *text, const struct rv__url *url)
{
        size_t n_scheme = (size_t)(url->scheme_end - text), n_rest;
        const char *from = url->host[-1] == '[' ? url->host - 1 : url->host;
        char *plain;

        n_rest = strlen(from);
        plain = rv_arena_alloc(&r->arena, n_scheme + n_rest + 1);
        if (!plain)
                return NULL;
        memcpy(plain, text, n_scheme);
        memcpy(plain + n_scheme, from, n_rest + 1);
        return plain;
}

/* Where in the list it is then; -errno. */
static int add(struct rv_registry *r, const char *text, const char **ret_plain)
{
        struct rv__url url;
        const char *host, *plain;

        if (!rv__url_split(text, &url))
                return rv_raise(-EINVAL);
        host = rv__registry_keep_host(r, url.host, (size_t)(url.host_end - url.host));
        plain = without_credentials(r, text, &url);
        if (!host || !plain)
                return rv_raise(host ? -ENOMEM : -EINVAL);
        if (ret_plain)
                *ret_plain = plain;
        for (size_t i = 0; i < r->n_hosts; i++)
                if (r->hosts[i].port == url.port && strcmp(r->hosts[i].host, host) == 0)
                        return (int)i;
        if (r->n_hosts == RV_REGISTRY_HOSTS_MAX)
                return rv_raise(-ENOSPC);
        r->hosts[r->n_hosts] = (struct rv_registry_host){ .host = host, .port = url.port };
        return (int)r->n_hosts++;
}

int rv_registry_add_url(struct rv_registry *r, const char *text, const char **ret_plain)
{
        int at = add(r, text, ret_plain);

        return at < 0 ? rv_trace(at) : 0;
}

void rv_registry_learn(struct rv_registry *r, const char *url)
{
        size_t n = r->n_hosts;

        if (rv_registry_add_url(r, url, NULL) == 0 && r->n_hosts > n)
                r->hosts[n].is_learned = true;
}

static int add_secret(struct rv_registry *r, enum rv__secret_kind kind, const char *url, const char **ret_plain)
{
        const char *plain;
        int e = rv_registry_add_url(r, url, &plain);

        if (e < 0)
                return rv_trace(e);
        rv__secrets_keep_url(&r->secrets, kind, url, plain);
        if (ret_plain)
                *ret_plain = plain;
        return 0;
}

int rv__registry_add_extra(struct rv_registry *r, const char *url, const char **ret_plain)
{
        return rv_trace(add_secret(r, RV__SECRET_EXTRA, url, ret_plain));
}

/* "host", "host:port" or a URL, as `registries.<language>.files` has them. */
void rv__registry_add_host(struct rv_registry *r, const char *text)
{
        char url[512];
        int n = snprintf(url, sizeof(url), "https://%s", text);

        if (strstr(text, "://"))
                (void)add_secret(r, RV__SECRET_OTHER, text, NULL);
        else if (n > 0 && (size_t)n < sizeof(url))
                (void)rv_registry_add_url(r, url, NULL);
}

void rv__registry_set_index(struct rv_registry *r, const char *url, const char *source)
{
        struct rv_registry_host host;
        int at;

        /* The index's host is the first. */
        if (r->index)
                memmove(r->hosts, r->hosts + 1, sizeof(r->hosts[0]) * --r->n_hosts);
        r->index = NULL;
        at = add(r, url, &r->index);
        if (at < 0)
                return;
        rv__secrets_keep_url(&r->secrets, RV__SECRET_INDEX, url, r->index);
        r->source = rv_arena_strdup(&r->arena, source);
        host = r->hosts[at];
        memmove(r->hosts + 1, r->hosts, sizeof(r->hosts[0]) * (size_t)at);
        r->hosts[0] = host;
}

/* ---- Scopes ---- */

void rv__registry_set_scope(struct rv_registry *r, const char *scope, size_t n_scope, const char *url)
{
        struct rv_registry_scope *s = r->scopes, *end = r->scopes + r->n_scopes;
        const char *name, *with;

        if (n_scope < 2 || strspn(scope + 1, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._~-") < n_scope - 1)
                return;
        while (s < end && (strncmp(s->name, scope, n_scope) != 0 || s->name[n_scope]))
                s++;
        if (s == r->scopes + RV_REGISTRY_SCOPES_MAX)
                return;
        name = rv_arena_strndup(&r->arena, scope, n_scope);
        with = rv_arena_strdup(&r->arena, url);
        if (!name || !with)
                return;
        /* With its credentials for now: a later file's is in place of it. */
        if (s < end)
                explicit_bzero((char *)s->url, strlen(s->url));
        *s = (struct rv_registry_scope){ name, with };
        r->n_scopes += s == end;
}

void rv__registry_add_scopes(struct rv_registry *r)
{
        for (size_t i = 0; i < r->n_scopes; i++) {
                char *with = (char *)r->scopes[i].url;
                const char *plain = NULL;

                /* One that is no address stays, so that its packages are not looked for in the index. */
                if (add_secret(r, RV__SECRET_OTHER, with, &plain) < 0) {
                        rv__registry_strip(with);
                        continue;
                }
                r->scopes[i].url = plain;
                explicit_bzero(with, strlen(with));
        }
}

const char *rv_registry_base(const struct rv_registry *r, const char *package)
{
        size_t n = *package == '@' ? strcspn(package, "/") : 0;

        for (size_t i = 0; n && i < r->n_scopes; i++)
                if (strncmp(r->scopes[i].name, package, n) == 0 && !r->scopes[i].name[n])
                        return r->scopes[i].url;
        return r->index;
}

/* ---- Links ---- */

size_t rv_registry_page_hosts(struct rv_registry *r, const char *text, size_t n)
{
        const char *end = text + n, *at = text;
        size_t n_links = 0;

        /* In HTML href="…", in JSON "url": "…": both are a quote before an address. */
        while (at < end && (at = memmem(at, (size_t)(end - at), "http", 4)) != NULL) {
                char url[1024];
                size_t k = 0;

                while (at > text && at + k < end && k < sizeof(url) - 1 && at[k] != at[-1] && at[k] != '\n') {
                        url[k] = at[k];
                        k++;
                }
                url[k] = 0;
                if (at > text && (at[-1] == '"' || at[-1] == '\'') && at + k < end && at[k] == at[-1] && memchr(url, 0, k) == NULL &&
                    rv_registry_add_url(r, url, NULL) == 0)
                        n_links++;
                at += 4;
        }
        return n_links;
}

/* ---- The configuration ---- */

static const struct rv_config_registry *find_in(const struct rv_config_registries *list, const char *language)
{
        for (size_t i = 0; i < list->n_items; i++)
                if (strcmp(list->items[i].language, language) == 0)
                        return &list->items[i];
        return NULL;
}

/* The configuration's own list, as it stands there. */
static void name_files(struct rv_registry *r, const struct rv_config_list *files)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        for (size_t i = 0; i < files->n_items; i++)
                rv_buf_printf(&text, "%s%s", text.size ? " " : "", files->items[i]);
        if (!text.size || rv_buf_error(&text) < 0)
                return;
        rv__registry_strip(text.data);
        r->files = rv_arena_strdup(&r->arena, text.data);
        explicit_bzero(text.data, text.size);
}

static void take_config(struct rv_registry *r, const struct rv_config_registry *c, const char *source)
{
        if (c->index)
                rv__registry_set_index(r, c->index, source);
        for (size_t i = 0; i < c->files.n_items; i++)
                rv__registry_add_host(r, c->files.items[i]);
        name_files(r, &c->files);
        r->has_files = c->files.n_items > 0;
        r->ca = c->ca ? rv_arena_strdup(&r->arena, c->ca) : NULL;
        rv__registry_set_proxy(r, c->proxy);
}

static const char *get_own(void *arg, const char *name)
{
        (void)arg;
        return getenv(name);
}

int rv_registry_find(const struct rv_config *config, const struct rv_config_tenant *tenant, enum rv_language language,
        const struct rv_registry_view *view, struct rv_registry **ret)
{
        static const struct rv_registry_view own = { .root = "", .get = get_own };
        const struct rv_config_registry *of_tenant = find_in(&tenant->registries, rv_language_name(language));
        const struct rv_config_registry *common = find_in(&config->registries, rv_language_name(language));
        struct rv_registry *r = calloc(1, sizeof(*r));

        if (!r)
                return rv_raise(-ENOMEM);
        r->language = language;
        if (of_tenant)
                take_config(r, of_tenant, "the tenant's configuration");
        else if (common)
                take_config(r, common, "the configuration");
        else if (language == RV_LANGUAGE_PYTHON)
                rv__registry_read_pip(r, view ? view : &own);
        else
                rv__registry_read_npm(r, view ? view : &own);
        rv__registry_settle_proxy(r);
        *ret = r;
        return 0;
}

void rv_registry_free(struct rv_registry *r)
{
        if (!r)
                return;
        rv__secrets_free(r->secrets);
        rv_arena_fini(&r->arena);
        free(r);
}
