/*
 * What tells where packages come from: an index's page, which a server sends, and an address in a user's file. Whatever
 * they are, each host that is taken is a canonical name or an address, and no address keeps credentials. The first byte
 * says which.
 */
#include "fuzz.h"

#include "package/registry.h"

#include <arpa/inet.h>

static bool is_address(const char *text)
{
        unsigned char address[16];

        return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_registry *r = calloc(1, sizeof(*r));
        char name[RV_DOMAIN_SIZE], *text;
        const char *plain = NULL;
        size_t n_links = 0;

        FUZZ_CHECK(r);
        if (size && data[0] & 1) {
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
