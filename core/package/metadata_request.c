#include "package/metadata_private.h"

#include "base/clock.h"
#include "package/registry_credentials.h"

#include <stdio.h>
#include <string.h>

/* Which hosts may be asked, and what a request to them needs. */

/* A host in the spelling of the registry's list, without brackets. */
static bool host_of(const char *url, char *ret, size_t size, struct rv__url *parts)
{
        char name[RV_DOMAIN_SIZE];
        size_t n;

        if (!rv_index_is_url(url) || !rv__url_split(url, parts))
                return false;
        n = (size_t)(parts->host_end - parts->host);
        if (n >= size)
                return false;
        memcpy(ret, parts->host, n);
        ret[n] = 0;
        if (rv_domain_parse_host(ret, n, name, NULL) == 0 && strlen(name) < size)
                memcpy(ret, name, strlen(name) + 1);
        return true;
}

static const struct rv_registry_host *find_host(const struct rv_registry *r, const char *host, uint16_t port)
{
        for (size_t i = 0; i < r->n_hosts; i++)
                if (r->hosts[i].port == port && strcmp(r->hosts[i].host, host) == 0)
                        return &r->hosts[i];
        return NULL;
}

static bool is_at(const char *url, const char *host, uint16_t port)
{
        char other[RV_DOMAIN_SIZE];
        struct rv__url parts;

        return url && host_of(url, other, sizeof(other), &parts) && parts.port == port && strcmp(other, host) == 0;
}

/* Does a file of the page lie there? */
static bool page_names(const json_t *page, const char *host, uint16_t port)
{
        const char *name;
        json_t *version, *file;
        size_t i;

        json_object_foreach(json_object_get(page, "versions"), name, version) {
                if (is_at(rv_json_get_string(version, "tarball", NULL), host, port))
                        return true;
                json_array_foreach(json_object_get(version, "files"), i, file)
                        if (is_at(rv_json_get_string(file, "url", NULL), host, port))
                                return true;
        }
        return false;
}

static int set_resolve(const struct rv_config *config, const char *host, uint16_t port, struct rv_arena *arena,
        struct rv_fetch_request *q)
{
        char text[RV_DOMAIN_SIZE + 64];
        const char **list;

        for (size_t i = 0; config && i < config->egress.resolve.n_items; i++) {
                const struct rv_config_pair *pair = &config->egress.resolve.items[i];

                if (strcmp(pair->name, host) != 0)
                        continue;
                snprintf(text, sizeof(text), strchr(pair->value, ':') ? "%s:%u:[%s]" : "%s:%u:%s", host, port, pair->value);
                list = rv_arena_array(arena, 1, sizeof(*list));
                if (!list)
                        return rv_raise(-ENOMEM);
                list[0] = rv_arena_strdup(arena, text);
                if (!list[0])
                        return rv_raise(-ENOMEM);
                q->resolve = list;
                q->n_resolve = 1;
        }
        return 0;
}

static int set_proxy(const struct rv_registry *r, struct rv_arena *arena, struct rv_fetch_request *q)
{
        char text[RV_DOMAIN_SIZE + 24];

        if (!r->proxy.host)
                return 0;
        snprintf(text, sizeof(text), strchr(r->proxy.host, ':') ? "http://[%s]:%u" : "http://%s:%u", r->proxy.host, r->proxy.port);
        q->proxy = rv_arena_strdup(arena, text);
        return q->proxy ? 0 : rv_raise(-ENOMEM);
}

static int set_credentials(const struct rv_registry *r, struct rv_arena *arena, struct rv_fetch_request *q)
{
        char header[RV_REGISTRY_AUTHORIZATION_SIZE];
        const char **list, *copy;

        if (!rv_registry_authorization(r, q->url, header))
                return 0;
        list = rv_arena_array(arena, q->n_headers + 1, sizeof(*list));
        copy = rv_arena_strdup(arena, header);
        explicit_bzero(header, sizeof(header));
        if (!list || !copy)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < q->n_headers; i++)
                list[i] = q->headers[i];
        list[q->n_headers++] = copy;
        q->headers = list;
        return 0;
}

void rv_metadata_request_wipe(struct rv_fetch_request *q)
{
        for (size_t i = 0; i < q->n_headers; i++)
                if (strncmp(q->headers[i], "Authorization:", 14) == 0)
                        explicit_bzero((char *)q->headers[i], strlen(q->headers[i]));
}

static uint64_t time_left_ms(const struct rv_metadata_source *src)
{
        uint64_t now = rv_boot_us();

        return src->deadline_us > now ? RV_MIN((src->deadline_us - now) / 1000 + 1, (uint64_t)RV_METADATA_PAGE_MS) : 1;
}

int rv_metadata_request(const struct rv_metadata_source *src, const json_t *page, const char *url,
        struct rv_arena *arena, struct rv_fetch_request *q)
{
        const struct rv_registry *registry = src->registry;
        const struct rv_registry_host *known;
        struct rv_fetch_request request = *q;
        char host[RV_DOMAIN_SIZE];
        struct rv__url parts;
        int r;

        if (!host_of(url, host, sizeof(host), &parts))
                return rv_raise(-EINVAL);
        known = find_host(registry, host, parts.port);
        if (!known) {
                bool is_plain = strncmp(url, "http://", 7) == 0;

                if (is_plain && registry->index && strncmp(registry->index, "http://", 7) != 0)
                        return RV_METADATA_E_HOST;
                if (!page || !page_names(page, host, parts.port))
                        return RV_METADATA_E_HOST;
        }
        request.url = rv_arena_strdup(arena, url);
        request.ca = registry->ca;
        request.timeout_ms = time_left_ms(src);
        request.is_public_only = !known || known->is_learned;
        r = request.url ? set_resolve(src->config, host, parts.port, arena, &request) : rv_raise(-ENOMEM);
        if (r == 0)
                r = set_proxy(registry, arena, &request);
        if (r == 0)
                r = set_credentials(registry, arena, &request);
        if (r < 0)
                return rv_trace(r);
        *q = request;
        return 0;
}
