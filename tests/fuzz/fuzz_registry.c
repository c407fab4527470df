/*
 * What tells where packages come from: an index's page, which a server sends, and an address in a user's file. Whatever
 * they are, each host that is taken is a canonical name or an address, and no address keeps credentials. And a URL that
 * somebody has for a request: credentials go to their own host alone, below their own path. The first byte says which.
 */
#include "fuzz.h"

#include "package/registry_private.h"
#include "package/registry_credentials.h"
#include "package/registry_secrets.h"

#include <arpa/inet.h>

static bool is_address(const char *text)
{
        unsigned char address[16];

        return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

static void url_of_a_request(const char *text, enum rv_language language)
{
        static const char *const begins[] = { "https://registry.example/npm", "https://registry.example:443/npm", "https://registry.example./npm" };
        struct rv_registry r = { .language = language };
        char header[RV_REGISTRY_AUTHORIZATION_SIZE];
        bool is_there, is_meant = false;
        struct rv__url url;

        rv__secrets_keep_npm(&r.secrets, "//registry.example/npm/:_authToken", "secret");
        is_there = rv_registry_authorization(&r, text, header);
        FUZZ_CHECK(is_there == (*header != 0) && (!is_there || strcmp(header, "Authorization: Bearer secret") == 0));
        if (is_there) {
                FUZZ_CHECK(rv__url_split(text, &url) && url.port == 443 && url.host == url.scheme_end, "%s", text);
                FUZZ_CHECK(strncasecmp(url.host, "registry.example", 16) == 0, "%s", text);
                for (size_t i = 0; i < RV_N_ELEMENTS(begins); i++)
                        is_meant |= strncasecmp(text, begins[i], strlen(begins[i])) == 0;
                FUZZ_CHECK(language == RV_LANGUAGE_PYTHON || is_meant || url.host_end - url.host > 16 || strstr(text, ":0"), "%s", text);
        }
        rv__secrets_free(r.secrets);
}

/* A line of npm's, whatever it is: its credentials have the characters of a header, and the sandbox's text no more lines. */
static void line_of_npm(char *text)
{
        struct rv_registry r = { .language = RV_LANGUAGE_JAVASCRIPT };
        char *equals = strchr(text, '='), header[RV_REGISTRY_AUTHORIZATION_SIZE], url[1000];
        struct rv_registry_tools t;

        if (!equals)
                return;
        *equals = 0;
        rv__secrets_keep_npm(&r.secrets, text, equals + 1);
        if (r.secrets && r.secrets->n) {
                snprintf(url, sizeof(url), "https:%s", r.secrets->items[0].where);
                if (rv_registry_authorization(&r, url, header))
                        for (const char *p = header; *p; p++)
                                FUZZ_CHECK((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f);
        }
        FUZZ_CHECK(rv_registry_resolver_env(&r, "/nonexistent", &t, NULL) == 0 && t.n_env == 1);
        FUZZ_CHECK(!strstr(t.env[0].value, "\nregistry") && !strstr(t.env[0].value, "\n\n"), "%s", t.env[0].value);
        rv_registry_tools_fini(&t);
        rv__secrets_free(r.secrets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_registry *r = calloc(1, sizeof(*r));
        char name[RV_DOMAIN_SIZE], *text;
        const char *plain = NULL;
        size_t n_links = 0;

        FUZZ_CHECK(r);
        if (size && data[0] & 6) {
                text = strndup((const char *)data + 1, size - 1);
                FUZZ_CHECK(text);
                if (data[0] & 2)
                        url_of_a_request(text, data[0] & 4 ? RV_LANGUAGE_PYTHON : RV_LANGUAGE_JAVASCRIPT);
                else
                        line_of_npm(text);
                free(text);
        } else if (size && data[0] & 1) {
                n_links = rv_registry_page_hosts(r, (const char *)data + 1, size - 1);
        } else if (size) {
                text = strndup((const char *)data + 1, size - 1);
                FUZZ_CHECK(text);
                if (rv_registry_add_url(r, text, &plain) == 0) {
                        const char *host = strstr(plain, "://") + 3;

                        n_links = 1;
                        FUZZ_CHECK(memchr(host, '@', strcspn(host, "/?#")) == NULL, "%s", plain);
                        FUZZ_CHECK(rv_registry_add_url(r, plain, NULL) == 0 && r->n_hosts == 1, "%s", plain);
                }
                free(text);
        }
        FUZZ_CHECK(r->n_hosts <= RV_REGISTRY_HOSTS_MAX && (r->n_hosts == 0) == (n_links == 0));
        for (size_t i = 0; i < r->n_hosts; i++)
                FUZZ_CHECK(r->hosts[i].port &&
                                (is_address(r->hosts[i].host) ||
                                        (rv_domain_parse_host(r->hosts[i].host, strlen(r->hosts[i].host), name, NULL) ==
                                                        0 &&
                                                strcmp(name, r->hosts[i].host) == 0)),
                        "%s", r->hosts[i].host);
        rv_registry_free(r);
        return 0;
}
