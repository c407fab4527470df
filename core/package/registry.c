#include "package/registry_private.h"

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

const char *rv__registry_keep_host(struct rv_registry *r, const char *text, size_t n)
{
        char name[RV_DOMAIN_SIZE], literal[INET6_ADDRSTRLEN];
        unsigned char address[16];

        if (n < sizeof(literal)) {
                memcpy(literal, text, n);
                literal[n] = 0;
                if (inet_pton(AF_INET, literal, address) == 1)
                        return rv_arena_strdup(&r->arena, literal);
                if (inet_pton(AF_INET6, literal, address) == 1)
                        return rv_arena_strdup(&r->arena, inet_ntop(AF_INET6, address, literal, sizeof(literal)));
        }
        return rv_domain_parse_host(text, n, name, NULL) == 0 ? rv_arena_strdup(&r->arena, name) : NULL;
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

/* "host", "host:port" or a URL, as `registries.<language>.files` has them. */
void rv__registry_add_host(struct rv_registry *r, const char *text)
{
        char url[512];
        int n = snprintf(url, sizeof(url), "https://%s", text);

        if (strstr(text, "://"))
                (void)rv_registry_add_url(r, text, NULL);
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
        r->source = rv_arena_strdup(&r->arena, source);
        host = r->hosts[at];
        memmove(r->hosts + 1, r->hosts, sizeof(r->hosts[0]) * (size_t)at);
        r->hosts[0] = host;
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

static void take_config(struct rv_registry *r, const struct rv_config_registry *c, const char *source)
{
        if (c->index)
                rv__registry_set_index(r, c->index, source);
        for (size_t i = 0; i < c->files.n_items; i++)
                rv__registry_add_host(r, c->files.items[i]);
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
        rv_arena_fini(&r->arena);
        free(r);
}
