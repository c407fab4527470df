#include "package/registry_private.h"

#include <string.h>
#include <strings.h>

/* The proxy that a registry is reached through. The gate speaks to it in plain HTTP, and knows no credentials. */

static const char *find_fault(const char *text)
{
        const char *scheme_end = strstr(text, "://");

        if (scheme_end && strncasecmp(text, "https://", 8) == 0)
                return "reeve speaks to proxies without TLS (http://) only";
        if (scheme_end && strncasecmp(text, "http://", 7) != 0)
                return "reeve speaks to HTTP proxies (http://) only";
        return strchr(text, '@') ? "reeve does not speak to proxies that want a user's name and password" : NULL;
}

/* So is a proxy turned off that another file names; the latter two are npm's. */
static bool is_none(const char *text)
{
        return !*text || strcmp(text, "null") == 0 || strcmp(text, "false") == 0;
}

void rv__registry_set_proxy(struct rv_registry *r, const char *text)
{
        struct rv__url url;
        char whole[1024];

        if (!text)
                return;
        r->proxy = (struct rv_registry_host){ 0 };
        r->proxy_fault = is_none(text) ? NULL : find_fault(text);
        if (is_none(text) || r->proxy_fault)
                return;
        snprintf(whole, sizeof(whole), "%s%s", strstr(text, "://") ? "" : "http://", text);
        if (strlen(text) + 8 < sizeof(whole) && rv__url_split(whole, &url))
                r->proxy = (struct rv_registry_host){
                        .host = rv__registry_keep_host(r, url.host, (size_t)(url.host_end - url.host)), .port = url.port
                };
        if (!r->proxy.host)
                r->proxy_fault = "it is no address of a proxy";
}

/* "*", "host", ".domain", "domain", each with a port or not. */
static bool names(const char *entry, size_t n, const struct rv_registry_host *host)
{
        const char *colon = memrchr(entry, ':', n);
        size_t n_host = strlen(host->host);
        char *end;

        if (colon && !memchr(entry, ':', (size_t)(colon - entry))) {
                if (strtoul(colon + 1, &end, 10) != host->port || end != entry + n)
                        return false;
                n = (size_t)(colon - entry);
        }
        if (n == 1 && *entry == '*')
                return true;
        for (; n && (*entry == '.' || *entry == '*'); entry++)
                n--;
        return n && n <= n_host && strncasecmp(host->host + n_host - n, entry, n) == 0 &&
                (n == n_host || host->host[n_host - n - 1] == '.');
}

void rv__registry_settle_proxy(struct rv_registry *r)
{
        const char *entry = r->no_proxy;

        while (entry && r->index && *entry) {
                size_t n = strcspn(entry, ", ");

                if (names(entry, n, &r->hosts[0])) {
                        r->proxy = (struct rv_registry_host){ 0 };
                        r->proxy_fault = NULL;
                        return;
                }
                entry += n + strspn(entry + n, ", ");
        }
}
