#include "audit/bundle_cache.h"

#include <stdio.h>
#include <string.h>

#define DIGEST_CHARACTERS 64

static int load(const struct rv_bundle_cache *c, const char *digest, struct rv_bundle **ret)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = NULL;
        char path[128];
        int r;

        r = rv_bundle_builtin(&bundle);
        if (r < 0)
                return rv_trace(r);
        if (strcmp(rv_bundle_digest(bundle), digest) != 0 && c->dir_fd >= 0) {
                rv_bundle_free(rv_take(&bundle));
                /* The directory may be out of reach by its path. */
                snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", c->dir_fd, digest);
                r = rv_bundle_load(path, &bundle, NULL);
        }
        if (r == -ENOMEM)
                return rv_trace(r);
        *ret = bundle && strcmp(rv_bundle_digest(bundle), digest) == 0 ? rv_take(&bundle) : NULL;
        return 0;
}

int rv_bundle_cache_get(struct rv_bundle_cache *c, const char *digest, size_t n, const struct rv_bundle **ret)
{
        char name[DIGEST_CHARACTERS + 1];
        size_t oldest = 0;
        int r;

        *ret = NULL;
        if (n != DIGEST_CHARACTERS)
                return 0;
        memcpy(name, digest, n);
        name[n] = 0;
        if (strspn(name, "0123456789abcdef") != n)
                return 0;
        for (size_t i = 0; i < RV_BUNDLE_CACHE_MAX; i++) {
                if (strcmp(c->entries[i].digest, name) == 0) {
                        c->entries[i].used = ++c->clock;
                        *ret = c->entries[i].bundle;
                        return 0;
                }
                if (c->entries[i].used < c->entries[oldest].used)
                        oldest = i;
        }
        rv_bundle_free(rv_take(&c->entries[oldest].bundle));
        c->entries[oldest].digest[0] = 0;
        r = load(c, name, &c->entries[oldest].bundle);
        if (r < 0)
                return rv_trace(r);
        memcpy(c->entries[oldest].digest, name, sizeof(name));
        c->entries[oldest].used = ++c->clock;
        *ret = c->entries[oldest].bundle;
        return 0;
}

void rv_bundle_cache_fini(struct rv_bundle_cache *c)
{
        for (size_t i = 0; i < RV_BUNDLE_CACHE_MAX; i++) {
                rv_bundle_free(c->entries[i].bundle);
                c->entries[i].bundle = NULL;
                c->entries[i].digest[0] = 0;
        }
}
